import type { Clock } from '../base/clock.js';
import { FAMILIES, type Family } from '../base/ip.js';
import type { WallClock } from '../base/timestamp.js';
import type { Limitation } from '../dataplane/contract.js';
import type { FrontendKey } from '../plan/types.js';
import type { EndpointSliceRow, ObjectKey } from '../state/rows.js';
import type { RowEdit } from '../state/store.js';

/** A frontend that the kernel refuses, and that others do not wait for. */
export interface AsideService {
  readonly frontend: FrontendKey;
  /** Null: the plan does not have it any more, and the kernel does not let it go. */
  readonly servicePort: string | null;
  readonly reason: string;
  /** On the clock, in milliseconds. */
  readonly since: number;
  /** The kernel holds nothing of it. Absent: what it held before. */
  readonly absent?: boolean;
}

/** How many changes, and how many triggers of one Service, are remembered while the kernel takes none; what comes later is not measured. */
const MAX_CHANGES = 10_000;
const MAX_TRIGGERS = 100;

/** When the first of some changes came, on the clock in milliseconds. */
interface FirstChange {
  /** To us. */
  readonly at: number;
  /** From whoever told of it. */
  readonly heardAt: number;
}

type Triggers = Map<ObjectKey, number[]>;

/** Changes between two of the three points that all of them pass: queued, taken by a sync, acknowledged by the kernel. */
interface Changes {
  first: FirstChange | null;
  /** When each was committed to the state, on the clock in milliseconds. */
  commits: number[];
  /** When what they tell of happened in the cluster, in milliseconds since the epoch. */
  triggers: Triggers;
}

/** What the kernel has just acknowledged, of however many syncs. */
export interface Acknowledged {
  /** When the first change was heard of, on the clock in milliseconds; null: no change was in it. */
  readonly heardAt: number | null;
  readonly commits: readonly number[];
  /** In milliseconds since the epoch. */
  readonly triggers: readonly number[];
  readonly frontends: ReadonlySet<FrontendKey>;
}

/** How far one family's changes have come. A change that was taken stays so until the kernel has acknowledged it, however many syncs fail. */
export class FamilyProgress {
  private queued: Changes = noChanges();
  private taken: Changes = noChanges();
  private frontends = new Set<FrontendKey>();
  private failedWith: string | null = null;
  private updatedAt: bigint | null = null;
  private setAside: readonly AsideService[] = [];
  private limited: readonly Limitation[] = [];

  constructor(
    readonly family: Family,
    private readonly clock: Clock,
    private readonly wallClock: WallClock,
  ) {}

  /** Something waits for the next sync. */
  changed(heardAt: number | null): void {
    const at = this.clock.now();
    this.queued.first ??= { at, heardAt: heardAt ?? at };
  }

  /** A change that concerns the family was committed to the state. */
  committed(): void {
    if (this.queued.commits.length + this.taken.commits.length < MAX_CHANGES)
      this.queued.commits.push(this.clock.now());
  }

  /** @param at when it happened in the cluster, in milliseconds since the epoch. */
  triggered(service: ObjectKey, at: number): void {
    addTo(this.queued.triggers, service, [at]);
  }

  /** Of a Service that loses a slice nothing is known: its slices' times are of their last update. */
  forgetTriggers(service: ObjectKey): void {
    this.queued.triggers.delete(service);
    this.taken.triggers.delete(service);
  }

  /** A run begins, which takes every change queued so far; what is queued from now on is left for the next. */
  take(): void {
    const { queued, taken } = this;
    this.queued = noChanges();
    taken.first ??= queued.first;
    for (const commit of queued.commits) taken.commits.push(commit);
    for (const [service, times] of queued.triggers) addTo(taken.triggers, service, times);
  }

  /** A sync begins, with what these are to be by what was taken. */
  sending(frontends: ReadonlySet<FrontendKey>): void {
    for (const key of frontends) this.frontends.add(key);
  }

  /** The kernel acknowledged all that was taken. @param setAside all that it refuses at present. */
  acknowledge(setAside: readonly AsideService[] = [], limitations: readonly Limitation[] = []): Acknowledged {
    const { taken, frontends } = this;
    this.setAside = setAside;
    this.limited = limitations;
    this.taken = noChanges();
    this.frontends = new Set();
    this.updatedAt = this.wallClock();
    const { first, commits, triggers } = taken;
    return { heardAt: first?.heardAt ?? null, commits, triggers: [...triggers.values()].flat(), frontends };
  }

  /** The sync failed. A periodic one too then owes something: the kernel does not hold what it should. */
  failed(message: string): void {
    const at = this.clock.now();
    this.taken.first ??= { at, heardAt: at };
    this.failedWith = message;
  }

  /** The sync came to its end. */
  succeeded(): void {
    this.failedWith = null;
  }

