import type { BalanceBy } from '../../base/balance.js';
import { endpointSize, EndpointList } from '../../base/endpoint-list.js';
import {
  addressFromBytes,
  addressLength,
  familyOf,
  isLoopback,
  prefixAddress,
  prefixContains,
  prefixLength,
  type Family,
  type IPAddress,
  type IPPrefix,
} from '../../base/ip.js';
import { protocolFromNumber, protocolNumber, type Protocol } from '../../base/protocol.js';
import { IPVS_FLAGS, type IpvsServiceState } from '../../native/contract.js';
import { frontendKey } from '../../plan/frontend-key.js';
import {
  isUniform,
  type FrontendKey,
  type FrontendPlan,
  type HealthCheckPlan,
  type NodePlan,
} from '../../plan/types.js';
import type { SetRole } from './names.js';
import { packedAddress, unpackAddress } from '../../base/pack-address.js';

/** From the plan to what the kernel is to hold, frontend by frontend. Nothing here knows what it holds already. */

/** `address:port/protocol`, as keys of frontends: node ports have one for each address that they answer on. */
export type ServiceKey = FrontendKey;

/** A packed element of a set as a string of its bytes. */
export type ElementKey = string;

export interface Element {
  readonly role: SetRole;
  readonly key: ElementKey;
  /** The comment of names `namespace/name:port`; empty for others. */
  readonly comment: string;
}

/** A frontend at one address, as the kernel has it. */
export interface Virtual {
  readonly address: IPAddress;
  readonly port: number;
  readonly protocol: Protocol;
}

export function serviceKey({ address, port, protocol }: Virtual): ServiceKey {
  return frontendKey(address, port, protocol);
}

/** The mode's configuration of virtual services. */
export interface Scheduling {
  readonly scheduler: string;
  /** Schedulers that Services may ask for and the kernel lacks: such Services get the common scheduler. Absent: it has all. */
  readonly lacking?: readonly string[];
}

/** Those with two schedulers' hashes also take the client's port into it (behaviour IV-02). */
const PORT_HASHING = 'mh';

/** For a Service that asks for hashing, independent of the others' scheduler. */
export const HASHING_SCHEDULER = 'mh';
/**
 * Marks a virtual service whose Service asked for hashing, as the scheduler may be that of all. No destination is
 * unavailable and has slots, so the flag has no other effect.
 */
const ASKED = IPVS_FLAGS.scheduler1;
/** Schedulers that heed weights; what does not is replaced for a Service with weights. */
const HEEDING: readonly string[] = ['wrr', 'wlc', 'sed', 'nq', 'lblc', 'lblcr', 'mh', 'sh'];
const LEAST_CONNECTIONS = 'lc';

/** The scheduler of Services with weights. */
export function weighingScheduler(scheduler: string): string {
  if (HEEDING.includes(scheduler)) return scheduler;
  return scheduler === LEAST_CONNECTIONS ? 'wlc' : 'wrr';
}

/** How a Service's connections are hashed because it asks for it; null: it does not, or the kernel cannot. */
export function askedHashing({ scheduler, flags }: IpvsServiceState): BalanceBy | null {
  if (scheduler !== HASHING_SCHEDULER || (flags & ASKED) === 0) return null;
  return (flags & IPVS_FLAGS.scheduler2) === 0 ? 'address' : 'address-port';
}

function schedulingOf(
  { balance }: FrontendPlan,
  { scheduler, lacking = [] }: Scheduling,
): Pick<IpvsServiceState, 'scheduler' | 'flags'> {
  const plain = { scheduler, flags: scheduler === PORT_HASHING ? IPVS_FLAGS.scheduler2 : 0 };
  if (balance === null) return plain;
  if (balance.by !== 'random' && !lacking.includes(HASHING_SCHEDULER))
    return { scheduler: HASHING_SCHEDULER, flags: ASKED | (balance.by === 'address' ? 0 : IPVS_FLAGS.scheduler2) };
  const weighing = weighingScheduler(scheduler);
  const isUnequal = !isUniform(balance.endpoints.weights);
  return isUnequal && weighing !== scheduler && !lacking.includes(weighing) ? { scheduler: weighing, flags: 0 } : plain;
}

