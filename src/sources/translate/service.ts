import {
  addressFromBytes,
  familyOf,
  parseAddress,
  parseAddressBytes,
  type Family,
  type IPAddress,
  FAMILIES,
  parsePrefix,
  type IPPrefix,
} from '../../base/ip.js';
import { isMapping } from '../../base/mapping.js';
import { PROTOCOLS } from '../../base/protocol.js';
import { specialAddress, specialAddressAt } from '../../base/special-address.js';
import {
  KEEPS_DESTINATION,
  REPLACED_WHOLE,
  type LoadBalancerIngressRow,
  type ServicePortRow,
  type ServiceRow,
} from '../../state/rows.js';
import { readBalance } from './balance.js';
import { readEndingConnections } from './ending-connections.js';
import { Fields } from './fields.js';
import type { Interner } from './intern.js';
import { checkName, readRef, readTime, type Translation } from './metadata.js';

const CONNECT_RETRY = 'pointsman.dev/connect-retry';
const UDP_RETRY = 'pointsman.dev/udp-retry';
const PROXY_NAME_LABEL = 'service.kubernetes.io/service-proxy-name';
const TYPES = ['ClusterIP', 'NodePort', 'LoadBalancer', 'ExternalName'] as const;
const POLICIES = ['Cluster', 'Local'] as const;
const FAMILY_LISTS: readonly (readonly Family[])[] = [['IPv4'], ['IPv6'], ['IPv4', 'IPv6'], ['IPv6', 'IPv4']];
/** What most lists of most Services are. */
const NONE: readonly never[] = [];
const DEFAULT_AFFINITY_SECONDS = 10_800;
const MAX_AFFINITY_SECONDS = 86_400;

/**
 * Translates a core/v1 Service and applies the API's defaults, which a hand-written one lacks. A Service with the label
 * service.kubernetes.io/service-proxy-name belongs to another proxy: row null (behaviour WA-02).
 *
 * @throws TranslateError naming every field that is wrong.
 */
export function translateService(object: unknown, names: Interner): Translation<ServiceRow> {
  const fields = Fields.of(object);
  const ref = readRef(fields, 'Service');
  const metadata = fields.section('metadata');
  if (metadata.section('labels').has(PROXY_NAME_LABEL)) {
    fields.check();
    return { ref, row: null, warnings: fields.findings.warnings.all() };
  }
  const spec = fields.section('spec');
  const type = spec.choice('type', TYPES, 'ClusterIP');
  const { clusterIPs, ipFamilies, headless } = readClusterIPs(spec, type);
  const ports = readPorts(spec, type);
  if (ports.length === 0 && !headless && type !== 'ExternalName' && spec.lacks('ports')) {
    spec.refuse('ports', null, 'is required');
  }
  const row: ServiceRow = {
    kind: 'Service',
    namespace: names.text(ref.namespace),
    // Its slices name it, too.
    name: names.text(ref.name),
    creationTime: readTime(metadata, 'creationTimestamp'),
    type,
    clusterIPs,
    ipFamilies,
    externalIPs: readExternalIPs(spec),
    loadBalancerIngress: readIngress(fields.section('status').section('loadBalancer')),
    loadBalancerSourceRanges: readSourceRanges(spec),
    externalTrafficPolicy: spec.choice('externalTrafficPolicy', POLICIES, 'Cluster'),
    internalTrafficPolicy: spec.choice('internalTrafficPolicy', POLICIES, 'Cluster'),
    affinitySeconds: readAffinity(spec),
    healthCheckNodePort: spec.integer('healthCheckNodePort', 0, 65_535) ?? 0,
    connectRetry: readRetry(metadata, CONNECT_RETRY),
    udpRetry: readRetry(metadata, UDP_RETRY),
    loadBalancerFlags: readLoadBalancerFlags(metadata),
    endingConnections: readEndingConnections(metadata),
    ports: names.servicePorts(ports),
  };
  fields.check();
  const balance = readBalance(metadata);
  // Rows of most Services are of one shape.
  const whole = balance === null ? row : { ...row, balance };
  return { ref, row: whole, warnings: fields.findings.warnings.all() };
}

