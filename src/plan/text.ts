import { EndpointList } from '../base/endpoint-list.js';
import type { Family, IPAddress } from '../base/ip.js';
import { printFields, type ListPrinter } from './frontend-fields.js';
import type {
  Conflict,
  ConflictPair,
  FamilyTable,
  FrontendKind,
  FrontendPlan,
  LocalDetector,
  NodePlan,
  PacketScope,
  ServiceLimitation,
} from './types.js';

/**
 * The forwarding table as text: one fact a line, sorted, stable. `pointsman plan` prints it from the plan and `pointsman dump` from the kernel,
 * so that comparing the two shows what differs.
 */
export function printTable(table: FamilyTable): string[] {
  const lines: string[] = [];
  for (const part of tableParts(table, printList)) for (const line of part) lines.push(line);
  return lines.sort();
}

/** The lines of {@link printTable}, unsorted, in parts of which each takes little time. */
function* tableParts(table: FamilyTable, printList: ListPrinter): Generator<readonly string[], void, void> {
  yield printNode(table.node);
  for (const address of table.clusterAddresses) yield [clusterAddressLine(table.family, address)];
  for (const address of table.hairpinAddresses) yield [hairpinLine(table.family, address)];
  for (const frontend of table.frontends()) yield printFrontend(frontend, printList);
}

/** The lines of {@link printTable}, unsorted and in parts, with each list of endpoints in one line: {@link unpackLine} makes what is printed of it. */
export function packedParts(table: FamilyTable): Generator<readonly string[], void, void> {
  return tableParts(table, packList);
}

/** The lines that one of {@link packedParts} stands for. */
export function unpackLine(line: string): readonly string[] {
  const found = /^((IPv[46]) frontend \S+ (?:local-)?endpoint)s (\S+)$/.exec(line);
  if (found === null) return [line];
  const [, head = '', family, packed = ''] = found;
  return printList(head, new EndpointList(family as Family, Buffer.from(packed, 'base64')));
}

function printList(head: string, list: EndpointList): readonly string[] {
  return list.toStrings().map((endpoint) => `${head} ${endpoint}`);
}

function packList(head: string, { packed }: EndpointList): readonly string[] {
  if (packed.length === 0) return [];
  return [`${head}s ${Buffer.from(packed.buffer, packed.byteOffset, packed.length).toString('base64')}`];
}

/** The lines of {@link printTable} that decide over packets of a scope. */
export function printScope(table: FamilyTable, { frontend: key, addresses }: PacketScope): string[] {
  const lines = printNode(table.node);
  for (const address of addresses) {
    if (table.clusterAddresses.has(address)) lines.push(clusterAddressLine(table.family, address));
    if (table.hairpinAddresses.has(address)) lines.push(hairpinLine(table.family, address));
  }
  const frontend = table.frontend(key);
  if (frontend !== undefined) for (const line of printFrontend(frontend)) lines.push(line);
  return lines.sort();
}

/** Those lines of a table that {@link printScope} would print, and lines that no plan has. */
export function withinScope(
  lines: readonly string[],
  family: Family,
  { frontend, addresses }: PacketScope,
): readonly string[] {
  const own = new Set(
    addresses.flatMap((address) => [clusterAddressLine(family, address), hairpinLine(family, address)]),
  );
  const others = ['frontend', 'cluster-address', 'hairpin'].map((word) => `${family} ${word} `);
  return lines.filter(
    (line) =>
      own.has(line) ||
      line.startsWith(`${family} frontend ${frontend} `) ||
      !others.some((start) => line.startsWith(start)),
  );
}

export function printFrontend(frontend: FrontendPlan, print: ListPrinter = printList): string[] {
  return printFields(frontend, print);
}

/** The users' names of the kinds of frontends. */
export const KIND_NAMES: Readonly<Record<FrontendKind, string>> = {
  ClusterIP: 'cluster IP',
  ExternalIP: 'external IP',
  LoadBalancer: 'load balancer address',
  NodePort: 'node port',
};

export function printConflict(conflict: Conflict): string {
  return `conflict: ${conflict.family} ${printHolder(conflict)}; ${conflict.loser} does not get it`;
}

/** All frontends that two Services both claim. */
export function printConflictPair(pair: ConflictPair): string {
  return `${printConflict(pair.first)}${printCount(pair)}`;
}

export function printCount({ count }: ConflictPair): string {
  return count === 1 ? '' : `, one of ${count} frontends that both claim`;
}

export function printLimitation({ family, cause, servicePort, text }: ServiceLimitation): string {
  const what = {
    platform: 'not on this platform',
    limit: 'over a limit',
    'source-ranges': 'open to every client',
    annotation: 'not readable',
    address: 'not from outside',
    mode: 'not in this mode',
    slots: 'over a limit',
  }[cause];
  return `${what}: ${family} ${servicePort}: ${text}`;
}

/** Which Service holds the frontend, and why. */
export function printHolder(conflict: Conflict): string {
  return `${conflict.frontend} ${printHolding(conflict)}`;
}

/** The same of a frontend that has been named. */
export function printHolding({ winner, winnerKind, loserKind, reason }: Conflict): string {
  const why = {
    kind: `as its ${KIND_NAMES[winnerKind]}, which comes before ${KIND_NAMES[loserKind]}`,
    age: 'the older Service',
    key: 'as old as the other and first by name',
    endpoint: 'an endpoint of which has this address',
    'cluster-ip': 'whose cluster IP this address is',
  }[reason];
  return `belongs to ${winner}, ${why}`;
}

const IPV6_BITS = 128;

/** The node's facts, one a line. */
export function printNode(node: NodePlan): string[] {
  const lines = [
    `${node.family} node local-detector ${printDetector(node.localDetector)}`,
    `${node.family} node masquerade-mark 0x${node.masqueradeMark.toString(16).padStart(8, '0')}`,
  ];
  if (node.family === 'IPv6' && node.clientPrefix < IPV6_BITS)
    lines.push(`${node.family} node affinity-prefix ${node.clientPrefix}`);
  if (node.retryTimes.tcp !== null) lines.push(`${node.family} node connect-retry ${node.retryTimes.tcp}s`);
  if (node.retryTimes.dns !== null) lines.push(`${node.family} node dns-retry ${node.retryTimes.dns}s`);
  if (node.masqueradeAll) lines.push(`${node.family} node masquerade-all`);
  for (const prefix of node.nodePortPrefixes ?? ['all']) lines.push(`${node.family} node nodeport-address ${prefix}`);
  for (const cidr of node.serviceCIDRs) lines.push(`${node.family} node service-cidr ${cidr}`);
  return lines;
}

/** Frontends as a table prints them, each cluster IP with the line of its address. */
export function* printFrontends(family: Family, frontends: Iterable<FrontendPlan>): IterableIterator<string> {
  for (const frontend of frontends) {
    yield* printFrontend(frontend);
    if (frontend.kind === 'ClusterIP' && frontend.address !== null) yield clusterAddressLine(family, frontend.address);
  }
}

export function clusterAddressLine(family: Family, address: IPAddress): string {
  return `${family} cluster-address ${address}`;
}

export function hairpinLine(family: Family, address: IPAddress): string {
  return `${family} hairpin ${address}`;
}

function printDetector(detector: LocalDetector | null): string {
  switch (detector?.type) {
    case undefined:
      return 'none';
    case 'source-prefix':
      return `source ${detector.prefix}`;
    case 'input-interface':
      return `interface ${detector.name}`;
    case 'input-interface-prefix':
      return `interface ${detector.prefix}*`;
  }
}
