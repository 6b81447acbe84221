import { addressBytes, parseAddress } from '../../../src/base/ip.js';
import type { PackedKey } from '../../../src/dataplane/nftables/keys.js';
import type { IptablesTable } from '../../../src/native/contract.js';
import type { Traveller } from './packet.js';

/** One thing that a rule does with a packet on its way to the target, in the rule's order. */
export type Step =
  /** The rule ends here for packets that are otherwise. */
  | { readonly type: 'match'; readonly test: (packet: Traveller) => boolean }
  /** It goes on with this probability. */
  | { readonly type: 'draw'; readonly probability: number }
  /** It ends here for clients that a `recent` list has not seen for so long; others are seen now. */
  | { readonly type: 'update'; readonly list: string; readonly seconds: number }
  /** The client is seen now. */
  | { readonly type: 'note'; readonly list: string };

export type Target =
  | { readonly type: 'accept' | 'drop' | 'reject' | 'return' | 'masquerade' }
  | { readonly type: 'jump' | 'goto'; readonly chain: string }
  | { readonly type: 'mark'; readonly value: number; readonly mask: number }
  | { readonly type: 'translate'; readonly destination: PackedKey; readonly port: PackedKey };

export interface Rule {
  readonly steps: readonly Step[];
  /** Null: it counts, or notes, and the packet goes on. */
  readonly target: Target | null;
}

const known = new Map<string, Rule>();

/** The meaning of a rule in the spelling of iptables-save, as far as our rules use it. @throws TypeError for what the programs or this reader do not know. */
export function readRule(text: string): Rule {
  const read = known.get(text) ?? new Reader(text).read();
  known.set(text, read);
  return read;
}

/** Of rules that do not come again. */
export function forgetRules(): void {
  known.clear();
}

/** Why the kernel takes no such rule in a table; null when it does. */
export function misplacement(table: IptablesTable, text: string): string | null {
  const type = readRule(text).target?.type;
  if ((type === 'translate' || type === 'masquerade') && table !== 'nat')
    return 'addresses are translated in nat alone';
  if (table !== 'raw' && / -j CT /.test(text)) return 'flows get other timeouts in raw alone';
  if (type === 'reject' && table !== 'filter') return 'packets are rejected in filter alone';
  return null;
}

/** Reads words from left to right. */
class Reader {
  private readonly words: string[];
  private readonly steps: Step[] = [];
  private target: Target | null = null;
  private negated = false;
  private protocol: string | null = null;
  private recent: { readonly verb: string; list: string; seconds: number } | null = null;

  constructor(private readonly text: string) {
    this.words = text.match(/"[^"]*"|\S+/g) ?? [];
  }

  read(): Rule {
    for (let word = this.words.shift(); word !== undefined; word = this.words.shift()) {
      if (this.target !== null) throw this.unknown(word);
      if (word === '!') this.negated = true;
      else this.option(word);
    }
    this.closeRecent();
    if (this.negated) throw this.unknown('!');
    return { steps: this.steps, target: this.target };
  }

  private option(word: string): void {
    switch (word) {
      case '-m':
        this.closeRecent();
        this.module(this.value());
        return;
      case '--comment':
      case '--nfacct-name':
      case '--mask':
        this.value();
        return;
      case '--ipvs':
        this.steps.push({ type: 'match', test: ({ cameByIpvs }) => cameByIpvs });
        return;
      case '--update-counters':
        this.negated = false;
        return;
      case '--reap':
      case '--rsource':
        return;
      case '--mode':
        if (this.value() !== 'random') throw this.unknown(word);
        return;
      case '--probability':
        this.steps.push({ type: 'draw', probability: Number(this.value()) });
        return;
      case '--set':
      case '--update':
        this.recent = { verb: word, list: '', seconds: Infinity };
        return;
      case '--name':
        if (this.recent !== null) this.recent.list = this.value();
        return;
      case '--seconds':
        if (this.recent !== null) this.recent.seconds = Number(this.value());
        return;
      case '-j':
        this.closeRecent();
        this.target = this.verdict(this.value());
        return;
      case '-g':
        this.target = { type: 'goto', chain: this.value() };
        return;
      default:
        this.match(word, this.value());
    }
  }

  /** A match of a protocol's ports needs the protocol. */
  private module(name: string): void {
    const ports = ['tcp', 'udp', 'sctp'].includes(name);
    if (ports && this.protocol !== name) throw new TypeError(`-m ${name} without -p ${name}: ${this.text}`);
    const others = ['comment', 'conntrack', 'addrtype', 'mark', 'statistic', 'recent', 'nfacct', 'set', 'ipvs'];
    if (!ports && !others.includes(name)) throw this.unknown(name);
  }

  private match(word: string, value: string): void {
    const test = this.test(word, value);
    const { negated } = this;
    this.negated = false;
    this.steps.push({ type: 'match', test: negated ? (packet) => !test(packet) : test });
  }

