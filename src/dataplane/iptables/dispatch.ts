import { addressBytes, addressFromBytes, type IPAddress } from '../../base/ip.js';
import type { IptablesTable } from '../../native/contract.js';
import { PROTOCOLS, type Protocol } from '../../base/protocol.js';
import { parseFrontendKey } from '../../plan/frontend-key.js';
import { addressText, protocolWord, type Chain } from '../xtables/rules.js';
import { divideLeaf, type Depths, type LeafMemory, type Part } from './leaf.js';
import { hash16, isDeeper } from './names.js';

/** One branch on the way to an item: what selects it, and what its chain's name ends with. */
export interface Branch {
  readonly match: string;
  readonly suffix: string;
}

/** Above this many items a chain is divided, so that a packet walks dozens of rules instead of thousands and a change rewrites few. */
const DIVIDED_ABOVE = 64;

export interface DispatchOptions {
  readonly table: IptablesTable;
  /** The chain that packets enter. */
  readonly chain: string;
  /** Beginning of the names of the chains it is divided into. */
  readonly division: string;
  readonly branches: (item: string) => readonly Branch[];
  /** How chains at the ends of branches are divided further; null: they are not. */
  readonly depths: Depths | null;
  /** The chain's rules for one item. */
  readonly rules: (item: string) => readonly string[];
  /** Items with many rules have them in a chain of their own; absent: none has many. */
  readonly long?: {
    readonly has: (item: string) => boolean;
    /** What selects an item's packets. */
    readonly match: (item: string) => string;
    /** As of {@link Depths}. */
    readonly prefix: string;
  };
  /** Rules at the end of the chain, divided or not. */
  readonly tail: () => readonly string[];
  /** Whether there are such chains at all. Absent: there are. */
  readonly exists?: () => boolean;
}

interface Link {
  readonly match: string;
  items: number;
}

/** The items at the end of a branch. */
interface Leaf {
  readonly items: Set<string>;
  /** Items whose rules have changed since its chains were last made out. */
  readonly changed: Set<string>;
  readonly memory: LeafMemory;
  /** By name. */
  parts: ReadonlyMap<string, Part>;
}

/** A chain with a few rules for each of many items. Its rules are a function of its items, so every process divides it alike. */
export class Dispatch {
  private readonly items = new Set<string>();
  private readonly leaves = new Map<string, Leaf>();
  /** Leaves with changed items. */
  private readonly stale = new Map<string, Leaf>();
  /** The chains of all leaves, by name. */
  private readonly parts = new Map<string, Part>();
  /** The chains that each chain leads to. */
  private readonly links = new Map<string, Map<string, Link>>();
  /** Items with many rules by the name of their chain, and the other way round. */
  private readonly longItems = new Map<string, string>();
  private readonly longChains = new Map<string, string>();
  private readonly changed = new Set<string>();

  constructor(private readonly options: DispatchOptions) {}

  /** Marks the item's rules as changed, and sets whether it has any. */
  set(item: string, present: boolean): void {
    const divided = this.isDivided;
    this.setLong(item, present);
    if (present !== this.items.has(item)) {
      if (present) this.items.add(item);
      else this.items.delete(item);
      this.link(item, present ? 1 : -1);
    } else if (present) {
      const names = this.chainsOf(item);
      for (const name of names) this.changed.add(name);
      this.touchLeaf(names.at(-1) ?? '', item);
    }
    if (divided !== this.isDivided) this.touchAll();
  }

  get table(): IptablesTable {
    return this.options.table;
  }

  get isEmpty(): boolean {
    return this.items.size === 0;
  }

  /** Marks the chain's tail as changed. */
  touchEntry(): void {
    this.changed.add(this.options.chain);
  }

  touchAll(): void {
    this.refresh();
    this.changed.add(this.options.chain);
    for (const names of [this.parts, this.links, this.longItems])
      for (const name of names.keys()) this.changed.add(name);
  }

  /** Names of chains that may have changed since {@link untouch}. */
  get touched(): ReadonlySet<string> {
    this.refresh();
    return this.changed;
  }

  untouch(): void {
    this.changed.clear();
  }

  /** Whether the chain is, or could be, one of those that this is divided into. */
  owns(table: IptablesTable, name: string): boolean {
    const { chain, division, depths } = this.options;
    if (table !== this.table) return false;
    return name === chain || name.startsWith(`${division}-`) || (depths !== null && isDeeper(name, depths.prefix));
  }

