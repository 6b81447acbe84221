/** What the page is answered about Services, and about packets to them: see `api.ts`. */

export type IpFamily = 'IPv4' | 'IPv6';

export interface ServicesQuery {
  /**
   * Words, all of which must fit: part of `namespace/name`; part of an address of the Service; a port or node port in full, `443` or `443/TCP`; an address
   * in full that an endpoint has; the name of a pod in full; an address and port, of the Service, an endpoint or a node, `10.96.0.10:443/TCP`; `ns:NAME` for exactly that namespace,
   * `node:NAME` for endpoints on that node, `pod:NAME` for that pod, `port:443` for that port or node port, `endpoint:ADDRESS` for that endpoint. Empty: all. At most 200 characters.
   */
  readonly q?: string;
  /** Only those with a problem, or with this one: see {@link ServiceSummary.problems}. */
  readonly problems?: 'only' | ServiceProblem;
  readonly type?: ServiceType;
  /** `name` when it is left out; what is alike is in the order of names. */
  readonly sort?: ServiceSort;
  /** Of the first row; 0 when it is left out. */
  readonly offset?: string;
  /** How many rows; 1 to 10,000, 100 when it is left out. */
  readonly limit?: string;
  /** `yes`: with {@link ServiceSummary.places}. */
  readonly places?: string;
}

/**
 * By namespace and name, by type, by the first port, by used endpoints (fewest or most first), by the worst problem; by the first in order of its endpoints'
 * addresses, nodes or pods.
 */
export type ServiceSort =
  'name' | 'type' | 'port' | 'endpoints' | 'most-endpoints' | 'problems' | 'endpoint' | 'node' | 'pod';

/** Some rows of what fits. Nothing is kept between requests: rows move when Services come and go. */
export interface ServicesPage {
  /** Services that there are. */
  readonly total: number;
  /** Services that fit: the height of the list. */
  readonly matched: number;
  readonly offset: number;
  readonly rows: readonly ServiceSummary[];
}

/** Of one Service what a line of a list shows. */
export interface ServiceSummary {
  /** `namespace/name`: what {@link ServiceQuery} asks by. */
  readonly key: string;
  readonly namespace: string;
  readonly name: string;
  /** Null: the Service is refused. */
  readonly type: ServiceType | null;
  /** Some of its addresses, cluster IPs first. */
  readonly addresses: readonly string[];
  readonly moreAddresses: number;
  /** Some of its ports, as `80/TCP` or `80:30080/TCP`. */
  readonly ports: readonly string[];
  readonly morePorts: number;
  /** Endpoints that connections may go to, counted for each port and family. */
  readonly endpointsUsed: number;
  /** Endpoints in its slices, counted for each port. */
  readonly endpoints: number;
  /** Empty: nothing to look at. */
  readonly problems: readonly ServiceProblem[];
  /** Where its endpoints are; absent: it was not asked for. */
  readonly places?: { readonly pods: Names; readonly nodes: Names };
}

/** Some names, and how many more there are. */
export interface Names {
  readonly names: readonly string[];
  readonly more: number;
}

export type ServiceType = 'ClusterIP' | 'NodePort' | 'LoadBalancer' | 'ExternalName';

/**
 * `refused`: nothing of its object can be used, and there is no earlier version. `conflict`: another Service has an address of it, or it has one that another claims. `port-name`, `no-endpoints`: this node refuses connections to a frontend,
 * because no EndpointSlice has a port of this name, or because no endpoint can serve. `no-local-endpoints`: this node drops them, because the policy is Local and all
 * endpoints are on other nodes. `left-out`: its object or one of its EndpointSlices is not used, or not whole, see {@link ServiceDetail.leftOut}. `limitation`: a part of what it asks for is left out or has no effect, see {@link ServiceDetail.limitations}.
 */
export type ServiceProblem =
  | 'refused'
  | 'unplanned'
  | 'quarantined'
  | 'conflict'
  | 'port-name'
  | 'no-endpoints'
  | 'no-local-endpoints'
  | 'left-out'
  | 'limitation';

export interface ServiceQuery {
  /** `namespace/name`. */
  readonly key: string;
}

