import type { Clock } from '../../../base/clock.js';
import type { TlsClient } from '../auth/tls-trust.js';
import type { Body } from './body.js';

interface OpenWatchesOptions {
  readonly clock: Clock;
  /** Milliseconds since the epoch. */
  readonly wallClock: () => number;
  /** Looks after the credentials; answers what TLS is made with now, null without any, undefined when that cannot be had. Must not reject. */
  readonly refresh: () => Promise<TlsClient | null | undefined>;
  /** Milliseconds until credentials may change by themselves, files apart. */
  readonly dueInMs: () => number;
}

interface Watch {
  readonly body: Body;
  readonly tls: TlsClient | null;
  readonly openedAt: number;
}

/** How often files are looked at while nothing is asked of the server. */
const LOOK_MS = 60_000;
const MIN_LOOK_MS = 1000;

/**
 * The watches that are open. A watch is a request that lasts for minutes, so it may outlive what it was asked with: it ends when our certificate does, and when
 * keys, certificates or authorities are replaced. Its reader takes that for an ordinary end, and asks for the rest with what counts now.
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
    // Another's end may be nearer.
    this.schedule();
  }

  /** From now on `tls` counts. */
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
      // One that the server opened although it had expired by our clock is left to the server.
      if (own !== null && openedAt < own.validUntil && now >= own.validUntil) body.finish();
    }
    this.schedule();
  }
}
