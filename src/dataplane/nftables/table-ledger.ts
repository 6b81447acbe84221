import type { IPAddress } from '../../base/ip.js';
import type { FamilyTable, FrontendKey, TableChange } from '../../plan/types.js';
import type { AsideFrontend } from '../contract.js';
import { Ledger } from '../ledger.js';
import { sameElements, type FrontendElements } from './frontend-elements.js';
import { emptyKernelTable, type KernelTable, type ListedTable, type StrayElement } from './kernel-table.js';

/** Keys of each kind: what one transaction changes, or what is owed. */
export type TableKeys = {
  readonly [Field in keyof KernelTable]: KernelTable[Field] extends ReadonlyMap<infer Key, unknown> ? Key[] : never;
};

export function noKeys(): TableKeys {
  const addresses = { clusterAddresses: [], hairpinAddresses: [] };
  return { chains: [], sets: [], frontends: [], ...addresses, staleFlows: [], strays: [] };
}

export function joinKeys(all: readonly TableKeys[]): TableKeys {
  const joined = noKeys();
  for (const keys of all) {
    joined.chains.push(...keys.chains);
    joined.sets.push(...keys.sets);
    for (const key of keys.frontends) joined.frontends.push(key);
    for (const address of keys.clusterAddresses) joined.clusterAddresses.push(address);
    for (const address of keys.hairpinAddresses) joined.hairpinAddresses.push(address);
    for (const key of keys.staleFlows) joined.staleFlows.push(key);
  }
  return joined;
}

/** A claim of each ledger, see {@link Claim}. */
export interface TableClaim {
  acknowledge(): void;
  refuse(): void;
  lose(): void;
}

/** What ledgers have in common, whatever they are of. */
interface AnyLedger {
  readonly settled: boolean;
  readonly allUnknown: boolean;
  readonly unknown: { readonly size: number };
  doubtAll(): void;
}

/** Addresses that a table knows apart from frontends. */
export const ADDRESSES = ['clusterAddresses', 'hairpinAddresses'] as const;

/** What a family's table should hold, holds, and what is owed of it: a ledger for each kind of thing. */
export class TableLedger {
  readonly chains: Ledger<string, string>;
  readonly sets: Ledger<string, string>;
  readonly frontends: Ledger<FrontendKey, FrontendElements>;
  readonly clusterAddresses: Ledger<IPAddress, true>;
  readonly hairpinAddresses: Ledger<IPAddress, true>;
  readonly staleFlows: Ledger<FrontendKey, true>;
  readonly strays: Ledger<string, StrayElement>;
  /** What the kernel acknowledged; another object after each {@link readBack}. */
  held: KernelTable;

  /** @param now milliseconds on a clock that only goes forward. */
  constructor(now: () => number) {
    this.chains = new Ledger({ same: identical, now });
    this.sets = new Ledger({ same: identical, now });
    this.frontends = new Ledger({ same: sameElements, now });
    this.clusterAddresses = new Ledger({ same: identical, now });
    this.hairpinAddresses = new Ledger({ same: identical, now });
    this.staleFlows = new Ledger({ same: identical, now });
    this.strays = new Ledger({ same: identical, now });
    this.held = this.acknowledged();
  }

  /** Whether nothing is known of the kernel's table. */
  get allUnknown(): boolean {
    return this.frontends.allUnknown;
  }

  /** Whether it is known what the kernel holds. */
  get isCertain(): boolean {
    return this.all().every(({ allUnknown, unknown }) => !allUnknown && unknown.size === 0);
  }

  /** Whether there is nothing to send. */
  get settled(): boolean {
    return this.all().every((ledger) => ledger.settled) && this.due().length === 0;
  }

  get hasAside(): boolean {
    return this.frontends.aside.size + this.staleFlows.aside.size > 0;
  }

  /** A frontend is set aside as a whole: itself, or the note of its flows when nothing else of it is owed. */
  isAside(key: FrontendKey): boolean {
    return this.frontends.aside.has(key) || this.staleFlows.aside.has(key);
  }

