import { addressBytes } from '../../base/ip.js';
import type { NftElementsListing, NftSetListing } from '../../native/contract.js';
import type { HookedPacket, Judged, Verdict } from './packet.js';

/** Protocols by their number in IP. */
const PROTOCOL_NUMBERS = { TCP: 6, UDP: 17, SCTP: 132 } as const;
const NFPROTO = { IPv4: 2, IPv6: 10 } as const;

/** Bits of `ct state`, as nft_ct.c has them. */
const CT_INVALID = 1;
const CT_ESTABLISHED = 2;
const CT_NEW = 8;
/** IPS_SEEN_REPLY and IPS_DST_NAT of `ct status`. */
const CT_SEEN_REPLY = 2;
const CT_DST_NAT = 32;

/** Expressions that do not affect whether a rule matches a packet. */
const NEUTRAL = new Set(['counter', 'log', 'objref', 'last', 'connlimit-note']);

const RTN_UNICAST = 1;
const RTN_LOCAL = 2;

const REGISTERS = 64;

/** Registers of nf_tables; a byte that is null is not known. */
type Registers = (number | null)[];

/** Judges rules in the addon's canonical text: runs each expression as the kernel does, as far as its operands are known. */
export function nftJudge(sets: ReadonlyMap<string, NftSetListing>): (rule: string, packet: HookedPacket) => Judged {
  return (rule, packet) => new Machine(sets, packet).run(rule);
}

class Machine {
  private readonly registers: Registers = Array.from({ length: REGISTERS }, () => null);
  private verdict: Verdict = { type: 'continue' };
  private isSure = true;
  private isFor = true;

  constructor(
    private readonly sets: ReadonlyMap<string, NftSetListing>,
    private readonly packet: HookedPacket,
  ) {}

  run(rule: string): Judged {
    for (const [, expression = ''] of rule.matchAll(/\[([^[\]]*)\]/g)) {
      this.step(expression);
      if (!this.isFor) break;
      if (this.verdict.type !== 'continue') break;
    }
    return { match: this.isFor ? (this.isSure ? true : null) : false, verdict: this.verdict };
  }

  private step(expression: string): void {
    const [name = '', ...words] = expression.split(' ');
    const field = (wanted: string): string | null => {
      const place = words.indexOf(wanted);
      return place < 0 ? null : (words[place + 1] ?? null);
    };
    const number = (wanted: string): number => Number(field(wanted) ?? 0);
    switch (name) {
      case 'payload':
        if (field('dreg') !== null)
          this.put(number('dreg'), number('len'), this.payload(field('base'), number('offset')));
        return;
      case 'meta':
        if (field('dreg') !== null) this.put(number('dreg'), 16, this.meta(field('key') ?? ''));
        return;
      case 'ct':
        if (field('dreg') !== null) this.put(number('dreg'), 4, this.ct(field('key') ?? ''));
        return;
      case 'bitwise':
        this.bitwise(number('sreg'), number('dreg'), bytesOf(field('mask')), bytesOf(field('xor')));
        return;
      case 'cmp':
        this.note(
          compare(this.read(number('sreg'), bytesOf(field('value')).length), field('op'), bytesOf(field('value'))),
        );
        return;
      case 'lookup':
        this.lookup(field('set') ?? '', number('sreg'), field('dreg'), number('flags') === 1);
        return;
      case 'immediate':
        if (field('dreg') === '0') this.decide(words.slice(words.indexOf('value') + 1));
        else this.put(number('dreg'), bytesOf(field('value')).length, bytesOf(field('value')));
        return;
      case 'reject':
        this.verdict = { type: 'reject' };
        return;
      case 'nat':
        // A translated source is not in the way.
        this.verdict = { type: field('type') === 'dnat' ? 'translate' : 'accept' };
        return;
      case 'masq':
        this.verdict = { type: 'accept' };
        return;
      case 'fib':
        this.put(number('dreg'), 4, this.fib(field('flags'), field('result')));
        return;
      default:
        if (name.startsWith('unknown(')) this.unknown(name.slice('unknown('.length, -1), words[0] ?? '');
        else if (!NEUTRAL.has(name)) this.isSure = false;
    }
  }

  private note(match: boolean | null): void {
    if (match === false) this.isFor = false;
    if (match === null) this.isSure = false;
  }

