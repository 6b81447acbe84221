import { EndpointList, endpointSize } from '../base/endpoint-list.js';
import { addressFromBytes, addressLength, type Family, type IPAddress } from '../base/ip.js';
import { CONDITIONS, READY, SERVING, type EndpointSliceRow } from '../state/rows.js';
import { targetPorts, type PortName } from './candidates.js';
import type { NodeFacts } from './facts.js';
import type { PolicyUse, Selection } from './selection-rules.js';

const SIZE = endpointSize('IPv4');
const ADDRESS_SIZE = addressLength('IPv4');
const NONE = new EndpointList('IPv4', new Uint8Array(0));
const NO_PORTS: ReadonlySet<number> = new Set();

/**
 * Selects as the rules do where they have nothing to decide, as for most Services: every endpoint is ready and serves, none has a hint, and all traffic is under
 * policy Cluster. All are selected, and nothing is made for a single one. A cluster has hundreds of thousands, and a start plans them all.
 *
 * @returns null: there is something to decide, or an endpoint is there twice. Of IPv6, whose addresses do not fit in a number, always.
 */
export function selectUniform(
  family: Family,
  port: PortName,
  slices: readonly EndpointSliceRow[],
  node: NodeFacts,
  uses: PolicyUse,
): Selection | null {
  if (family !== 'IPv4' || !uses.cluster || uses.local || uses.onePort) return null;
  const used: { readonly slice: EndpointSliceRow; readonly target: number }[] = [];
  for (const slice of slices) {
    const [target, ...more] = targetPorts(family, port, slice);
    if (target === undefined) continue;
    if (more.length > 0 || !isUniform(slice)) return null;
    used.push({ slice, target });
  }
  const packed = packSorted(used);
  if (packed === null) return null;
  const { hairpin, own } = addressesHere(used, node);
  const list = new EndpointList(family, packed);
  const local = list.count === 0 ? list : NONE;
  const any = list.count > 0;
  return { cluster: list, local, any, serving: list, hairpin, own, readyHere: own, otherPorts: NO_PORTS };
}

type Used = readonly { readonly slice: EndpointSliceRow; readonly target: number }[];

function isUniform({ conditions, count, zoneHints, nodeHints, weight }: EndpointSliceRow): boolean {
  if (zoneHints !== null || nodeHints !== null || weight === 0) return false;
  for (let index = 0; index < count; index++)
    if (((conditions[index] ?? 0) & CONDITIONS) !== (READY | SERVING)) return false;
  return true;
}

/** For one Service after the other: an array of its own for each costs more than to sort it. */
let numbersOfOne = new Float64Array(64);

function room(count: number): Float64Array {
  if (count > numbersOfOne.length) numbersOfOne = new Float64Array(count);
  return numbersOfOne.subarray(0, count);
}

/** Address and port of each endpoint in the order of their bytes; null when one is there twice. */
function packSorted(used: Used): Uint8Array | null {
  const numbers = room(used.reduce((sum, { slice }) => sum + slice.count, 0));
  let filled = 0;
  for (const { slice, target } of used) {
    const { addresses, count } = slice;
    for (let index = 0; index < count; index++) {
      let number = 0;
      for (let byte = 0; byte < ADDRESS_SIZE; byte++)
        number = number * 256 + addresses.charCodeAt(index * ADDRESS_SIZE + byte);
      numbers[filled++] = number * 65536 + target;
    }
  }
  numbers.sort();
  const packed = new Uint8Array(filled * SIZE);
  let before = -1;
  for (let index = 0; index < filled; index++) {
    const number = numbers[index] ?? 0;
    if (number === before) return null;
    before = number;
    let rest = number;
    for (let at = (index + 1) * SIZE - 1; at >= index * SIZE; at--) {
      packed[at] = rest % 256;
      rest = Math.floor(rest / 256);
    }
  }
  return packed;
}

/** Addresses of endpoints on this node, or on none that we know of. */
function addressesHere(
  used: Used,
  node: NodeFacts,
): { readonly hairpin: ReadonlySet<IPAddress>; readonly own: ReadonlySet<IPAddress> } {
  const hairpin = new Set<IPAddress>();
  const own = new Set<IPAddress>();
  for (const { slice } of used) {
    for (let index = 0; index < slice.count; index++) {
      const nodeName = slice.nodeNames[index] ?? null;
      if (nodeName !== null && nodeName !== node.name) continue;
      const start = index * ADDRESS_SIZE;
      const address = addressFromBytes(Buffer.from(slice.addresses.slice(start, start + ADDRESS_SIZE), 'latin1'));
      hairpin.add(address);
      if (nodeName === node.name) own.add(address);
    }
  }
  return { hairpin, own };
}
