import type { Family } from '../base/ip.js';
import type { PackedAddress } from '../base/pack-address.js';
import type { ServiceEndpoint } from '../plan/known-departures.js';
import type { FamilyTable, NodePlan, ObjectKey, TableChange } from '../plan/types.js';

/** The part of a plan that decides over them. */
export interface LoopbackTable extends Pick<FamilyTable, 'family' | 'frontend' | 'frontends'> {
  readonly node: Pick<NodePlan, 'nodePortListener'>;
}

/** Connections to node ports that this process accepts on loopback, in modes whose rules cannot (behaviour SV-36). */
export interface LoopbackConnections {
  /** Takes over the plan, whether or not the kernel has its rules: no rule is on the way of these connections. */
  sync(table: LoopbackTable, change: Pick<TableChange, 'frontends' | 'node'>): void;
  /** The endpoints of a family that they go to. */
  endpoints(family: Family): Iterable<ServiceEndpoint>;
  /** Node ports that cannot be listened on at present and are tried again, a line each. */
  failures(family: Family): readonly string[];
  /** Resets those to these endpoints; how many there were. */
  reset(family: Family, gone: ReadonlyMap<ObjectKey, ReadonlySet<PackedAddress>>): number;
}
