import { DEFAULT_BALANCE } from '../base/balance.js';
import { messageOf } from '../base/error-message.js';
import { FAMILIES, type Family } from '../base/ip.js';
import { objectKey, type EndpointSliceRow, type ObjectKey, type ServiceRow } from '../state/rows.js';
import type { Snapshot, StateChanges } from '../state/snapshot.js';
import { slotDemand, slotEntries } from './balance.js';
import { nodeFacts, sameFacts, sameRanges, sameSettings, type NodeFacts, type PlanSettings } from './facts.js';
import { ForwardingTable } from './forwarding-table.js';
import { frontendCount } from './frontend-count.js';
import { AFFINITY_ENTRIES, endpointWeight, frontendWeight } from './frontend-limit.js';
import { planNode } from './node-plan.js';
import { PlanQueue } from './plan-queue.js';
import { SelectionMemory } from './selection-memory.js';
import { SlotBudget } from './slot-budget.js';
import { SlotTables, type ServiceTables } from './slot-tables.js';
import { SlowStart, type Warming } from './slow-start.js';
import { planService } from './service-plan.js';
import type { ServicePlan } from './types.js';

/** One plan of changes compares so many endpoints for slots in a family, which takes 50 ms. The next plan goes on. */
export const MOST_PAIRS = 1 << 24;

/** A Service of which tables of slots are made, as it was when that began. */
interface Unfinished {
  readonly service: ServiceRow;
  readonly slices: readonly EndpointSliceRow[];
  readonly hasSlots: boolean;
  /** On the clock. */
  readonly since: number;
  readonly tables: ServiceTables;
  readonly steps: Generator<number, void>;
}

/**
 * Keeps both families' forwarding tables in step with the state. A Service is planned again in the families in which it
 * changed. All Services of a family are planned again when the facts of this node change that they depend on. The tables are
 * the same as if everything were planned anew.
 */
export class Planner {
  readonly tables: Readonly<Record<Family, ForwardingTable>>;
  private readonly selections: Readonly<Record<Family, SelectionMemory>>;
  private readonly budgets: Readonly<Record<Family, SlotBudget>>;
  private readonly starts: Readonly<Record<Family, SlowStart>>;
  private readonly queues: Readonly<Record<Family, PlanQueue>> = { IPv4: new PlanQueue(), IPv6: new PlanQueue() };
  private readonly slots: Readonly<Record<Family, SlotTables>> = { IPv4: new SlotTables(), IPv6: new SlotTables() };
  private readonly unfinished = { IPv4: new Map<ObjectKey, Unfinished>(), IPv6: new Map<ObjectKey, Unfinished>() };
  private facts: NodeFacts;
  /** Grows when settings change. */
  private revision = 0;
  /** The revision with which everything is planned; null: a plan failed or was abandoned, and everything is planned again. */
  private planned: number | null = 0;

  /** @param now milliseconds on a clock that only goes forward. */
  constructor(
    private settings: PlanSettings,
    private readonly now: () => number = () => 0,
  ) {
    this.facts = nodeFacts(settings, undefined);
    const table = (family: Family): ForwardingTable => new ForwardingTable(planNode(family, settings, undefined, []));
    this.tables = { IPv4: table('IPv4'), IPv6: table('IPv6') };
    const budget = (): SlotBudget => new SlotBudget((settings.balance ?? DEFAULT_BALANCE).slots);
    this.budgets = { IPv4: budget(), IPv6: budget() };
    this.starts = { IPv4: new SlowStart(), IPv6: new SlowStart() };
    this.selections = { IPv4: new SelectionMemory('IPv4'), IPv6: new SelectionMemory('IPv6') };
  }

  /** When a plan is due although nothing changes, on the clock: an endpoint is to get more connections. Null: never. */
  get dueAt(): number | null {
    const due = FAMILIES.flatMap((family) => this.starts[family].dueAt ?? []);
    return due.length === 0 ? null : Math.min(...due);
  }

  /** Other settings for the same node, from the next update on. Equal settings cause no planning. */
  setSettings(settings: PlanSettings): void {
    if (!sameSettings(settings, this.settings)) this.revision++;
    this.settings = settings;
  }

  /** {@link plan} at once. */
  update(snapshot: Snapshot, changes: StateChanges): readonly Error[] {
    const steps = this.plan(snapshot, changes);
    for (;;) {
      const { done, value } = steps.next();
      // In one turn settings do not change.
      if (done === true) return value ?? [];
    }
  }

