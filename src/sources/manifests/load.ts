import type { Log } from '../../base/log.js';
import type { ManifestsSource } from '../../config/config.js';
import type { Row } from '../../state/rows.js';
import { refOf } from '../../state/rows.js';
import type { SourceWriter, StateChange } from '../../state/writer.js';
import { PollTimer } from './poll-timer.js';
import { printRef, refKey } from './content.js';
import type { Problem, ProblemSink } from './problems.js';
import { openLocation } from './start.js';
import { DEFAULT_TIMING } from './timing.js';

interface LoadedManifests {
  readonly rows: readonly Row[];
  /** In the order of locations and files; {@link Problem.severity} gives their meaning. */
  readonly problems: readonly Problem[];
  /** Whether every location could be read, though there may be problems in it. */
  readonly complete: boolean;
}

const SILENT: Log = { info: () => undefined, warn: () => undefined, error: () => undefined };

/** Reads manifests once. If several locations have the same object, the first counts. */
export async function loadManifests(locations: readonly ManifestsSource[]): Promise<LoadedManifests> {
  const rows = new Map<string, Row>();
  const problems: Problem[] = [];
  let complete = true;
  for (const source of locations) {
    const collected = new Collector();
    const dependencies = {
      writer: collected,
      problems: collected,
      log: SILENT,
      timing: DEFAULT_TIMING,
      timer: new PollTimer(),
    };
    const location = openLocation(source, dependencies);
    await location.round();
    location.close();
    problems.push(...collected.problems);
    complete &&= collected.completed;
    for (const row of collected.rows) {
      const ref = refOf(row);
      const key = refKey(ref);
      if (!rows.has(key)) rows.set(key, row);
      else problems.push(duplicate(source.name, printRef(ref)));
    }
  }
  return { rows: [...rows.values()], problems, complete };
}

function duplicate(file: string, object: string): Problem {
  return {
    severity: 'error',
    file,
    document: null,
    object,
    message: 'is also in an earlier location, whose version counts',
  };
}

/** Takes one round of a location as it comes. */
class Collector implements SourceWriter, ProblemSink {
  readonly rows: Row[] = [];
  readonly problems: Problem[] = [];
  completed = false;

  apply(changes: readonly StateChange[]): void {
    for (const change of changes) if (change.type === 'upsert') this.rows.push(change.row);
  }

  complete(): void {
    this.completed = true;
  }

  /** Nothing to do: the problems report unreadable objects. */
  unsynced(): void {
    return;
  }

  report(_group: string, problems: readonly Problem[]): void {
    this.problems.push(...problems);
  }
}
