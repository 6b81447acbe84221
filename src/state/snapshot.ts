import type { Family } from '../base/ip.js';
import type { EndpointSliceRow, NodeRow, ObjectKey, ServiceCIDRRow, ServiceRow } from './rows.js';

/** Read access to everything the sources have reported so far. A live view: rows and arrays already handed out never change. */
export interface Snapshot {
  service(key: ObjectKey): ServiceRow | undefined;
  /** In no particular order. */
  services(): Iterable<ServiceRow>;
  readonly serviceCount: number;
  /** The slices that name this Service, sorted by name whatever the order they came in. The Service itself need not exist. */
  slicesOf(service: ObjectKey): readonly EndpointSliceRow[];
  /** All slices, whatever Service they name, in no particular order. */
  slices(): Iterable<EndpointSliceRow>;
  node(name: string): NodeRow | undefined;
  /** Sorted by name. */
  serviceCIDRs(): readonly ServiceCIDRRow[];
  /** Every registered source has reported complete, and there is one. Until then absence means nothing. */
  readonly ready: boolean;
  /** A source could not read something of which it has no earlier version: absence does not mean removal. */
  readonly unsynced: boolean;
}

/** What changed since changes were last taken. */
export interface StateChanges {
  /** Services whose own row, or whose slices of the family, changed; including those that are gone. */
  readonly services: Readonly<Record<Family, ReadonlySet<ObjectKey>>>;
  readonly nodes: ReadonlySet<string>;
  readonly serviceCIDRs: boolean;
  /** Whether {@link Snapshot.ready} changed. */
  readonly ready: boolean;
}
