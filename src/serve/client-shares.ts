import type { Clock } from '../base/clock.js';
import type { Log } from '../base/log.js';
import { TokenBucket } from '../base/token-bucket.js';
import { TokenBuckets } from '../base/token-buckets.js';
import type { CrowdingClient } from '../observe/observations.js';
import type { Pace } from './paced-reading.js';

/** Time of the main thread for one client, in milliseconds a second, and at once. */
export const CLIENT_MS = 100;
export const CLIENT_BURST_MS = 200;
/** The limit of all clients beyond this machine. */
export const ALL_CLIENTS_MS = 300;
export const ALL_CLIENTS_BURST_MS = 600;
/** Whatever others take, a client has this: some twenty health checks a second. */
const SURE_MS = 5;
const SURE_BURST_MS = 10;
/** Time that the system and Node spend on a connection without our seeing it. */
const CONNECTION_MS = 0.1;
/** A client that had to wait longer gets no more connections. */
const LONGEST_WAIT_MS = 1000;

/** How many are named, in the log and in the status. */
const MOST_NAMED = 10;
/** A client is forgotten when nothing of it was refused for so long. */
const CALM_MS = 600_000;
/** How often something of a client is refused before it is logged again; then ten times as often, and so on. */
const LOGGED_AGAIN = 100;

/** A client of our listeners. */
export interface Client {
  /** Addresses of one client share it. */
  readonly key: string;
  /** As people know it. */
  readonly address: string;
  /** Whether it is on this machine. */
  readonly isNear: boolean;
}

/**
 * Divides the main thread's time between the clients of all listeners. A client that has used its share waits until time has passed, and has no new connections
 * if it would wait too long. Clients beyond this machine have a limit together, too: when it is reached, those go on that use little.
 */
export class ClientShares {
  private readonly own: TokenBuckets;
  private readonly sure: TokenBuckets;
  private readonly all: TokenBucket;
  /** By key. */
  private readonly crowding = new Map<string, Crowding>();

  constructor(
    private readonly clock: Clock,
    private readonly log: Log,
  ) {
    const now = (): number => clock.now();
    this.own = new TokenBuckets(() => new TokenBucket(CLIENT_MS, CLIENT_BURST_MS, now));
    this.sure = new TokenBuckets(() => new TokenBucket(SURE_MS, SURE_BURST_MS, now));
    this.all = new TokenBucket(ALL_CLIENTS_MS, ALL_CLIENTS_BURST_MS, now);
  }

  /** Whether a client may have another connection, which then counts. */
  connects(client: Client): boolean {
    if (this.wait(client) > LONGEST_WAIT_MS) {
      this.refused(client);
      return false;
    }
    this.spend(client, CONNECTION_MS);
    return true;
  }

  spend({ key, isNear }: Client, ms: number): void {
    this.own.of(key).borrow(ms);
    if (isNear) return;
    this.sure.of(key).borrow(ms);
    this.all.borrow(ms);
  }

  /** In how many milliseconds a client may go on; 0: now. */
  wait({ key, isNear }: Client): number {
    const own = this.own.of(key).borrow(0);
    if (own > 0 || isNear) return own;
    return Math.min(this.all.borrow(0), this.sure.of(key).borrow(0));
  }

  paceOf(client: Client): Pace {
    return {
      wait: () => this.wait(client),
      spent: (ms) => {
        this.spend(client, ms);
      },
      refused: () => {
        this.refused(client);
      },
    };
  }

  /** A connection of the client was closed, or has to wait: that is reported. */
  refused({ key, address }: Client): void {
    this.forgetCalm();
    const isNamed = this.crowding.has(key) || this.crowding.size < MOST_NAMED;
    const client = isNamed ? address : null;
    const seen = this.crowding.get(isNamed ? key : OTHERS) ?? { client, times: 0, lastAt: 0, loggedAt: 1 };
    seen.times++;
    seen.lastAt = this.clock.now();
    this.crowding.set(isNamed ? key : OTHERS, seen);
    if (seen.times < seen.loggedAt) return;
    seen.loggedAt = Math.max(LOGGED_AGAIN, 10 * seen.loggedAt);
    this.log.warn('a client takes more than its share of the listeners: its connections wait or are closed', {
      client: client ?? 'others',
      times: seen.times,
    });
  }

  /** Clients of which something was refused lately. */
  get crowded(): readonly CrowdingClient[] {
    this.forgetCalm();
    return [...this.crowding.values()].map(({ client, times }) => ({ client, times }));
  }

  private forgetCalm(): void {
    const before = this.clock.now() - CALM_MS;
    for (const [key, { lastAt }] of this.crowding) if (lastAt < before) this.crowding.delete(key);
  }
}

/** The key of all that are not named. */
const OTHERS = '';

interface Crowding extends CrowdingClient {
  times: number;
  lastAt: number;
  /** How many times are logged next. */
  loggedAt: number;
}
