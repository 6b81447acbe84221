import { parseAddress, parsePrefix } from '../../../src/base/ip.js';
import { parseProtocol, protocolNumber } from '../../../src/base/protocol.js';
import type { Expression, Rule, Statement } from '../../../src/dataplane/nftables/json.js';
import { packRange, packSlot, type PackedKey } from '../../../src/dataplane/nftables/keys.js';
import type { Traveller } from './packet.js';
import { findElement, type FakeElement, type FakeTable } from './table.js';
import { packedAddress } from '../../../src/base/pack-address.js';

/** What a rule's expressions say of a packet: the meaning of nft's words, as far as our rules use them. */

/** Conntrack's status as {@link Evaluation} spells it, in bits. A traveller is the first packet of its connection: never confirmed. */
const STATUS_BITS: ReadonlyMap<PackedKey, number> = new Map([
  ['', 0],
  ['confirmed', 1 << 3],
  ['dnat', 1 << 5],
]);

const SYN = '\u0002';

/** In the place of the kernel's hash: the same for the same bytes. */
function sumOf(bytes: PackedKey): number {
  let sum = 0;
  for (let index = 0; index < bytes.length; index++) sum = (sum * 31 + bytes.charCodeAt(index)) >>> 0;
  return sum;
}

const moduli = new WeakMap<Rule, number>();

/** How many random numbers a rule draws from; 1 when it draws none. */
export function drawnModulus(rule: Rule): number {
  const known = moduli.get(rule);
  if (known !== undefined) return known;
  let modulus = 1;
  JSON.stringify(rule, (name, value: unknown) => {
    // A packet here has no source port: any port may be drawn, and so any slot.
    const draws = name === 'numgen' || (name === 'jhash' && JSON.stringify(value).includes('sport'));
    if (draws && typeof value === 'object' && value !== null && 'mod' in value) modulus = Number(value.mod);
    return value;
  });
  moduli.set(rule, modulus);
  return modulus;
}

/** Evaluates expressions for one packet and one draw. */
export class Evaluation {
  constructor(
    private readonly table: FakeTable,
    private readonly packet: Traveller,
    private readonly draw: number,
  ) {}

  matches({ op, left, right }: Extract<Statement, { readonly match: unknown }>['match']): boolean {
    const value = this.bytes(left);
    switch (op) {
      case '==':
        return this.equals(value, right);
      case '!=':
        return !this.equals(value, right);
      case 'in':
        return isList(right) ? right.includes(value) : value === this.constant(right);
    }
  }

  /** The element that a key finds in a map; null when there is none. */
  lookup(key: Expression, map: string): FakeElement | null {
    const set = this.table.sets.get(map.slice(1));
    return set === undefined ? null : findElement(set, this.bytes(key));
  }

  bytes(expression: Expression): PackedKey {
    const { packet } = this;
    if (typeof expression !== 'object' || isList(expression)) return this.constant(expression);
    if ('concat' in expression) return expression.concat.map((part) => padded(this.bytes(part))).join('');
    if ('payload' in expression) {
      const { protocol, field } = expression.payload;
      if (protocol === packet.family && field === 'saddr') return packet.source;
      if (protocol === packet.family && field === 'daddr') return packet.destination;
      if (protocol === 'th' && field === 'dport') return packet.port;
      // A traveller is the first packet of its connection.
      if (protocol === 'tcp' && field === 'flags') return SYN;
    }
    if ('meta' in expression) return this.metadata(expression.meta.key);
    if ('ct' in expression) return this.conntrack(expression.ct);
    if ('fib' in expression) {
      const address = expression.fib.flags[0] === 'saddr' ? packet.source : packet.destination;
      return packet.isLocal(address) ? 'local' : 'unicast';
    }
    if ('elem' in expression) return this.bytes(expression.elem.val);
    if ('numgen' in expression) return packSlot(this.draw % expression.numgen.mod);
    if ('jhash' in expression) {
      const { mod, expr } = expression.jhash;
      return packSlot(
        (isList(expr) || typeof expr !== 'object' || 'concat' in expr ? this.draw : sumOf(this.bytes(expr))) % mod,
      );
    }
    if ('&' in expression) return this.bitwise(expression['&'], (one, other) => one & other);
    if ('|' in expression) return this.bitwise(expression['|'], (one, other) => one | other);
    if ('^' in expression) return this.bitwise(expression['^'], (one, other) => one ^ other);
    throw new TypeError(`the tracer does not know ${JSON.stringify(expression)}`);
  }

