import type { BalanceBy } from '../base/balance.js';
import type { RetryTimes } from '../base/conntrack-timeouts.js';
import type { EndpointList } from '../base/endpoint-list.js';
import type { Family, IPAddress, IPPrefix } from '../base/ip.js';
import type { Protocol } from '../base/protocol.js';
import type { ObjectKey } from '../state/rows.js';

export type { ObjectKey } from '../state/rows.js';
export { KEEPS_DESTINATION, objectKey, REPLACED_WHOLE } from '../state/rows.js';

/** The forwarding table: what every mode renders and no mode decides. */

/** `address:port/protocol`, `[v6]:port/protocol`, or `nodeport:port/protocol`. Unique within a family's table. */
export type FrontendKey = string;

export type FrontendKind = 'ClusterIP' | 'ExternalIP' | 'LoadBalancer' | 'NodePort';

/** One address (or every node port address) and port of one Service, and what to do with a new connection to it on this node. */
export interface FrontendPlan {
  readonly key: FrontendKey;
  readonly kind: FrontendKind;
  readonly family: Family;
  /** Null for node ports, which are reached through every node port address. */
  readonly address: IPAddress | null;
  readonly protocol: Protocol;
  readonly port: number;
  /** `namespace/name` or `namespace/name:port`. */
  readonly servicePort: string;
  /** The endpoints of connections; sorted, no duplicates. With `localEndpoints` set, only of those from pods and the node itself. */
  readonly endpoints: EndpointList;
  /** External traffic policy Local: the endpoints of connections from outside, which keep their source; null otherwise. */
  readonly localEndpoints: EndpointList | null;
  /**
   * Source NAT: `always` (external, policy Cluster), `node` (policy Local: only what the node itself sends), `off-cluster`
   * (cluster IPs: sources that the local detector does not recognize as a pod).
   */
  readonly masquerade: 'always' | 'node' | 'off-cluster';
  /** For connections that find no endpoint in the list that applies to them. */
  readonly whenEmpty: 'reject' | 'drop';
  readonly affinitySeconds: number | null;
  /** How clients are shared with the Service port's other frontends; null: it has no others, or no affinity. */
  readonly clientKeys: ClientKeys | null;
  /**
   * The room that its clients share with those of other frontends, by the key of a frontend; null: it does not share, as
   * the Service has few frontends, or it has no affinity.
   */
  readonly clientRoom: FrontendKey | null;
  /**
   * After how many seconds an attempt without an answer from its endpoint goes to another one; 0: it stays; null: as
   * {@link NodePlan.retryTimes} have it.
   */
  readonly retrySeconds: number | null;
  /** Sources admitted, disjoint and sorted; null: all. */
  readonly sourceRanges: readonly IPPrefix[] | null;
  /**
   * UDP and SCTP: endpoints an existing flow may keep (every serving endpoint, independent of policies); null for TCP. Where
   * the platform balances by itself, of every protocol: all endpoints of the slices, in any state.
   */
  readonly flowEndpoints: EndpointList | null;
  /**
   * Where the platform balances by itself: the frontend has no endpoint for new connections, and these of its endpoints are not
   * ready. If its load balancer exists, it stays for connections under way, which end with it (behaviour WK-12,
   * kubernetes/kubernetes#113841). Null: it has endpoints, its Service has no load balancer addresses, or nothing stays.
   */
  readonly draining: EndpointList | null;
  /** As in {@link ServiceRow}; 0 where the mode does not balance alone. */
  readonly loadBalancerFlags: number;
  /** How connections are shared among the endpoints; null: equally, by chance. */
  readonly balance: Balance | null;
}

/** How connections to a frontend are shared among its endpoints. */
export interface Balance {
  readonly by: BalanceBy;
  readonly endpoints: Shares;
  readonly localEndpoints: Shares | null;
}

export { isUniform } from './uniform-weights.js';

/** The most slots of a table: a prime. */
export const MOST_SLOTS = 8191;

/** The share of each endpoint of a list. */
export interface Shares {
  /** In the order of the list; above 0. */
  readonly weights: readonly number[];
  /** For each slot of a table the place of its endpoint in the list; null where the mode has no such tables. */
  readonly slots: Uint16Array | null;
}

/**
 * A client keeps its endpoint on every frontend of the Service port, as long as the endpoint is in the list that its
 * connection uses. A port has one or two lists, and one frontend's key for each list remembers the clients whose endpoint
 * is in the list, independent of the frontend that they used. The same for all frontends of a port.
 */
export interface ClientKeys {
  /** The key of the cluster-wide list. */
  readonly cluster: FrontendKey;
  /** Null where all frontends use the cluster-wide list. */
  readonly local: LocalClients | null;
}

/** How clients are remembered whose endpoint is in a Service port's list of local endpoints. */
interface LocalClients {
  readonly key: FrontendKey;
  readonly endpoints: EndpointList;
  /**
   * Endpoints that the cluster-wide list lacks. Topology may leave them out, and so may readiness, if all endpoints here are
   * terminating.
   */
  readonly apart: EndpointList;
}

export interface HealthCheckPlan {
  readonly service: ObjectKey;
  readonly port: number;
  /** Distinct addresses of ready local endpoints. */
  readonly localEndpoints: number;
}

/** Everything one Service asks of one family on this node, before conflicts with other Services are decided. */
export interface ServicePlan {
  readonly service: ObjectKey;
  readonly family: Family;
  /** Decides conflicts between claims of one kind: the oldest Service wins, then the smaller key. Null counts as youngest. */
  readonly creationTime: number | null;
  readonly frontends: readonly FrontendPlan[];
  /** Endpoints that may be reached from themselves: local ones, and those that name no node. Sorted, no duplicates. */
  readonly hairpinAddresses: readonly IPAddress[];
  /** Endpoints on this node, where the platform balances by itself. Sorted, no duplicates. */
  readonly ownEndpoints: readonly IPAddress[];
  readonly healthCheck: HealthCheckPlan | null;
  readonly limitations: readonly ServiceLimitation[];
}