  private test(word: string, value: string): (packet: Traveller) => boolean {
    switch (word) {
      case '-s':
        return within(value, ({ source }) => source);
      case '-d':
        return within(value, ({ destination }) => destination);
      case '--ctorigdst':
        return within(value, ({ originalDestination }) => originalDestination);
      case '--ctorigdstport':
        return ({ originalPort }) => number(originalPort) === Number(value);
      case '--tcp-flags':
        // It is the first packet of its connection.
        if (`${value} ${this.value()}` !== 'FIN,SYN,RST,ACK SYN') throw this.unknown(value);
        return () => true;
      case '--match-set': {
        const directions = this.value().split(',');
        return (packet) => packet.isInSet(value, directions, packet);
      }
      case '-i': {
        const [start = ''] = value.split('+');
        return value.endsWith('+')
          ? ({ inputInterface }) => inputInterface.startsWith(start)
          : ({ inputInterface }) => inputInterface === value;
      }
      case '-p':
        if (!this.negated) this.protocol = value;
        return ({ protocol }) => protocol === value;
      case '--dport': {
        const [first = 0, last = first] = value.split(':').map(Number);
        return ({ port }) => number(port) >= first && number(port) <= last;
      }
      case '--ctstate':
        // It is the first packet of its connection.
        return ({ translated }) =>
          value.split(',').some((state) => state === 'NEW' || (state === 'DNAT' && translated));
      case '--src-type':
      case '--dst-type':
        if (value !== 'LOCAL') throw this.unknown(value);
        return ({ isLocal, source, destination }) => isLocal(word === '--src-type' ? source : destination);
      case '--mark': {
        const [wanted = 0, mask = 0xffffffff] = value.split('/').map(Number);
        return ({ mark }) => (mark & mask) === wanted;
      }
      default:
        throw this.unknown(word);
    }
  }

  private verdict(name: string): Target | null {
    switch (name) {
      case 'SET':
        // It adds an element that counts, and the packet goes on.
        this.named('--add-set');
        this.value();
        return null;
      case 'CT':
        // It gives the flow other timeouts, and the packet goes on.
        this.named('--timeout');
        return null;
      case 'ACCEPT':
        return { type: 'accept' };
      case 'DROP':
        return { type: 'drop' };
      case 'RETURN':
        return { type: 'return' };
      case 'REJECT': {
        const how = this.named('--reject-with');
        if (how === 'tcp-reset' && this.protocol !== 'tcp') throw new TypeError(`a reset without -p tcp: ${this.text}`);
        if (!/^(?:tcp-reset|icmp6?-port-unreachable)$/.test(how)) throw this.unknown(how);
        return { type: 'reject' };
      }
      case 'MASQUERADE':
        if (this.words.shift() !== '--random-fully') throw this.unknown(name);
        return { type: 'masquerade' };
      case 'MARK': {
        const [value = 0, mask = 0xffffffff] = this.named('--set-xmark').split('/').map(Number);
        return { type: 'mark', value, mask };
      }
      case 'DNAT': {
        const [, address = '', port] = /^\[?([^\]]+?)\]?:(\d+)$/.exec(this.named('--to-destination')) ?? [];
        if (this.protocol === null) throw new TypeError(`a port without a protocol: ${this.text}`);
        return {
          type: 'translate',
          destination: pack(address),
          port: String.fromCharCode(Number(port) >> 8, Number(port) & 0xff),
        };
      }
      default:
        return { type: 'jump', chain: name };
    }
  }

  private closeRecent(): void {
    if (this.recent === null) return;
    const { verb, list, seconds } = this.recent;
    this.steps.push(verb === '--set' ? { type: 'note', list } : { type: 'update', list, seconds });
    this.recent = null;
  }

  private named(option: string): string {
    if (this.words.shift() !== option) throw this.unknown(option);
    return this.value();
  }

  private value(): string {
    const value = this.words.shift();
    if (value === undefined) throw this.unknown('end');
    return value;
  }

  private unknown(what: string): TypeError {
    return new TypeError(`nobody here knows ${what} in: ${this.text}`);
  }
}

/** @param prefix with a length or any mask behind it, or an address alone. */
function within(prefix: string, field: (packet: Traveller) => PackedKey): (packet: Traveller) => boolean {
  const [address = '', mask = '128'] = prefix.split('/');
  const wanted = bytesOf(address);
  const masks = /^\d+$/.test(mask)
    ? wanted.map((_, index) => (0xff00 >> Math.min(8, Math.max(0, Number(mask) - 8 * index))) & 0xff)
    : bytesOf(mask);
  return (packet) => {
    const bytes = field(packet);
    return wanted.every((byte, index) => (bytes.charCodeAt(index) & (masks[index] ?? 0)) === byte);
  };
}

function bytesOf(address: string): readonly number[] {
  const parsed = parseAddress(address);
  if (parsed === null) throw new TypeError(`not an address: ${address}`);
  return [...addressBytes(parsed)];
}

function pack(address: string): PackedKey {
  return String.fromCharCode(...bytesOf(address));
}

function number(port: PackedKey): number {
  return (port.charCodeAt(0) << 8) | port.charCodeAt(1);
}
