import type { Clock } from '../../../base/clock.js';
import type { TlsClient } from '../auth/tls-trust.js';
import type { Body } from './body.js';

interface OpenWatchesOptions {
  readonly clock: Clock;
  /** Milliseconds since the epoch. */
  readonly wallClock: () => number;
  /**
   * Refreshes the credentials, and returns the TLS settings for new connections. Null: without TLS. Undefined: they cannot be
   * read. Must not reject.
   */
  readonly refresh: () => Promise<TlsClient | null | undefined>;
  /** Milliseconds until credentials may change for other reasons than files. */
  readonly dueInMs: () => number;
}

interface Watch {
  readonly body: Body;
  readonly tls: TlsClient | null;
  readonly openedAt: number;
}

/** How often credential files are read while there is no request. */
const LOOK_MS = 60_000;
const MIN_LOOK_MS = 1000;

/**
 * The open watches. A watch lasts for minutes, so it may outlive its credentials: it ends when the client certificate expires,
 * and when keys, certificates or authorities are replaced. For its reader that is an ordinary end. It requests a new watch with
 * the current credentials.
 */
export class OpenWatches {
  private readonly watches = new Set<Watch>();
  private cancel: (() => void) | null = null;

  constructor(private readonly options: OpenWatchesOptions) {}

  add(body: Body, tls: TlsClient | null): void {
    const watch = { body, tls, openedAt: this.options.wallClock() };
    this.watches.add(watch);
    body.once('close', () => {
      this.watches.delete(watch);
      if (this.watches.size === 0) this.stop();
    });
    // The new watch may be the first to end.
    this.schedule();
  }

  /** Ends the watches with other TLS settings than these. */
  use(tls: TlsClient | null): void {
    for (const watch of this.watches) if (watch.tls !== tls) watch.body.finish();
  }

  private stop(): void {
    this.cancel?.();
    this.cancel = null;
  }

  private schedule(): void {
    this.stop();
    if (this.watches.size === 0) return;
    const { clock, wallClock, dueInMs } = this.options;
    const now = wallClock();
    const ends = [...this.watches].map(({ tls }) => (tls?.validUntil ?? Number.POSITIVE_INFINITY) - now);
    const due = Math.min(LOOK_MS, dueInMs(), ...ends.filter((left) => left > 0));
    this.cancel = clock.callAt(clock.now() + Math.max(MIN_LOOK_MS, due), () => {
      void this.look();
    });
  }

  private async look(): Promise<void> {
    const tls = await this.options.refresh();
    if (tls !== undefined) this.use(tls);
    const now = this.options.wallClock();
    for (const { body, tls: own, openedAt } of this.watches) {
      // A watch that the server accepted with a certificate that is expired by our clock is left to the server.
      if (own !== null && openedAt < own.validUntil && now >= own.validUntil) body.finish();
    }
    this.schedule();
  }
}
