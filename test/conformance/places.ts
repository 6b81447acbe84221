import { FAMILIES, type Family } from '../../src/base/ip.js';
import { ADDRESSES } from '../support/lab/topology.js';

/** A second address of pod-c: pods that are endpoints reach themselves masqueraded, this one never is an endpoint. */
const VISITOR = { IPv4: '10.244.1.20', IPv6: 'fd00:244:1::20' } as const satisfies Record<Family, string>;

/** Where flows come from and end: namespaces of the laboratory (support/lab/topology.ts), and further addresses in them. */
export const PLACES = {
  ...ADDRESSES,
  visitor: VISITOR,
  /** On no link until a case adds them. */
  later: { IPv4: '198.18.7.7', IPv6: '2001:db8:18::7' },
  fourth: { IPv4: '198.19.7.7', IPv6: '2001:db8:19::7' },
  /** In a second ServiceCIDR, which a case may add; no Service has it. */
  'second-cidr': { IPv4: '10.97.0.7', IPv6: 'fd00:10:97::7' },
  loopback: { IPv4: '127.0.0.1', IPv6: '::1' },
} as const satisfies Record<string, Record<Family, string>>;

export type Place = keyof typeof PLACES;

/** Places that are no namespaces of their own. */
const INSIDE: Readonly<Partial<Record<Place, string>>> = { visitor: 'pod-c', alternate: 'node', loopback: 'node' };
const PODS_OF_THE_NODE: readonly Place[] = ['node', 'pod-a', 'pod-b', 'pod-c'];

export function isPlace(name: string): name is Place {
  return Object.hasOwn(PLACES, name);
}

/** The namespace to send from, and the address where that is not the kernel's choice. */
export function sender(place: Place, family: Family): { readonly from: string; readonly source?: string } {
  const namespace = INSIDE[place];
  return namespace === undefined ? { from: place } : { from: namespace, source: PLACES[place][family] };
}

/** The node of an endpoint; the node under test is `node-1`. */
export function nodeOf(place: Place): 'node-1' | 'node-2' {
  return PODS_OF_THE_NODE.includes(place) ? 'node-1' : 'node-2';
}

export { FAMILIES };
