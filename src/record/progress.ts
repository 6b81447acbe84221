import type { Clock } from '../base/clock.js';
import { FAMILIES, type Family } from '../base/ip.js';
import type { WallClock } from '../base/timestamp.js';
import type { Limitation, NodeFault } from '../dataplane/contract.js';
import type { FrontendKey } from '../plan/types.js';
import type { EndpointSliceRow, ObjectKey } from '../state/rows.js';
import type { RowEdit } from '../state/store.js';

/** A frontend that the kernel refuses, and that others do not wait for. */
export interface QuarantinedService {
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

/** Something came that the kernel has to follow. */
interface Change {
  /** When it reached us, on the clock in milliseconds. */
  readonly at: number;
  /** From the source that reported it. */
  readonly receivedAt: number;
  /** It was committed to the state, and so is measured. */
  readonly isCommit: boolean;
  /** Services that it concerns, apart from all others. */
  readonly services: readonly ObjectKey[];
}

type Triggers = Map<ObjectKey, number[]>;

/** Changes between two of the points that all of them pass: queued, taken by a sync, acknowledged by the kernel. */
interface Changes {
  /** The oldest first. */
  list: Change[];
  /** When the reported changes happened in the cluster, in milliseconds since the epoch. */
  triggers: Triggers;
}

/** Objects with changes that wait for a run. */
interface PendingObjects {
  readonly services: Set<ObjectKey>;
  /** How many changes of slices, by their Service. */
  readonly slices: Map<ObjectKey, number>;
}

/** What the kernel has just acknowledged, of however many syncs. */
export interface Acknowledged {
  /** When the first change was received, on the clock in milliseconds; null: no change was in it. */
  readonly receivedAt: number | null;
  readonly commits: readonly number[];
  /** In milliseconds since the epoch. */
  readonly triggers: readonly number[];
  readonly frontends: ReadonlySet<FrontendKey>;
}

/**
 * How far one family's changes have come. A change that was taken stays so until the kernel has acknowledged it, however many syncs fail. One that the plan
 * leaves to a later one waits again.
 */
export class FamilyProgress {
  private queued: Changes = noChanges();
  private deferred: Changes = noChanges();
  private taken: Changes = noChanges();
  private frontends = new Set<FrontendKey>();
  private failedWith: string | null = null;
  private updatedAt: bigint | null = null;
  private rejected: readonly QuarantinedService[] = [];
  private limited: readonly Limitation[] = [];
  private faults: readonly NodeFault[] = [];

  constructor(
    readonly family: Family,
    private readonly clock: Clock,
    private readonly wallClock: WallClock,
  ) {}

  /** Something waits for the next sync. */
  changed(receivedAt: number | null): void {
    if (this.queued.list.length === 0) this.queue(receivedAt, false, []);
  }

  /** A change that concerns the family was committed to the state. */
  committed(services: readonly ObjectKey[], receivedAt: number | null): void {
    const { queued, deferred, taken } = this;
    const isMeasured = queued.list.length + deferred.list.length + taken.list.length < MAX_CHANGES;
    if (isMeasured || queued.list.length === 0) this.queue(receivedAt, isMeasured, services);
  }

  private queue(receivedAt: number | null, isCommit: boolean, services: readonly ObjectKey[]): void {
    const at = this.clock.now();
    this.queued.list.push({ at, receivedAt: receivedAt ?? at, isCommit, services });
  }

  /** @param at when it happened in the cluster, in milliseconds since the epoch. */
  triggered(service: ObjectKey, at: number): void {
    addTo(this.queued.triggers, service, [at]);
  }

  /** Forgets the times of a Service that loses a slice: its slices' times are of their last update. */
  forgetTriggers(service: ObjectKey): void {
    for (const { triggers } of this.unacknowledged) triggers.delete(service);
  }

