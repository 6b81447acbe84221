import type { Family, IPAddress } from '../../base/ip.js';
import type { NftCommand, NftOperation } from '../../native/contract.js';
import { heldClientKeys } from '../../plan/frontend-key.js';
import type { AddressSet, FamilyTable, FrontendKey } from '../../plan/types.js';
import { ElementBatches } from './element-batches.js';
import {
  chainsOfFrontend,
  diffFrontend,
  NO_ELEMENTS,
  renderFrontend,
  timeoutsOfFrontend,
  type FrontendElements,
} from './frontend-elements.js';
import { emptyKernelTable, type KernelTable } from './kernel-table.js';
import { packAddress, packFrontend, type PackedKey } from './keys.js';
import { SET, staleSet } from './names.js';
import type { Pending } from './pending.js';
import { timeoutsOf, type Structure } from './structure.js';

/** One atomic transaction, and what the kernel is known to hold once it was acknowledged. */
export interface PlannedTransaction {
  readonly operations: readonly NftOperation[];
  acknowledge(kernel: KernelTable): void;
}

/** One frontend's way from what the kernel has to what it should have. */
export interface FrontendStep {
  readonly key: FrontendKey;
  readonly current: FrontendElements;
  readonly next: FrontendElements;
}

export interface SyncPlan {
  readonly transactions: readonly PlannedTransaction[];
  readonly steps: readonly FrontendStep[];
  /** The table is made anew, with all its maps empty. */
  readonly rebuild: boolean;
  readonly elementOperations: number;
  readonly ruleOperations: number;
}

/**
 * The operations of one sync, in the one order that holds for every transaction:
 *
 * 1. tables, sets, chains, rules of class chains: what elements refer to;
 * 2. deletions of elements, then additions: a key may change its value in between;
 * 3. rules of the skeleton: they send packets to all of the above, so they come last.
 *
 * Deleting chains and sets that nothing refers to any more is a transaction of its own afterwards. A sync is one transaction unless it exceeds
 * what the socket takes; then class chains and frontends are divided among several, each of them whole, and 3 goes with the last.
 *
 * @param tidy whether all rules are looked at, and nothing is kept for affinity timeouts that no frontend has.
 */
export function planSync(
  structure: Structure,
  kernel: KernelTable,
  table: FamilyTable,
  pending: Pending,
  tidy: boolean,
  maxBatch: number,
): SyncPlan {
  const render = (from: KernelTable): FrontendStep[] => [...pending.frontends].map((key) => step(key, from, table));
  let from = kernel;
  let steps = render(from);
  let structural = structure.change(
    from,
    table.node,
    classNames(steps, from, pending),
    timeouts(steps, from, tidy),
    pending.rules || tidy,
  );
  const { rebuild } = structural;
  if (rebuild) {
    from = emptyKernelTable();
    steps = render(from);
    structural = structure.anew(table.node, classNames(steps, from, pending), timeouts(steps, from, tidy));
  }
  const { before, after, sets, chains } = structural;
  const builder = new TransactionBuilder(table.family, maxBatch);
  builder.onAcknowledge((held) => {
    if (rebuild) clearKernel(held);
    for (const [name, text] of sets) held.sets.set(name, text);
    for (const [name, text] of chains) held.chains.set(name, text);
  });
  for (const commands of before) builder.run(commands);
  // First, so that no range of ours meets one of these.
  deleteStrays(builder, from);
  for (const { key, current, next } of steps) {
    diffStaleFlows(builder, key, kernel, from, next === NO_ELEMENTS);
    if (current === next) continue;
    diffFrontend(builder.batches, key, current, next);
    builder.onAcknowledge((held) => {
      if (next === NO_ELEMENTS) held.frontends.delete(key);
      else held.frontends.set(key, next);
    });
    builder.splitIfFull();
  }
  diffAddresses(
    builder,
    SET.clusterAddresses,
    pending.clusterAddresses,
    table.clusterAddresses,
    (held) => held.clusterAddresses,
    from,
    packAddress,
  );
  diffAddresses(
    builder,
    SET.hairpin,
    pending.hairpinAddresses,
    table.hairpinAddresses,
    (held) => held.hairpinAddresses,
    from,
    (address) => packAddress(address).repeat(2),
  );
  const transactions = builder.finish(after);
  return {
    transactions,
    steps,
    rebuild,
    elementOperations: builder.elementOperations,
    ruleOperations: before.flat().length + after.length,
  };
}

function step(key: FrontendKey, kernel: KernelTable, table: FamilyTable): FrontendStep {
  const current = kernel.frontends.get(key) ?? NO_ELEMENTS;
  const plan = table.frontend(key);
  const next = plan === undefined ? NO_ELEMENTS : renderFrontend(plan, current, heldClientKeys(plan, table));
  return { key, current, next };
}

/** Class chains needed: by what is pending, and by everything else when the rules of all of them are looked at. */
function classNames(steps: readonly FrontendStep[], kernel: KernelTable, pending: Pending): ReadonlySet<string> {
  const names = new Set<string>();
  for (const { next } of steps) for (const chain of chainsOfFrontend(next)) names.add(chain);
  if (pending.rules) {
    for (const [key, elements] of kernel.frontends)
      if (!pending.frontends.has(key)) for (const chain of chainsOfFrontend(elements)) names.add(chain);
  }
  return names;
}

