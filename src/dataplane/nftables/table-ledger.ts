import type { IPAddress } from '../../base/ip.js';
import type { FamilyTable, FrontendKey, TableChange } from '../../plan/types.js';
import type { QuarantinedFrontend } from '../contract.js';
import { Ledger } from '../ledger.js';
import { sameElements, type FrontendElements } from './frontend-elements.js';
import { emptyTable, type HeldTable, type ListedTable, type UnexpectedElement } from './listing.js';
import { Uses } from './uses.js';

/** Keys of each kind: what one transaction changes, or what is pending. */
export type TableKeys = {
  readonly [Field in keyof HeldTable]: HeldTable[Field] extends ReadonlyMap<infer Key, unknown> ? Key[] : never;
};

export function noKeys(): TableKeys {
  const addresses = { clusterAddresses: [], hairpinAddresses: [] };
  return { chains: [], sets: [], objects: [], frontends: [], ...addresses, staleFlows: [], unexpected: [] };
}

export function joinKeys(all: readonly TableKeys[]): TableKeys {
  const joined = noKeys();
  for (const keys of all) {
    for (const name of keys.chains) joined.chains.push(name);
    for (const name of keys.sets) joined.sets.push(name);
    for (const name of keys.objects) joined.objects.push(name);
    for (const key of keys.frontends) joined.frontends.push(key);
    for (const address of keys.clusterAddresses) joined.clusterAddresses.push(address);
    for (const address of keys.hairpinAddresses) joined.hairpinAddresses.push(address);
    for (const key of keys.staleFlows) joined.staleFlows.push(key);
  }
  return joined;
}

/** A claim of each ledger, see {@link Claim}. */
interface TableClaim {
  acknowledge(): void;
  refuse(): void;
  lose(): void;
}

/** The common part of ledgers of all types. */
interface AnyLedger {
  readonly isSteady: boolean;
  readonly allUnknown: boolean;
  readonly unknown: { readonly size: number };
  markAllUnknown(): void;
}

/** Addresses that a table knows apart from frontends. */
export const ADDRESSES = ['clusterAddresses', 'hairpinAddresses'] as const;

