import type { Family, IPAddress } from '../../base/ip.js';
import type { NftCommand, NftOperation } from '../../native/contract.js';
import { heldClientKeys, isDatagramKey, parseFrontendKey } from '../../plan/frontend-key.js';
import type { FamilyTable, FrontendKey } from '../../plan/types.js';
import type { Ledger } from '../ledger.js';
import { ElementBatches } from './element-batches.js';
import {
  chainsOfFrontend,
  diffFrontend,
  NO_ELEMENTS,
  renderFrontend,
  type FrontendElements,
} from './frontend-elements.js';
import { emptyTable, type HeldTable } from './listing.js';
import { packFrontend, type PackedKey } from './keys.js';
import { SET, staleSet } from './names.js';
import { addressesIn } from './slots.js';
import { type Structure, type StructureChange } from './structure.js';
import { ADDRESSES, noKeys, type TableKeys, type TableLedger } from './table-ledger.js';
import { packedAddress } from '../../base/pack-address.js';

/** One atomic transaction. */
export interface PlannedTransaction {
  readonly operations: readonly NftOperation[];
  /** The keys that it changes, without chains and sets. */
  readonly keys: TableKeys;
}

/** One frontend's way from what the kernel has to what it should have. */
export interface FrontendStep {
  readonly key: FrontendKey;
  readonly current: FrontendElements;
  readonly next: FrontendElements;
}

export interface SyncPlan {
  readonly transactions: readonly PlannedTransaction[];
  /** Chains and sets that they change together: they are as they should be after the last. */
  readonly structure: TableKeys;
  readonly steps: readonly FrontendStep[];
  /** The table is made anew, with all its maps empty. */
  readonly rebuild: boolean;
  readonly elementOperations: number;
  readonly ruleOperations: number;
}

export interface SyncScope {
  /** Frontends that are looked at; those that are quarantined are only desired. */
  readonly frontends: Iterable<FrontendKey>;
  /** Whether they are brought all the same: a retry, with nothing else. */
  readonly alone?: boolean;
  /** The target of the separate frontends, if it is not what is desired of them; absent: what is desired. */
  readonly former?: ReadonlyMap<FrontendKey, FrontendElements>;
  /** Whether all rules are looked at. */
  readonly rules: boolean;
  /** Chains that stay unchanged. */
  readonly leftOut?: ReadonlySet<string>;
}

/**
 * Desires what a table calls for, and answers the operations for what is pending then, in the one order that holds for every
 * transaction:
 *
 * 1. tables, sets, chains, rules of class chains: what elements refer to;
 * 2. deletions of elements, then additions: a key may change its value in between;
 * 3. rules of the skeleton: they send packets to all of the above, so they come last.
 *
 * Unreferenced chains and sets are deleted afterwards, in a transaction of their own. A sync is one transaction, with two
 * exceptions: a frontend that packets go to gets a chain that is not there yet, see {@link leadsAway}, or the transaction
 * exceeds the limit of the socket. Then class chains and frontends are divided among several transactions, each of them
 * whole, and 3 goes with the last.
 */
export function planSync(
  structure: Structure,
  ledger: TableLedger,
  table: FamilyTable,
  scope: SyncScope,
  maxBatch: number,
): SyncPlan {
  const [brought, quarantined] = divide(ledger, scope);
  const { steps, structural } = planStructure(structure, ledger, table, scope, brought);
  const { rebuild, before, after, sets, objects, chains } = structural;
  desireOnly(ledger.sets, sets);
  desireOnly(ledger.objects, objects);
  desireOnly(ledger.chains, chains);
  const restores = scope.former !== undefined;
  for (const { key, next } of restores ? [] : [...steps, ...quarantined.map((key) => step(key, ledger.held, table))])
    ledger.frontends.desire(key, next === NO_ELEMENTS ? undefined : next);
  const builder = new TransactionBuilder(table.family, maxBatch);
  for (const commands of before) builder.run(commands);
  if (!rebuild && leadsAway(steps, ledger.held, chains)) builder.split();
  if (!rebuild) deleteUnexpected(builder, ledger.unexpected);
  for (const { key, current, next } of steps) {
    if (!restores) diffStaleFlows(builder, key, ledger, rebuild, next === NO_ELEMENTS);
    if (current === next || !(rebuild || ledger.frontends.isPending(key))) continue;
    diffFrontend(builder.batches, key, current, next);
    if (!restores) builder.keys.frontends.push(key);
    builder.splitIfFull();
  }
  const kept = keptAddresses(ledger.frontends, table.family, brought);
  const packPair = (address: IPAddress): PackedKey => packedAddress(address).repeat(2);
  diffAddresses(builder, SET.clusterAddresses, 'clusterAddresses', ledger, rebuild, packedAddress, kept);
  diffAddresses(builder, SET.hairpin, 'hairpinAddresses', ledger, rebuild, packPair, kept);
  const transactions = builder.finish(after);
  return {
    transactions,
    structure: { ...noKeys(), sets: [...sets.keys()], objects: [...objects.keys()], chains: [...chains.keys()] },
    steps,
    rebuild,
    elementOperations: builder.elementOperations,
    ruleOperations: before.flat().length + after.length,
  };
}

