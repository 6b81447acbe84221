import { messageOf } from '../../base/error-message.js';
import type { Family } from '../../base/ip.js';
import type { RememberedClients } from './affinity/remembered-clients.js';
import { refusedObject } from './blame.js';
import { deleteChain, deleteSet, deleteTimeout, flushChain, flushSet } from './json.js';
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

/** Chains, sets and timeouts that nothing leads to any more. */
export class Unneeded {
  constructor(private readonly parts: UnneededParts) {}

  /**
   * Removes chains, sets and timeouts that nothing leads to any more: ours, another proxy's, or an earlier version's. An object
   * that other software's rule leads to cannot be removed, but does not block the others. The next check finds what remains.
   */
  async remove(names: readonly string[]): Promise<readonly string[]> {
    const { ledger, listings } = this.parts;
    const { chains, sets, timeouts } = ledger;
    const problems: string[] = [];
    for (let start = 0; start < names.length; start += MOST_REMOVED) {
      let left = names.slice(start, start + MOST_REMOVED);
      // The next full sync looks whether it worked; emptying what is empty the kernel does not even count.
      if (left.length > 0) listings.distrust();
      for (let refusals = 0; left.length > 0; refusals++) {
        const refusal = await this.take(left);
        if (refusal === null) break;
        const offending = isRefusal(refusal.error) ? refusedObject(refusal.error) : null;
        const isFound = offending !== null && left.includes(offending) && refusals < MOST_REFUSED;
        const kept = isFound ? [offending] : left;
        left = left.filter((name) => !kept.includes(name));
        // A chain that may have been emptied must not pass for one with its rules. Adding what is there again does no harm.
        for (const name of kept) for (const each of [chains, sets, timeouts]) each.readBack(name, undefined);
        // Whether they are gone is unknown: the next sync compares everything.
        if (!isRefusal(refusal.error)) throw refusal.error;
        problems.push(`could not remove foreign objects (${kept.slice(0, 5).join(', ')}): ${messageOf(refusal.error)}`);
      }
    }
    return problems;
  }

  /** Empties everything first, then deletes: kernels before 6.2 release a map's references only after the transaction. */
  private async take(names: readonly string[]): Promise<{ readonly error: unknown } | null> {
    const { family, ledger, structure, clients, sender, onKeys } = this.parts;
    const { chains, sets, timeouts } = ledger;
    const where = { family: NFT_FAMILY[family], table: TABLE };
    const keys = {
      ...noKeys(),
      chains: names.filter((name) => chains.acknowledged.has(name)),
      sets: names.filter((name) => sets.acknowledged.has(name)),
      timeouts: names.filter((name) => timeouts.acknowledged.has(name)),
    };
    for (const name of keys.chains) chains.desire(name, undefined);
    for (const name of keys.sets) sets.desire(name, undefined);
    for (const name of keys.timeouts) timeouts.desire(name, undefined);
    onKeys(keys);
    ledger.uses.dropped(names);
    structure.forget(names);
    clients.dropped(names);
    try {
      const flushes = [
        ...keys.chains.map((name) => flushChain(where, name)),
        ...keys.sets.map((name) => flushSet(where, name)),
      ];
      if (flushes.length > 0) await sender.transact([{ type: 'commands', commands: flushes }]);
      const deletions = [
        ...keys.chains.map((name) => deleteChain(where, name)),
        ...keys.sets.map((name) => deleteSet(where, name)),
        ...keys.timeouts.map((name) => deleteTimeout(where, name)),
      ];
      await sender.commit({ operations: [{ type: 'commands', commands: deletions }], keys });
      return null;
    } catch (error) {
      return { error };
    }
  }
}