/** Affinity timeouts in use; those no longer used only go when the table is tidied up. */
function timeouts(steps: readonly FrontendStep[], kernel: KernelTable, tidy: boolean): readonly number[] {
  const seconds = new Set(tidy ? [] : timeoutsOf(kernel));
  for (const { next } of steps) for (const timeout of timeoutsOfFrontend(next)) seconds.add(timeout);
  // Frontends left alone.
  const looked = new Set(steps.map(({ key }) => key));
  for (const [key, elements] of tidy ? kernel.frontends : []) {
    if (!looked.has(key)) for (const timeout of timeoutsOfFrontend(elements)) seconds.add(timeout);
  }
  return [...seconds].sort((one, other) => one - other);
}

function clearKernel(kernel: KernelTable): void {
  for (const part of [
    kernel.chains,
    kernel.sets,
    kernel.frontends,
    kernel.clusterAddresses,
    kernel.hairpinAddresses,
    kernel.staleFlows,
  ]) {
    part.clear();
  }
  kernel.strays.length = 0;
}

function deleteStrays(builder: TransactionBuilder, from: KernelTable): void {
  for (const stray of from.strays) {
    if (stray.keyEnd === null) builder.batches.delete(stray.set, stray.key);
    else builder.batches.deleteRange(stray.set, stray.key, stray.keyEnd);
    builder.onAcknowledge((held) => held.strays.shift());
    builder.splitIfFull();
  }
}

/**
 * A gone UDP or SCTP frontend leaves flows behind; the table remembers it until conntrack is clean.
 *
 * @param listed what was in the kernel, @param from what is left of it: nothing, when the table is made anew.
 */
function diffStaleFlows(
  builder: TransactionBuilder,
  key: FrontendKey,
  listed: KernelTable,
  from: KernelTable,
  gone: boolean,
): void {
  if (key.endsWith('/TCP')) return;
  const set = staleSet(key);
  const wanted = gone && (listed.frontends.has(key) || listed.staleFlows.has(key));
  const held = from.staleFlows.has(key);
  if (wanted && !held) {
    builder.batches.add(set, packFrontend(key));
    builder.onAcknowledge((kernel) => kernel.staleFlows.add(key));
  } else if (!wanted && held) {
    builder.batches.delete(set, packFrontend(key));
    builder.onAcknowledge((kernel) => kernel.staleFlows.delete(key));
  }
}

function diffAddresses(
  builder: TransactionBuilder,
  set: string,
  pending: ReadonlySet<IPAddress>,
  desired: AddressSet,
  heldBy: (kernel: KernelTable) => Set<IPAddress>,
  from: KernelTable,
  pack: (address: IPAddress) => PackedKey,
): void {
  for (const address of pending) {
    const held = heldBy(from).has(address);
    if (desired.has(address) === held) continue;
    if (held) {
      builder.batches.delete(set, pack(address));
      builder.onAcknowledge((kernel) => heldBy(kernel).delete(address));
    } else {
      builder.batches.add(set, pack(address));
      builder.onAcknowledge((kernel) => heldBy(kernel).add(address));
    }
    builder.splitIfFull();
  }
}

type Acknowledge = (kernel: KernelTable) => void;

type Commands = readonly NftCommand[];

/** Bytes that a command takes on the wire, roughly, for each of its characters as JSON. */
const BYTES_PER_CHARACTER = 1.5;

/** Divides a sync into transactions that fit the socket. */
class TransactionBuilder {
  batches: ElementBatches;
  elementOperations = 0;
  private readonly transactions: PlannedTransaction[] = [];
  private commands: NftCommand[] = [];
  private commandBytes = 0;
  private acknowledgements: Acknowledge[] = [];

  constructor(
    private readonly family: Family,
    private readonly maxBatch: number,
  ) {
    this.batches = new ElementBatches(family);
  }

  onAcknowledge(acknowledge: Acknowledge): void {
    this.acknowledgements.push(acknowledge);
  }

  /** Commands that come before all elements added so far and from now on; in one transaction with each other. */
  run(commands: Commands): void {
    this.commands.push(...commands);
    this.commandBytes += JSON.stringify(commands).length * BYTES_PER_CHARACTER;
    this.splitIfFull();
  }

  /** Call between frontends, and between what else can come or go by itself. Half the room is left to whatever the estimate missed. */
  splitIfFull(): void {
    if (this.batches.bytes + this.commandBytes > this.maxBatch / 2) this.close([]);
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
    const acknowledgements = this.acknowledgements;
    this.transactions.push({
      operations,
      acknowledge: (kernel) => {
        for (const acknowledge of acknowledgements) acknowledge(kernel);
      },
    });
    this.elementOperations += this.batches.count;
    this.batches = new ElementBatches(this.family);
    this.commands = [];
    this.commandBytes = 0;
    this.acknowledgements = [];
  }
}