  /**
   * Plans changes step by step. Between two steps each Service has its old or its new plan, and the state and the settings
   * may change. Each change of the state from then on has to be planned again, whether or not this plan saw it. If a plan is
   * abandoned, the next one makes up for it. A Service that cannot be planned does not block other Services, and is tried
   * again with the next plan.
   *
   * Only a plan of changes is divided. It is not divided while a source is not synced: what the tables do not name is then
   * derived from what they name.
   *
   * @param most the limit of planned entries of all changed Services; the rest is {@link ForwardingTable.deferred} to the
   *   next plan. So is a Service whose tables of slots are not made within {@link MOST_PAIRS}.
   * @returns one error for each failed Service; null: settings changed, so this plan is abandoned.
   * @throws when it cannot return errors one by one; the changes are not lost.
   */
  *plan(snapshot: Snapshot, changes: StateChanges, most = Infinity): Generator<undefined, readonly Error[] | null> {
    const { revision } = this;
    const stale = this.planned !== revision;
    this.planned = null;
    if (stale || changes.nodes.has(this.settings.nodeName) || changes.serviceCIDRs) this.updateNode(snapshot);
    const facts = nodeFacts(this.settings, snapshot.node(this.settings.nodeName), snapshot.serviceCIDRs());
    const before = this.facts;
    this.facts = facts;
    const failures: Error[] = [];
    for (const family of FAMILIES) {
      const table = this.tables[family];
      const queue = this.queues[family];
      const isWhole = table.unsynced || snapshot.unsynced;
      table.unsynced = snapshot.unsynced;
      const everything = stale || !sameFacts(family, facts, before);
      const pending = [...table.unplanned.keys()];
      table.unplanned.clear();
      if (everything) {
        queue.clear();
        this.unfinished[family].clear();
      }
      const changed = everything
        ? allServices(snapshot, table)
        : new Set([
            ...pending,
            ...changes.services[family],
            ...this.starts[family].due(this.now()),
            ...(sameRanges(family, facts, before) ? [] : servicesFromOutside(snapshot)),
          ]);
      queue.add(this.withSlots(family, snapshot, changed));
      const room = everything || isWhole ? Infinity : most;
      const taken = queue.take(room, (key) => this.size(family, snapshot, key));
      table.deferred = queue.rest;
      let pairs = room === Infinity ? Infinity : MOST_PAIRS;
      for (const key of taken) {
        const steps = this.planService(family, snapshot, key, pairs);
        for (;;) {
          const { done, value } = steps.next();
          if (done === true) {
            failures.push(...value);
            break;
          }
          pairs -= value;
          yield;
          if (this.revision !== revision) return null;
        }
        yield;
        if (this.revision !== revision) return null;
      }
    }
    this.planned = revision;
    return failures;
  }

  /** These, and Services that get slots or lose them as these ask for fewer or more. */
  private withSlots(family: Family, snapshot: Snapshot, changed: ReadonlySet<ObjectKey>): ReadonlySet<ObjectKey> {
    const budget = this.budgets[family];
    budget.setMost((this.settings.balance ?? DEFAULT_BALANCE).slots);
    for (const key of changed) {
      const service = snapshot.service(key);
      const demand = service === undefined ? 0 : slotDemand(family, service, snapshot.slicesOf(key), this.settings);
      budget.set(key, service?.creationTime ?? null, demand);
    }
    const decided = budget.decide();
    return decided.length === 0 ? changed : new Set([...changed, ...decided]);
  }

  /** The most entries of a Service: its frontends, each with its endpoints, affinity and slots, in its former plan or its present request. */
  private size(family: Family, snapshot: Snapshot, key: ObjectKey): number {
    const { frontends: most, entries } = this.settings.limits;
    let held = 0;
    for (const { endpoints, affinitySeconds, sourceRanges, balance } of this.tables[family].plan(key)?.frontends ??
      []) {
      held += 1 + endpoints.count + (affinitySeconds === null ? 0 : AFFINITY_ENTRIES) + (sourceRanges?.length ?? 0);
      held += balance?.endpoints.slots?.length ?? 0;
    }
    const service = snapshot.service(key);
    if (service === undefined) return held;
    const slices = snapshot.slicesOf(key);
    const frontends = Math.min(frontendCount(family, service), most);
    const weight = frontendWeight(family, service, slices) + service.loadBalancerSourceRanges.length;
    const slots = slotEntries(slotDemand(family, service, slices, this.settings), endpointWeight(family, slices));
    return Math.max(held, frontends + Math.min(frontends * weight, Math.max(entries, weight)) + slots);
  }

