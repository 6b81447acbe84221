import type { IptablesAddon, IptablesOperation, IptablesTable } from '../../native/contract.js';
import { isNativeError } from '../../native/errors.js';
import type { SyncReport } from '../contract.js';
import type { ChainLedger } from '../xtables/chain-ledger.js';
import { addRules, countRules, statesOf, type RuleCounts } from '../xtables/chain-states.js';
import { reasonOf, refusedTable } from '../xtables/failure.js';
import { chainOperation, deleteOperation, nameOf, tableOf } from '../xtables/operations.js';
import { chainId, type Chain, type ChainId } from '../xtables/rules.js';
import type { Tables } from '../xtables/tables.js';
import { CHAIN, hashIn, isFirewallChain, TRIAL } from './names.js';
import type { Ruleset } from './ruleset.js';

/** The content of streams that the kernel took. */
export interface SentStreams extends Pick<SyncReport, 'transactions' | 'ruleOperations' | 'bytes'> {
  readonly rules: RuleCounts;
}

/** So many chains that cannot be removed are found one by one. */
const MOST_REFUSED = 8;

const NOTHING_SENT: SentStreams = { transactions: 0, ruleOperations: 0, bytes: 0, rules: { filter: 0, nat: 0 } };

/** A stream that was refused for its content. */
export interface RefusedStream {
  readonly error: unknown;
  /** Tables before it were written. */
  readonly table: IptablesTable;
}

export interface Stream {
  /** Whether chains that should not be there go with it. */
  readonly removing: boolean;
  /** Operations on chains of others. */
  readonly others: readonly IptablesOperation[];
  /** Chains that are sent although they are not pending. */
  readonly also: readonly ChainId[];
  /** Groups whose own chains are left unchanged. */
  readonly except: ReadonlySet<string>;
}

interface ChainWriterOptions {
  readonly addon: Pick<IptablesAddon, 'iptablesDigests'>;
  readonly tables: Tables;
  readonly ruleset: Ruleset;
  readonly chains: ChainLedger;
  /** Whether mode ipvs translates until nat is written. */
  readonly followsIpvs: () => boolean;
}

/** Brings the chains of one family from the ruleset to the kernel. */
export class ChainWriter {
  private made = new Map<ChainId, Chain>();
  private tally = NOTHING_SENT;

  constructor(private readonly options: ChainWriterOptions) {}

  /** Takes the counts of what was sent since the last call. */
  takeSent(): SentStreams {
    const { tally } = this;
    this.tally = NOTHING_SENT;
    return tally;
  }

  /** Makes what was touched, so that it is pending as far as the kernel holds something else. */
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
   * Sends what is pending. Null: the kernel holds it. Rejects when it is unknown how far it came.
   *
   * Mode ipvs may translate until nat is written. Then the rules that drop untranslated packets to load balancers follow in a
   * stream of their own: the packets of mode ipvs are untranslated, and its rules admit them by source until then.
   */
  async send(stream: Stream): Promise<RefusedStream | null> {
    if (!this.options.followsIpvs()) return await this.sendPart(stream, () => true);
    const { others, also } = stream;
    const first = { ...stream, others: others.filter((operation) => !leadsToFirewall(operation)) };
    const refused = await this.sendPart(first, (id) => !isFirewall(id));
    if (refused !== null) return refused;
    const rest = { ...stream, others: others.filter(leadsToFirewall), also: also.filter(isFirewall) };
    return await this.sendPart(rest, isFirewall);
  }

  private async sendPart(
    { removing, others, also, except }: Stream,
    isOf: (id: ChainId) => boolean,
  ): Promise<RefusedStream | null> {
    const { ruleset, chains, tables } = this.options;
    const isSent = (id: ChainId): boolean => isOf(id) && (except.size === 0 || !except.has(hashIn(id) ?? ''));
    const ids = [...new Set([...chains.pending('written').filter(isSent), ...also])];
    const removed = removing ? chains.pending('removed').filter(isSent) : [];
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
      const refused = refusalOf(error, operations);
      if (refused === null) {
        claim.lose();
        throw error;
      }
      claim.refuse(refused.table);
      return refused;
    }
  }

  /** Writes rules where no packet comes by; null: they can be written. */
  async tryRules(rules: Readonly<Record<keyof typeof TRIAL, readonly string[]>>): Promise<RefusedStream | null> {
    const operations = TRIAL_TABLES.map((table) =>
      chainOperation({ table, name: TRIAL[table], rules: rules[table], owner: null }),
    );
    try {
      await this.options.tables.restore(operations);
      return null;
    } catch (error) {
      const refused = refusalOf(error, operations);
      if (refused === null) throw error;
      return refused;
    }
  }

  async endTrial(): Promise<void> {
    const removals = TRIAL_TABLES.map((table) => deleteOperation(chainId(table, TRIAL[table])));
    await this.options.tables.restore(removals);
  }

  /**
   * Removes what a complete ruleset does not need; forwarding does not depend on it. A chain that other software's rule leads to
   * cannot be removed. It is emptied before the others are removed, so that it does not keep those that it leads to. Answers
   * what did not work.
   */
  async tidyUp(): Promise<readonly string[]> {
    const { chains, tables } = this.options;
    const problems: string[] = [];
    const kept: ChainId[] = [];
    let left = chains.pending('removed');
    while (left.length > 0) {
      try {
        await tables.restore([...kept.map(emptyOperation), ...left.map(deleteOperation)]);
        chains.claim(left).acknowledge();
        break;
      } catch (error) {
        const offending = kept.length < MOST_REFUSED ? left.find((id) => isRemovalOf(id, error)) : undefined;
        const refused = offending === undefined ? left : [offending];
        // The next listing shows what is left.
        chains.forget(refused);
        if (offending !== undefined) kept.push(offending);
        left = offending === undefined ? [] : left.filter((id) => id !== offending);
        problems.push(`cannot remove chains that are no longer used: ${reasonOf(error)}`);
      }
    }
    return problems;
  }
}

function emptyOperation(id: ChainId): IptablesOperation {
  return chainOperation({ table: tableOf(id), name: nameOf(id), rules: [], owner: null });
}

/** Whether a stream was refused because of the removal of this chain. */
function isRemovalOf(id: ChainId, error: unknown): boolean {
  return isNativeError(error) && error.object === `${tableOf(id)}: -X ${nameOf(id)}`;
}

function isFirewall(id: ChainId): boolean {
  return tableOf(id) === 'filter' && isFirewallChain(nameOf(id));
}

function leadsToFirewall(operation: IptablesOperation): boolean {
  return operation.type === 'rule' && operation.text.endsWith(` -j ${CHAIN.proxyFirewall}`);
}

const TRIAL_TABLES = ['filter', 'nat'] as const;

/** Null: it failed for a reason other than its content, and it is unknown how far it came. */
function refusalOf(error: unknown, operations: readonly IptablesOperation[]): RefusedStream | null {
  const table = refusedTable(error, [...new Set(operations.map((operation) => operation.table))]);
  return table === null ? null : { error, table };
}