  get aside(): readonly AsideFrontend[] {
    return [...this.frontends.aside, ...this.staleFlows.aside].map(([frontend, { reason, since, retryAt }]) => ({
      ...{ frontend, reason, since, retryAt },
    }));
  }

  /** Frontends that are set aside and are to be tried again, see {@link Ledger.due}. */
  due(): readonly FrontendKey[] {
    if (!this.hasAside) return [];
    const { frontends, staleFlows } = this;
    const changed = [...staleFlows.aside.keys()].filter((key) => frontends.isOwed(key));
    return [...new Set([...frontends.due(), ...staleFlows.due(), ...changed])];
  }

  /** Others wait for it no longer. Whether anything of it is owed, so that it could be set aside. */
  setAside(key: FrontendKey, reason: string): boolean {
    const { frontends, staleFlows } = this;
    if (!frontends.isOwed(key)) {
      staleFlows.setAside(key, reason);
      return staleFlows.aside.has(key);
    }
    frontends.setAside(key, reason);
    // Its flows are noted in the transaction that removes it.
    staleFlows.desire(key, staleFlows.acknowledged.get(key));
    return true;
  }

  /** Sets frontends aside that are due at once. Whether there is one among them that was not set aside before. */
  suspect(keys: readonly FrontendKey[], reason: string): boolean {
    const suspects = keys.filter((key) => !this.isAside(key) && this.setAside(key, reason));
    for (const key of suspects) this.retry(key);
    return suspects.length > 0;
  }

  private retry(key: FrontendKey): void {
    this.frontends.retry(key);
    this.staleFlows.retry(key);
  }

  doubtAll(): void {
    for (const ledger of this.all()) ledger.doubtAll();
  }

  /** Notes what a change removed, which nothing else tells later. */
  noteRemoved(table: FamilyTable, change: TableChange): void {
    for (const key of change.frontends) if (table.frontend(key) === undefined) this.frontends.desire(key, undefined);
    for (const kind of ADDRESSES)
      for (const address of change[kind]) if (!table[kind].has(address)) this[kind].desire(address, undefined);
  }

  /** What was owed before a change, and what the change concerns, in the order of both. */
  owed(change: TableChange): TableKeys {
    const before = [...this.frontends.owed()].filter((key) => !change.frontends.has(key));
    return {
      ...noKeys(),
      frontends: [...before, ...change.frontends],
      clusterAddresses: [...this.clusterAddresses.owed()],
      hairpinAddresses: [...this.hairpinAddresses.owed()],
    };
  }

  /** Addresses as {@link lookAtEverything} decides them for the whole table. */
  lookAtChange(table: FamilyTable, change: TableChange): void {
    for (const kind of ADDRESSES)
      for (const address of change[kind]) if (table[kind].has(address)) this[kind].desire(address, true);
  }

  /** The kernel was seen to hold this and nothing else. */
  readBack(listed: ListedTable): void {
    const { frontends } = this;
    const altered = [...frontends.aside.keys()].filter((key) => {
      const [one, other] = [frontends.acknowledged.get(key), listed.frontends.get(key)];
      return one !== other && (one === undefined || other === undefined || !sameElements(one, other));
    });
    this.chains.readBackAll(listed.chains);
    this.sets.readBackAll(listed.sets);
    this.frontends.readBackAll(listed.frontends);
    this.clusterAddresses.readBackAll(listed.clusterAddresses);
    this.hairpinAddresses.readBackAll(listed.hairpinAddresses);
    this.staleFlows.readBackAll(listed.staleFlows);
    this.strays.readBackAll(listed.strays);
    this.held = this.acknowledged();
    // What was refused was the way from something else.
    for (const key of altered) this.retry(key);
  }