/** One Service whole. */
export interface ServiceDetail {
  readonly key: string;
  readonly namespace: string;
  readonly name: string;
  readonly type: ServiceType;
  /** Null: the object does not say. */
  readonly createdAt: string | null;
  /** Why nothing is forwarded for it although nothing is wrong, as for headless Services; null: something is, or {@link unplanned} says why not. */
  readonly nothing: string | null;
  readonly clusterIPs: readonly string[];
  readonly externalIPs: readonly string[];
  /** `Proxy`: the load balancer sends to node ports, so the address is not forwarded here. */
  readonly loadBalancer: readonly { readonly address: string; readonly mode: 'VIP' | 'Proxy' }[];
  /** Admitted to the load balancer's addresses; empty: all are. */
  readonly sourceRanges: readonly string[];
  readonly policies: { readonly internal: 'Cluster' | 'Local'; readonly external: 'Cluster' | 'Local' };
  /** ClientIP affinity in seconds; null: none. */
  readonly affinitySeconds: number | null;
  readonly healthCheck: { readonly port: number; readonly localEndpoints: number } | null;
  /** The first 500. */
  readonly ports: readonly ServicePort[];
  readonly portCount: number;
  /** The first 100; {@link FrontendsQuery} asks for more. */
  readonly frontends: readonly Frontend[];
  readonly frontendCount: number;
  /** Of the first 20 ports. */
  readonly endpoints: readonly EndpointGroup[];
  /** The first 100. */
  readonly slices: readonly Slice[];
  readonly sliceCount: number;
  /** What it asks for and does not get, one sentence each. */
  readonly limitations: readonly string[];
  /** Parts of its object and its EndpointSlices that are not used: which, and why; the first 50. */
  readonly leftOut: readonly string[];
  /** Families in which it cannot be planned, so that it is as it was. */
  readonly unplanned: readonly { readonly family: IpFamily; readonly reason: string }[];
  /** Traffic and refusals by port since counting began: none for a port without traffic, or that is not distinguished. Null: not counted. */
  readonly traffic: readonly PortTraffic[] | null;
}

/** Connections, or flows of datagrams, and what they carried to endpoints and back. */
export interface Traffic {
  readonly connections: number;
  readonly requestPackets: number;
  readonly requestBytes: number;
  readonly replyPackets: number;
  readonly replyBytes: number;
}

export interface PortTraffic extends Traffic {
  /** Empty for the unnamed port. */
  readonly port: string;
  readonly protocol: 'TCP' | 'UDP' | 'SCTP';
  /** Empty where endpoints are not counted. */
  readonly endpoints: readonly (Traffic & { readonly endpoint: string })[];
  readonly refused: readonly Refused[];
}

/** Packets that got no further than this node's rules. */
export interface Refused {
  readonly verdict: 'refused' | 'dropped';
  readonly reason: 'no-endpoints' | 'no-local-endpoints' | 'source-range';
  readonly packets: number;
}

interface ServicePort {
  /** Empty for the unnamed port. */
  readonly name: string;
  readonly protocol: 'TCP' | 'UDP' | 'SCTP';
  readonly port: number;
  /** 0: none. */
  readonly nodePort: number;
}

/** One address and port of the Service, and what happens to connections to it on this node. */
export interface Frontend {
  /** Such as `10.0.0.1:80/TCP`, `nodeport:30080/TCP`. */
  readonly key: string;
  readonly family: IpFamily;
  /** As people call it: `cluster IP`, `node port`. */
  readonly kind: string;
  /** Name of the port; empty for the unnamed one. */
  readonly port: string;
  /** For {@link ExplainQuery.to}; null: a node port, and no address of the node is known. */
  readonly explain: string | null;
  /** How many endpoints connections go to: from pods and the node itself, and from outside where that differs. */
  readonly endpoints: number;
  readonly localEndpoints: number | null;
  /** In a sentence: whose source is translated. */
  readonly masquerade: string;
  /** What becomes of connections that find no endpoint. */
  readonly whenEmpty: 'reject' | 'drop';
  /** Another Service has it, and why; null: this one has it. */
  readonly lostTo: Conflict | null;
  /** Services that claim it and do not get it, 10 at most. */
  readonly claimedBy: readonly Conflict[];
  /** The kernel refuses it, so it stays as it was; null: it does not. */
  readonly quarantined: { readonly reason: string; readonly since: string } | null;
}