  private warming(family: Family, key: ObjectKey, { balance }: ServiceRow, now: number): Warming | null {
    const seconds = balance?.slowStartSeconds;
    if (seconds !== undefined) return this.starts[family].planning(key, seconds * 1000, now);
    this.starts[family].forget(key);
    return null;
  }

  private updateNode(snapshot: Snapshot): void {
    const node = snapshot.node(this.settings.nodeName);
    for (const family of FAMILIES) {
      this.tables[family].setNode(planNode(family, this.settings, node, snapshot.serviceCIDRs()));
    }
  }

  /**
   * Each step returns how many endpoints it compared for slots. At the end it returns the error if the Service could not be
   * planned; otherwise empty.
   *
   * @param pairs the most comparisons. Beyond them the Service goes back to the queue, and the next plan goes on.
   */
  private *planService(
    family: Family,
    snapshot: Snapshot,
    key: ObjectKey,
    pairs: number,
  ): Generator<number, readonly Error[]> {
    const unfinished = this.unfinished[family];
    const resumed = unfinished.get(key) ?? null;
    unfinished.delete(key);
    try {
      const service = snapshot.service(key);
      if (service === undefined) {
        this.starts[family].forget(key);
        this.slots[family].forget(key);
        this.selections[family].planning(key);
        this.tables[family].setService(key, null);
        return [];
      }
      const work = resumed ?? this.begin(family, snapshot, key, service);
      let plan = resumed === null ? this.planOnce(family, key, work) : null;
      if (work.tables.isWaiting) {
        let left = pairs;
        for (let step = work.steps.next(); step.done !== true; step = work.steps.next()) {
          left -= step.value;
          yield step.value;
          if (left > 0) continue;
          unfinished.set(key, work);
          this.queues[family].add([key]);
          return [];
        }
        plan = this.planOnce(family, key, work);
      }
      work.tables.finish();
      this.tables[family].setService(key, plan);
      // Otherwise a Service that always changes would never be planned.
      if (resumed !== null && !this.isCurrent(family, snapshot, key, work)) this.queues[family].add([key]);
      return [];
    } catch (error) {
      const reason = messageOf(error);
      this.tables[family].unplanned.set(key, reason);
      return [new Error(`cannot plan Service ${key} in ${family}: ${reason}`, { cause: error })];
    }
  }

  private isCurrent(family: Family, snapshot: Snapshot, key: ObjectKey, work: Unfinished): boolean {
    const { service, slices, hasSlots } = work;
    const isSame = service === snapshot.service(key) && slices === snapshot.slicesOf(key);
    return isSame && hasSlots === this.budgets[family].has(key);
  }

  private begin(family: Family, snapshot: Snapshot, key: ObjectKey, service: ServiceRow): Unfinished {
    const tables = this.slots[family].planning(key);
    const hasSlots = this.budgets[family].has(key);
    const [slices, since] = [snapshot.slicesOf(key), this.now()];
    return { service, slices, hasSlots, since, tables, steps: tables.make() };
  }

  private planOnce(family: Family, key: ObjectKey, work: Unfinished): ServicePlan | null {
    const { service, slices, hasSlots, since, tables } = work;
    const select = this.selections[family].planning(key);
    const warming = this.warming(family, key, service, since);
    return planService(family, service, slices, this.facts, this.settings, select, key, hasSlots, warming, tables.of);
  }
}

/** All Services, and those that are gone and still have a plan. */
function allServices(snapshot: Snapshot, table: ForwardingTable): ReadonlySet<ObjectKey> {
  const keys = new Set(table.services());
  for (const { namespace, name } of snapshot.services()) keys.add(objectKey(namespace, name));
  return keys;
}

/** Services that ask for external IPs or load balancer addresses. */
function servicesFromOutside(snapshot: Snapshot): readonly ObjectKey[] {
  return [...snapshot.services()]
    .filter(({ externalIPs, loadBalancerIngress }) => externalIPs.length + loadBalancerIngress.length > 0)
    .map(({ namespace, name }) => objectKey(namespace, name));
}