  /** A run begins, which takes every change queued so far; what is queued from now on is left for the next. */
  take(): void {
    const { queued, deferred, taken } = this;
    [this.queued, this.deferred] = [noChanges(), noChanges()];
    for (const change of [...deferred.list, ...queued.list]) taken.list.push(change);
    if (deferred.list.length > 0) taken.list.sort((one, other) => one.at - other.at);
    for (const { triggers } of [deferred, queued])
      for (const [service, times] of triggers) addTo(taken.triggers, service, times);
  }

  /** The plan leaves these Services to a later one: what concerns them is not taken any more. */
  defer(services: ReadonlySet<ObjectKey>): void {
    const { taken, deferred } = this;
    const [first] = taken.list;
    if (services.size === 0 || first === undefined) return;
    const named = new Set<ObjectKey>();
    const concerns = (change: Change): boolean => change.services.some((service) => services.has(service));
    deferred.list = taken.list.filter(concerns);
    for (const change of deferred.list) for (const service of change.services) named.add(service);
    // A change that is not remembered is known only to be no older than the first.
    if ([...services].some((service) => !named.has(service)))
      deferred.list.unshift({ ...first, isCommit: false, services: [...services] });
    taken.list = taken.list.filter((change) => !concerns(change));
    for (const service of services) {
      const times = taken.triggers.get(service);
      if (times !== undefined) deferred.triggers.set(service, times);
      taken.triggers.delete(service);
    }
  }

  /** A sync begins, with what these are to be by what was taken. */
  sending(frontends: ReadonlySet<FrontendKey>): void {
    for (const key of frontends) this.frontends.add(key);
  }

  /** The kernel acknowledged all that was taken. @param quarantined all that it refuses at present. */
  acknowledge(
    quarantined: readonly QuarantinedService[] = [],
    limitations: readonly Limitation[] = [],
    nodeFaults: readonly NodeFault[] = [],
  ): Acknowledged {
    const { taken, frontends } = this;
    this.faults = nodeFaults;
    this.rejected = quarantined;
    this.limited = limitations;
    this.taken = noChanges();
    this.frontends = new Set();
    this.updatedAt = this.wallClock();
    const commits = taken.list.flatMap(({ isCommit, at }) => (isCommit ? [at] : []));
    const triggers = [...taken.triggers.values()].flat();
    return { receivedAt: taken.list[0]?.receivedAt ?? null, commits, triggers, frontends };
  }

