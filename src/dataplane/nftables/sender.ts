import type { Family } from '../../base/ip.js';
import type { NftablesAddon, NftAck, NftOperation } from '../../native/contract.js';
import { isNativeError } from '../../native/errors.js';
import { blameFrontend } from '../contract.js';
import type { Sent } from '../driver.js';
import { refusedFrontend } from './blame.js';
import { NFT_FAMILY, TABLE } from './names.js';
import type { PlannedTransaction, SyncPlan } from './sync-plan.js';
import { joinKeys, type TableKeys, type TableLedger } from './table-ledger.js';

/**
 * Whether the kernel, or the compiler before it, refused one operation: then nothing of the transaction happened. After any
 * other failure it is unknown.
 */
export function isRefusal(error: unknown): boolean {
  return isNativeError(error) && error.index !== null;
}

/** Sends what a ledger has pending. Each transaction claims its keys, and the kernel's answer ends the claim. */
export class Sender {
  /** @param onKeys called with what is going to change. */
  constructor(
    private readonly addon: Pick<NftablesAddon, 'nftTransact'>,
    private readonly family: Family,
    private readonly ledger: TableLedger,
    private readonly onKeys: (keys: TableKeys) => void,
  ) {}

  /** @param last operations that go with the last transaction. */
  async send(plan: SyncPlan, last: readonly NftOperation[]): Promise<Sent> {
    const { ledger } = this;
    const { transactions, elementOperations, ruleOperations } = plan;
    if (plan.rebuild) ledger.markAllUnknown();
    this.onKeys(plan.structure);
    const structure = ledger.claim(plan.structure);
    let bytes = 0;
    let acknowledged = 0;
    try {
      for (const { operations, keys } of transactions) {
        const further = acknowledged === transactions.length - 1 ? last : [];
        bytes += (await this.commit({ operations: [...operations, ...further], keys })).bytes;
        acknowledged++;
      }
    } catch (error) {
      // One transaction may make a chain, and another its rules.
      if (acknowledged === 0 && isRefusal(error)) structure.refuse();
      else structure.lose();
      throw error;
    }
    structure.acknowledge();
    if (plan.rebuild) ledger.keepOnly(joinKeys([plan.structure, ...transactions.map(({ keys }) => keys)]));
    return { transactions: transactions.length, elementOperations, ruleOperations, bytes };
  }

  async commit({ operations, keys }: PlannedTransaction): Promise<NftAck> {
    this.onKeys(keys);
    const claim = this.ledger.claim(keys);
    try {
      const ack = await this.transact(operations);
      claim.acknowledge();
      return ack;
    } catch (error) {
      if (isRefusal(error)) claim.refuse();
      else claim.lose();
      throw error;
    }
  }

  /** Sends objects that no ledger has. Rejects with an error that names the frontend whose element was refused. */
  async transact(operations: readonly NftOperation[]): Promise<NftAck> {
    try {
      return await this.addon.nftTransact({ family: NFT_FAMILY[this.family], table: TABLE, operations });
    } catch (error) {
      const frontend = refusedFrontend(this.family, operations, error);
      throw frontend === null ? error : blameFrontend(error, frontend);
    }
  }
}