  private decide([word = '', chain = '']: readonly string[]): void {
    if (word === 'jump' || word === 'goto') this.verdict = { type: word, chain };
    else if (word === 'accept' || word === 'drop' || word === 'return' || word === 'continue')
      this.verdict = { type: word };
    else this.verdict = { type: 'unknown' };
  }

  private start(register: number): number {
    return register >= 8 ? (register - 8) * 4 : (register - 1) * 16;
  }

  private read(register: number, length: number): Registers {
    const start = this.start(register);
    return this.registers.slice(start, start + length);
  }

  private put(register: number, length: number, bytes: ArrayLike<number> | null): void {
    const start = this.start(register);
    for (let index = 0; index < length; index++)
      this.registers[start + index] = bytes === null ? null : (bytes[index] ?? 0);
  }

  private payload(base: string | null, offset: number): ArrayLike<number> | null {
    const { packet } = this;
    if (base === 'transport') {
      const port = offset === 0 ? packet.sourcePort : offset === 2 ? packet.port : null;
      return port === null ? null : [port >> 8, port & 255];
    }
    if (base !== 'network') return null;
    const [source, destination] = packet.family === 'IPv4' ? [12, 16] : [8, 24];
    const address = offset === source ? packet.source : offset === destination ? packet.destination : null;
    if (address !== null) return addressBytes(address);
    const isProtocol = offset === (packet.family === 'IPv4' ? 9 : 6);
    return isProtocol && packet.protocol !== null ? [PROTOCOL_NUMBERS[packet.protocol]] : null;
  }

  private meta(key: string): ArrayLike<number> | null {
    const { packet } = this;
    switch (key) {
      // The number of a meta key that the addon has no name for.
      case '0':
        return null;
      case '1':
        return packet.family === 'IPv4' ? [8, 0] : [0x86, 0xdd];
      case 'nfproto':
        return [NFPROTO[packet.family]];
      case 'l4proto':
        return packet.protocol === null ? null : [PROTOCOL_NUMBERS[packet.protocol]];
      case 'iifname':
        return packet.inputInterface === null ? null : nameBytes(packet.inputInterface);
      case 'oifname':
        return packet.outputInterface === null ? null : nameBytes(packet.outputInterface);
      default:
        return null;
    }
  }

  /** Types of addresses as in rtnetlink.h; of those of others it is enough that they are not local. */
  private fib(flags: string | null, result: string | null): ArrayLike<number> | null {
    const { isToNode } = this.packet;
    if (flags !== 'daddr' || result !== 'type' || isToNode === null) return null;
    return hostNumber(isToNode ? RTN_LOCAL : RTN_UNICAST);
  }

  private ct(key: string): ArrayLike<number> | null {
    const { isTracked, isTranslated, isAnswer } = this.packet;
    if (!isTracked) return key === 'state' ? hostNumber(CT_INVALID) : null;
    if (key === 'state') return hostNumber(isAnswer ? CT_ESTABLISHED : CT_NEW);
    if (key === 'status') return hostNumber((isTranslated ? CT_DST_NAT : 0) | (isAnswer ? CT_SEEN_REPLY : 0));
    return key === 'direction' ? [isAnswer ? 1 : 0] : null;
  }

  private bitwise(source: number, target: number, mask: Uint8Array, xor: Uint8Array): void {
    const bytes = this.read(source, mask.length);
    const start = this.start(target);
    for (const [index, bits] of mask.entries()) {
      const byte = bytes[index] ?? null;
      const known = byte ?? (bits === 0 ? 0 : null);
      this.registers[start + index] = known === null ? null : (known & bits) ^ (xor[index] ?? 0);
    }
  }

  private lookup(name: string, register: number, target: string | null, isInverted: boolean): void {
    const set = this.sets.get(name);
    const elements = set?.elements ?? null;
    const found =
      set === undefined || elements === null ? null : find(elements, this.read(register, set.keyLength), set);
    if (found === null) {
      // The map's value is not known either.
      if (target === '0') this.verdict = { type: 'unknown' };
      else if (target !== null && set !== undefined) this.put(Number(target), set.dataLength, null);
      this.isSure = false;
      return;
    }
    if (found >= 0 === isInverted) {
      this.isFor = false;
      return;
    }
    if (target === null || set === undefined || elements === null) return;
    const { verdicts, data } = elements;
    if (target === '0') this.decide((verdicts?.[found] ?? '').split(' '));
    else this.put(Number(target), set.dataLength, data?.subarray(found * set.dataLength) ?? null);
  }