/** An annotation of any other type counts as none: they are for one platform, and not worth refusing a Service for. */
function readLoadBalancerFlags(metadata: Fields): number {
  const annotations = metadata.raw('annotations');
  if (!isMapping(annotations)) return 0;
  const { 'preserve-destination': preserved, winProxyOptimization: optimized } = annotations;
  const isWhole = typeof optimized === 'string' && optimized.toLowerCase() === 'disabled';
  return (preserved === 'true' ? KEEPS_DESTINATION : 0) | (isWhole ? REPLACED_WHOLE : 0);
}

interface ClusterIPs {
  readonly clusterIPs: readonly IPAddress[];
  readonly ipFamilies: readonly Family[];
  readonly headless: boolean;
}

/**
 * `clusterIP` is the first of `clusterIPs`; either may be missing. The missing part of `ipFamilies` follows from the addresses, and the given part must agree
 * with them. So the address of a family is the same however it is looked up (behaviour SV-02).
 */
function readClusterIPs(spec: Fields, type: ServiceRow['type']): ClusterIPs {
  const families = readFamilies(spec);
  const clusterIPs: TakenIPs = { all: [], usable: [] };
  const single = spec.string('clusterIP') ?? '';
  const listed = spec.list('clusterIPs');
  if (listed.includes(HEADLESS)) return readHeadless(spec, single, listed, families);
  let given = 0;
  for (let index = 0; index < listed.length; index++) {
    const text = spec.textAt('clusterIPs', listed, index) ?? '';
    if (text === '') continue;
    if (++given === 1) refuseOther(spec, single, text);
    takeClusterIP(spec, 'clusterIPs', index, text, families, clusterIPs);
  }
  if (given === 0 && single === HEADLESS) return { clusterIPs: [], ipFamilies: families, headless: true };
  if (given === 0 && single !== '') takeClusterIP(spec, 'clusterIP', null, single, families, clusterIPs);
  if (given === 0 && single === '' && type !== 'ExternalName') {
    spec.warn('clusterIP', null, 'has no address, and none is assigned here: the Service is not served');
  }
  const { all, usable } = clusterIPs;
  const ipFamilies = completed(families, all);
  // Copied, as an array that was pushed to takes room for 17.
  if (usable.length === all.length) return { clusterIPs: usable.slice(), ipFamilies, headless: false };
  // A family and its address are looked up by position: both go.
  return { clusterIPs: usable.slice(), ipFamilies: sharedFamilies(usable.map(familyOf)), headless: false };
}

interface TakenIPs {
  /** In the order given. */
  readonly all: IPAddress[];
  /** The addresses among them that a Service may have. */
  readonly usable: IPAddress[];
}

const HEADLESS = 'None';

/** The value of `clusterIPs` for "None", which has to be its only entry. */
function readHeadless(
  spec: Fields,
  single: string,
  listed: readonly unknown[],
  families: readonly Family[],
): ClusterIPs {
  const texts = listed.map((_, index) => spec.textAt('clusterIPs', listed, index) ?? '').filter((text) => text !== '');
  refuseOther(spec, single, texts[0] ?? '');
  if (texts.length > 1) spec.refuse('clusterIPs[1]', texts[1], 'must not follow or be followed by "None"');
  return { clusterIPs: [], ipFamilies: families, headless: true };
}

function refuseOther(spec: Fields, single: string, first: string): void {
  if (single === '' || single === first) return;
  spec.refuse('clusterIP', single, `must be the first of clusterIPs, ${JSON.stringify(first)}`);
}

/** @param index of the text in the list at `name`; null when it is the field itself. */
function takeClusterIP(
  spec: Fields,
  name: string,
  index: number | null,
  text: string,
  families: readonly Family[],
  { all, usable }: TakenIPs,
): void {
  const address = parseAddress(text);
  const family = address === null ? null : familyOf(address);
  const wanted = families[all.length] ?? family;
  const repeated = all.some((before) => familyOf(before) === family);
  const at = (): string => (index === null ? name : `${name}[${index}]`);
  if (address === null) spec.refuse(at(), text, 'must be an IP address or "None"');
  else if (repeated) spec.refuse(at(), text, `must be of another family than ${all.join()}`);
  else if (wanted !== family) spec.refuse(at(), text, `must be ${wanted ?? ''}, as in ipFamilies`);
  else {
    all.push(address);
    const special = specialAddress(address);
    // The API gives out what its ServiceCIDRs hold, and those may be link-local.
    if (special === null || special === 'a link-local address') usable.push(address);
    else spec.warn(at(), text, `is ${special}: the Service is not served over ${familyOf(address)}`);
  }
}