/**
 * A request of a Service that is not met. The platform cannot do it, it is over the limits of one Service, its source ranges
 * are of the other family alone, an annotation cannot be read, an address is the cluster's own, or the mode does not share connections as asked or has no
 * slots left for it.
 */
export interface ServiceLimitation {
  readonly family: Family;
  readonly cause: 'platform' | 'limit' | 'source-ranges' | 'annotation' | 'address' | 'mode' | 'slots';
  /** `namespace/name:port`; without the port where it is the Service's as a whole. */
  readonly servicePort: string;
  /** For people. */
  readonly text: string;
}

/** Decides which sources are pods (behaviour ST-34, ST-35). */
export type LocalDetector =
  | { readonly type: 'source-prefix'; readonly prefix: IPPrefix }
  | { readonly type: 'input-interface'; readonly name: string }
  | { readonly type: 'input-interface-prefix'; readonly prefix: string };

/** The plan of the whole node in one family. */
export interface NodePlan {
  readonly family: Family;
  /** Null: every source of cluster IP traffic counts as a pod, no source of external traffic does. */
  readonly localDetector: LocalDetector | null;
  readonly masqueradeAll: boolean;
  /** One bit of the packet mark. */
  readonly masqueradeMark: number;
  /** Node ports answer on local addresses within these prefixes, loopback apart; null: on every local address. */
  readonly nodePortPrefixes: readonly IPPrefix[] | null;
  /** Whether they answer on loopback too, where the prefixes have it; never in IPv6. */
  readonly nodePortsOnLoopback: boolean;
  /** The loopback address on which this process accepts TCP connections to node ports, as no rule can; null: none. */
  readonly nodePortListener: IPAddress | null;
  /** Those of the Node's own addresses on which they answer. Sorted. */
  readonly nodePortAddresses: readonly IPAddress[];
  /** The Node's own addresses, where the mode makes Services' addresses the node's; null: it does not. Sorted. */
  readonly ownAddresses: readonly IPAddress[] | null;
  /** Bits of an address by which session affinity takes clients for the same one. */
  readonly clientPrefix: number;
  /** Whether an address may be one Service's cluster IP and another's external IP, with other ports. */
  readonly sharesClusterIPs: boolean;
  /** Addresses in here that no Service holds are dropped. Sorted. */
  readonly serviceCIDRs: readonly IPPrefix[];
  /** The times of frontends that have no value of their own. */
  readonly retryTimes: RetryTimes;
  /** The node's own first address, where the platform balances by itself; null: unknown, or not needed. */
  readonly address: IPAddress | null;
}

export interface Conflict {
  readonly frontend: FrontendKey;
  readonly family: Family;
  /** `namespace/name:port` of the Service port that holds the frontend, and of the one that does not get it. */
  readonly winner: string;
  readonly loser: string;
  /** As what each has the address. */
  readonly winnerKind: FrontendKind;
  readonly loserKind: FrontendKind;
  /**
   * The reason of the decision: the kind, the age of the Services, or, with both the same, the key. Or the address is an
   * endpoint's, of the API server, or the winner's cluster IP, whatever its ports are.
   */
  readonly reason: 'kind' | 'age' | 'key' | 'endpoint' | 'cluster-ip';
}

/** Two Services that claim the same frontends, of which one gets none. */
export interface ConflictPair {
  /** How many frontends. */
  readonly count: number;
  /** About one of them. */
  readonly first: Conflict;
}

/** One family's table as the dataplane reads it. */
export interface FamilyTable {
  readonly family: Family;
  readonly node: NodePlan;
  /** Not all that is wanted is known: what is here is wanted, but what is not here may be too. */
  readonly unsynced: boolean;
  frontend(key: FrontendKey): FrontendPlan | undefined;
  frontends(): Iterable<FrontendPlan>;
  /** Cluster IPs that some Service holds, independent of its ports. */
  readonly clusterAddresses: AddressSet;
  /** Hairpin addresses of all Services. */
  readonly hairpinAddresses: AddressSet;
  /** {@link ServicePlan.ownEndpoints} of all Services. */
  readonly ownEndpoints: AddressSet;
  healthChecks(): Iterable<HealthCheckPlan>;
}

/** All that decides over packets to one frontend: the frontend, and the addresses that a table knows apart from it. */
export interface PacketScope {
  readonly frontend: FrontendKey;
  readonly addresses: readonly IPAddress[];
  /** Original destination, which differs from the frontend's address for node ports. */
  readonly destination: IPAddress;
}

/** Read side of a set of addresses. */
export interface AddressSet extends Iterable<IPAddress> {
  has(address: IPAddress): boolean;
}

/** The changes in one family since the table was last asked. */
export interface TableChange {
  readonly frontends: ReadonlySet<FrontendKey>;
  /**
   * Frontends of TCP and SCTP that lost an endpoint for new connections, are gone or are new. Clients may wait for an answer
   * that never comes, as conntrack goes on sending their attempts where the first packet went.
   */
  readonly attempts: ReadonlySet<FrontendKey>;
  readonly clusterAddresses: ReadonlySet<IPAddress>;
  readonly hairpinAddresses: ReadonlySet<IPAddress>;
  readonly ownEndpoints: ReadonlySet<IPAddress>;
  /** Ports of health checks, or whose they are. */
  readonly healthChecks: boolean;
  readonly node: boolean;
}
