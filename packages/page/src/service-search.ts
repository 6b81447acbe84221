import { packedKey } from '../../../src/base/endpoint-list.js';
import { hasName } from '../../../src/base/unpacked-names.js';
import { parseAddress, parseAddressBytes } from '../../../src/base/ip.js';
import type { EndpointSliceRow, ObjectKey, ServiceRow } from '../../../src/state/rows.js';
import type { Snapshot } from '../../../src/state/snapshot.js';

/** The fields of a Service that a search reads. */
type SearchedService = Pick<ServiceRow, 'namespace' | 'clusterIPs' | 'externalIPs' | 'loadBalancerIngress' | 'ports'>;

/** Whether a Service fits what was typed. */
type Fits = (key: ObjectKey, service: SearchedService) => boolean;

/** How many words count. */
const MAX_WORDS = 8;

/** What the words of a search ask for, all of them; null: everything fits. Written so that a search of a large cluster makes no garbage. */
export function readSearch(snapshot: Snapshot, text: string): Fits | null {
  const words = text
    .toLowerCase()
    .split(/\s+/)
    .filter((word) => word !== '')
    .slice(0, MAX_WORDS);
  if (words.length === 0) return null;
  const tests = words.map((word) => readWord(snapshot, word));
  return (key, service) => tests.every((fits) => fits(key, service));
}

function readWord(snapshot: Snapshot, word: string): Fits {
  const colon = word.indexOf(':');
  const field = FIELDS[word.slice(0, Math.max(0, colon))];
  if (field !== undefined) return field(snapshot, word.slice(colon + 1));
  const [, inBrackets = '', dotted = inBrackets, number = '', protocol = ''] = ADDRESS_AND_PORT.exec(word) ?? [];
  if (dotted !== '') return readFrontend(snapshot, dotted, portTest(number, protocol));
  const port = PORT.exec(word);
  const isPort = port === null ? null : portTest(port[1] ?? '', port[2] ?? '');
  const packed = packedAddress(word);
  const isName = port === null;
  const isAddress = /^\d+\.[\d.]*$|:/.test(word) ? (address: string): boolean => address.includes(word) : null;
  return (key, service) =>
    key.includes(word) ||
    (isPort !== null && (hasPort(service, isPort) || hasNodePort(service, isPort))) ||
    (isAddress !== null && hasAddress(service, isAddress)) ||
    (packed === null
      ? isName && hasPod(snapshot, key, word)
      : snapshot.slicesOf(key).some((slice) => hasEndpoint(slice, packed)));
}

function hasPod(snapshot: Snapshot, key: ObjectKey, name: string): boolean {
  return snapshot.slicesOf(key).some(({ pods = '' }) => hasName(pods, name));
}

/** What a word with a name before a colon asks for. */
const FIELDS: Readonly<Record<string, (snapshot: Snapshot, wanted: string) => Fits>> = {
  ns: (_snapshot, namespace) => (_key, service) => service.namespace === namespace,
  // Null is no name.
  node: (snapshot, node) => (key) =>
    node !== '' && snapshot.slicesOf(key).some(({ nodeNames }) => nodeNames.includes(node)),
  pod: (snapshot, name) => (key) => hasPod(snapshot, key, name),
  port: (_snapshot, wanted) => {
    const port = PORT.exec(wanted);
    if (port === null) return () => false;
    const isPort = portTest(port[1] ?? '', port[2] ?? '');
    return (_key, service) => hasPort(service, isPort) || hasNodePort(service, isPort);
  },
  endpoint: (snapshot, address) => {
    const packed = packedAddress(address);
    return (key) => packed !== null && snapshot.slicesOf(key).some((slice) => hasEndpoint(slice, packed));
  },
};

/** As frontends and endpoints are written: `10.96.0.10:443/TCP`, `[fd00::1]:53`. */
const ADDRESS_AND_PORT = /^(?:\[([\da-f:.]+)\]|(\d+\.[\d.]+)):(\d{1,5})(?:\/(tcp|udp|sctp))?$/;
const PORT = /^(\d{1,5})(?:\/(tcp|udp|sctp))?$/;

type PortTest = (port: number, protocol: string) => boolean;

/** @param protocol empty: any. */
function portTest(number: string, protocol: string): PortTest {
  const wanted = Number(number);
  const name = protocol.toUpperCase();
  return (port, of) => port === wanted && (name === '' || of === name);
}

function hasPort({ ports }: Pick<ServiceRow | EndpointSliceRow, 'ports'>, isPort: PortTest): boolean {
  return ports.some(({ port, protocol }) => isPort(port, protocol));
}

function hasNodePort({ ports }: SearchedService, isPort: PortTest): boolean {
  return ports.some(({ nodePort, protocol }) => nodePort !== 0 && isPort(nodePort, protocol));
}

/** A frontend, an endpoint, or a node port of whatever address. */
function readFrontend(snapshot: Snapshot, text: string, isPort: PortTest): Fits {
  const address = parseAddress(text);
  const packed = packedAddress(text);
  if (address === null || packed === null) return () => false;
  return (key, service) =>
    (hasPort(service, isPort) && hasAddress(service, (each) => each === address)) ||
    hasNodePort(service, isPort) ||
    snapshot.slicesOf(key).some((slice) => hasPort(slice, isPort) && hasEndpoint(slice, packed));
}

function hasAddress(
  { clusterIPs, externalIPs, loadBalancerIngress }: SearchedService,
  isWanted: (address: string) => boolean,
): boolean {
  return (
    clusterIPs.some(isWanted) ||
    externalIPs.some(isWanted) ||
    loadBalancerIngress.some(({ address }) => isWanted(address))
  );
}

/** @param wanted an address, a character a byte. */
function hasEndpoint({ addresses, count }: EndpointSliceRow, wanted: string): boolean {
  const size = wanted.length;
  if (addresses.length !== count * size) return false;
  let at = addresses.indexOf(wanted);
  while (at % size > 0) at = addresses.indexOf(wanted, at + 1);
  return at >= 0;
}

function packedAddress(text: string): string | null {
  const bytes = parseAddressBytes(text);
  return bytes && packedKey(bytes, 0, bytes.length);
}