/** The desired, held and pending state of a family's table: a ledger for each kind of thing. */
export class TableLedger {
  readonly chains: Ledger<string, string>;
  readonly sets: Ledger<string, string>;
  readonly objects: Ledger<string, string>;
  readonly frontends: Ledger<FrontendKey, FrontendElements>;
  readonly clusterAddresses: Ledger<IPAddress, true>;
  readonly hairpinAddresses: Ledger<IPAddress, true>;
  readonly staleFlows: Ledger<FrontendKey, true>;
  readonly unexpected: Ledger<string, UnexpectedElement>;
  /** The state that the kernel acknowledged; another object after each {@link readBack}. */
  held: HeldTable;
  /** The held chains and sets that the held frontends lead to. */
  readonly uses: Uses;
  /**
   * @param now milliseconds on a clock that only goes forward.
   * @param isStatic whether a table has a chain or set independent of its frontends.
   */
  constructor(now: () => number, isStatic: (name: string) => boolean) {
    this.uses = new Uses(isStatic, now);
    this.chains = new Ledger({ same: identical, now });
    this.sets = new Ledger({ same: identical, now });
    this.objects = new Ledger({ same: identical, now });
    this.frontends = new Ledger({ same: sameElements, now });
    this.clusterAddresses = new Ledger({ same: identical, now });
    this.hairpinAddresses = new Ledger({ same: identical, now });
    this.staleFlows = new Ledger({ same: identical, now });
    this.unexpected = new Ledger({ same: identical, now });
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
  get isSteady(): boolean {
    const isDue = this.frontends.due().length + this.staleFlows.due().length + this.frontends.damaged.size > 0;
    return !isDue && this.all().every((ledger) => ledger.isSteady);
  }

  /** Whether {@link quarantined} has any. */
  get hasQuarantined(): boolean {
    return this.frontends.quarantined.size + this.staleFlows.quarantined.size > 0;
  }

  /** Frontends that are quarantined, and those of which only the note of their flows is. */
  get quarantined(): readonly QuarantinedFrontend[] {
    const all = new Map([...this.staleFlows.quarantined, ...this.frontends.quarantined]);
    return [...all].map(([frontend, { reason, since, retryAt }]) => ({ frontend, reason, since, retryAt }));
  }

  /** Others wait for it no longer. */
  quarantine(key: FrontendKey, reason: string): void {
    const { frontends, staleFlows } = this;
    frontends.quarantine(key, reason);
    // Its flows are noted in the transaction that removes it.
    if (!staleFlows.quarantined.has(key)) staleFlows.desire(key, staleFlows.acknowledged.get(key));
  }

  /** Sets the note of a frontend's flows quarantined, which is due at once. Whether it was not quarantined before. */
  suspectNote(key: FrontendKey, reason: string): boolean {
    const { staleFlows } = this;
    if (!staleFlows.isPending(key) || staleFlows.quarantined.has(key)) return false;
    staleFlows.quarantine(key, reason);
    staleFlows.retry(key);
    return true;
  }

  markAllUnknown(): void {
    for (const ledger of this.all()) ledger.markAllUnknown();
  }

  /** Notes what a change removed, which nothing else shows later. */
  noteRemoved(table: FamilyTable, change: TableChange): void {
    for (const key of change.frontends) if (table.frontend(key) === undefined) this.frontends.desire(key, undefined);
    for (const kind of ADDRESSES)
      for (const address of change[kind]) if (!table[kind].has(address)) this[kind].desire(address, undefined);
  }

  /** The keys that were pending before a change, and those of the change, in the order of both. */
  pending(change: TableChange): TableKeys {
    const before = [...this.frontends.pending()].filter((key) => !change.frontends.has(key));
    return {
      ...noKeys(),
      frontends: [...before, ...change.frontends],
      clusterAddresses: [...this.clusterAddresses.pending()],
      hairpinAddresses: [...this.hairpinAddresses.pending()],
    };
  }

  /** Addresses as {@link lookAtEverything} decides them for the whole table. */
  lookAtChange(table: FamilyTable, change: TableChange): void {
    for (const kind of ADDRESSES)
      for (const address of change[kind]) if (table[kind].has(address)) this[kind].desire(address, true);
  }

  /** The kernel was seen to hold this and nothing else. */
  readBack(listed: ListedTable): void {
    this.noteDamage(listed);
    this.chains.readBackAll(listed.chains);
    this.sets.readBackAll(listed.sets);
    this.objects.readBackAll(listed.objects);
    this.frontends.readBackAll(listed.frontends);
    this.clusterAddresses.readBackAll(listed.clusterAddresses);
    this.hairpinAddresses.readBackAll(listed.hairpinAddresses);
    this.staleFlows.readBackAll(listed.staleFlows);
    this.unexpected.readBackAll(listed.unexpected);
    this.held = this.acknowledged();
    const { chains, sets, frontends } = this.held;
    this.uses.readBack(frontends.values(), [...chains.keys(), ...sets.keys()]);
  }

  private noteDamage({ frontends: listed }: ListedTable): void {
    const { quarantined, acknowledged } = this.frontends;
    for (const key of quarantined.keys()) {
      const [one, other] = [acknowledged.get(key), listed.get(key)];
      if (one !== other && !(one !== undefined && other !== undefined && sameElements(one, other)))
        this.frontends.damage(key);
    }
  }

  /** The kernel was seen to hold this of a frontend. */
  readBackFrontend(key: FrontendKey, elements: FrontendElements): void {
    const before = this.frontends.acknowledged.get(key);
    this.frontends.readBack(key, elements);
    this.uses.replace(before, this.frontends.acknowledged.get(key));
  }

  /** The table was made anew: of what is held only this is left. */
  keepOnly(keys: TableKeys): void {
    const { held } = this;
    const kept = emptyTable();
    keep(kept.chains, held.chains, keys.chains);
    keep(kept.sets, held.sets, keys.sets);
    keep(kept.objects, held.objects, keys.objects);
    keep(kept.frontends, held.frontends, keys.frontends);
    keep(kept.clusterAddresses, held.clusterAddresses, keys.clusterAddresses);
    keep(kept.hairpinAddresses, held.hairpinAddresses, keys.hairpinAddresses);
    keep(kept.staleFlows, held.staleFlows, keys.staleFlows);
    this.readBack(kept);
  }

  /**
   * All that is wanted, and all that the kernel has beyond it. If the latter is kept, only its pending part. Addresses are
   * decided here; frontends are named in the order in which they are to be looked at.
   *
   * @param pending before the kernel's table was listed.
   * @param keeps whether objects that the table does not name are left alone.
   */
  lookAtEverything(
    table: FamilyTable,
    pending: TableKeys,
    keeps: boolean,
  ): { readonly frontends: ReadonlySet<FrontendKey>; readonly leftAlone: boolean } {
    let leftAlone = false;
    for (const kind of ADDRESSES) {
      const ledger = this[kind];
      const named = new Set(pending[kind]);
      for (const address of [...ledger.acknowledged.keys(), ...ledger.pending()]) {
        if (table[kind].has(address)) continue;
        const kept = keeps && !named.has(address) ? ledger.acknowledged.get(address) : undefined;
        ledger.desire(address, kept);
        leftAlone ||= kept !== undefined;
      }
      for (const address of table[kind]) ledger.desire(address, true);
    }
    const { frontends, staleFlows } = this.held;
    const looked = new Set([...pending.frontends, ...this.frontends.quarantined.keys()]);
    for (const { key } of table.frontends()) looked.add(key);
    for (const key of [...staleFlows.keys(), ...this.staleFlows.pending()]) if (!frontends.has(key)) looked.add(key);
    if (!keeps) for (const key of frontends.keys()) looked.add(key);
    for (const key of [...(keeps ? frontends.keys() : []), ...this.frontends.pending()]) {
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
      claimOf(this.objects, keys.objects),
      claimOf(this.frontends, keys.frontends),
      claimOf(this.clusterAddresses, keys.clusterAddresses),
      claimOf(this.hairpinAddresses, keys.hairpinAddresses),
      claimOf(this.staleFlows, keys.staleFlows),
      claimOf(this.unexpected, keys.unexpected),
    ];
    const end = (how: keyof TableClaim) => (): void => {
      for (const claim of claims) claim?.[how]();
    };
    const acknowledge = (): void => {
      const { acknowledged } = this.frontends;
      const before = keys.frontends.map((key) => acknowledged.get(key));
      end('acknowledge')();
      for (const [index, key] of keys.frontends.entries()) this.uses.replace(before[index], acknowledged.get(key));
      this.uses.held(keys.chains.filter((name) => this.chains.acknowledged.has(name)));
      this.uses.held(keys.sets.filter((name) => this.sets.acknowledged.has(name)));
    };
    return { acknowledge, refuse: end('refuse'), lose: end('lose') };
  }

  private all(): readonly AnyLedger[] {
    const { chains, sets, objects, frontends, clusterAddresses, hairpinAddresses, staleFlows, unexpected } = this;
    return [chains, sets, objects, frontends, clusterAddresses, hairpinAddresses, staleFlows, unexpected];
  }

  private acknowledged(): HeldTable {
    return {
      chains: this.chains.acknowledged,
      sets: this.sets.acknowledged,
      objects: this.objects.acknowledged,
      frontends: this.frontends.acknowledged,
      clusterAddresses: this.clusterAddresses.acknowledged,
      hairpinAddresses: this.hairpinAddresses.acknowledged,
      staleFlows: this.staleFlows.acknowledged,
      unexpected: this.unexpected.acknowledged,
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