  /** Why the last sync failed; null: it did not. */
  get failure(): string | null {
    return this.failedWith;
  }

  /** What the kernel refuses, and others do not wait for. */
  get aside(): readonly AsideService[] {
    return this.setAside;
  }

  /** What the dataplane does not do. */
  get limitations(): readonly Limitation[] {
    return this.limited;
  }

  /** Since when something is not acknowledged, on the clock in milliseconds; null: nothing is. */
  get waitingSince(): number | null {
    return (this.taken.first ?? this.queued.first)?.at ?? null;
  }

  /** When the oldest commit that is not acknowledged was made, on the clock in milliseconds; null when there is none. */
  get oldestCommit(): number | null {
    return this.taken.commits[0] ?? this.queued.commits[0] ?? null;
  }

  /** Frontends whose change was taken and is not acknowledged. */
  get pendingFrontends(): number {
    return this.frontends.size;
  }

  /** When the kernel last acknowledged a sync, nanoseconds since the epoch; null before the first. */
  get lastUpdated(): bigint | null {
    return this.updatedAt;
  }
}

/** How far changes have come on their way to the kernel: kept here once, for everybody who wants to know. */
export class Progress {
  /** Those that are synced, in the order of {@link FAMILIES}. */
  readonly families: readonly FamilyProgress[];
  private readonly startedAtMs: number;
  /** Of the state's changes that no run has taken. */
  private readonly changedServices = new Set<ObjectKey>();
  private changedSlices = 0;
  private begunPlans = 0;
  private endedPlans = 0;

  constructor(families: readonly Family[], clock: Clock, wallClock: WallClock) {
    const served = FAMILIES.filter((family) => families.includes(family));
    this.families = served.map((family) => new FamilyProgress(family, clock, wallClock));
    this.startedAtMs = Number(wallClock() / 1_000_000n);
  }

  of(family: Family): FamilyProgress | undefined {
    return this.families.find((each) => each.family === family);
  }

  /** Services with changes that no run has taken. */
  get pendingServices(): number {
    return this.changedServices.size;
  }

  /** Changes of slices that no run has taken. */
  get pendingSlices(): number {
    return this.changedSlices;
  }

  /** How many plans have begun: a change that comes now is in the next. */
  get plansBegun(): number {
    return this.begunPlans;
  }

  /** How many of them are in the tables, those that were given up included: a later one made up for them. */
  get plans(): number {
    return this.endedPlans;
  }

  /** Since when something is not acknowledged, on the clock in milliseconds; null: nothing is. */
  get waitingSince(): number | null {
    const since = this.families.flatMap(({ waitingSince }) => waitingSince ?? []);
    return since.length === 0 ? null : Math.min(...since);
  }

  /**
   * The state changed.
   *
   * @param ready whether the change can go to the kernel: before all sources are complete it waits for them, which says nothing of us.
   */
  committed(edits: readonly RowEdit[], ready: boolean): void {
    const touched = new Set<FamilyProgress>();
    for (const edit of edits) for (const family of this.note(edit)) touched.add(family);
    if (ready) for (const family of touched) family.committed();
  }

  /** Something waits for the next sync of every family. */
  changed(heardAt: number | null): void {
    for (const family of this.families) family.changed(heardAt);
  }

  /** A run takes every change of the state so far. */
  take(): void {
    this.begunPlans++;
    this.changedServices.clear();
    this.changedSlices = 0;
    for (const family of this.families) family.take();
  }

  /** What was taken is in the tables. */
  planned(): void {
    this.endedPlans = this.begunPlans;
  }

  /** Those that an edit concerns. */
  private note({ before, after }: RowEdit): readonly FamilyProgress[] {
    const row = after ?? before;
    switch (row?.kind) {
      case undefined:
        return [];
      case 'Service':
        this.changedServices.add(`${row.namespace}/${row.name}`);
        return this.families;
      case 'EndpointSlice': {
        const family = this.of(row.family);
        return family === undefined ? [] : [this.noteSlice(family, row, after !== null)];
      }
      case 'Node':
      case 'ServiceCIDR':
        return this.families;
    }
  }

  private noteSlice(family: FamilyProgress, row: EndpointSliceRow, exists: boolean): FamilyProgress {
    this.changedSlices++;
    const service = `${row.namespace}/${row.serviceName}`;
    const at = row.lastChangeTriggerTime;
    if (!exists) family.forgetTriggers(service);
    else if (at !== null && at > this.startedAtMs) family.triggered(service, at);
    return family;
  }
}

function noChanges(): Changes {
  return { first: null, commits: [], triggers: new Map() };
}

function addTo(triggers: Triggers, service: ObjectKey, times: readonly number[]): void {
  const held = triggers.get(service);
  if (held === undefined) triggers.set(service, [...times]);
  else held.push(...times.slice(0, Math.max(0, MAX_TRIGGERS - held.length)));
}
