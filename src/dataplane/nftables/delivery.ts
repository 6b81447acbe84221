import { messageOf } from '../../base/error-message.js';
import type { Family } from '../../base/ip.js';
import type { NftOperation } from '../../native/contract.js';
import { isNativeError, type NativeError } from '../../native/errors.js';
import type { FamilyTable, FrontendKey } from '../../plan/types.js';
import { blamedFrontend } from '../contract.js';
import { findCulprits } from '../culprits.js';
import type { RememberedClients } from './affinity/remembered-clients.js';
import { isNoteRemoval, refusedObject, usersOf } from './blame.js';
import { ElementBatches } from './element-batches.js';
import { packFrontend } from './keys.js';
import { staleSet } from './names.js';
import { isRefusal, type Sender, type Sent } from './sender.js';
import { isClassChain, type Structure } from './structure.js';
import { planSync, type SyncPlan, type SyncScope } from './sync-plan.js';
import { noKeys, type TableLedger } from './table-ledger.js';

/** So many refusals one sync gets past at the cost of one more transaction each with all the rest. If there are more, parts of the rest are sent. */
const MOST_REFUSALS = 8;
/** So many frontends one sync finds in parts that are refused, in so many transactions. The next sync goes on from there. */
const MOST_FOUND = 256;
const MOST_ATTEMPTS = 1024;
/** So many frontends that are set aside one sync tries again, and so many it restores: those of the next do not wait for more. */
const MOST_RETRIES = 16;

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
  readonly refusedChains: readonly string[];
}

const NOTHING: Sent = { transactions: 0, elementOperations: 0, ruleOperations: 0, bytes: 0 };

/**
 * Brings the kernel to what a table calls for, past the frontends that it refuses. One refusal proves little: what is in the kernel may not be what the
 * ledger says. So an incremental sync fails with it, and the next one compares everything. Who is refused in that one is left out of the rest, and then
 * tried once more, alone; refused again it is set aside. From then on only its own transactions have to do with it.
 */
export class Delivery {
  /** The last comparison was refused, and nobody knows for whom. */
  private nameless = false;

  constructor(private readonly parts: DeliveryParts) {}

  /**
   * All of the scope but for what is set aside.
   *
   * @param compared whether the ledger is what the kernel was just seen to hold: then whom it refuses does not stop the others.
   */
  async deliver(table: FamilyTable, scope: SyncScope, compared: boolean): Promise<Delivered> {
    const problems = new Map<string, string>();
    const delivered = (sent: Sent): Delivered => {
      this.nameless = false;
      return { sent, refusedChains: [...problems.values()] };
    };
    for (let refusals = 0; ; refusals++) {
      const reduced = { ...scope, leftOut: new Set(problems.keys()) };
      const plan = this.plan(table, reduced);
      try {
        return delivered(await this.send(table, plan));
      } catch (error) {
        const isTold = compared && isRefusal(error);
        // There are only so many chains, and the next sync would meet them all again.
        const canGoOn = isTold && refusals - problems.size < MOST_REFUSALS;
        const goesOn = canGoOn && this.leaveOut(plan, error, problems);
        const isOneOfMany = isTold && !canGoOn && blamedFrontend(error) !== null;
        if (!goesOn && !isOneOfMany && !this.isNamelessAgain(error, compared)) throw error;
        await this.makeSure();
        if (!goesOn) return delivered(await this.search(table, reduced, plan.rebuild, error));
      }
    }
  }

  /** Frontends that are set aside and whose time has come, each alone: what was sent for those that the kernel took, and which they are. */
  async retry(table: FamilyTable): Promise<{ readonly sent: readonly Sent[]; readonly taken: readonly FrontendKey[] }> {
    const { ledger, clients } = this.parts;
    const sent: Sent[] = [];
    const taken: FrontendKey[] = [];
    const frontends = ledger.frontends.due(MOST_RETRIES);
    for (const key of frontends) {
      try {
        sent.push(await this.sendAlone(table, key));
        taken.push(key);
      } catch (error) {
        clients.keep(key);
        ledger.setAside(key, messageOf(error));
        await this.makeSure();
        // It may be nobody's fault, and cost a listing each time.
        if (!isRefusal(error)) return { sent, taken };
      }
    }
    for (const key of ledger.staleFlows.due(MOST_RETRIES - frontends.length)) {
      try {
        await this.sendNotes([key]);
        taken.push(key);
      } catch (error) {
        ledger.staleFlows.setAside(key, messageOf(error));
        await this.makeSure();
        if (!isRefusal(error)) break;
      }
    }
    return { sent, taken };
  }

  /** Brings back what somebody else altered of frontends that are set aside, where the kernel takes it; what was sent. */
  async restore(table: FamilyTable): Promise<readonly Sent[]> {
    const { damaged, frontends } = this.parts.ledger;
    const sent: Sent[] = [];
    for (const [key, former] of [...damaged].slice(0, MOST_RETRIES)) {
      damaged.delete(key);
      if (!frontends.aside.has(key)) continue;
      try {
        sent.push(await this.send(table, this.plan(table, { ...alone(key), former })));
        this.parts.ledger.readBackFrontend(key, former);
      } catch (error) {
        if (!isRefusal(error)) throw error;
        await this.makeSure();
      }
    }
    return sent;
  }