/** The families that the addresses have, which agree with those given, and what more is given. */
function completed(families: readonly Family[], addresses: readonly IPAddress[]): readonly Family[] {
  if (families.length >= addresses.length) return families;
  return sharedFamilies(addresses.map(familyOf));
}

/** There are only four lists, in all Services. */
function sharedFamilies(families: readonly Family[]): readonly Family[] {
  for (const list of FAMILY_LISTS) {
    if (list.length === families.length && list[0] === families[0] && list[1] === families[1]) return list;
  }
  return families;
}

function readFamilies(spec: Fields): readonly Family[] {
  const listed = spec.list('ipFamilies');
  const families: Family[] = [];
  for (let index = 0; index < listed.length; index++) {
    const text = spec.textAt('ipFamilies', listed, index);
    if (text === null) continue;
    if (text !== 'IPv4' && text !== 'IPv6') {
      spec.refuse(`ipFamilies[${index}]`, text, 'must be one of IPv4, IPv6');
    } else if (families.includes(text)) spec.refuse(`ipFamilies[${index}]`, text, 'must not be given twice');
    else families.push(text);
  }
  return sharedFamilies(families);
}

function readPorts(spec: Fields, type: ServiceRow['type']): readonly ServicePortRow[] {
  const sections = spec.sections('ports');
  const seen = sections.length > 1 ? new Set<string>() : null;
  const ports: ServicePortRow[] = [];
  for (const section of sections) {
    const port = readPort(section, type);
    if (seen !== null) refuseRepeated(seen, section, port);
    ports.push(port);
  }
  return ports;
}

function readPort(section: Fields, type: ServiceRow['type']): ServicePortRow {
  const name = section.string('name') ?? '';
  if (name !== '') checkName(section, 'name', name, 'label');
  const protocol = section.choice('protocol', PROTOCOLS, 'TCP');
  if (section.lacks('port')) section.refuse('port', null, 'is required');
  const port = section.integer('port', 1, 65_535) ?? 0;
  const nodePort = section.integer('nodePort', 0, 65_535) ?? 0;
  if (nodePort !== 0 && type === 'ClusterIP') {
    section.refuse('nodePort', nodePort, 'may not be used when type is ClusterIP');
  }
  return { name, protocol, port, nodePort };
}

/** What each of several ports must have, and have for itself. */
function refuseRepeated(seen: Set<string>, section: Fields, { name, protocol, port, nodePort }: ServicePortRow): void {
  if (name === '') section.refuse('name', null, 'is required when there are several ports');
  else refuseSeen(seen, `name ${name}`, section, 'name', name);
  if (port !== 0) refuseSeen(seen, `${protocol} port ${port}`, section, 'port', port);
  if (nodePort !== 0) refuseSeen(seen, `${protocol} node port ${nodePort}`, section, 'nodePort', nodePort);
}

function refuseSeen(seen: Set<string>, key: string, section: Fields, path: string, value: unknown): void {
  if (seen.has(key)) section.refuse(path, value, 'must not be used by two ports of one Service');
  seen.add(key);
}

/** An address that is reached from outside. Null for one that cannot be, which is left out with a warning, as kube-proxy does (behaviour SV-04). */
function externalAddress(fields: Fields, text: string, at: () => string): IPAddress | null {
  const bytes = parseAddressBytes(text);
  const special =
    bytes === null ? 'not an IP address' : specialAddressAt(bytes, 0, bytes.length === 4 ? 'IPv4' : 'IPv6');
  if (bytes !== null && special === null) return addressFromBytes(bytes);
  fields.warn(at(), text, `is ${special} and left out`);
  return null;
}