/** The virtual service of a frontend; null: none, since no connection to it is to find an endpoint or a refusal. */
export function virtualService(frontend: FrontendPlan, scheduling: Scheduling): IpvsServiceState | null {
  const { endpoints, whenEmpty, affinitySeconds, family, sourceRanges } = frontend;
  // ip_vs refuses what finds no destination before any rule can drop what the node itself sends.
  if (endpoints.count === 0 && (whenEmpty === 'drop' || sourceRanges !== null)) return null;
  const persistent = affinitySeconds === null ? 0 : IPVS_FLAGS.persistent;
  const { scheduler, flags } = schedulingOf(frontend, scheduling);
  return {
    scheduler,
    flags: persistent | flags,
    timeoutSeconds: affinitySeconds ?? 0,
    prefixLength: addressLength(family) * 8,
  };
}

export function sameState(one: IpvsServiceState, other: IpvsServiceState): boolean {
  return (
    one.scheduler === other.scheduler &&
    one.flags === other.flags &&
    one.timeoutSeconds === other.timeoutSeconds &&
    one.prefixLength === other.prefixLength
  );
}

/** Whether no connection to the frontend finds an endpoint, or not those from elsewhere than pods and the node. */
function emptiness({ endpoints, localEndpoints, whenEmpty }: FrontendPlan): SetRole | null {
  if ((localEndpoints ?? endpoints).count > 0) return null;
  if (whenEmpty === 'reject') return 'refusing';
  return endpoints.count > 0 ? 'droppingOthers' : 'dropping';
}

function kindRole({ kind, masquerade, protocol }: FrontendPlan): SetRole | null {
  const keepsSource = masquerade === 'node';
  switch (kind) {
    case 'ClusterIP':
      return 'cluster';
    case 'ExternalIP':
      return keepsSource ? 'externalLocal' : 'external';
    case 'LoadBalancer':
      return keepsSource ? 'loadBalancerLocal' : 'loadBalancer';
    case 'NodePort':
      if (protocol !== 'SCTP') return null;
      return keepsSource ? 'sctpNodePortsLocal' : 'sctpNodePorts';
  }
}

/** The roles in which a frontend's packets are let through to its virtual service. */
export const SERVING: ReadonlySet<SetRole> = new Set<SetRole>([
  'cluster',
  'external',
  'externalLocal',
  'loadBalancer',
  'loadBalancerLocal',
]);

/** Elements for a frontend at one address. */
export function elementsAt(frontend: FrontendPlan, virtual: Virtual): readonly Element[] {
  const { kind, servicePort, sourceRanges } = frontend;
  const key = packVirtual(virtual);
  const elements: Element[] = kind === 'NodePort' ? [] : [{ role: 'names', key, comment: servicePort }];
  for (const role of [kindRole(frontend), emptiness(frontend)])
    if (role !== null) elements.push({ role, key, comment: '' });
  if (sourceRanges === null) return elements;
  elements.push({ role: 'restricted', key, comment: '' });
  for (const range of sourceRanges) elements.push(admission(key, range));
  return elements;
}

function admission(virtual: string, range: IPPrefix): Element {
  const address = prefixAddress(range);
  const length = prefixLength(range);
  const source = virtual + packedAddress(address);
  return length === addressLength(familyOf(address)) * 8
    ? { role: 'admittedAddresses', key: source, comment: '' }
    : { role: 'admittedPrefixes', key: source + String.fromCharCode(length), comment: '' };
}

/**
 * A node port's elements, which do not depend on addresses. For SCTP only its name is one: the sets of SCTP have the
 * addresses.
 */
export function nodePortElements(frontend: FrontendPlan): readonly Element[] {
  const { kind, family, protocol, port, masquerade, servicePort } = frontend;
  if (kind !== 'NodePort') return [];
  const name: Element = { role: 'names', key: packNodePort(family, port, protocol), comment: servicePort };
  const role = nodePortRole(protocol, masquerade === 'node');
  return role === null ? [name] : [{ role, key: packPort(port), comment: '' }, name];
}

