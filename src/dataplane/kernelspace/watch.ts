import type { Family } from '../../base/ip.js';
import type { HcnAddon } from '../../native/contract.js';
import type { WatchForeignChanges } from '../contract.js';

/** The pause before an HNS that refuses to notify is asked again, at first and at the most. */
const ASK_AGAIN_MS = { first: 1000, most: 600_000 } as const;

/** A family, and whether its network is another than it was known to be. */
export interface Looked {
  readonly family: Family;
  stirred(): Promise<boolean>;
}

/**
 * Notifies of a network that went or came back, as soon as HNS notifies of networks. HNS does not notify of external changes to endpoints and load balancers.
 */
export class NetworkWatch {
  private isListening = false;
  /** Asks HNS to notify; null: there is no subscriber. */
  private ask: (() => void) | null = null;
  private askAgainAt = -Infinity;
  private waitMs: number = ASK_AGAIN_MS.first;

  constructor(
    private readonly hcn: Pick<HcnAddon, 'hcnWatch'>,
    private readonly families: () => Iterable<Looked>,
    /** Milliseconds on a clock that only goes forward. */
    private readonly now: () => number,
  ) {}

  /** Whether HNS notifies of networks. If not, it is asked again, ever more rarely; until then networks are polled. */
  notifies(): boolean {
    if (!this.isListening && this.now() >= this.askAgainAt) this.ask?.();
    return this.isListening;
  }

  readonly watch: WatchForeignChanges = (onChange) => {
    let ended = false;
    let isAsking = false;
    let end = (): void => undefined;
    const lookAt = async (one: Looked, missed: boolean): Promise<void> => {
      const differs = missed || (await one.stirred().catch(() => true));
      if (differs && !ended) onChange({ families: [one.family], missed, process: null });
    };
    const look = (missed: boolean): void => {
      for (const one of this.families()) void lookAt(one, missed);
    };
    const listen = async (): Promise<void> => {
      const stop = await this.hcn.hcnWatch(({ networks, disconnected }) => {
        if (ended) return;
        if (networks || disconnected) look(disconnected);
        if (!disconnected) return;
        // Nothing more is received.
        this.isListening = false;
        ask();
      });
      if (ended) {
        stop();
        return;
      }
      end = stop;
      this.isListening = true;
      this.waitMs = ASK_AGAIN_MS.first;
      // Changes from before the notifications.
      look(false);
    };
    const ask = (): void => {
      if (isAsking || ended) return;
      isAsking = true;
      void listen()
        .catch(() => {
          this.askAgainAt = this.now() + this.waitMs;
          this.waitMs = Math.min(this.waitMs * 2, ASK_AGAIN_MS.most);
        })
        .finally(() => (isAsking = false));
    };
    this.ask = ask;
    ask();
    return () => {
      ended = true;
      this.isListening = false;
      this.ask = null;
      end();
    };
  };
}
