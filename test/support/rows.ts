import { packedKey } from '../../src/base/endpoint-list.js';
import { PackedNames, type NamesText } from '../../src/base/packed-names.js';
import {
  addressBytes,
  addressLength,
  familyOf,
  parseAddress,
  parsePrefix,
  type Family,
  type IPAddress,
  type IPPrefix,
  type NodePortAddress,
} from '../../src/base/ip.js';
import { Interner } from '../../src/sources/translate/intern.js';
import { translateService } from '../../src/sources/translate/service.js';
import {
  POD,
  READY,
  SERVING,
  TERMINATING,
  type EndpointPortRow,
  type EndpointSliceRow,
  type LoadBalancerIngressRow,
  type NodeRow,
  type ServiceCIDRRow,
  type ServicePortRow,
  type ServiceRow,
} from '../../src/state/rows.js';
import { serviceObject } from './api-objects.js';

/** Rows as a test wants to write them: texts for addresses, everything else defaulted. */

export function address(text: string): IPAddress {
  const parsed = parseAddress(text);
  if (parsed === null) throw new TypeError(`not an address: ${text}`);
  return parsed;
}

export function prefix(text: string): IPPrefix {
  const parsed = parsePrefix(text);
  if (parsed === null) throw new TypeError(`not a prefix: ${text}`);
  return parsed;
}

export function nodePortAddresses(texts: readonly string[]): readonly NodePortAddress[] {
  return texts.map((text) => (text === 'primary' ? text : prefix(text)));
}

export interface ServiceText extends Partial<
  Omit<ServiceRow, 'clusterIPs' | 'externalIPs' | 'loadBalancerIngress' | 'loadBalancerSourceRanges' | 'ports'>
> {
  readonly clusterIPs?: readonly string[];
  readonly externalIPs?: readonly string[];
  /** Addresses, or whole entries. */
  readonly loadBalancer?: readonly (string | LoadBalancerIngressRow)[];
  readonly sourceRanges?: readonly string[];
  readonly ports?: readonly Partial<ServicePortRow>[];
}

export function port(fields: Partial<ServicePortRow> = {}): ServicePortRow {
  return { name: '', protocol: 'TCP', port: 80, nodePort: 0, ...fields };
}

/** {@link serviceObject} as it is translated. Its ports, and other fields of the row, are those given: what no Service can have, planning must bear. */
export function service(name: string, text: ServiceText = {}): ServiceRow {
  const { clusterIPs = ['10.96.0.10'], externalIPs, loadBalancer = [], sourceRanges, ports = [{}], ...fields } = text;
  const ingress = loadBalancer.map((entry) => (typeof entry === 'string' ? { ip: entry } : ingressOf(entry)));
  const type =
    loadBalancer.length > 0 ? 'LoadBalancer' : ports.some(({ nodePort }) => nodePort) ? 'NodePort' : 'ClusterIP';
  const spec = { type, clusterIP: clusterIPs[0], clusterIPs, externalIPs, loadBalancerSourceRanges: sourceRanges };
  const status = { loadBalancer: { ingress } };
  const { row } = translateService(serviceObject(name, spec, { status }), new Interner());
  if (row === null) throw new TypeError(`no Service of ours: ${name}`);
  return { ...row, creationTime: 0, ports: ports.map(port), ...fields };
}

function ingressOf({ address: ip, ipMode }: LoadBalancerIngressRow): Readonly<Record<string, unknown>> {
  return { ip, ipMode };
}

export interface EndpointText {
  readonly address: string;
  /** What holds: letters of `rstp`, ready, serving, terminating, a pod. */
  readonly state?: string;
  readonly node?: string | null;
  readonly pod?: string;
  readonly zones?: readonly string[];
  readonly nodes?: readonly string[];
}

export interface SliceText {
  readonly name?: string;
  readonly namespace?: string;
  /** That of the first endpoint when not given. */
  readonly family?: Family;
  readonly ports?: readonly Partial<EndpointPortRow>[];
  readonly triggerTime?: number;
}

export function slice(serviceName: string, endpoints: readonly EndpointText[], text: SliceText = {}): EndpointSliceRow {
  const family = text.family ?? familyOf(address(endpoints[0]?.address ?? '0.0.0.0'));
  const addresses = endpoints.map((endpoint) =>
    packedKey(addressBytes(address(endpoint.address)), 0, addressLength(family)),
  );
  const hints = (lists: readonly (readonly string[])[]): readonly (readonly string[])[] | null =>
    lists.some((list) => list.length > 0) ? lists : null;
  return {
    kind: 'EndpointSlice',
    namespace: text.namespace ?? 'default',
    name: text.name ?? `${serviceName}-${family.toLowerCase()}`,
    serviceName,
    family,
    lastChangeTriggerTime: text.triggerTime ?? null,
    ports: (text.ports ?? [{}]).map((fields) => ({ name: '', protocol: 'TCP', port: 80, ...fields })),
    count: endpoints.length,
    addresses: addresses.join(''),
    conditions: Uint8Array.from(endpoints, ({ state = 'rs' }) => conditions(state)),
    nodeNames: endpoints.map(({ node = null }) => node),
    zoneHints: hints(endpoints.map(({ zones = [] }) => zones)),
    nodeHints: hints(endpoints.map(({ nodes = [] }) => nodes)),
    ...(endpoints.some(({ pod }) => pod !== undefined) ? { pods: packedPods(endpoints) } : {}),
  };
}

function packedPods(endpoints: readonly EndpointText[]): NamesText {
  const names = new PackedNames();
  for (const { pod } of endpoints) {
    names.none();
    if (pod !== undefined) names.nextText(pod);
    names.add();
  }
  return names.text();
}

function conditions(letters: string): number {
  const bit = (letter: string, value: number): number => (letters.includes(letter) ? value : 0);
  return bit('r', READY) | bit('s', SERVING) | bit('t', TERMINATING) | bit('p', POD);
}

export function node(
  name: string,
  addresses: readonly string[] = [],
  fields: Partial<Omit<NodeRow, 'podCIDRs'>> & { readonly podCIDRs?: readonly string[] } = {},
): NodeRow {
  const { podCIDRs = [], ...rest } = fields;
  return {
    kind: 'Node',
    name,
    addresses: addresses.map(address),
    podCIDRs: podCIDRs.map(prefix),
    zone: null,
    eligible: true,
    ...rest,
  };
}

export function serviceCIDR(name: string, cidrs: readonly string[]): ServiceCIDRRow {
  return { kind: 'ServiceCIDR', name, cidrs: cidrs.map(prefix) };
}
