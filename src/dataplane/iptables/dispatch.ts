import { addressBytes, addressFromBytes, type IPAddress } from '../../base/ip.js';
import type { IptablesTable } from '../../native/contract.js';
import { parseFrontendKey } from '../../plan/frontend-key.js';
import { protocolWord, type Chain } from '../xtables/rules.js';

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
  /** The chain's rules for one item. */
  readonly rules: (item: string) => readonly string[];
  /** Rules at the end of the chain, divided or not. */
  readonly tail: () => readonly string[];
  /** Whether there are such chains at all. Absent: there are. */
  readonly exists?: () => boolean;
}

interface Link {
  readonly match: string;
  items: number;
}

/** A chain with a few rules for each of many items. Its rules are a function of its items, so every process divides it alike. */
export class Dispatch {
  private readonly items = new Set<string>();
  private readonly leaves = new Map<string, Set<string>>();
  /** The chains that each chain leads to. */
  private readonly links = new Map<string, Map<string, Link>>();
  private readonly changed = new Set<string>();

  constructor(private readonly options: DispatchOptions) {}

  /** Marks the item's rules as changed, and sets whether it has any. */
  set(item: string, present: boolean): void {
    const divided = this.isDivided;
    if (present !== this.items.has(item)) {
      if (present) this.items.add(item);
      else this.items.delete(item);
      this.link(item, present ? 1 : -1);
    } else if (present) {
      for (const name of this.chainsOf(item)) this.changed.add(name);
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
    this.changed.add(this.options.chain);
    for (const name of [...this.leaves.keys(), ...this.links.keys()]) this.changed.add(name);
  }

  /** Names of chains that may have changed since {@link untouch}. */
  get touched(): ReadonlySet<string> {
    return this.changed;
  }

  untouch(): void {
    this.changed.clear();
  }

  /** Whether the chain is, or could be, one of those that this is divided into. */
  owns(table: IptablesTable, name: string): boolean {
    const { chain, division } = this.options;
    return table === this.table && (name === chain || name.startsWith(`${division}-`));
  }

  /** The chain as it should be; null when there should be none. */
  chain(name: string): Chain | null {
    const { table, chain, tail, exists } = this.options;
    if (exists?.() === false) return null;
    if (name === chain) {
      const own = this.isDivided ? this.jumps(name) : this.rulesOf(this.items);
      return { table, name, rules: [...own, ...tail()], owner: null };
    }
    if (!this.isDivided) return null;
    const leaf = this.leaves.get(name);
    if (leaf !== undefined) return { table, name, rules: this.rulesOf(leaf), owner: null };
    return this.links.has(name) ? { table, name, rules: this.jumps(name), owner: null } : null;
  }

  private get isDivided(): boolean {
    return this.items.size > DIVIDED_ABOVE;
  }

  private rulesOf(items: ReadonlySet<string>): string[] {
    return [...items].sort().flatMap((item) => this.options.rules(item));
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
    const leaf = this.leaves.get(leafName) ?? new Set();
    if (amount > 0) this.leaves.set(leafName, leaf.add(item));
    else leaf.delete(item);
    if (leaf.size === 0) this.leaves.delete(leafName);
  }
}

/** Branches by the two low nibbles of an address: Services' addresses differ there in every range. */
export function addressBranches(address: IPAddress): readonly Branch[] {
  const bytes = addressBytes(address);
  const last = bytes.at(-1) ?? 0;
  const only = (value: number): IPAddress =>
    addressFromBytes(bytes.map((_, at) => (at === bytes.length - 1 ? value : 0)));
  return [0x0f, 0xf0].map((mask) => {
    const nibble = mask === 0x0f ? last & mask : last >> 4;
    return { match: `-d ${only(last & mask)}/${only(mask)}`, suffix: nibble.toString(16).toUpperCase() };
  });
}

const RANGE_BITS = 6;

/** Branches by protocol and range of 64 ports. @param key of a node port. */
export function portBranches(key: string): readonly Branch[] {
  const { port, protocol } = parseFrontendKey(key);
  const range = port >> RANGE_BITS;
  const first = range << RANGE_BITS;
  const word = protocolWord(protocol);
  const suffix = `${protocol.charAt(0)}${range.toString(16).toUpperCase().padStart(3, '0')}`;
  return [{ match: `-p ${word} -m ${word} --dport ${first}:${first + (1 << RANGE_BITS) - 1}`, suffix }];
}
