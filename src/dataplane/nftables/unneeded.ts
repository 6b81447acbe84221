import { messageOf } from '../../base/error-message.js';
import type { Family } from '../../base/ip.js';
import type { RememberedClients } from './affinity/remembered-clients.js';
import { refusedObject } from './blame.js';
import { deleteChain, deleteSet, deleteObject, flushChain, flushSet } from './json.js';
import type { Listings } from './listings.js';
import { NFT_FAMILY, TABLE } from './names.js';
import { isRefusal, type Sender } from './sender.js';
import type { Structure } from './structure.js';
import { noKeys, type TableKeys, type TableLedger } from './table-ledger.js';

/** So many chains and sets one transaction removes. */
const MOST_REMOVED = 512;
/** So many that the kernel refuses to remove are found one by one. */
const MOST_REFUSED = 8;

interface UnneededParts {
  readonly family: Family;
  readonly structure: Structure;
  readonly ledger: TableLedger;
  readonly clients: Pick<RememberedClients, 'dropped'>;
  readonly sender: Sender;
  readonly listings: Pick<Listings, 'distrust'>;
  /** Called with what is going to change. */
  readonly onKeys: (keys: TableKeys) => void;
}

/** Chains, sets and other objects that nothing leads to any more. */
export class Unneeded {
  constructor(private readonly parts: UnneededParts) {}

  /**
   * Removes chains, sets and other objects that nothing leads to any more: ours, another proxy's, or an earlier version's. All of
   * them are emptied before the first is deleted: they may lead to each other, and kernels before 6.2 release a map's
   * references only after the transaction. An object that other software's rule leads to cannot be removed, but does not
   * block the others. The next check finds what remains.
   */
  async remove(names: readonly string[]): Promise<readonly string[]> {
    if (names.length === 0) return [];
    // The next full sync looks whether it worked; emptying what is empty the kernel does not even count.
    this.parts.listings.distrust();
    const problems: string[] = [];
    const emptied: (readonly string[])[] = [];
    for (let start = 0; start < names.length; start += MOST_REMOVED) {
      const part = names.slice(start, start + MOST_REMOVED);
      const refusal = await refusalOf(() => this.empty(part));
      if (refusal === null) emptied.push(part);
      else problems.push(this.keep(part, refusal));
    }
    for (const part of emptied) problems.push(...(await this.delete(part)));
    return problems;
  }

  private async empty(names: readonly string[]): Promise<void> {
    const { family, ledger, structure, clients, sender, onKeys } = this.parts;
    const { chains, sets, objects } = ledger;
    const keys = this.keysOf(names);
    for (const name of keys.chains) chains.desire(name, undefined);
    for (const name of keys.sets) sets.desire(name, undefined);
    for (const name of keys.objects) objects.desire(name, undefined);
    onKeys(keys);
    ledger.uses.dropped(names);
    structure.forget(names);
    clients.dropped(names);
    const where = { family: NFT_FAMILY[family], table: TABLE };
    const commands = [
      ...keys.chains.map((name) => flushChain(where, name)),
      ...keys.sets.map((name) => flushSet(where, name)),
    ];
    const claim = ledger.claim(keys);
    try {
      if (commands.length > 0) await sender.transact([{ type: 'commands', commands }]);
    } finally {
      // Empty it is not what was acknowledged, and whoever lists it before it is deleted must not take that for another's work.
      claim.lose();
    }
  }

  /** Deletes all but what the kernel refuses to delete. */
  private async delete(names: readonly string[]): Promise<readonly string[]> {
    const { family, sender } = this.parts;
    const { objects } = this.parts.ledger;
    const where = { family: NFT_FAMILY[family], table: TABLE };
    const problems: string[] = [];
    let left = names;
    for (let refusals = 0; left.length > 0; refusals++) {
      const keys = this.keysOf(left);
      const commands = [
        ...keys.chains.map((name) => deleteChain(where, name)),
        ...keys.sets.map((name) => deleteSet(where, name)),
        ...keys.objects.map((name) => deleteObject(where, name, objects.acknowledged.get(name))),
      ];
      const refusal = await refusalOf(() => sender.commit({ operations: [{ type: 'commands', commands }], keys }));
      if (refusal === null) break;
      const offending = refusedObject(refusal);
      const isFound = offending !== null && left.includes(offending) && refusals < MOST_REFUSED;
      const kept = isFound ? [offending] : left;
      left = left.filter((name) => !kept.includes(name));
      problems.push(this.keep(kept, refusal));
    }
    return problems;
  }

  private keysOf(names: readonly string[]): TableKeys {
    const { chains, sets, objects } = this.parts.ledger;
    return {
      ...noKeys(),
      chains: names.filter((name) => chains.acknowledged.has(name)),
      sets: names.filter((name) => sets.acknowledged.has(name)),
      objects: names.filter((name) => objects.acknowledged.has(name)),
    };
  }

  /** A chain that may have been emptied must not pass for one with its rules. Adding what is there again does no harm. */
  private keep(names: readonly string[], refusal: unknown): string {
    const { chains, sets, objects } = this.parts.ledger;
    for (const name of names) for (const each of [chains, sets, objects]) each.readBack(name, undefined);
    return `could not remove foreign objects (${names.slice(0, 5).join(', ')}): ${messageOf(refusal)}`;
  }
}

/** What the kernel refused; null: it did the work. After any other failure the next sync compares everything. */
async function refusalOf(work: () => Promise<unknown>): Promise<unknown> {
  try {
    await work();
    return null;
  } catch (error) {
    if (!isRefusal(error)) throw error;
    return error;
  }
}