  /** Matches and targets of iptables, which nf_tables calls by their names. */
  private unknown(name: string, content: string): void {
    const attributes = name === 'match' || name === 'target' ? readAttributes(bytesOf(content)) : null;
    const extension = attributes === null ? '' : textOf(attributes.get(1));
    if (name === 'match' && extension === 'comment') return;
    const read = name === 'match' ? MATCHES[extension] : undefined;
    if (read !== undefined) {
      this.note(read(attributes?.get(2), attributes?.get(3), this.packet));
      return;
    }
    const effect = name === 'target' ? EFFECTS[extension] : RULE_EFFECTS[name];
    if (effect !== undefined) this.verdict = { type: effect };
    else if (extension === 'CT' && ((attributes?.get(3)?.[isLittle ? 0 : 1] ?? 0) & CT_NOTRACK) !== 0)
      this.verdict = { type: 'untrack' };
    else if (name === 'target' && extension === 'REJECT') this.verdict = { type: 'reject' };
    else if (name === 'target' && PASSING_TARGETS.has(extension)) return;
    else if (name === 'target' || VERDICTS.has(name)) this.verdict = { type: 'unknown' };
    else if (!NEUTRAL.has(name)) this.isSure = false;
  }
}

/** Whether a rule rejects, independent of the packets that it matches. */
export function refuses(rule: string): boolean {
  if (/\[reject[ \]]/.test(rule)) return true;
  return [...rule.matchAll(/\[unknown\(target\) (\w+)/g)].some(
    ([, content = '']) => textOf(readAttributes(bytesOf(content)).get(1)) === 'REJECT',
  );
}

/** Targets of iptables after which the next rule is met. */
export const PASSING_TARGETS: ReadonlySet<string> = new Set([
  ...['LOG', 'NFLOG', 'MARK', 'CONNMARK', 'TCPMSS', 'CT', 'CLASSIFY', 'DSCP', 'TOS', 'TTL', 'HL', 'CHECKSUM', 'SET'],
]);
/** Targets of iptables that keep a packet from its endpoint. */
export const EFFECTS: Readonly<Record<string, 'translate' | 'untrack' | 'divert'>> = {
  DNAT: 'translate',
  REDIRECT: 'translate',
  NETMAP: 'translate',
  NOTRACK: 'untrack',
  TPROXY: 'divert',
};
/** Expressions of nf_tables with these effects. */
const RULE_EFFECTS: typeof EFFECTS = { redir: 'translate', notrack: 'untrack', tproxy: 'divert' };
/** XT_CT_NOTRACK of xt_CT.h. */
const CT_NOTRACK = 1;
/** Expressions of nf_tables that end a packet's way in a chain. */
const VERDICTS = new Set(['queue', 'synproxy', 'fwd']);

function bytesOf(text: string | null): Uint8Array {
  return Uint8Array.from(Buffer.from((text ?? '').replace(/^0x/, ''), 'hex'));
}

function nameBytes(name: string): Uint8Array {
  const bytes = new Uint8Array(16);
  bytes.set(Buffer.from(name).subarray(0, 15));
  return bytes;
}

const isLittle = new Uint8Array(Uint32Array.of(1).buffer)[0] === 1;

function hostNumber(value: number): readonly number[] {
  const bytes = [value & 255, (value >> 8) & 255, (value >> 16) & 255, value >>> 24];
  return isLittle ? bytes : bytes.reverse();
}

/** In network order, as the kernel compares; null: it depends on what is not known. */
function compare(bytes: Registers, op: string | null, value: Uint8Array): boolean | null {
  const known = bytes.every((byte) => byte !== null);
  const differs = bytes.some((byte, index) => byte !== null && byte !== value[index]);
  if (op === 'eq') return differs ? false : known ? true : null;
  if (op === 'neq') return differs ? true : known ? false : null;
  if (!known) return null;
  const order = Buffer.compare(Buffer.from(bytes), Buffer.from(value));
  if (op === 'lt') return order < 0;
  if (op === 'lte') return order <= 0;
  if (op === 'gt') return order > 0;
  return op === 'gte' ? order >= 0 : null;
}

/** The element that a key is in; -1: in none; null: unknown. */
function find(
  { count, keys, keyEnds }: NftElementsListing,
  key: Registers,
  { keyLength, declaration }: NftSetListing,
): number | null {
  if (count === 0) return -1;
  // A key of several fields has an interval for each of them.
  if (!key.every((byte) => byte !== null) || (keyEnds !== null && / fields /.test(declaration))) return null;
  if (/ catch-all| expressions /.test(declaration)) return null;
  const wanted = Buffer.from(key);
  for (let place = 0; place < count; place++) {
    const range = [place * keyLength, (place + 1) * keyLength] as const;
    const first = Buffer.compare(wanted, keys.subarray(...range));
    const last = keyEnds === null ? first : Buffer.compare(wanted, keyEnds.subarray(...range));
    if (keyEnds === null ? first === 0 : first >= 0 && last <= 0) return place;
  }
  return -1;
}

function readAttributes(bytes: Uint8Array): ReadonlyMap<number, Uint8Array> {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const attributes = new Map<number, Uint8Array>();
  for (let at = 0; at + 4 <= bytes.length;) {
    const length = view.getUint16(at, isLittle);
    if (length < 4 || at + length > bytes.length) break;
    attributes.set(view.getUint16(at + 2, isLittle) & 0x3fff, bytes.subarray(at + 4, at + length));
    at += (length + 3) & ~3;
  }
  return attributes;
}

function textOf(bytes: Uint8Array | undefined): string {
  return Buffer.from(bytes ?? [])
    .toString('latin1')
    .replace(/\0.*$/s, '');
}

/** Places in xt_conntrack_mtinfo3 (xt_conntrack.h): flags of what is matched, what is inverted, states. */
const [MATCH_FLAGS, INVERT_FLAGS, STATE_MASK] = [146, 148, 150] as const;
const BY_STATE = 1;
const XT_INVALID = 1;
const XT_ESTABLISHED = 2;
const XT_NEW = 8;
const XT_DNAT = 128;

function conntrackState(
  revision: Uint8Array | undefined,
  info: Uint8Array | undefined,
  { isTracked, isTranslated, isAnswer }: HookedPacket,
): boolean | null {
  if (revision?.at(-1) !== 3 || info === undefined || info.length < STATE_MASK + 2) return null;
  const view = new DataView(info.buffer, info.byteOffset, info.byteLength);
  const word = (at: number): number => view.getUint16(at, isLittle);
  if (word(MATCH_FLAGS) !== BY_STATE) return null;
  const ofTracked = (isAnswer ? XT_ESTABLISHED : XT_NEW) | (isTranslated ? XT_DNAT : 0);
  const states = isTracked ? ofTracked : XT_INVALID;
  const isIn = (word(STATE_MASK) & states) !== 0;
  return isIn !== ((word(INVERT_FLAGS) & BY_STATE) !== 0);
}

/** xt_addrtype_info_v1: types of source and destination as bits, and flags. */
function addressType(
  revision: Uint8Array | undefined,
  info: Uint8Array | undefined,
  { isToNode }: HookedPacket,
): boolean | null {
  if (revision?.at(-1) !== 1 || info === undefined || info.length < 8 || isToNode === null) return null;
  const view = new DataView(info.buffer, info.byteOffset, info.byteLength);
  const flags = view.getUint32(4, isLittle);
  if (view.getUint16(0, isLittle) !== 0 || view.getUint16(2, isLittle) !== 1 << RTN_LOCAL) return null;
  return flags === 0 ? isToNode : flags === INVERT_DESTINATION ? !isToNode : null;
}

const INVERT_DESTINATION = 2;

/** xt_multiport_v1: which ports, how many, the ports, whether each begins a range, and whether it is inverted. */
function multiport(
  revision: Uint8Array | undefined,
  info: Uint8Array | undefined,
  { port }: HookedPacket,
): boolean | null {
  if (revision?.at(-1) !== 1 || info === undefined || info.length < 48 || port === null) return null;
  if (info[0] !== OF_DESTINATION) return null;
  const view = new DataView(info.buffer, info.byteOffset, info.byteLength);
  const ports = Array.from({ length: Math.min(info[1] ?? 0, 15) }, (_, place) =>
    view.getUint16(2 + 2 * place, isLittle),
  );
  const isIn = ports.some((first, place) => {
    if (info[32 + place - 1] === 1 && place > 0) return false;
    const last = info[32 + place] === 1 ? (ports[place + 1] ?? first) : first;
    return port >= first && port <= last;
  });
  return isIn !== (info[47] === 1);
}

const OF_DESTINATION = 1;

type ReadMatch = typeof conntrackState;

/** Matches of iptables by name. */
const MATCHES: Readonly<Record<string, ReadMatch>> = { conntrack: conntrackState, addrtype: addressType, multiport };
