import type { Family } from '../../src/base/ip.js';
import type { Protocol } from '../../src/base/protocol.js';
import type { DifferenceName } from './differences.js';
import type { Place } from './places.js';

/**
 * One behaviour as data: objects, flows, and who has to answer them. It names no mode. Addresses and node ports are allocated per case
 * (addresses.ts), so that one process serves all cases at once. Every flow runs in both families unless it names one.
 */
export interface Case {
  /** Unique; `--only` selects by it. */
  readonly id: string;
  /** Stands alone in a log. */
  readonly title: string;
  /** Ids of docs/develop/behaviour.md. */
  readonly shows: readonly string[];
  readonly steps: readonly Step[];
  /** A process of its own, for a case that configures, restarts or damages it. */
  readonly own?: Own;
}

export interface Own {
  /** Fields of KubeProxyConfiguration. */
  readonly config?: Readonly<Record<string, unknown>>;
  /** Whose addresses the Node object names; `node` if absent. */
  readonly nodeAddresses?: Place;
  readonly podCIDRs?: readonly string[];
  /** Acts that undo what the last step leaves behind, once the process has ended. */
  readonly after?: readonly Act[];
}

export interface Step {
  readonly title?: string;
  /** All objects of this case from now on; absent: those of the step before. */
  readonly objects?: readonly ObjectSpec[];
  /** Before the objects change; only cases with a process of their own have any. */
  readonly acts?: readonly Act[];
  readonly flows: readonly Flow[];
}

export type Act =
  /** Kills the process, and starts it again after the objects have changed. */
  | { readonly restart: true }
  /** From now on the Node object names the addresses of this place. */
  | { readonly nodeAddresses: Place }
  | AddressAct
  /** A program in a place's namespace that has to succeed, with its standard input. */
  | { readonly run: readonly string[]; readonly input?: string; readonly in: Place };

/** An address of each family, or all those of a Service's load balancers, on a link of a place. */
export interface AddressAct {
  readonly address: Readonly<Record<Family, string>> | { readonly balancersOf: string };
  readonly to: Place;
  readonly link: string;
  readonly add: boolean;
}

export type ObjectSpec = ServiceSpec | { readonly serviceCIDR: string; readonly prefixes: readonly string[] };

export interface ServiceSpec {
  /** Name within the case. */
  readonly service: string;
  readonly type?: 'ClusterIP' | 'NodePort' | 'LoadBalancer';
  readonly families?: readonly Family[];
  /** Number of external IPs, and of load balancer addresses. */
  readonly externals?: number;
  readonly balancers?: number;
  /** Places whose addresses are external IPs of the Service. */
  readonly externalAt?: readonly Place[];
  readonly sourceRanges?: readonly string[];
  readonly externalTrafficPolicy?: 'Local';
  readonly internalTrafficPolicy?: 'Local';
  readonly affinitySeconds?: number;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly created?: string;
  readonly ports: readonly PortSpec[];
  /** Behind every port. */
  readonly endpoints: readonly EndpointSpec[];
}

export interface PortSpec {
  readonly name?: string;
  readonly protocol?: Protocol;
  readonly port: number;
  readonly targetPort?: number;
}

export type EndpointSpec = Place | ({ readonly pod: Place } & Conditions);

export interface Conditions {
  readonly ready?: boolean;
  readonly serving?: boolean;
  readonly terminating?: boolean;
  /** Its slice names no node for it. */
  readonly nodeless?: true;
}

export interface Flow {
  readonly from: Place | readonly Place[];
  /**
   * `web:80`: the cluster IP of Service `web`. `web external:80`, `web balancer 2:80`: its addresses of other kinds. `web node-port:80`: the node port of
   * its port 80, `web node-port at alternate:80` on another address. `unused:80`: a cluster IP that no Service has. `place pod-a:80`: no Service.
   */
  readonly to: string | readonly string[];
  /** TCP if absent. */
  readonly protocol?: Protocol | readonly Protocol[];
  /** Both if absent. */
  readonly family?: Family;
  /** `kept pod-a pod-b`: these answer, all of them, and see the client's address; `masqueraded pod-a:8443`: another one; `refused`; `dropped`. */
  readonly expect: string;
  /** Expectations where a difference applies. */
  readonly differs?: Readonly<Partial<Record<DifferenceName, string>>>;
  /** In place of the case's. */
  readonly shows?: string;
  /** A target whose address is sent from, in place of the kernel's choice: the sender has it on a link. */
  readonly source?: string;
  /** So many requests, which all meet the same. */
  readonly times?: number;
  /** A connection is opened after the check, and stays open until the end of the case. */
  readonly hold?: true;
}

/** The text of each cell's list: `one` or `['one', 'two']`. */
export function listed<T extends string>(value: T | readonly T[] | undefined, absent: readonly T[] = []): readonly T[] {
  if (value === undefined) return absent;
  return typeof value === 'string' ? [value] : value;
}