  /** The sync failed. After a failed periodic sync something is pending too: the kernel does not hold what it should. */
  failed(message: string, nodeFaults: readonly NodeFault[] = []): void {
    this.faults = nodeFaults;
    const at = this.clock.now();
    if (this.taken.list.length === 0) this.taken.list.push({ at, receivedAt: at, isCommit: false, services: [] });
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
  get quarantined(): readonly QuarantinedService[] {
    return this.rejected;
  }

  /** Faults of the node, as the last sync found. */
  get nodeFaults(): readonly NodeFault[] {
    return this.faults;
  }

  /** What the dataplane does not do. */
  get limitations(): readonly Limitation[] {
    return this.limited;
  }

  /** Since when something is not acknowledged, on the clock in milliseconds; null: nothing is. */
  get waitingSince(): number | null {
    return earliest(this.unacknowledged.map(({ list }) => list[0]));
  }

  /** When the oldest commit that is not acknowledged was made, on the clock in milliseconds; null when there is none. */
  get oldestCommit(): number | null {
    return earliest(this.unacknowledged.map(({ list }) => list.find(({ isCommit }) => isCommit)));
  }

  private get unacknowledged(): readonly Changes[] {
    return [this.queued, this.deferred, this.taken];
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

/** How far changes have come on their way to the kernel: kept here once, for all observers. */
export class Progress {
  /** The synced families, in the order of {@link FAMILIES}. */
  readonly families: readonly FamilyProgress[];
  private readonly startedAtMs: number;
  /** The state's changes that no run has taken. */
  private pending: PendingObjects = noObjects();
  /** The changes that the last run took. */
  private taken: PendingObjects = noObjects();
  /** Services that the last plan left to a later one. */
  private deferredServices: ReadonlySet<ObjectKey> = new Set();
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
    return this.pending.services.size;
  }

  /** Changes of slices that no run has taken. */
  get pendingSlices(): number {
    let sum = 0;
    for (const slices of this.pending.slices.values()) sum += slices;
    return sum;
  }

  /** Services whose changes were taken, but are left to a later plan. */
  get deferred(): ReadonlySet<ObjectKey> {
    return this.deferredServices;
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
   * @param ready whether the change can go to the kernel: before all sources are complete it waits for them, which is no measure of the proxy.
   * @param heardAt when that was received, on the clock; null: now.
   */
  committed(edits: readonly RowEdit[], ready: boolean, receivedAt: number | null = null): void {
    const touched = new Map<FamilyProgress, Set<ObjectKey>>();
    for (const edit of edits) {
      const { families, service } = this.note(edit);
      for (const family of families) {
        const services = touched.get(family) ?? new Set();
        if (service !== null) services.add(service);
        touched.set(family, services);
      }
    }
    if (ready) for (const [family, services] of touched) family.committed([...services], receivedAt);
  }

  /** Something waits for the next sync of every family. */
  changed(receivedAt: number | null): void {
    for (const family of this.families) family.changed(receivedAt);
  }

  /** A run takes every change of the state so far. */
  take(): void {
    this.begunPlans++;
    this.taken = this.pending;
    this.pending = noObjects();
    for (const family of this.families) family.take();
  }

  /** What was taken is in the tables, but for the Services that the plan left to a later one. */
  planned(deferred: Readonly<Partial<Record<Family, ReadonlySet<ObjectKey>>>> = {}): void {
    this.endedPlans = this.begunPlans;
    const all = new Set<ObjectKey>();
    for (const family of this.families) {
      const services = deferred[family.family] ?? new Set();
      family.defer(services);
      for (const service of services) all.add(service);
    }
    this.deferredServices = all;
    const { services, slices } = this.taken;
    for (const service of all) {
      if (services.has(service)) this.pending.services.add(service);
      this.countSlices(service, slices.get(service) ?? 0);
    }
  }

  private countSlices(service: ObjectKey, count: number): void {
    const { slices } = this.pending;
    if (count > 0) slices.set(service, (slices.get(service) ?? 0) + count);
  }

  /** Notes an edit; answers the families and the Service that it concerns. Null: no single Service. */
  private note({ before, after }: RowEdit): {
    readonly families: readonly FamilyProgress[];
    readonly service: ObjectKey | null;
  } {
    const row = after ?? before;
    switch (row?.kind) {
      case undefined:
        return { families: [], service: null };
      case 'Service': {
        const service = `${row.namespace}/${row.name}`;
        this.pending.services.add(service);
        return { families: this.families, service };
      }
      case 'EndpointSlice': {
        const service = `${row.namespace}/${row.serviceName}`;
        const family = this.of(row.family);
        return { families: family === undefined ? [] : [this.noteSlice(family, row, after !== null)], service };
      }
      case 'Node':
      case 'ServiceCIDR':
        return { families: this.families, service: null };
    }
  }

  private noteSlice(family: FamilyProgress, row: EndpointSliceRow, exists: boolean): FamilyProgress {
    const service = `${row.namespace}/${row.serviceName}`;
    this.countSlices(service, 1);
    const at = row.lastChangeTriggerTime;
    if (!exists) family.forgetTriggers(service);
    else if (at !== null && at > this.startedAtMs) family.triggered(service, at);
    return family;
  }
}

function earliest(changes: readonly (Change | undefined)[]): number | null {
  const times = changes.flatMap((change) => change?.at ?? []);
  return times.length === 0 ? null : Math.min(...times);
}

function noChanges(): Changes {
  return { list: [], triggers: new Map() };
}

function noObjects(): PendingObjects {
  return { services: new Set(), slices: new Map() };
}

function addTo(triggers: Triggers, service: ObjectKey, times: readonly number[]): void {
  const held = triggers.get(service);
  if (held === undefined) triggers.set(service, [...times]);
  else held.push(...times.slice(0, Math.max(0, MAX_TRIGGERS - held.length)));
}