/** The structure around the frontends, and their steps: from nothing if it cannot be changed in place. */
function planStructure(
  structure: Structure,
  ledger: TableLedger,
  table: FamilyTable,
  scope: SyncScope,
  brought: readonly FrontendKey[],
): { readonly steps: readonly FrontendStep[]; readonly structural: StructureChange } {
  const { rules, leftOut, former } = scope;
  const plan = (from: HeldTable): readonly [readonly FrontendStep[], ReadonlySet<string>] => {
    const steps = brought.map((key) => {
      const next = former?.get(key);
      return { ...step(key, from, table), ...(next === undefined ? {} : { next }) };
    });
    return [steps, classNames(steps, from, rules)];
  };
  const [steps, wanted] = plan(ledger.held);
  const isUsed = (name: string): boolean => ledger.uses.isUsed(name);
  const structural = structure.change(ledger.held, table.node, wanted, isUsed, rules, leftOut);
  if (!structural.rebuild) return { steps, structural };
  for (const kind of ADDRESSES)
    for (const address of ledger.held[kind].keys())
      if (!table[kind].has(address)) ledger[kind].desire(address, undefined);
  const [all, needed] = plan(emptyTable());
  return { steps: all, structural: structure.anew(table.node, needed) };
}

/** Where a frontend's packets are led. One without affinity before loses nothing to a chain that is still empty. */
const VERDICTS = ['chain', 'finds', 'findsLocal', 'remembers'] as const;

/**
 * Whether these steps make a chain, and lead a frontend's packets to it from another. A packet on its way during a commit
 * takes all rules from before it, but a map's element from after it (kernel 6.18: `nft_do_chain` reads the generation once,
 * each lookup anew). A chain made in the same transaction has no rules in the generation before: the packet would fall
 * through it, and be refused. So such a chain is made a transaction earlier.
 */
function leadsAway(steps: readonly FrontendStep[], held: HeldTable, made: ReadonlyMap<string, string>): boolean {
  const isNew = (chain: string | null): boolean => chain !== null && made.has(chain) && !held.chains.has(chain);
  return steps.some(({ current, next }) => VERDICTS.some((field) => current[field] !== null && isNew(next[field])));
}

/** Those that are brought, and those that are only desired. */
function divide(
  ledger: TableLedger,
  { frontends, alone = false }: SyncScope,
): readonly [readonly FrontendKey[], readonly FrontendKey[]] {
  const all = [...frontends];
  const { quarantined } = ledger.frontends;
  if (alone || quarantined.size === 0) return [all, []];
  return [all.filter((key) => !quarantined.has(key)), all.filter((key) => quarantined.has(key))];
}

/**
 * Addresses of frontends that the kernel holds, and that are pending or quarantined but not part of this sync: they stay as
 * long as those frontends. Computed on first use.
 */
function keptAddresses(ledger: TableLedger['frontends'], family: Family, brought: readonly FrontendKey[]): IsKept {
  let kept: ReadonlySet<IPAddress> | null = null;
  return (address) => (kept ??= heldByOthers(ledger, family, new Set(brought))).has(address);
}

type IsKept = (address: IPAddress) => boolean;

function heldByOthers(
  ledger: TableLedger['frontends'],
  family: Family,
  brought: ReadonlySet<FrontendKey>,
): ReadonlySet<IPAddress> {
  const addresses = new Set<IPAddress>();
  for (const frontend of [...ledger.pending(), ...ledger.quarantined.keys()]) {
    const elements = ledger.acknowledged.get(frontend);
    if (elements === undefined || brought.has(frontend)) continue;
    const { address } = parseFrontendKey(frontend);
    if (address !== null) addresses.add(address);
    for (const slots of [elements.endpoints, elements.localEndpoints])
      for (const endpoint of addressesIn(family, slots)) addresses.add(endpoint);
  }
  return addresses;
}

/** Makes this desired; everything else stays as the kernel holds it. */
function desireOnly(ledger: Ledger<string, string>, wanted: ReadonlyMap<string, string>): void {
  for (const name of ledger.pending()) if (!wanted.has(name)) ledger.desire(name, ledger.acknowledged.get(name));
  for (const [name, text] of wanted) ledger.desire(name, text);
}

function step(key: FrontendKey, kernel: HeldTable, table: FamilyTable): FrontendStep {
  const current = kernel.frontends.get(key) ?? NO_ELEMENTS;
  const plan = table.frontend(key);
  const next = plan === undefined ? NO_ELEMENTS : renderFrontend(plan, current, heldClientKeys(plan, table));
  return { key, current, next };
}

/** Class chains needed: by the steps, and by everything else when the rules of all of them are looked at. */
function classNames(steps: readonly FrontendStep[], kernel: HeldTable, rules: boolean): ReadonlySet<string> {
  const names = new Set<string>();
  for (const { next } of steps) for (const chain of chainsOfFrontend(next)) names.add(chain);
  for (const elements of rules ? others(steps, kernel) : [])
    for (const chain of chainsOfFrontend(elements)) names.add(chain);
  return names;
}