  /** Removes the notes of gone frontends whose flows are gone too. */
  async forgetFlows(keys: readonly FrontendKey[], compared: boolean): Promise<void> {
    const { ledger } = this.parts;
    for (const key of keys) ledger.staleFlows.desire(key, undefined);
    let left = keys;
    for (let refusals = 0; left.length > 0; refusals++) {
      try {
        await this.sendNotes(left);
        return;
      } catch (error) {
        const culprit = blamedFrontend(error);
        const canGoOn = compared && refusals < MOST_REFUSALS && isRefusal(error) && culprit !== null;
        if (!canGoOn || !ledger.suspectNote(culprit, messageOf(error))) throw error;
        left = left.filter((key) => key !== culprit);
      }
    }
  }

  private async sendAlone(table: FamilyTable, key: FrontendKey): Promise<Sent> {
    try {
      return await this.send(table, this.plan(table, alone(key)));
    } catch (error) {
      // Without the note, which may be what is refused for good.
      if (!isNoteRemoval(error) || !this.parts.ledger.suspectNote(key, messageOf(error))) throw error;
      return await this.send(table, this.plan(table, alone(key)));
    }
  }

  /** The notes of these frontends' flows, and nothing else. */
  private async sendNotes(keys: readonly FrontendKey[]): Promise<void> {
    const { family, ledger, sender } = this.parts;
    const batches = new ElementBatches(family);
    for (const key of keys) {
      if (ledger.staleFlows.desired(key) === true) batches.add(staleSet(key), packFrontend(key));
      else batches.delete(staleSet(key), packFrontend(key));
    }
    await sender.commit({ operations: batches.operations(), keys: { ...noKeys(), staleFlows: [...keys] } });
  }

  /** Whether all that is known of two comparisons in succession is that the kernel refused them: the first time it may have been anything. */
  private isNamelessAgain(error: unknown, compared: boolean): boolean {
    const isAgain = this.nameless;
    this.nameless = compared && isNativeError(error) && blamedFrontend(error) === null;
    return isAgain && this.nameless;
  }

  /**
   * Brings all of the scope but for the frontends that are refused even by themselves, which it sets aside.
   *
   * @param rebuild whether the first that is taken makes the table anew.
   * @param refusal of the whole: thrown when it is no frontend's.
   */
  private async search(table: FamilyTable, scope: SyncScope, rebuild: boolean, refusal: unknown): Promise<Sent> {
    const { ledger, sender, clients } = this.parts;
    const sent: Sent[] = [];
    const attempt = async (frontends: readonly FrontendKey[]): Promise<NativeError | null> => {
      try {
        sent.push(await this.send(table, this.plan(table, { ...scope, frontends })));
        return null;
      } catch (error) {
        if (!isNativeError(error)) throw error;
        await this.makeSure();
        return error;
      }
    };
    const isConcerned = (key: FrontendKey): boolean => ledger.frontends.isOwed(key) || ledger.staleFlows.isOwed(key);
    const candidates = [...scope.frontends].filter((key) => rebuild || isConcerned(key));
    if (!rebuild && (await attempt([])) !== null) throw refusal;
    const { found, tooMany } = await findCulprits(candidates, {
      attempt,
      named: (part, error) => part.find((key) => key === blamedFrontend(error)),
      ...{ most: MOST_FOUND, attempts: MOST_ATTEMPTS, first: 'larger' },
    });
    // What refuses everything by now is nobody's fault.
    if (found.length > 0) await sender.probe();
    for (const [key, error] of found) {
      clients.keep(key);
      ledger.setAside(key, messageOf(error));
    }
    if (tooMany !== null) throw tooMany;
    return sum(sent);
  }

  private plan(table: FamilyTable, scope: SyncScope): SyncPlan {
    const { structure, ledger, maxBatch } = this.parts;
    return planSync(structure, ledger, table, scope, maxBatch());
  }

  private async send(table: FamilyTable, plan: SyncPlan): Promise<Sent> {
    const { sender, clients, maxBatch } = this.parts;
    for (const step of plan.steps) clients.note(step);
    const room = Math.floor(maxBatch() / 4);
    const forgetting: readonly NftOperation[] =
      plan.rebuild || !clients.hasConcerned ? [] : await clients.ofRemoved(table, room);
    return await sender.send(plan, forgetting);
  }

  /** Whether something can be left out for a refusal that was not left out before. A chain that is there stays as it is. */
  private leaveOut(plan: SyncPlan, error: unknown, problems: Map<string, string>): boolean {
    const { ledger, clients } = this.parts;
    const reason = messageOf(error);
    const blamed = blamedFrontend(error);
    const object = refusedObject(error);
    if (object !== null && !plan.rebuild && ledger.held.chains.has(object)) {
      if (!isClassChain(object) || problems.has(object)) return false;
      problems.set(object, `the kernel refuses the rules of chain ${object}, which stays as it was: ${reason}`);
      return true;
    }
    if (blamed !== null && isNoteRemoval(error)) return ledger.suspectNote(blamed, reason);
    const culprits = blamed !== null ? [blamed] : object === null ? [] : usersOf(object, plan.steps);
    for (const key of culprits) clients.keep(key);
    return ledger.suspect(culprits, reason);
  }

  /** After a refusal, which may have come in the middle of several transactions. */
  private async makeSure(): Promise<void> {
    if (!this.parts.ledger.isCertain) await this.parts.readBack();
  }
}

function alone(key: FrontendKey): SyncScope {
  return { frontends: [key], rules: false, alone: true };
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
