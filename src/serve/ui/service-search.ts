import { parseAddressBytes } from '../../base/ip.js';
import type { EndpointSliceRow, ObjectKey, ServiceRow } from '../../state/rows.js';
import type { Snapshot } from '../../state/snapshot.js';

/** Whether a Service fits what was typed. */
export type Fits = (key: ObjectKey, service: ServiceRow) => boolean;

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
  if (word.startsWith('ns:')) {
    const namespace = word.slice('ns:'.length);
    return (_key, service) => service.namespace === namespace;
  }
  const port = /^\d{1,5}$/.test(word) ? Number(word) : null;
  const bytes = parseAddressBytes(word);
  const isAddress = /^\d+\.[\d.]*$|:/.test(word) ? (address: string): boolean => address.includes(word) : null;
  return (key, service) =>
    key.includes(word) ||
    (port !== null && service.ports.some((row) => row.port === port || row.nodePort === port)) ||
    (isAddress !== null && hasAddress(service, isAddress)) ||
    (bytes !== null && snapshot.slicesOf(key).some((slice) => hasEndpoint(slice, bytes)));
}

function hasAddress(
  { clusterIPs, externalIPs, loadBalancerIngress }: ServiceRow,
  isWanted: (address: string) => boolean,
): boolean {
  return (
    clusterIPs.some(isWanted) ||
    externalIPs.some(isWanted) ||
    loadBalancerIngress.some(({ address }) => isWanted(address))
  );
}

function hasEndpoint({ addresses, count }: EndpointSliceRow, wanted: Uint8Array): boolean {
  const size = wanted.length;
  if (addresses.length !== count * size) return false;
  for (let start = 0; start < addresses.length; start += size) {
    let at = 0;
    while (at < size && addresses[start + at] === wanted[at]) at++;
    if (at === size) return true;
  }
  return false;
}
