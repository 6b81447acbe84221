import type { Clock } from '../base/clock.js';
import { FAMILIES, type Family } from '../base/ip.js';
import type { WallClock } from '../base/timestamp.js';
import type { ForwardingTable } from '../plan/forwarding-table.js';
import type { QuarantinedService, Progress } from './progress.js';

/** How long ago something was last received from a source of objects. */
interface HeardSource {
  readonly source: string;
  readonly synced: boolean;
  /** Null: never. */
  readonly sinceLastEventMs: number | null;
}

/** Something of ours in the kernel that may have an external change, until it was checked and repaired. */
interface DriftStatus {
  readonly family: Family;
  /** Nanoseconds since the epoch. */
  readonly since: bigint;
  /** The author of the external change, as `nft[1234]`; null when unknown. */
  readonly process: string | null;
}

interface FamilyStatus {
  readonly family: Family;
  /** Synced, no change waits too long, and the node lacks nothing that every Service may need. */
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
  /** When reasons began that nothing else remembers: `node`, `unsynced`, `configuration`, `sysctl TEXT`, `unplanned FAMILY`, `conflict FAMILY`. */
  readonly onsets: Onsets;
  private eligible: boolean | null = null;
  private wrongSysctls: readonly string[] = [];
  private refused: string | null = null;
  /** Why there is no client certificate, or none to follow the one there is; null: nothing is wanting. */
  certificate: string | null = null;
  /** Asked with each complete answer. */
  sources: () => readonly HeardSource[] = () => [];
  /** Milliseconds since a packet last came from the API server; null: there is no connection to one, or the platform does not report it. */
  apiHeardMs: () => number | null = () => null;
  private holding: string | null = null;
  private holdingSince: bigint | null = null;
  private releasedAt = -Infinity;
  private readonly drifts = new Map<Family, DriftStatus>();

  /** @param timeoutMs how long a change may wait: kube-proxy's is twice syncPeriod. */
  constructor(
    private readonly progress: Progress,
    public timeoutMs: number,
    private readonly clock: Clock,
    readonly wallClock: WallClock,
  ) {
    this.onsets = new Onsets(wallClock);
    this.onsets.note('node', true);
  }

  /** Whether load balancers may send to this node (KEP-3836); null while the Node is not known, which counts as no. */
  get nodeEligible(): boolean | null {
    return this.eligible;
  }

  set nodeEligible(eligible: boolean | null) {
    this.eligible = eligible;
    this.onsets.note('node', eligible !== true);
  }

  /** Sysctls that are not what they should be, in sentences. */
  get sysctls(): readonly string[] {
    return this.wrongSysctls;
  }

  set sysctls(problems: readonly string[]) {
    this.wrongSysctls = problems;
    this.onsets.noteAll('sysctl', problems);
  }

  /** Why the configuration files differ from what is in force; null: they do not. */
  get refusal(): string | null {
    return this.refused;
  }

  set refusal(why: string | null) {
    this.refused = why;
    this.onsets.note('configuration', why !== null);
  }

  /** A family was planned. */
  planned(table: Pick<ForwardingTable, 'family' | 'unplanned' | 'conflictCount'>): void {
    const { family, unplanned } = table;
    this.onsets.note(`unplanned ${family}`, unplanned.size > 0);
    this.onsets.note(`conflict ${family}`, table.conflictCount > 0);
  }

  /**
   * Changes are held back on purpose from now on, for the reason given; null: no longer. What waits makes the node unhealthy all the same, but the
   * process alive: another one would hold it back, too.
   */
  hold(reason: string | null): void {
    if (reason === null && this.holding !== null) this.releasedAt = this.clock.now();
    if (reason !== this.holding) this.holdingSince = reason === null ? null : this.wallClock();
    this.holding = reason;
  }

  /** Why changes are held back; null: they are not. */
  held(): string | null {
    return this.holding;
  }

  /** Since when, nanoseconds since the epoch; null: they are not. */
  heldSince(): bigint | null {
    return this.holdingSince;
  }

  /** An external change may have altered what a family has in the kernel. */
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

  /** Frontends that the kernel refuses. The node is healthy all the same, unless it is at fault: the others are served, and another node would refuse them, too. */
  quarantined(): readonly (QuarantinedService & { readonly family: Family })[] {
    return this.progress.families.flatMap(({ family, quarantined }) =>
      quarantined.map((service) => ({ ...service, family })),
    );
  }

  /** Where other programs' rules are in the way of listing ours. The node is healthy all the same. */
  unlisted(): readonly { readonly family: Family; readonly text: string }[] {
    return this.progress.families.flatMap(({ family, limitations }) =>
      limitations.filter(({ of }) => of === 'rules').map(({ text }) => ({ family, text })),
    );
  }

  /** Whether all families are in order; the node's eligibility is not part of it. */
  healthy(): boolean {
    const families = this.families();
    // Healthy before any is known would be a guess.
    return families.length > 0 && families.every(({ healthy }) => healthy);
  }

  /** Whether the process does its work, as far as there is work for it. Nothing to do yet is no reason to end it (behaviour HZ-04). */
  alive(): boolean {
    return this.families().every((family) => !family.stuck);
  }

  /** In the order of {@link FAMILIES}. */
  families(): readonly FamilyStatus[] {
    const now = this.clock.now();
    return this.progress.families.map(({ family, waitingSince, lastUpdated, nodeFaults }) => {
      const late = waitingSince !== null && now - waitingSince >= this.timeoutMs;
      const stuck = late && this.holding === null && now - this.releasedAt >= this.timeoutMs;
      const isFaulty = nodeFaults.some(({ isVital }) => isVital);
      return { family, healthy: lastUpdated !== null && !late && !isFaulty, stuck, lastUpdated };
    });
  }
}

/** Where health is asked for. */
export type HealthPath = '/healthz' | '/livez';

/** When reasons of ill health began: each from its first report until it is reported as over. */
class Onsets {
  private readonly began = new Map<string, bigint>();

  constructor(private readonly wallClock: WallClock) {}

  /** @param reason a kind, and whatever else distinguishes it from others of that kind. */
  note(reason: string, holds: boolean): void {
    if (!holds) this.began.delete(reason);
    else if (!this.began.has(reason)) this.began.set(reason, this.wallClock());
  }

  /** Of this kind exactly these reasons hold. */
  noteAll(kind: string, texts: readonly string[]): void {
    const reasons = new Set(texts.map((text) => `${kind} ${text}`));
    for (const known of this.began.keys())
      if (known.startsWith(`${kind} `) && !reasons.has(known)) this.began.delete(known);
    for (const reason of reasons) this.note(reason, true);
  }

  /** In nanoseconds since the epoch; null: it does not hold. */
  of(reason: string): bigint | null {
    return this.began.get(reason) ?? null;
  }
}
