import type { Family } from '../base/ip.js';
import type { PackedAddress } from '../base/pack-address.js';
import type { ServiceEndpoint } from '../plan/known-departures.js';
import type { FamilyTable, ObjectKey, TableChange } from '../plan/types.js';

/** Connections to node ports that this process accepts on loopback, in modes whose rules cannot (behaviour SV-36). */
export interface LoopbackConnections {
  /** Takes over the plan, whether or not the kernel has its rules: no rule is on the way of these connections. */
  sync(table: FamilyTable, change: Pick<TableChange, 'frontends' | 'node'>): void;
  /** The endpoints of a family that they go to. */
  endpoints(family: Family): Iterable<ServiceEndpoint>;
  /** Resets those to these endpoints; how many there were. */
  reset(family: Family, gone: ReadonlyMap<ObjectKey, ReadonlySet<PackedAddress>>): number;
}