  /** The table was made anew: of what is held only this is left. */
  keepOnly(keys: TableKeys): void {
    const { held } = this;
    const kept = emptyKernelTable();
    keep(kept.chains, held.chains, keys.chains);
    keep(kept.sets, held.sets, keys.sets);
    keep(kept.frontends, held.frontends, keys.frontends);
    keep(kept.clusterAddresses, held.clusterAddresses, keys.clusterAddresses);
    keep(kept.hairpinAddresses, held.hairpinAddresses, keys.hairpinAddresses);
    keep(kept.staleFlows, held.staleFlows, keys.staleFlows);
    this.readBack(kept);
  }

  /**
   * All that is wanted, and all that the kernel has beyond it: unless the table has gaps, then that is left alone, but for what was owed. Addresses are
   * decided here; frontends are named in the order in which they are to be looked at.
   *
   * @param owed before the kernel's table was listed.
   */
  lookAtEverything(
    table: FamilyTable,
    owed: TableKeys,
  ): { readonly frontends: ReadonlySet<FrontendKey>; readonly leftAlone: boolean } {
    for (const kind of ADDRESSES) {
      const ledger = this[kind];
      const named = new Set(owed[kind]);
      for (const address of [...ledger.acknowledged.keys(), ...ledger.owed()]) {
        if (table[kind].has(address)) continue;
        ledger.desire(address, table.gaps && !named.has(address) ? ledger.acknowledged.get(address) : undefined);
      }
      for (const address of table[kind]) ledger.desire(address, true);
    }
    const { frontends, staleFlows } = this.held;
    const looked = new Set([...owed.frontends, ...this.frontends.aside.keys()]);
    for (const { key } of table.frontends()) looked.add(key);
    for (const key of [...staleFlows.keys(), ...this.staleFlows.owed()]) if (!frontends.has(key)) looked.add(key);
    if (!table.gaps) for (const key of frontends.keys()) looked.add(key);
    let leftAlone = false;
    for (const key of [...(table.gaps ? frontends.keys() : []), ...this.frontends.owed()]) {
      if (looked.has(key)) continue;
      this.frontends.desire(key, frontends.get(key));
      leftAlone ||= frontends.has(key);
    }
    return { frontends: looked, leftAlone };
  }

  /** Begins a transaction. */
  claim(keys: TableKeys): TableClaim {
    const claims: readonly (TableClaim | null)[] = [
      claimOf(this.chains, keys.chains),
      claimOf(this.sets, keys.sets),
      claimOf(this.frontends, keys.frontends),
      claimOf(this.clusterAddresses, keys.clusterAddresses),
      claimOf(this.hairpinAddresses, keys.hairpinAddresses),
      claimOf(this.staleFlows, keys.staleFlows),
      claimOf(this.strays, keys.strays),
    ];
    const end = (how: keyof TableClaim) => (): void => {
      for (const claim of claims) claim?.[how]();
    };
    return { acknowledge: end('acknowledge'), refuse: end('refuse'), lose: end('lose') };
  }

  private all(): readonly AnyLedger[] {
    const { chains, sets, frontends, clusterAddresses, hairpinAddresses, staleFlows, strays } = this;
    return [chains, sets, frontends, clusterAddresses, hairpinAddresses, staleFlows, strays];
  }

  private acknowledged(): KernelTable {
    return {
      chains: this.chains.acknowledged,
      sets: this.sets.acknowledged,
      frontends: this.frontends.acknowledged,
      clusterAddresses: this.clusterAddresses.acknowledged,
      hairpinAddresses: this.hairpinAddresses.acknowledged,
      staleFlows: this.staleFlows.acknowledged,
      strays: this.strays.acknowledged,
    };
  }
}

function claimOf<Key, Value>(ledger: Ledger<Key, Value>, keys: readonly Key[]): TableClaim | null {
  return keys.length === 0 ? null : ledger.claim(keys);
}

function identical<Value>(one: Value, other: Value): boolean {
  return one === other;
}

function keep<Key, Value>(kept: Map<Key, Value>, held: ReadonlyMap<Key, Value>, keys: readonly Key[]): void {
  for (const key of keys) {
    const value = held.get(key);
    if (value !== undefined) kept.set(key, value);
  }
}
