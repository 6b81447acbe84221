import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { dump } from 'js-yaml';
import { systemFiles } from '../../src/config/files.js';
import { parseCommandLine } from '../../src/config/flags.js';
import { readManifests } from '../../src/config/manifests-sources.js';
import type { ManifestsSource } from '../../src/config/config.js';
import { startManifests, type RunningManifests } from '../../src/sources/manifests/start.js';
import { DEFAULT_TIMING, type Timing } from '../../src/sources/manifests/timing.js';
import { Store } from '../../src/state/store.js';
import type { SourceWriter, StateChange, Writer } from '../../src/state/writer.js';
import { serviceObject } from './api-objects.js';
import { RecordingLog } from './recording-log.js';

/** A store that keeps count of what came in. */
export class CountingWriter implements Writer {
  readonly store = new Store();
  readonly commits: (readonly StateChange[])[] = [];
  completed = 0;

  register(source: string): SourceWriter {
    const writer = this.store.register(source);
    return {
      apply: (changes) => {
        this.commits.push(changes);
        writer.apply(changes);
      },
      complete: () => {
        this.completed++;
        writer.complete();
      },
      unsynced: (present) => {
        writer.unsynced(present);
      },
    };
  }
}

interface Teardown {
  teardown(work: () => unknown): unknown;
}

/** Manifests being read while a test runs. */
export class ManifestRig {
  readonly writer = new CountingWriter();
  readonly log = new RecordingLog();
  readonly running: RunningManifests;

  constructor(t: Teardown, locations: readonly string[], timing: Partial<Timing> = {}, flags: readonly string[] = []) {
    this.running = startManifests(locationsOf(locations, flags), this.writer, this.log, {
      ...DEFAULT_TIMING,
      ...timing,
    });
    t.teardown(() => this.running.stop());
  }

  /** Names of the Services known, sorted, with their first port: `a:80 b:81`. */
  services(): string {
    return [...this.writer.store.snapshot.services()]
      .map((row) => `${row.name}:${row.ports[0]?.port ?? 0}`)
      .sort()
      .join(' ');
  }

  ready(): Promise<void> {
    return eventually(() => this.writer.store.snapshot.ready, 'ready');
  }

  /** Waits until the Services are these. */
  async shows(services: string): Promise<void> {
    await eventually(
      () => this.services() === services,
      () => `Services ${services}, not ${this.services()}; log:\n${this.log.lines.join('\n')}`,
    );
  }

  errors(): readonly string[] {
    return this.log.lines.filter((line) => line.startsWith('error'));
  }
}

/** Values of --manifests as the configuration has them, with other flags. */
export function locationsOf(values: readonly string[], flags: readonly string[] = []): readonly ManifestsSource[] {
  const argv = [...values.flatMap((value) => ['--manifests', value]), ...flags];
  return readManifests(parseCommandLine(argv), systemFiles).sources;
}

/** Waits for something that may take a while on a busy machine; throws when it does not come. */
export async function eventually(condition: () => boolean, what: string | (() => string)): Promise<void> {
  const deadline = performance.now() + 100_000;
  while (!condition()) {
    if (performance.now() > deadline) throw new Error(`never: ${typeof what === 'string' ? what : what()}`);
    await delay(5);
  }
}

/** An empty directory, removed at the end of the test. */
export function scratchDirectory(t: Teardown): string {
  const path = mkdtempSync(join(tmpdir(), 'pointsman-manifests-'));
  t.teardown(() => {
    rmSync(path, { recursive: true, force: true });
  });
  return path;
}

/** {@link serviceObject} with one port, as YAML. */
export function serviceYaml(name: string, port: number | string = 80): string {
  return dump(serviceObject(name, { ports: [{ port }] }));
}

export function yaml(...documents: string[]): string {
  return documents.join('---\n');
}