  /** The chain as it should be; null when there should be none. */
  chain(name: string): Chain | null {
    const { table, chain, tail, exists } = this.options;
    if (exists?.() === false) return null;
    if (name === chain) {
      const own = this.isDivided ? this.jumps(name) : this.rulesOf([...this.items].sort());
      return { table, name, rules: [...own, ...tail()], owner: null };
    }
    const long = this.longItems.get(name);
    if (long !== undefined) return { table, name, rules: this.options.rules(long), owner: null };
    if (!this.isDivided) return null;
    this.refresh();
    const part = this.parts.get(name);
    if (part?.type === 'jumps') return { table, name, rules: part.rules, owner: null };
    if (part?.type === 'items') return { table, name, rules: this.rulesOf(part.items), owner: null };
    return this.links.has(name) ? { table, name, rules: this.jumps(name), owner: null } : null;
  }

  private get isDivided(): boolean {
    return this.items.size > DIVIDED_ABOVE;
  }

  private rulesOf(items: readonly string[]): string[] {
    const { long, rules } = this.options;
    return items.flatMap((item) => {
      const own = this.longChains.get(item);
      return own === undefined || long === undefined ? rules(item) : [`${long.match(item)} -j ${own}`];
    });
  }

  private setLong(item: string, present: boolean): void {
    const { long } = this.options;
    if (long === undefined) return;
    const isLong = present && long.has(item);
    const name = this.longChains.get(item) ?? (isLong ? long.prefix + hash16(item) : null);
    if (name === null) return;
    this.changed.add(name);
    if (isLong) {
      this.longItems.set(name, item);
      this.longChains.set(item, name);
    } else {
      this.longItems.delete(name);
      this.longChains.delete(item);
    }
  }

  private touchLeaf(name: string, item: string): void {
    const leaf = this.leaves.get(name);
    if (leaf === undefined) return;
    leaf.changed.add(item);
    this.stale.set(name, leaf);
  }

  /** Makes out how leaves with changed items are divided. */
  private refresh(): void {
    for (const [name, leaf] of this.stale) {
      const { items, changed, memory, parts: before } = leaf;
      leaf.parts = items.size === 0 ? new Map<string, Part>() : divideLeaf(name, items, this.options.depths, memory);
      for (const each of before.keys()) {
        if (leaf.parts.has(each)) continue;
        this.parts.delete(each);
        this.changed.add(each);
      }
      for (const [each, part] of leaf.parts) {
        this.parts.set(each, part);
        if (isTouched(before.get(each), part, changed)) this.changed.add(each);
      }
      changed.clear();
      if (items.size === 0) this.leaves.delete(name);
    }
    this.stale.clear();
  }

  private jumps(name: string): string[] {
    const links = [...(this.links.get(name) ?? [])].sort(([one], [other]) => (one < other ? -1 : 1));
    return links.map(([child, { match }]) => `${match} -j ${child}`);
  }

  /** The chains on the way to an item, the entry first. */
  private chainsOf(item: string): string[] {
    const names = [this.options.chain];
    let name = `${this.options.division}-`;
    for (const { suffix } of this.options.branches(item)) names.push((name += suffix));
    return names;
  }

  private link(item: string, amount: 1 | -1): void {
    const names = this.chainsOf(item);
    for (const name of names) this.changed.add(name);
    const branches = this.options.branches(item);
    for (const [index, { match }] of branches.entries()) {
      const [parent = '', child = ''] = names.slice(index);
      const children = this.links.get(parent) ?? new Map<string, Link>();
      const link = children.get(child) ?? { match, items: 0 };
      link.items += amount;
      if (link.items > 0) this.links.set(parent, children.set(child, link));
      else children.delete(child);
      if (children.size === 0) this.links.delete(parent);
    }
    const leafName = names.at(-1) ?? '';
    const leaf = this.leaves.get(leafName) ?? emptyLeaf();
    this.leaves.set(leafName, leaf);
    if (amount > 0) leaf.items.add(item);
    else leaf.items.delete(item);
    this.touchLeaf(leafName, item);
  }
}

function emptyLeaf(): Leaf {
  const memory = { paths: new Map<string, string>(), names: new Map<string, string>() };
  return { items: new Set(), changed: new Set(), memory, parts: new Map() };
}

/** Whether a chain differs from what it was, or may, as rules of its items have changed. */
function isTouched(before: Part | undefined, now: Part, changed: ReadonlySet<string>): boolean {
  const texts = (part: Part): readonly string[] => (part.type === 'jumps' ? part.rules : part.items);
  if (before?.type !== now.type) return true;
  const [one, other] = [texts(before), texts(now)];
  if (one.length !== other.length || one.some((text, index) => text !== other[index])) return true;
  return now.type === 'items' && now.items.some((item) => changed.has(item));
}