/** Frontends that this sync does not look at. */
function* others(steps: readonly FrontendStep[], kernel: HeldTable): IterableIterator<FrontendElements> {
  const looked = new Set(steps.map(({ key }) => key));
  for (const [key, elements] of kernel.frontends) if (!looked.has(key)) yield elements;
}

function deleteUnexpected(builder: TransactionBuilder, unexpected: TableLedger['unexpected']): void {
  for (const name of unexpected.pending()) {
    const element = unexpected.acknowledged.get(name);
    if (element === undefined) continue;
    builder.batches.delete(element.set, element.key);
    builder.keys.unexpected.push(name);
    builder.splitIfFull();
  }
}

/**
 * A gone UDP or SCTP frontend leaves flows behind; the table remembers it until conntrack is clean.
 *
 * @param anew whether nothing is left of what is held.
 */
function diffStaleFlows(
  builder: TransactionBuilder,
  key: FrontendKey,
  { held, staleFlows }: TableLedger,
  anew: boolean,
  gone: boolean,
): void {
  if (!isDatagramKey(key)) return;
  // A process that has just started desires nothing of what it reads back, and what it desires may have been removed externally.
  const desired = staleFlows.desired(key) === true;
  const noted = desired || (held.staleFlows.has(key) && !staleFlows.quarantined.has(key));
  const wanted = gone && (held.frontends.has(key) || noted);
  staleFlows.desire(key, wanted ? true : undefined);
  // Quarantined it goes by itself, and so is not in the frontend's way.
  if (wanted === (!anew && held.staleFlows.has(key)) || staleFlows.quarantined.has(key)) return;
  if (wanted) builder.batches.add(staleSet(key), packFrontend(key));
  else builder.batches.delete(staleSet(key), packFrontend(key));
  builder.keys.staleFlows.push(key);
}

/**
 * @param anew whether nothing is left of what is held.
 * @param isKept which addresses do not go yet.
 */
function diffAddresses(
  builder: TransactionBuilder,
  set: string,
  kind: 'clusterAddresses' | 'hairpinAddresses',
  ledger: TableLedger,
  anew: boolean,
  pack: (address: IPAddress) => PackedKey,
  isKept: IsKept,
): void {
  const addresses = ledger[kind];
  const held = addresses.acknowledged;
  for (const address of anew ? new Set([...held.keys(), ...addresses.pending()]) : addresses.pending()) {
    // The desired value of a pending key differs from the held one.
    const wanted = anew ? addresses.desired(address) === true : !held.has(address);
    if (!wanted && (anew || isKept(address))) continue;
    if (wanted) builder.batches.add(set, pack(address));
    else builder.batches.delete(set, pack(address));
    builder.keys[kind].push(address);
    builder.splitIfFull();
  }
}

type Commands = readonly NftCommand[];

/** Bytes that a command takes on the wire, roughly, for each of its characters as JSON. */
const BYTES_PER_CHARACTER = 1.5;

/** Divides a sync into transactions that fit the socket. */
class TransactionBuilder {
  batches: ElementBatches;
  /** To be added to with the batches. */
  keys = noKeys();
  elementOperations = 0;
  private readonly transactions: PlannedTransaction[] = [];
  private commands: NftCommand[] = [];
  private commandBytes = 0;

  constructor(
    private readonly family: Family,
    private readonly maxBatch: number,
  ) {
    this.batches = new ElementBatches(family);
  }

  /** Commands that come before all elements added so far and from now on; in one transaction with each other. */
  run(commands: Commands): void {
    if (commands.length === 0) return;
    // Not as arguments of one call: there are hundreds of thousands where tens of thousands of frontends have affinity.
    for (const command of commands) this.commands.push(command);
    this.commandBytes += JSON.stringify(commands).length * BYTES_PER_CHARACTER;
    this.splitIfFull();
  }

  /** Operations from now on are in another transaction. */
  split(): void {
    if (this.commands.length > 0 || this.batches.count > 0) this.close([]);
  }

  /** Call between frontends, and between other parts that can come or go alone. Half the room is left for estimation errors. */
  splitIfFull(): void {
    if (this.batches.bytes + this.commandBytes > this.maxBatch / 2) this.split();
  }

  finish(after: Commands): readonly PlannedTransaction[] {
    if (this.commands.length > 0 || after.length > 0 || this.batches.count > 0) this.close(after);
    return this.transactions;
  }

  private close(after: Commands): void {
    const operations: NftOperation[] = [];
    if (this.commands.length > 0) operations.push({ type: 'commands', commands: this.commands });
    operations.push(...this.batches.operations());
    if (after.length > 0) operations.push({ type: 'commands', commands: after });
    this.transactions.push({ operations, keys: this.keys });
    this.elementOperations += this.batches.count;
    this.batches = new ElementBatches(this.family);
    this.commands = [];
    this.commandBytes = 0;
    this.keys = noKeys();
  }
}
