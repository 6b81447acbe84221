import { systemClock } from '../base/clock.js';
import type { Log } from '../base/log.js';
import type { AttemptsSeen, EndpointAttempts } from '../control/endpoint-attempts.js';
import type { OpenMode } from '../dataplane/mode.js';

/** Connection attempts to endpoints; what counts them is loaded when they are first asked for. */
export class Attempts {
  private loading: Promise<EndpointAttempts> | null = null;
  private loaded: EndpointAttempts | null = null;

  constructor(
    private open: OpenMode['attempts'],
    private readonly log: Log,
  ) {}

  /** See {@link EndpointAttempts.always}. */
  async always(): Promise<void> {
    await (await this.load()).always();
  }

  /** See {@link EndpointAttempts.ask}. */
  async ask(): Promise<AttemptsSeen> {
    return await (await this.load()).ask();
  }

  /** What was known at the last look; null: it was never asked for. */
  seen(): AttemptsSeen | null {
    return this.loaded?.seen() ?? null;
  }

  /** Another mode is in force. */
  follow(open: OpenMode['attempts']): void {
    this.open = open;
    void this.loaded?.follow(open);
  }

  async stop(): Promise<void> {
    await (await this.loading)?.stop();
  }

  private load(): Promise<EndpointAttempts> {
    this.loading ??= import('../control/endpoint-attempts.js').then(({ EndpointAttempts }) => {
      this.loaded = new EndpointAttempts({ open: this.open, log: this.log, clock: systemClock });
      return this.loaded;
    });
    return this.loading;
  }
}
