import { LineLimit } from '../../base/line-limit.js';
import type { Log } from '../../base/log.js';
import type { ManifestsSource } from '../../config/config.js';
import type { SourceWriter, Writer } from '../../state/writer.js';
import type { LeftOut } from '../left-out.js';
import { PollTimer } from './poll-timer.js';
import { FileLocation } from './files.js';
import { ProblemLog } from './problems.js';
import type { ManifestLocation, Dependencies } from './source.js';
import { DEFAULT_TIMING, type Timing } from './timing.js';
import { UrlLocation } from './url.js';

/** Whether a location has been read, under the name by which it is shown. */
export interface LocationStatus {
  readonly source: string;
  readonly synced: boolean;
}

export interface RunningManifests {
  /** Each location, in order. */
  status(): readonly LocationStatus[];
  /** What is not used, of each file the first. */
  errors(): readonly string[];
  /** Objects that are not used, or not whole. */
  leftOut(): readonly LeftOut[];
  /** Resolves when nothing more will be applied. */
  stop(): Promise<void>;
}

/**
 * Reads manifests now and whenever they change. Each location registers as a source of its own, under its name. If several have the same object, the first
 * counts.
 */
export function startManifests(
  locations: readonly ManifestsSource[],
  writer: Writer,
  log: Log,
  timing: Timing = DEFAULT_TIMING,
): RunningManifests {
  const problems = new ProblemLog(log, new LineLimit(() => performance.now()));
  const runs = locations.map((source) => {
    const state = { source: source.name, synced: false };
    const dependencies = {
      writer: noting(writer.register(source.name), state),
      problems,
      log,
      timing,
      timer: new PollTimer(),
    };
    return { state, run: new Run(openLocation(source, dependencies), dependencies) };
  });
  return {
    status: () => runs.map(({ state }) => ({ ...state })),
    errors: () => problems.errors(),
    leftOut: () => problems.leftOut(),
    stop: async () => {
      await Promise.all(runs.map(({ run }) => run.stop()));
    },
  };
}

/** The same writer, which notes the notification that its source has been read. */
function noting(writer: SourceWriter, state: { synced: boolean }): SourceWriter {
  return {
    ...writer,
    complete: () => {
      state.synced = true;
      writer.complete();
    },
  };
}

export function openLocation(source: ManifestsSource, dependencies: Dependencies): ManifestLocation {
  return source.type === 'url' ? new UrlLocation(source, dependencies) : new FileLocation(source.path, dependencies);
}

/** One location's rounds, one after the other. */
class Run {
  private stopping = false;
  private readonly ended: Promise<void>;

  constructor(
    private readonly location: ManifestLocation,
    private readonly dependencies: Dependencies,
  ) {
    this.ended = this.repeat();
  }

  async stop(): Promise<void> {
    this.stopping = true;
    this.location.close();
    this.dependencies.timer.ring(0);
    await this.ended;
    this.location.close();
  }

  private async repeat(): Promise<void> {
    while (!this.isStopping()) {
      try {
        await this.location.round();
      } catch (error) {
        this.dependencies.log.error(error, 'Manifests: checking for changes failed');
      }
      if (!this.isStopping()) await this.dependencies.timer.sleep(this.location.pollMs);
    }
  }

  private isStopping(): boolean {
    return this.stopping;
  }
}
