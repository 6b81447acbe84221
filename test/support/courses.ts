import { printEndpoint } from '../../src/base/endpoint-list.js';
import { addressFromBytes } from '../../src/base/ip.js';
import type { PackedKey } from '../../src/dataplane/nftables/keys.js';
import { printVerdict, type Verdict } from './plan-tracer.js';

/** What the tracers of all modes' rules have in common: the ways a packet may go, and the verdict that these make. */

/** Bits that packets carry for other software. */
export const OTHERS_MARK = 0x8001;

/** What matters of a packet at the end of its way. Addresses and ports are packed. */
export interface Arrived {
  readonly destination: PackedKey;
  readonly port: PackedKey;
  readonly mark: number;
  readonly translated: boolean;
  readonly masqueraded: boolean;
}

/** One way a packet may go. */
export interface Course<Packet extends Arrived = Arrived> {
  readonly verdict: 'accept' | 'drop' | 'reject';
  readonly packet: Packet;
}

/** What comes of a rule or a chain: a verdict for the whole hook, the next rule, or the end of the chain and whatever comes after the jump to it. */
export interface Exit<Packet extends Arrived> {
  readonly verdict: Course['verdict'] | 'next' | 'return';
  readonly packet: Packet;
}

/** After a goto the calling chain is over too; after a jump its next rule has its turn. */
export function afterJump<Packet extends Arrived>({ verdict, packet }: Exit<Packet>): Exit<Packet> {
  return { verdict: verdict === 'return' ? 'next' : verdict, packet };
}

/** A hook whose chain a packet comes to the end of accepts it. */
export function afterHook<Packet extends Arrived>({ verdict, packet }: Exit<Packet>): Course<Packet> {
  return { verdict: verdict === 'return' || verdict === 'next' ? 'accept' : verdict, packet };
}

/** Where a kernel sends a packet, in the plan tracer's terms; it does not say why. */
export type KernelVerdict =
  { readonly type: 'none' | 'reject' | 'drop' } | Extract<Verdict, { readonly type: 'forward' }>;

export function printKernelVerdict(verdict: KernelVerdict): string {
  return verdict.type === 'forward' ? printVerdict(verdict) : verdict.type;
}

/** What all the ways come to. Throws when rules do what none of ours should: things of different kinds, or to what is not theirs. */
export function verdictOf(courses: readonly Course[]): KernelVerdict {
  const kinds = new Set(courses.map(kindOf));
  const [kind] = kinds;
  if (kind === undefined || kinds.size > 1) throw new Error(`a packet may meet ${[...kinds].join(' or ')}`);
  if (kind === 'reject' || kind === 'drop') return { type: kind };
  for (const { packet: end } of courses) checkTraces(end);
  if (kind === 'none') return { type: kind };
  const masqueradedBy = new Map<string, boolean>();
  const sorted = [...courses].sort((one, other) => (target(one.packet) < target(other.packet) ? -1 : 1));
  for (const { packet: end } of sorted) masqueradedBy.set(printTarget(end), end.masqueraded);
  const endpoints = [...masqueradedBy.keys()];
  const masqueraded = endpoints.filter((endpoint) => masqueradedBy.get(endpoint));
  const masquerade = masqueraded.length === endpoints.length;
  return { type: 'forward', endpoints, masquerade, hairpin: masquerade ? [] : masqueraded };
}

/** `address:port` where a packet arrived. */
export function printTarget({ destination, port }: Arrived): string {
  const [high = 0, low = 0] = Buffer.from(port, 'latin1');
  return printEndpoint(addressFromBytes(Buffer.from(destination, 'latin1')), (high << 8) | low);
}

/** Source NAT is for translated connections alone, and leaves the mark as it came: other software's bits, and not ours. */
function checkTraces({ masqueraded, translated, mark }: Arrived): void {
  if (!masqueraded) return;
  if (!translated) throw new Error('masquerades a connection that is none of ours');
  if (mark !== OTHERS_MARK) throw new Error(`leaves the mark 0x${mark.toString(16)} on the packet`);
}

function kindOf({ verdict, packet }: Course): KernelVerdict['type'] {
  if (verdict !== 'accept') return verdict;
  return packet.translated ? 'forward' : 'none';
}

function target({ destination, port }: Arrived): string {
  return destination + port;
}
