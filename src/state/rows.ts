import type { BalanceBy } from '../base/balance.js';
import type { Family, IPAddress, IPPrefix } from '../base/ip.js';
import type { NamesText } from '../base/packed-names.js';
import type { Protocol } from '../base/protocol.js';

/**
 * What sources report, already validated and in our own terms. Rows are immutable; a changed object is a new row. Nothing here is derived:
 * decisions belong to plan/.
 */

/** `namespace/name`. */
export type ObjectKey = string;

export interface ServicePortRow {
  /** Empty for the unnamed port. */
  readonly name: string;
  readonly protocol: Protocol;
  readonly port: number;
  /** 0: no node port. */
  readonly nodePort: number;
}

export interface LoadBalancerIngressRow {
  readonly address: IPAddress;
  /** `Proxy`: the load balancer sends to node ports itself, the proxy does not handle the address (KEP-1860). */
  readonly ipMode: 'VIP' | 'Proxy';
}

export interface ServiceRow {
  readonly kind: 'Service';
  readonly namespace: string;
  readonly name: string;
  /** Milliseconds since the epoch; null when the object carries no creationTimestamp (such a Service counts as the youngest). */
  readonly creationTime: number | null;
  readonly type: 'ClusterIP' | 'NodePort' | 'LoadBalancer' | 'ExternalName';
  /** As in the object, invalid ones left out; empty for headless Services. */
  readonly clusterIPs: readonly IPAddress[];
  readonly ipFamilies: readonly Family[];
  readonly externalIPs: readonly IPAddress[];
  readonly loadBalancerIngress: readonly LoadBalancerIngressRow[];
  readonly loadBalancerSourceRanges: readonly IPPrefix[];
  readonly externalTrafficPolicy: 'Cluster' | 'Local';
  readonly internalTrafficPolicy: 'Cluster' | 'Local';
  /** ClientIP affinity timeout in seconds; null for no affinity. */
  readonly affinitySeconds: number | null;
  /** 0: none. */
  readonly healthCheckNodePort: number;
  /** After how many seconds unanswered attempts go to another endpoint, of its TCP ports and of its UDP ports; 0: never; null: the node's setting. */
  readonly connectRetry: number | null;
  readonly udpRetry: number | null;
  /** {@link KEEPS_DESTINATION} | {@link REPLACED_WHOLE}, which annotations ask for. */
  readonly loadBalancerFlags: number;
  /** What annotations set for how connections are shared among endpoints; absent: nothing. */
  readonly balance?: BalanceRow;
  /** What annotations ask for connections to endpoints that go; null: nothing, which is what most Services have. */
  readonly endingConnections: EndingConnectionsRow | null;
  readonly ports: readonly ServicePortRow[];
}

/** How connections spill over to other zones. */
export interface ZoneSpill {
  /** What each zone has of all clients, in any unit; null: all as many. */
  readonly clients: readonly { readonly zone: string; readonly share: number }[] | null;
}

/** Annotations of a Service about how its connections are shared. */
export interface BalanceRow {
  /** Null: the configuration decides. */
  readonly by: BalanceBy | null;
  /** Whether a node's connections stay in its zone as far as that zone's endpoints have room; null: they do not. */
  readonly spill?: ZoneSpill | null;
  /** In how many seconds an endpoint that becomes ready comes to its weight; absent: at once. */
  readonly slowStartSeconds?: number;
  /** Annotations that cannot be read and count as absent, for people; bounded. */
  readonly unreadable: readonly string[];
}

export interface EndingConnectionsRow {
  /** Connections to removed endpoints are never reset, or as soon as the endpoint has left this Service; null: as for other Services. */
  readonly reset: 'off' | 'service' | null;
  /** After how many seconds connections to a terminating endpoint are reset; null: never. */
  readonly drainSeconds: number | null;
  /** Annotations that cannot be read and count as absent, for people. */
  readonly unreadable: readonly string[];
}