function nodePortRole(protocol: Protocol, keepsSource: boolean): SetRole | null {
  switch (protocol) {
    case 'TCP':
      return keepsSource ? 'tcpNodePortsLocal' : 'tcpNodePorts';
    case 'UDP':
      return keepsSource ? 'udpNodePortsLocal' : 'udpNodePorts';
    case 'SCTP':
      return null;
  }
}

/** Two Services may have one port. */
export function healthCheckElements(checks: Iterable<HealthCheckPlan>): readonly Element[] {
  const ports = new Set(Array.from(checks, ({ port }) => port));
  return [...ports].map((port) => ({ role: 'healthChecks', key: packPort(port), comment: '' }));
}

export function hairpinElement(address: IPAddress): Element {
  const packed = packedAddress(address);
  const length = String.fromCharCode(addressLength(familyOf(address)) * 8);
  return { role: 'hairpin', key: packed + packed + length + length, comment: '' };
}

export function addressElement(address: IPAddress): Element {
  return { role: 'addresses', key: packedAddress(address), comment: '' };
}

/** Those of a node's addresses that node ports answer on (behaviour IV-02, SV-32). */
export function nodePortAddresses(
  { family, nodePortPrefixes }: NodePlan,
  own: Iterable<IPAddress>,
): readonly IPAddress[] {
  return [...own].filter(
    (address) =>
      familyOf(address) === family &&
      !isLoopback(address) &&
      (nodePortPrefixes === null || nodePortPrefixes.some((prefix) => prefixContains(prefix, address))),
  );
}

export function packVirtual({ address, port, protocol }: Virtual): string {
  return packedAddress(address) + packPort(port) + String.fromCharCode(protocolNumber(protocol));
}

export function unpackVirtual(family: Family, key: ElementKey): Virtual {
  const length = addressLength(family);
  const protocol = protocolFromNumber(key.charCodeAt(length + 2)) ?? 'TCP';
  return { address: unpackAddress(key.slice(0, length)), port: unpackPort(key.slice(length)), protocol };
}

/** A node port among names. */
export function packNodePort(family: Family, port: number, protocol: Protocol): string {
  return packVirtual({ address: LOOPBACK[family], port, protocol });
}

/** No set takes an unspecified address, and nothing of this mode is at these. */
const LOOPBACK: Readonly<Record<Family, IPAddress>> = {
  IPv4: addressFromBytes(Uint8Array.of(127, 0, 0, 1)),
  IPv6: addressFromBytes(new Uint8Array(16).fill(1, 15)),
};

export function packPort(port: number): string {
  return String.fromCharCode(port >> 8, port & 0xff);
}

/** The port that a packed text begins with. */
export function unpackPort(key: string): number {
  return (key.charCodeAt(0) << 8) | key.charCodeAt(1);
}

export function noEndpoints(family: Family): EndpointList {
  return NONE[family];
}

const NONE: Readonly<Record<Family, EndpointList>> = {
  IPv4: new EndpointList('IPv4', new Uint8Array(0)),
  IPv6: new EndpointList('IPv6', new Uint8Array(0)),
};

/** Endpoints of several lists as one, without what is in them twice. Sorted. */
export function unite(family: Family, lists: readonly EndpointList[]): EndpointList {
  const filled = lists.filter(({ count }) => count > 0);
  if (filled.length < 2) return filled[0] ?? noEndpoints(family);
  return sortEndpoints(family, Buffer.concat(filled.map(({ packed }) => packed)));
}

/** Packed endpoints in the order of their bytes, which is that of the plan; of equal ones one. */
export function sortEndpoints(family: Family, packed: Uint8Array): EndpointList {
  const size = endpointSize(family);
  const bytes = Buffer.from(packed.buffer, packed.byteOffset, packed.byteLength);
  const parts = Array.from({ length: packed.length / size }, (_, index) =>
    bytes.subarray(index * size, (index + 1) * size),
  );
  parts.sort((one, other) => Buffer.compare(one, other));
  const distinct = parts.filter((part, index) => index === 0 || Buffer.compare(part, parts[index - 1] ?? part) !== 0);
  return new EndpointList(family, new Uint8Array(Buffer.concat(distinct)));
}