  private equals(value: PackedKey, right: Expression): boolean {
    if (typeof right === 'string' && right.startsWith('@')) {
      const set = this.table.sets.get(right.slice(1));
      const written = this.packet.updates.some((update) => update.set === right.slice(1) && update.key === value);
      return set !== undefined && (written || findElement(set, value) !== null);
    }
    if (typeof right === 'string' && right.endsWith('*')) return value.startsWith(right.slice(0, -1));
    if (typeof right === 'object' && !isList(right) && 'prefix' in right) {
      const prefix = parsePrefix(`${right.prefix.addr}/${right.prefix.len}`);
      if (prefix === null) throw new TypeError(`not a prefix: ${JSON.stringify(right)}`);
      const range = packRange(prefix);
      const half = range.length / 2;
      return range.length === value.length * 2 && value >= range.slice(0, half) && value <= range.slice(half);
    }
    return value === this.constant(right);
  }

  private constant(value: Expression): PackedKey {
    if (typeof value === 'number') return packSlot(value);
    if (typeof value !== 'string') throw new TypeError(`the tracer does not know the value ${JSON.stringify(value)}`);
    const protocol = parseProtocol(value.toUpperCase());
    if (protocol !== null) return String.fromCharCode(protocolNumber(protocol));
    const address = parseAddress(value);
    return address === null ? value : packedAddress(address);
  }

  private metadata(key: string): PackedKey {
    switch (key) {
      case 'mark':
        return packSlot(this.packet.mark);
      case 'l4proto':
        return String.fromCharCode(this.packet.protocol);
      case 'iifname':
        return this.packet.inputInterface;
      default:
        throw new TypeError(`the tracer does not know meta ${key}`);
    }
  }

  private conntrack({ key, dir }: Extract<Expression, { readonly ct: unknown }>['ct']): PackedKey {
    const { packet } = this;
    if (key === 'state' && dir === undefined) return 'new';
    if (key === 'status' && dir === undefined) return packet.translated ? 'dnat' : '';
    if (dir === 'original' && key === `${packet.family} saddr`) return packet.source;
    if (dir === 'original' && key === `${packet.family} daddr`) return packet.originalDestination;
    if (dir === 'original' && key === 'proto-dst') return packet.originalPort;
    throw new TypeError(`the tracer does not know ct ${dir ?? ''} ${key}`);
  }

  private bitwise(
    operands: readonly [Expression, Expression],
    combine: (one: number, other: number) => number,
  ): PackedKey {
    const [first, second] = operands;
    const value = this.bits(first);
    const constant = value.length === 2 && typeof second === 'number' ? packPort(second) : this.bits(second);
    const [left, right] = [value, constant].map((bits) => Buffer.from(bits, 'latin1'));
    if (left?.length !== right?.length) throw new TypeError(`operands of different sizes: ${JSON.stringify(operands)}`);
    return String.fromCharCode(...(left ?? []).map((byte, index) => combine(byte, right?.[index] ?? 0) & 255));
  }

  private bits(expression: Expression): PackedKey {
    if (expression === 'syn') return SYN;
    const bytes = this.bytes(expression);
    const status = STATUS_BITS.get(bytes);
    return status === undefined ? bytes : packSlot(status);
  }
}

function packPort(port: number): PackedKey {
  return String.fromCharCode(port >> 8, port & 0xff);
}

function padded(bytes: PackedKey): PackedKey {
  return bytes.padEnd(Math.ceil(bytes.length / 4) * 4, '\0');
}

export function isList(expression: Expression): expression is readonly string[] {
  return Array.isArray(expression);
}