/** Bits of {@link ServiceRow.loadBalancerFlags}, for platforms that balance by themselves (behaviour WK-05): endpoints see the address that the client asked for. */
export const KEEPS_DESTINATION = 1;
/** What there is is never changed in place. */
export const REPLACED_WHOLE = 2;

export interface EndpointPortRow {
  /** Empty for the unnamed port. */
  readonly name: string;
  readonly protocol: Protocol;
  readonly port: number;
}

/** Bits of {@link EndpointSliceRow.conditions}. */
export const READY = 1;
export const SERVING = 2;
export const TERMINATING = 4;
/** The endpoint is a pod (its targetRef is of kind Pod): no one is there any more when its address is in no slice. */
export const POD = 8;

/**
 * One EndpointSlice. Endpoints are columns, not objects: at 250,000 endpoints this is what keeps memory small. All per-endpoint columns
 * have `count` entries in the slice's order.
 */
export interface EndpointSliceRow {
  readonly kind: 'EndpointSlice';
  readonly namespace: string;
  readonly name: string;
  /** Label kubernetes.io/service-name. */
  readonly serviceName: string;
  readonly family: Family;
  /**
   * When the change behind this version of the slice was made, by its controller: milliseconds since the epoch; null when it does not report it. For metrics
   * only: rows that differ in nothing else count as equal.
   */
  readonly lastChangeTriggerTime: number | null;
  readonly ports: readonly EndpointPortRow[];
  readonly count: number;
  /** First address of each endpoint, 4 or 16 bytes each, network order. One character for each byte: an array costs 180 bytes beside its content. */
  readonly addresses: string;
  /** One byte per endpoint: READY | SERVING | TERMINATING, API defaults applied, and POD. */
  readonly conditions: Uint8Array;
  /** Interned node names; null where the endpoint names no node. */
  readonly nodeNames: readonly (string | null)[];
  /** Zone hints per endpoint; null when no endpoint has any. */
  readonly zoneHints: readonly (readonly string[])[] | null;
  /** Node hints per endpoint; null when no endpoint has any. */
  readonly nodeHints: readonly (readonly string[])[] | null;
  /** Zones that endpoints are in, and for each endpoint a character: its zone's place among them + 1, 0 for none. Both absent or empty: none is in a zone. */
  readonly zoneNames?: readonly string[];
  readonly zones?: string;
  /** Names of the pods that endpoints are; absent or empty: none is known to be one. Only for people. */
  readonly pods?: NamesText;
  /** The weight of each of its endpoints, 0 to {@link MOST_WEIGHT}: 0 for no new connections; absent: 1. */
  readonly weight?: number;
  /** An annotation that cannot be read and counts as absent, for people. */
  readonly unreadable?: string;
}

export const MOST_WEIGHT = 65_535;
export const DEFAULT_WEIGHT = 1;

export interface NodeRow {
  readonly kind: 'Node';
  readonly name: string;
  /** InternalIPs in status order, then ExternalIPs; valid ones only. */
  readonly addresses: readonly IPAddress[];
  readonly podCIDRs: readonly IPPrefix[];
  /** Label topology.kubernetes.io/zone; null when missing or empty. */
  readonly zone: string | null;
  /** False while the Node is being deleted or carries the taint ToBeDeletedByClusterAutoscaler (KEP-3836). */
  readonly eligible: boolean;
}

export interface ServiceCIDRRow {
  readonly kind: 'ServiceCIDR';
  readonly name: string;
  readonly cidrs: readonly IPPrefix[];
}

export type Row = ServiceRow | EndpointSliceRow | NodeRow | ServiceCIDRRow;

export type RowKind = Row['kind'];

/** Cluster-scoped objects have an empty namespace. */
export interface RowRef {
  readonly kind: RowKind;
  readonly namespace: string;
  readonly name: string;
}

export function objectKey(namespace: string, name: string): ObjectKey {
  // Joined, it is one flat string; a template literal makes a rope, which a map would keep beside the flat one.
  return [namespace, name].join('/');
}

export function refOf(row: Row): RowRef {
  return { kind: row.kind, namespace: 'namespace' in row ? row.namespace : '', name: row.name };
}