/** Branches by the two low nibbles of an address: Services' addresses differ there in every range. */
export function addressBranches(address: IPAddress): readonly Branch[] {
  const bytes = addressBytes(address);
  return [0, 1].map((index) => ({
    match: nibbleMatch(bytes, index),
    suffix: nibbleOf(bytes, index).toString(16).toUpperCase(),
  }));
}

/** @param index from the lowest nibble on. */
function nibbleOf(bytes: Uint8Array, index: number): number {
  const byte = bytes.at(-1 - (index >> 1)) ?? 0;
  return index % 2 === 0 ? byte & 0x0f : byte >> 4;
}

/** Selects addresses with the same nibble, in the spelling of iptables-save. */
function nibbleMatch(bytes: Uint8Array, index: number): string {
  const at = bytes.length - 1 - (index >> 1);
  const only = (nibble: number): string => {
    const all = new Uint8Array(bytes.length);
    all[at] = index % 2 === 0 ? nibble : nibble << 4;
    return addressText(addressFromBytes(all));
  };
  const mask = index === 2 * bytes.length - 1 ? '4' : only(0x0f);
  return `-d ${only(nibbleOf(bytes, index))}/${mask}`;
}

const RANGE_BITS = 6;

/** Branches by protocol and range of 64 ports. @param key of a node port. */
export function portBranches(key: string): readonly Branch[] {
  const { port, protocol } = parseFrontendKey(key);
  const range = port >> RANGE_BITS;
  const suffix = `${protocol.charAt(0)}${range.toString(16).toUpperCase().padStart(3, '0')}`;
  return [{ match: portMatch(protocol, port, RANGE_BITS), suffix }];
}

/** The low nibbles that the shallow branches take. */
const SHALLOW_NIBBLES = 2;
/** Of ranges of ports: 32 of all ports have 32 of 64 ports each. */
const PORT_FAN_BITS = 5;
const PORT_LEVELS = 2;

/** The further nibbles of an item's address, from low to high. */
export function addressDepths(prefix: string, addressOf: (item: string) => IPAddress | null): Depths {
  const bytesOf = (item: string): Uint8Array => bytesOrNone(addressOf(item));
  return {
    prefix,
    path: (item) => nibblePath(bytesOf(item)),
    match: (item, level) => nibbleMatch(bytesOf(item), SHALLOW_NIBBLES + level),
    portLevels: 0,
    owner: (item) => item,
  };
}

/** The same of a frontend; then its protocol and range of ports. @param owner the Service of a frontend. */
export function frontendDepths(prefix: string, owner: (key: string) => string): Depths {
  return {
    prefix,
    path: (key) => {
      const { address, port, protocol } = parseFrontendKey(key);
      const range = port >> RANGE_BITS;
      const coarse = PROTOCOLS.indexOf(protocol) * 2 ** PORT_FAN_BITS + (range >> PORT_FAN_BITS);
      return nibblePath(bytesOrNone(address)) + String.fromCharCode(coarse, range % 2 ** PORT_FAN_BITS);
    },
    match: (key, level) => {
      const { address, port, protocol } = parseFrontendKey(key);
      const bytes = bytesOrNone(address);
      const nibble = SHALLOW_NIBBLES + level;
      if (nibble < 2 * bytes.length) return nibbleMatch(bytes, nibble);
      const bits = RANGE_BITS + (nibble === 2 * bytes.length ? PORT_FAN_BITS : 0);
      return portMatch(protocol, port, bits);
    },
    portLevels: PORT_LEVELS,
    owner,
  };
}

function bytesOrNone(address: IPAddress | null): Uint8Array {
  return address === null ? new Uint8Array(0) : addressBytes(address);
}

/** One character for each nibble but the two lowest, from low to high. */
function nibblePath(bytes: Uint8Array): string {
  const nibbles = Array.from({ length: Math.max(0, 2 * bytes.length - SHALLOW_NIBBLES) }, (_, index) =>
    nibbleOf(bytes, SHALLOW_NIBBLES + index).toString(16),
  );
  return nibbles.join('');
}

/** Selects ports that differ in so many low bits. */
function portMatch(protocol: Protocol, port: number, bits: number): string {
  const word = protocolWord(protocol);
  const first = (port >> bits) << bits;
  return `-p ${word} -m ${word} --dport ${first}:${first + (1 << bits) - 1}`;
}
