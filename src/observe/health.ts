import type { Clock } from '../base/clock.js';
import { FAMILIES, type Family } from '../base/ip.js';
import type { WallClock } from '../base/timestamp.js';

interface FamilyHealth {
  /** First change no started sync has taken. */
  queuedSince: number | null;
  /** First change, or failure, that a started sync took and none has finished. */
  owedSince: number | null;
  /** Nanoseconds since the epoch; null before the first complete sync. */
  lastUpdated: bigint | null;
}

/** Something of ours in the kernel that somebody else may have changed, until it was looked at and repaired. */
export interface DriftStatus {
  readonly family: Family;
  /** Nanoseconds since the epoch. */
  readonly since: bigint;
  /** Who did it, as `nft[1234]`; null when unknown. */
  readonly process: string | null;
}

export interface FamilyStatus {
  readonly family: Family;
  /** Synced, and no change waits too long. */
  readonly healthy: boolean;
  /** A change waits too long, and not because changes are held back: the process does not do its work. */
  readonly stuck: boolean;
  /** End of the last successful sync, nanoseconds since the epoch; null before the first. */
  readonly lastUpdated: bigint | null;
}

/**
 * Whether the proxy does its work: every family it serves has been synced completely, and no change waits too long. No sockets, no
 * timers; a late change is noticed by asking.
 */
export class HealthState {
  /** Whether balancers may send to this node (KEP-3836); null while the Node is not known, which counts as no. */
  nodeEligible: boolean | null = null;
  /** Sysctls that are not what they should be, in sentences. */
  sysctls: readonly string[] = [];
  private holding: string | null = null;
  private releasedAt = -Infinity;
  private readonly states = new Map<Family, FamilyHealth>();
  private readonly drifts = new Map<Family, DriftStatus>();

  /** @param timeoutMs how long a change may wait: kube-proxy's is twice syncPeriod. */
  constructor(
    public timeoutMs: number,
    private readonly clock: Clock,
    readonly wallClock: WallClock,
  ) {}

  /** The families that must be synced. Healthy before any is known would be a guess, so nothing is. */
  expect(families: readonly Family[]): void {
    for (const family of families) this.stateOf(family);
  }

  /** A change for this family waits for the next sync. */
  queued(family: Family): void {
    this.stateOf(family).queuedSince ??= this.clock.now();
  }

  /** A sync starts, which takes every change queued so far; what is queued from now on is left for the next. */
  started(family: Family): void {
    const state = this.stateOf(family);
    state.owedSince ??= state.queuedSince;
    state.queuedSince = null;
  }

  /** The sync ended well. */
  synced(family: Family): void {
    const state = this.stateOf(family);
    state.owedSince = null;
    state.lastUpdated = this.wallClock();
  }

  /** The sync failed. A periodic one too then owes something: the kernel does not hold what it should. */
  failed(family: Family): void {
    this.stateOf(family).owedSince ??= this.clock.now();
  }

  /**
   * Changes are held back on purpose from now on, for the reason given; null: no longer. What waits makes the node unhealthy all the same, but the
   * process alive: another one would hold it back, too.
   */
  hold(reason: string | null): void {
    if (reason === null && this.holding !== null) this.releasedAt = this.clock.now();
    this.holding = reason;
  }

  /** Why changes are held back; null: they are not. */
  held(): string | null {
    return this.holding;
  }

  /** Somebody else may have changed what a family has in the kernel. */
  drifted(family: Family, process: string | null): void {
    if (!this.drifts.has(family)) this.drifts.set(family, { family, since: this.wallClock(), process });
  }

  /** The kernel was compared and holds what it should. */
  repaired(family: Family): void {
    this.drifts.delete(family);
  }

  /** In the order of {@link FAMILIES}. */
  drift(): readonly DriftStatus[] {
    return FAMILIES.flatMap((family) => this.drifts.get(family) ?? []);
  }

  /** Whether all families are in order; the node's eligibility is not part of it. */
  healthy(): boolean {
    return this.states.size > 0 && this.families().every((family) => family.healthy);
  }

  /** Whether the process does its work, as far as there is work for it. Nothing to do yet is no reason to end it (behaviour HZ-04). */
  alive(): boolean {
    return this.families().every((family) => !family.stuck);
  }

  /** In the order of {@link FAMILIES}. */
  families(): readonly FamilyStatus[] {
    const now = this.clock.now();
    return FAMILIES.flatMap((family) => {
      const state = this.states.get(family);
      if (state === undefined) return [];
      const since = state.owedSince ?? state.queuedSince;
      const late = since !== null && now - since >= this.timeoutMs;
      const stuck = late && this.holding === null && now - this.releasedAt >= this.timeoutMs;
      const { lastUpdated } = state;
      return [{ family, healthy: lastUpdated !== null && !late, stuck, lastUpdated }];
    });
  }

  private stateOf(family: Family): FamilyHealth {
    let state = this.states.get(family);
    if (state === undefined) {
      state = { queuedSince: null, owedSince: null, lastUpdated: null };
      this.states.set(family, state);
    }
    return state;
  }
}

/** Where health is asked for. */
export type HealthPath = '/healthz' | '/livez';
