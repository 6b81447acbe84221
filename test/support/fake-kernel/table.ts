import type { ChainHook, Rule, SetDeclaration } from '../../../src/dataplane/nftables/json.js';
import type { PackedKey } from '../../../src/dataplane/nftables/keys.js';

/** An nf_tables table as the fake holds it. Keys and data are strings with one character per byte. */
export interface FakeTable {
  readonly chains: Map<string, FakeChain>;
  readonly sets: Map<string, FakeSet>;
  readonly timeouts: Map<string, FakeTimeout>;
}

export interface FakeTimeout {
  readonly name: string;
  /** As the compiler spells it. */
  readonly text: string;
}

export interface FakeChain {
  readonly name: string;
  readonly hook: ChainHook | null;
  /** As the compiler spells the hook. */
  readonly hookText: string | null;
  readonly rules: FakeRule[];
}

export interface FakeRule {
  readonly statements: Rule;
  /** As the compiler spells it. */
  readonly text: string;
}

export interface FakeSet {
  readonly name: string;
  readonly declaration: SetDeclaration;
  readonly text: string;
  readonly keyLength: number;
  /** 0 for sets and verdict maps. */
  readonly dataLength: number;
  readonly elements: Map<PackedKey, FakeElement>;
}

export interface FakeElement {
  readonly key: PackedKey;
  /** Inclusive, sets with intervals only. */
  readonly keyEnd: PackedKey | null;
  readonly value: PackedKey | null;
  /** Chain of a verdict map's `goto`. */
  readonly chain: string | null;
  readonly comment: string | null;
  /** Of its counter. */
  readonly packets?: number;
}

const TYPE_LENGTHS: Readonly<Record<string, number>> = {
  ipv4_addr: 4,
  ipv6_addr: 16,
  inet_proto: 1,
  inet_service: 2,
  mark: 4,
  ifname: 16,
};

/** Bytes of each component: padded to 4 in a concatenation, as they are when alone. */
export function componentLengths(types: readonly string[]): readonly number[] {
  const lengths = types.map((type) => TYPE_LENGTHS[type] ?? 4);
  return lengths.length === 1 ? lengths : lengths.map((length) => Math.ceil(length / 4) * 4);
}

export function typeLength(types: readonly string[]): number {
  return componentLengths(types).reduce((sum, length) => sum + length, 0);
}

/** The element that holds a key: in a set with intervals the one whose every component spans it. */
export function findElement(set: FakeSet, key: PackedKey): FakeElement | null {
  const exact = set.elements.get(key);
  if (exact !== undefined) return exact;
  if (!set.declaration.flags.includes('interval')) return null;
  const lengths = componentLengths(set.declaration.type);
  for (const element of set.elements.values()) if (spans(element, key, lengths)) return element;
  return null;
}

function spans(element: FakeElement, key: PackedKey, lengths: readonly number[]): boolean {
  const end = element.keyEnd ?? element.key;
  let at = 0;
  for (const length of lengths) {
    const part = key.slice(at, at + length);
    if (part < element.key.slice(at, at + length) || part > end.slice(at, at + length)) return false;
    at += length;
  }
  return true;
}

interface References {
  readonly chains: readonly string[];
  readonly sets: readonly string[];
  readonly timeouts: readonly string[];
}

/** Names that a rule refers to: chains it jumps to, sets and maps it looks up or updates, timeouts it gives. */
export function references(statements: Rule): References {
  const chains: string[] = [];
  const sets: string[] = [];
  const timeouts: string[] = [];
  const visit = (value: unknown): void => {
    if (typeof value === 'string' && value.startsWith('@')) sets.push(value.slice(1));
    if (typeof value !== 'object' || value === null) return;
    for (const [name, member] of Object.entries(value)) {
      if (name === 'target' && typeof member === 'string') chains.push(member);
      if (name === 'ct timeout' && typeof member === 'string') timeouts.push(member);
      visit(member);
    }
  };
  visit(statements);
  return { chains, sets, timeouts };
}
