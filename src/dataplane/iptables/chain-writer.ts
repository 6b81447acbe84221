import type { IptablesAddon, IptablesOperation, IptablesTable } from '../../native/contract.js';
import type { SyncReport } from '../contract.js';
import type { ChainLedger } from '../xtables/chain-ledger.js';
import { addRules, countRules, statesOf, type RuleCounts } from '../xtables/chain-states.js';
import { refusedTable } from '../xtables/failure.js';
import { chainOperation, deleteOperation } from '../xtables/operations.js';
import { chainId, type Chain, type ChainId } from '../xtables/rules.js';
import type { Tables } from '../xtables/tables.js';
import type { Ruleset } from './ruleset.js';

/** What streams that the kernel took were made of. */
export interface Sent extends Pick<SyncReport, 'transactions' | 'ruleOperations' | 'bytes'> {
  readonly rules: RuleCounts;
}

export const NOTHING_SENT: Sent = { transactions: 0, ruleOperations: 0, bytes: 0, rules: { filter: 0, nat: 0 } };

/** A stream that was refused for what it says. */
export interface Refused {
  readonly error: unknown;
  /** Tables before it were written. */
  readonly table: IptablesTable;
}

export interface ChainWriterOptions {
  readonly addon: Pick<IptablesAddon, 'iptablesDigests'>;
  readonly tables: Tables;
  readonly ruleset: Ruleset;
  readonly chains: ChainLedger;
}

/** Brings the chains of one family from the ruleset to the kernel. */
export class ChainWriter {
  private made = new Map<ChainId, Chain>();
  private tally = NOTHING_SENT;

  constructor(private readonly options: ChainWriterOptions) {}

  /** What was sent since the last call. */
  takeSent(): Sent {
    const { tally } = this;
    this.tally = NOTHING_SENT;
    return tally;
  }

  /** Makes what was touched, so that it is owed as far as the kernel holds something else. */
  async look(): Promise<void> {
    const { addon, tables, ruleset, chains } = this.options;
    const touched = ruleset.touched();
    const states = await statesOf(addon, tables.family, touched.chains);
    for (const [id, state] of states) chains.desire(id, state);
    for (const id of touched.gone) chains.desire(id, undefined);
    touched.noted();
    this.made = new Map(touched.chains.map((chain) => [chainId(chain.table, chain.name), chain]));
  }

  /**
   * Sends what is owed, with operations on the chains of others, in one stream. Null: the kernel holds it. Rejects when nobody knows how far it came.
   *
   * @param removing whether chains that should not be there go with it.
   */
  async send(removing: boolean, others: readonly IptablesOperation[] = []): Promise<Refused | null> {
    const { ruleset, chains, tables } = this.options;
    const ids = chains.owed('written');
    const removed = removing ? chains.owed('removed') : [];
    const made = ids.flatMap((id) => this.made.get(id) ?? []);
    const written = [...made, ...ruleset.make(ids.filter((id) => !this.made.has(id)))];
    const operations = [...written.map(chainOperation), ...removed.map(deleteOperation), ...others];
    if (operations.length === 0) return null;
    const claim = chains.claim([...ids, ...removed]);
    try {
      const { bytes, rules } = await tables.restore(operations);
      claim.acknowledge();
      const { tally } = this;
      this.tally = {
        transactions: tally.transactions + 1,
        ruleOperations: tally.ruleOperations + rules,
        bytes: tally.bytes + bytes,
        rules: addRules(tally.rules, countRules(written, tables.family)),
      };
      return null;
    } catch (error) {
      const table = refusedTable(error, [...new Set(operations.map((operation) => operation.table))]);
      if (table === null) {
        claim.lose();
        throw error;
      }
      claim.refuse(table);
      return { error, table };
    }
  }

  /** Removes what a complete ruleset does not need; forwarding does not depend on it. Answers what did not work. */
  async tidyUp(): Promise<readonly string[]> {
    const { chains, tables } = this.options;
    const ids = chains.owed('removed');
    if (ids.length === 0) return [];
    try {
      await tables.restore(ids.map(deleteOperation));
    } catch (error) {
      // The next listing shows what is left.
      chains.forget(ids);
      const reason = error instanceof Error ? error.message : String(error);
      return [`cannot remove chains that are no longer used: ${reason}`];
    }
    chains.claim(ids).acknowledge();
    return [];
  }
}
