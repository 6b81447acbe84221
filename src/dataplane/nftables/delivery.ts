import { messageOf } from '../../base/error-message.js';
import type { Family } from '../../base/ip.js';
import type { NftOperation } from '../../native/contract.js';
import type { FamilyTable, FrontendKey } from '../../plan/types.js';
import { blamedFrontend } from '../contract.js';
import { refusedObject, usersOf } from './blame.js';
import { ElementBatches } from './element-batches.js';
import { packFrontend } from './keys.js';
import { staleSet } from './names.js';
import type { RememberedClients } from './remembered-clients.js';
import { isRefusal, type Sender, type Sent } from './sender.js';
import { isClassChain, timeoutsOf, type Structure } from './structure.js';
import { planSync, type SyncPlan, type SyncScope } from './sync-plan.js';
import { noKeys, type TableLedger } from './table-ledger.js';

/** So many refusals one sync gets past: each costs it one more transaction with all the rest. The next sync goes on from there. */
const MOST_REFUSALS = 16;

export interface DeliveryParts {
  readonly family: Family;
  readonly structure: Structure;
  readonly ledger: TableLedger;
  readonly sender: Sender;
  readonly clients: RememberedClients;
  /** Bytes. */
  readonly maxBatch: () => number;
  /** Lists the table, after which the ledger knows everything again. */
  readonly readBack: () => Promise<void>;
}

export interface Delivered {
  readonly sent: Sent;
  /** One line for each chain that is not as it should be. */
  readonly problems: readonly string[];
}

const NOTHING: Sent = { transactions: 0, elementOperations: 0, ruleOperations: 0, bytes: 0 };

/**
 * Brings the kernel to what a table calls for, past the frontends that it refuses. One refusal proves little: what is in the kernel may not be what the
 * ledger says. So an incremental sync fails with it, and the next one compares everything. Who is refused in that one is left out of the rest, and then
 * tried once more, alone; refused again it is set aside. From then on only its own transactions have to do with it.
 */
export class Delivery {
  constructor(private readonly parts: DeliveryParts) {}

  /**
   * All of the scope but for what is set aside.
   *
   * @param compared whether the ledger is what the kernel was just seen to hold: then whom it refuses does not stop the others.
   */
  async deliver(table: FamilyTable, scope: SyncScope, compared: boolean): Promise<Delivered> {
    const problems = new Map<string, string>();
    for (let refusals = 0; ; refusals++) {
      const plan = this.plan(table, { ...scope, leftOut: new Set(problems.keys()) });
      try {
        return { sent: await this.send(table, plan), problems: [...problems.values()] };
      } catch (error) {
        // There are only so many chains, and the next sync would meet them all again.
        const canGoOn = compared && refusals - problems.size < MOST_REFUSALS && isRefusal(error);
        if (!canGoOn || !this.leaveOut(table, plan, error, problems)) throw error;
        await this.makeSure();
      }
    }
  }

  /** Frontends that are set aside and whose time has come, each alone: what was sent for those that the kernel took, and which they are. */
  async retry(table: FamilyTable): Promise<{ readonly sent: readonly Sent[]; readonly taken: readonly FrontendKey[] }> {
    const { ledger, clients } = this.parts;
    const sent: Sent[] = [];
    const taken: FrontendKey[] = [];
    for (const key of ledger.due()) {
      const scope = { frontends: [key], rules: false, tidy: false, alone: true };
      try {
        sent.push(await this.send(table, this.plan(table, scope)));
        taken.push(key);
      } catch (error) {
        clients.keep(key);
        ledger.setAside(key, messageOf(error));
        if (!isRefusal(error)) throw error;
        await this.makeSure();
      }
    }
    return { sent, taken };
  }

  /** Removes the notes of gone frontends whose flows are gone too. */
  async forgetFlows(keys: readonly FrontendKey[], compared: boolean): Promise<void> {
    const { family, ledger, sender } = this.parts;
    for (const key of keys) ledger.staleFlows.desire(key, undefined);
    let left = keys;
    for (let refusals = 0; left.length > 0; refusals++) {
      const batches = new ElementBatches(family);
      for (const key of left) batches.delete(staleSet(key), packFrontend(key));
      try {
        await sender.commit({ operations: batches.operations(), keys: { ...noKeys(), staleFlows: [...left] } });
        return;
      } catch (error) {
        const culprit = blamedFrontend(error);
        const canGoOn = compared && refusals < MOST_REFUSALS && isRefusal(error) && culprit !== null;
        if (!canGoOn || !ledger.suspect([culprit], messageOf(error))) throw error;
        left = left.filter((key) => key !== culprit);
      }
    }
  }

  private plan(table: FamilyTable, scope: SyncScope): SyncPlan {
    const { structure, ledger, maxBatch } = this.parts;
    return planSync(structure, ledger, table, scope, maxBatch());
  }

  private async send(table: FamilyTable, plan: SyncPlan): Promise<Sent> {
    const { ledger, sender, clients, maxBatch } = this.parts;
    for (const step of plan.steps) clients.note(step);
    const room = Math.floor(maxBatch() / 4);
    const forgetting: readonly NftOperation[] = plan.rebuild
      ? []
      : await clients.ofRemoved(table, timeoutsOf(ledger.held), room);
    return await sender.send(plan, forgetting);
  }

  /** Whether something can be left out for a refusal that was not left out before. A chain that is there stays as it is. */
  private leaveOut(table: FamilyTable, plan: SyncPlan, error: unknown, problems: Map<string, string>): boolean {
    const { structure, ledger, clients } = this.parts;
    const reason = messageOf(error);
    const blamed = blamedFrontend(error);
    const object = refusedObject(error);
    if (object !== null && !plan.rebuild && ledger.held.chains.has(object)) {
      if (!isClassChain(object) || problems.has(object)) return false;
      problems.set(object, `the kernel refuses the rules of chain ${object}, which stays as it was: ${reason}`);
      return true;
    }
    const culprits =
      blamed !== null ? [blamed] : object === null ? [] : usersOf(object, plan.steps, structure, table.node);
    for (const key of culprits) clients.keep(key);
    return ledger.suspect(culprits, reason);
  }

  /** After a refusal, which may have come in the middle of several transactions. */
  private async makeSure(): Promise<void> {
    if (!this.parts.ledger.isCertain) await this.parts.readBack();
  }
}

export function sum(parts: readonly Sent[]): Sent {
  return parts.reduce(
    (total, part) => ({
      transactions: total.transactions + part.transactions,
      elementOperations: total.elementOperations + part.elementOperations,
      ruleOperations: total.ruleOperations + part.ruleOperations,
      bytes: total.bytes + part.bytes,
    }),
    NOTHING,
  );
}