function readExternalIPs(spec: Fields): readonly IPAddress[] {
  if (spec.lacks('externalIPs')) return NONE;
  const addresses = new Set<IPAddress>();
  const list = spec.list('externalIPs');
  for (let index = 0; index < list.length; index++) {
    const text = spec.textAt('externalIPs', list, index);
    const address = text === null ? null : externalAddress(spec, text, () => `externalIPs[${index}]`);
    if (address !== null) addresses.add(address);
  }
  return [...addresses];
}

/** Behaviour SV-05. The proxy does not handle a load balancer known by hostname only. */
function readIngress(loadBalancer: Fields): readonly LoadBalancerIngressRow[] {
  if (loadBalancer.lacks('ingress')) return NONE;
  const rows: LoadBalancerIngressRow[] = [];
  const seen = new Set<string>();
  for (const entry of loadBalancer.sections('ingress')) {
    const text = entry.string('ip') ?? '';
    const ipMode = entry.choice('ipMode', ['VIP', 'Proxy'], 'VIP');
    const address = text === '' ? null : externalAddress(entry, text, () => 'ip');
    if (address === null || seen.size === seen.add(`${ipMode} ${address}`).size) continue;
    rows.push({ address, ipMode });
  }
  return rows;
}

function readAffinity(spec: Fields): number | null {
  if (spec.choice('sessionAffinity', ['None', 'ClientIP'], 'None') === 'None') return null;
  const clientIP = spec.section('sessionAffinityConfig').section('clientIP');
  return clientIP.integer('timeoutSeconds', 1, MAX_AFFINITY_SECONDS) ?? DEFAULT_AFFINITY_SECONDS;
}

/** Longer than any client waits for the first answer to its first packets. */
const MOST_SECONDS = 60;
const SECONDS = /^([1-9]\d?)s$/;

/**
 * When unanswered attempts go to another endpoint, as an annotation of a Service sets it: seconds, 0 for "off", null without the annotation. An unreadable
 * value counts as absent, with a warning: it is not worth refusing a Service for.
 */
function readRetry(metadata: Fields, annotation: string): number | null {
  const annotations = metadata.raw('annotations');
  const text = isMapping(annotations) ? annotations[annotation] : undefined;
  if (text === undefined) return null;
  if (text === 'off') return 0;
  const [, digits] = typeof text === 'string' ? (SECONDS.exec(text) ?? []) : [];
  const seconds = Number(digits);
  if (seconds <= MOST_SECONDS) return seconds;
  metadata.warn(`annotations[${annotation}]`, text, `must be "off" or "1s" to "${MOST_SECONDS}s", and is ignored`);
  return null;
}

/** An address that no packet has as its source: stands for "no client" where a Service asked for ranges and none of them can be read. */
const NO_CLIENT: Readonly<Record<Family, string>> = { IPv4: '0.0.0.0/32', IPv6: '::/128' };

/**
 * Reads spec.loadBalancerSourceRanges. An entry that cannot be parsed is left out with a warning, as kube-proxy does. There the list may become empty by that
 * and admit all clients. Here the family of such an entry is not guessed: each family without another entry admits no client.
 */
function readSourceRanges(spec: Fields): readonly IPPrefix[] {
  if (spec.lacks('loadBalancerSourceRanges')) return NO_RANGES;
  const ranges = new Set<IPPrefix>();
  let unreadable = false;
  for (const { text, at } of spec.strings('loadBalancerSourceRanges')) {
    const range = parsePrefix(text.trim());
    if (range === null) {
      spec.warn(at, text, 'is not a prefix such as "192.0.2.0/24" and left out');
      unreadable = true;
    } else ranges.add(range);
  }
  if (!unreadable) return [...ranges];
  const readable = new Set([...ranges].map(familyOf));
  for (const family of FAMILIES) {
    const noClient = parsePrefix(NO_CLIENT[family]);
    if (!readable.has(family) && noClient !== null) ranges.add(noClient);
  }
  return [...ranges];
}

const NO_RANGES: readonly IPPrefix[] = [];
