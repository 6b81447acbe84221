import type { Log } from '../../net/log.js';
import type { Writer } from '../../state/writer.js';
import { Alarm } from './alarm.js';
import { FileLocation } from './files.js';
import type { RequestHeaders } from './http-get.js';
import { ProblemLog } from './problems.js';
import type { ManifestLocation, Surroundings } from './source.js';
import { DEFAULT_TIMING, type Timing } from './timing.js';
import { isUrl, printLocation, UrlLocation } from './url.js';

export interface ManifestsOptions {
  /** Files, directories, and URLs with scheme http or https. Of several that have the same object the first counts. */
  readonly locations: readonly string[];
  /** Sent with every request to a URL. */
  readonly headers: RequestHeaders;
}

export interface RunningManifests {
  /** Resolves when nothing more will be applied. */
  stop(): Promise<void>;
}

/** Reads manifests now and whenever they change. Each location registers as a source of its own, under its name. */
export function startManifests(
  options: ManifestsOptions,
  writer: Writer,
  log: Log,
  timing: Timing = DEFAULT_TIMING,
): RunningManifests {
  const problems = new ProblemLog(log);
  const runs = options.locations.map((path) => {
    const alarm = new Alarm();
    const surroundings = { writer: writer.register(printLocation(path)), problems, log, timing, alarm };
    return new Run(openLocation(path, options.headers, surroundings), surroundings);
  });
  return {
    stop: async () => {
      await Promise.all(runs.map((run) => run.stop()));
    },
  };
}

export function openLocation(path: string, headers: RequestHeaders, surroundings: Surroundings): ManifestLocation {
  return isUrl(path) ? new UrlLocation(path, headers, surroundings) : new FileLocation(path, surroundings);
}

/** One location's rounds, one after the other. */
class Run {
  private stopping = false;
  private readonly ended: Promise<void>;

  constructor(
    private readonly location: ManifestLocation,
    private readonly surroundings: Surroundings,
  ) {
    this.ended = this.repeat();
  }

  async stop(): Promise<void> {
    this.stopping = true;
    this.location.close();
    this.surroundings.alarm.ring(0);
    await this.ended;
    this.location.close();
  }

  private async repeat(): Promise<void> {
    while (!this.isStopping()) {
      try {
        await this.location.round();
      } catch (error) {
        this.surroundings.log.error(error, 'Manifests: looking for changes failed');
      }
      if (!this.isStopping()) await this.surroundings.alarm.sleep(this.location.pollMs);
    }
  }

  private isStopping(): boolean {
    return this.stopping;
  }
}
