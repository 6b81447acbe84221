import { FAMILIES, type Family, type IPAddress, type IPPrefix } from '../base/ip.js';
import { DEFAULT_SERVICE_LIMITS, type ServiceLimits } from '../base/service-limits.js';
import { PrefixIndex } from '../base/prefix-index.js';
import type { NodeRow, ObjectKey } from '../state/rows.js';
import type { Snapshot, StateChanges } from '../state/snapshot.js';
import { ANY_NODE, type Cluster } from './claim-problems.js';
import type { ForwardingTable } from './forwarding-table.js';
import { Planner } from './planner.js';
import type { ServicePlan } from './types.js';

/** A whole cluster as its Services are judged by: kept in step with the state, at a cost proportional to what changed. */
export class PlannedCluster implements Cluster {
  private readonly planner: Planner;
  private readonly nodes = new Holders<IPAddress>();
  private readonly checks = new Holders<number>();
  private ranges: PrefixIndex<IPPrefix>;
  private readonly podCIDRs = new Map<string, readonly IPPrefix[]>();
  /** Null: Nodes have changed. */
  private podRanges: PrefixIndex<IPPrefix> | null = null;

  /** @param otherRanges of Services, beside those of ServiceCIDRs. */
  constructor(
    private readonly otherRanges: readonly IPPrefix[] = [],
    readonly limits: ServiceLimits = DEFAULT_SERVICE_LIMITS,
  ) {
    this.planner = new Planner({ ...ANY_NODE, limits });
    this.ranges = rangeIndex(otherRanges);
  }

  get tables(): Readonly<Record<Family, ForwardingTable>> {
    return this.planner.tables;
  }

  nodeWith(address: IPAddress): string | undefined {
    return this.nodes.of(address).values().next().value;
  }

  checksOn(port: number): readonly ServicePlan[] {
    return [...this.checks.of(port)].flatMap((key) => this.plansOf(key).slice(0, 1));
  }

  rangeOf(address: IPAddress): IPPrefix | undefined {
    return this.ranges.holding(address);
  }

  podRangeOf(address: IPAddress): IPPrefix | undefined {
    this.podRanges ??= rangeIndex([...new Set([...this.podCIDRs.values()].flat())]);
    return this.podRanges.holding(address);
  }

  /** @returns why Services could not be planned, one for each. */
  update(snapshot: Snapshot, changes: StateChanges): readonly Error[] {
    for (const name of changes.nodes) this.updateNode(name, snapshot.node(name));
    if (changes.serviceCIDRs)
      this.ranges = rangeIndex([...this.otherRanges, ...snapshot.serviceCIDRs().flatMap(({ cidrs }) => cidrs)]);
    const failures = this.planner.update(snapshot, changes);
    for (const key of new Set(FAMILIES.flatMap((family) => [...changes.services[family]])))
      this.checks.set(
        key,
        this.plansOf(key).flatMap(({ healthCheck }) => healthCheck?.port ?? []),
      );
    return failures;
  }

  private updateNode(name: string, node: NodeRow | undefined): void {
    this.nodes.set(name, node?.addresses ?? []);
    const podCIDRs = node?.podCIDRs ?? [];
    if (podCIDRs.join() === (this.podCIDRs.get(name) ?? []).join()) return;
    if (podCIDRs.length === 0) this.podCIDRs.delete(name);
    else this.podCIDRs.set(name, podCIDRs);
    this.podRanges = null;
  }

  private plansOf(key: ObjectKey): readonly ServicePlan[] {
    return FAMILIES.flatMap((family) => this.tables[family].plan(key) ?? []);
  }
}

/** Who has what, where several may have the same. */
class Holders<V> {
  private readonly values = new Map<string, readonly V[]>();
  private readonly holders = new Map<V, Set<string>>();

  of(value: V): ReadonlySet<string> {
    return this.holders.get(value) ?? NO_HOLDERS;
  }

  /** Replaces what one has. */
  set(holder: string, values: readonly V[]): void {
    for (const value of this.values.get(holder) ?? []) {
      const holders = this.holders.get(value);
      holders?.delete(holder);
      if (holders?.size === 0) this.holders.delete(value);
    }
    for (const value of values) this.holders.set(value, (this.holders.get(value) ?? new Set()).add(holder));
    if (values.length === 0) this.values.delete(holder);
    else this.values.set(holder, values);
  }
}

const NO_HOLDERS: ReadonlySet<string> = new Set();

function rangeIndex(ranges: readonly IPPrefix[]): PrefixIndex<IPPrefix> {
  return new PrefixIndex(ranges.map((range) => [range, range]));
}