export interface Conflict {
  /** `namespace/name:port` of the other one. */
  readonly servicePort: string;
  /** `namespace/name` of it. */
  readonly service: string;
  /** Why the winner has it, in a sentence. */
  readonly reason: string;
}

/** The endpoints of one port as connections under one policy see them. */
export interface EndpointGroup {
  readonly family: IpFamily;
  /** Name of the port; empty for the unnamed one. */
  readonly port: string;
  readonly protocol: 'TCP' | 'UDP' | 'SCTP';
  readonly policy: 'Cluster' | 'Local';
  /** Who is under it, in words, such as `from pods and this node`. */
  readonly applies: string;
  readonly used: number;
  readonly total: number;
  /** Why the others are not used, the most frequent first. */
  readonly reasons: readonly { readonly reason: string; readonly count: number }[];
  /** The first 100, those used first; {@link EndpointsQuery} asks for more. */
  readonly rows: readonly Endpoint[];
}

export interface Endpoint {
  /** `address:port`. */
  readonly endpoint: string;
  /** Null: it names none. */
  readonly node: string | null;
  /** Null: it is none, or its name is not known. */
  readonly pod: string | null;
  readonly conditions: readonly ('ready' | 'serving' | 'terminating')[];
  readonly zoneHints: readonly string[];
  readonly nodeHints: readonly string[];
  readonly used: boolean;
  /** Why it is not used, or why although it is not ready; null: there is nothing to say. */
  readonly reason: string | null;
}

export interface Slice {
  readonly name: string;
  readonly family: IpFamily;
  readonly endpoints: number;
  /** `http 8080/TCP`. */
  readonly ports: readonly string[];
}

/** More of {@link ServiceDetail.frontends}. */
export interface FrontendsQuery {
  /** `namespace/name`. */
  readonly key: string;
  readonly offset?: string;
  /** 1 to 500, 100 when it is left out. */
  readonly limit?: string;
}

export interface FrontendsPage {
  readonly total: number;
  readonly offset: number;
  readonly rows: readonly Frontend[];
}

/** More of an {@link EndpointGroup}. */
export interface EndpointsQuery {
  /** `namespace/name`. */
  readonly key: string;
  readonly family: IpFamily;
  readonly port: string;
  readonly protocol: string;
  readonly policy: 'Cluster' | 'Local';
  readonly offset?: string;
  /** 1 to 500, 100 when it is left out. */
  readonly limit?: string;
}

export interface EndpointsPage {
  readonly total: number;
  readonly offset: number;
  readonly rows: readonly Endpoint[];
}

// ---- Explain.

export interface ExplainQuery {
  /** `address:port/protocol`, IPv6 addresses in brackets. */
  readonly to: string;
  /** `external` (the same as leaving it out), `node`, an address, an interface, or `address%interface`. */
  readonly from?: string;
}

/** What becomes of a packet, step by step in the order in which it is decided. */
export interface ExplainAnswer {
  readonly from: string;
  readonly to: string;
  readonly outcome: 'forward' | 'reject' | 'drop' | 'none';
  /** `namespace/name` of the Service that it is for; null: none has the address and port. */
  readonly service: string | null;
  /** All of it in one sentence. */
  readonly headline: string;
  readonly steps: readonly ExplainStep[];
  /** The same as `pointsman explain` prints it, for copying. */
  readonly text: string;
}

export interface ExplainStep {
  /** Unique within the answer, such as `source`, `service`, `endpoints`. */
  readonly id: string;
  /** A word or two. */
  readonly title: string;
  /** `goes-on`: the packet passes; `ends`: this decides against it; `info`: nothing is decided here; `warning`: something is not as it should be. */
  readonly outcome: 'goes-on' | 'ends' | 'info' | 'warning';
  /** Sentences. */
  readonly lines: readonly string[];
  /** Only for the step of endpoints: all of them, those used first; at most 1000. */
  readonly endpoints: readonly Endpoint[];
  readonly moreEndpoints: number;
}
