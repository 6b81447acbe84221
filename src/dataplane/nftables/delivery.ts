import { messageOf } from '../../base/error-message.js';
import type { Family } from '../../base/ip.js';
import type { NftOperation } from '../../native/contract.js';
import { isNativeError } from '../../native/errors.js';
import type { FamilyTable, FrontendKey } from '../../plan/types.js';
import { blamedFrontend } from '../contract.js';
import { NOTHING_SENT, type Sent } from '../driver.js';
import { findOffending, restoreDamaged } from '../offending.js';
import type { RememberedClients } from './affinity/remembered-clients.js';
import { isNoteRemoval, refusedObject, usersOf } from './blame.js';
import { ElementBatches } from './element-batches.js';
import type { FrontendElements } from './frontend-elements.js';
import { packFrontend } from './keys.js';
import { staleSet } from './names.js';
import { isRefusal, type Sender } from './sender.js';
import { isClassChain, type Structure } from './structure.js';
import { planSync, type SyncPlan, type SyncScope } from './sync-plan.js';
import { noKeys, type TableLedger } from './table-ledger.js';

/** The most refused frontends that one sync finds in parts, in so many transactions. The next sync goes on from there. */
const MOST_FOUND = 256;
const MOST_ATTEMPTS = 1024;
/** The most quarantined frontends that one sync tries again, and the most that it restores: the next sync does not wait longer. */
const MOST_RETRIES = 16;

interface DeliveryParts {
  readonly family: Family;
  readonly structure: Structure;
  readonly ledger: TableLedger;
  readonly sender: Sender;
  readonly clients: RememberedClients;
  /** Bytes. */
  readonly maxBatch: () => number;
  /** Sends what changes nothing, to see whether the kernel takes anything. */
  readonly probe: () => Promise<unknown>;
  /** Lists the table, after which the ledger knows everything again. */
  readonly readBack: () => Promise<void>;
}

interface Delivered {
  readonly sent: Sent;
  /** One line for each chain that is not as it should be. */
  readonly refusedChains: readonly string[];
}

/** The refusal, and the frontends that it concerns: the owner of the element, or those that need the chain, set or map. */
interface Refusal {
  readonly error: unknown;
  readonly frontends: ReadonlySet<FrontendKey>;
}

/**
 * Brings the kernel to what a table calls for, past the frontends that it refuses. One refusal proves little: the kernel's
 * content may differ from the ledger. So an incremental sync fails with it, and the next one compares everything. It finds
 * the refused frontends by dividing the transaction (offending.ts), and quarantines them: from then on only their own
 * transactions contain them.
 */
export class Delivery {
  /** The last comparison was refused, and the refusal named no frontend. */
  private wasNameless = false;

  constructor(private readonly parts: DeliveryParts) {}

  /**
   * Delivers all of the scope except what is quarantined.
   *
   * @param compared whether the ledger equals what the kernel was just seen to hold: then refused frontends do not stop the
   *   others.
   */
  async deliver(table: FamilyTable, scope: SyncScope, compared: boolean): Promise<Delivered> {
    // There are only so many chains, and the next sync would meet them all again.
    const problems = new Map<string, string>();
    for (;;) {
      const reduced = { ...scope, leftOut: new Set(problems.keys()) };
      const plan = this.plan(table, reduced);
      let sent: Sent;
      try {
        sent = await this.send(table, plan);
      } catch (error) {
        if (!compared || !isNativeError(error)) throw error;
        if (this.leaveOut(plan, error, problems)) {
          await this.makeSure();
          continue;
        }
        // A refusal without a name may have any cause, and pass. It is searched if the next comparison is refused as well.
        const isNameless = refusalOf(plan, error).frontends.size === 0;
        const isSearched = !isNameless || this.wasNameless;
        this.wasNameless = isNameless;
        if (!isSearched) throw error;
        await this.makeSure();
        sent = await this.search(table, reduced, plan.rebuild, error);
      }
      this.wasNameless = false;
      return { sent, refusedChains: [...problems.values()] };
    }
  }

  /** Tries quarantined frontends whose time has come, each alone. Answers what was sent for those that the kernel took, and these. */
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
        ledger.quarantine(key, messageOf(error));
        await this.makeSure();
        // It may be no frontend's fault, and cost a listing each time.
        if (!isRefusal(error)) return { sent, taken };
      }
    }
    for (const key of ledger.staleFlows.due(MOST_RETRIES - frontends.length)) {
      try {
        await this.sendNotes([key]);
        taken.push(key);
      } catch (error) {
        ledger.staleFlows.quarantine(key, messageOf(error));
        await this.makeSure();
        if (!isRefusal(error)) break;
      }
    }
    return { sent, taken };
  }

  /** Restores externally changed, quarantined frontends, if the kernel takes them. Answers what was sent. */
  async restore(table: FamilyTable): Promise<readonly Sent[]> {
    const { ledger } = this.parts;
    const sent: Sent[] = [];
    const send = async (former: ReadonlyMap<FrontendKey, FrontendElements>): Promise<Refusal | null> => {
      const plan = this.plan(table, { frontends: former.keys(), rules: false, alone: true, former });
      try {
        sent.push(await this.send(table, plan));
      } catch (error) {
        if (!isRefusal(error)) throw error;
        await this.makeSure();
        return refusalOf(plan, error);
      }
      for (const [key, elements] of former) ledger.readBackFrontend(key, elements);
      return null;
    };
    await restoreDamaged(ledger.frontends, [...ledger.frontends.damaged.keys()].slice(0, MOST_RETRIES), send, LIMITS);
    return sent;
  }

  /** Removes the notes of gone frontends whose flows are gone too. */
  async forgetFlows(keys: readonly FrontendKey[], compared: boolean): Promise<void> {
    const { ledger } = this.parts;
    for (const key of keys) ledger.staleFlows.desire(key, undefined);
    const attempt = async (part: readonly FrontendKey[]): Promise<Refusal | null> => {
      try {
        await this.sendNotes(part);
        return null;
      } catch (error) {
        if (!compared || !isRefusal(error)) throw error;
        return { error, frontends: new Set([blamedFrontend(error)].filter((key) => key !== null)) };
      }
    };
    const { found, tooMany } = await findOffending(keys, { attempt, ...LIMITS });
    for (const [key, { error }] of found) ledger.staleFlows.quarantine(key, messageOf(error));
    if (tooMany !== null) throw tooMany.error;
  }

  /** Without the note of its flows, if that is what is refused: it may be refused for good. */
  private async sendAlone(table: FamilyTable, key: FrontendKey): Promise<Sent> {
    try {
      return await this.send(table, this.plan(table, alone(key)));
    } catch (error) {
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

  /**
   * Brings all of the scope but for the frontends that are refused even by themselves, which it quarantines.
   *
   * @param rebuild whether the first that is taken makes the table anew.
   * @param refusal of the whole: thrown when it is no frontend's.
   */
  private async search(table: FamilyTable, scope: SyncScope, rebuild: boolean, refusal: unknown): Promise<Sent> {
    const { ledger, clients } = this.parts;
    const sent: Sent[] = [];
    const attempt = async (frontends: readonly FrontendKey[]): Promise<Refusal | null> => {
      for (;;) {
        const plan = this.plan(table, { ...scope, frontends });
        try {
          sent.push(await this.send(table, plan));
          return null;
        } catch (error) {
          if (!isNativeError(error)) throw error;
          await this.makeSure();
          // The frontend itself may be there again.
          const noted = isNoteRemoval(error) ? blamedFrontend(error) : null;
          if (noted === null || !ledger.suspectNote(noted, messageOf(error))) return refusalOf(plan, error);
        }
      }
    };
    const isConcerned = (key: FrontendKey): boolean =>
      ledger.frontends.isPending(key) || ledger.staleFlows.isPending(key);
    const candidates = [...scope.frontends].filter((key) => rebuild || isConcerned(key));
    if (!rebuild && (await attempt([])) !== null) throw refusal;
    const { found, tooMany } = await findOffending(candidates, { attempt, ...LIMITS });
    // If everything is refused by now, no frontend is at fault.
    if (found.length > 0) await this.parts.probe();
    for (const [key, { error }] of found) {
      clients.keep(key);
      ledger.quarantine(key, messageOf(error));
    }
    if (tooMany !== null) throw tooMany.error;
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

  /** Whether a refusal concerns the rules of an existing chain that was not left out yet: it stays unchanged. */
  private leaveOut({ rebuild }: SyncPlan, error: unknown, problems: Map<string, string>): boolean {
    const object = refusedObject(error);
    if (object === null || rebuild || !this.parts.ledger.held.chains.has(object)) return false;
    if (!isClassChain(object) || problems.has(object)) return false;
    const reason = messageOf(error);
    problems.set(object, `the kernel refuses the rules of chain ${object}, which stays as it was: ${reason}`);
    return true;
  }

  /** After a refusal, which may have come in the middle of several transactions. */
  private async makeSure(): Promise<void> {
    if (!this.parts.ledger.isCertain) await this.parts.readBack();
  }
}

const LIMITS = {
  named: (part: readonly FrontendKey[], { frontends }: Refusal) => part.filter((key) => frontends.has(key)),
  most: MOST_FOUND,
  attempts: MOST_ATTEMPTS,
  first: 'larger',
} as const;

function refusalOf({ steps }: SyncPlan, error: unknown): Refusal {
  const blamed = blamedFrontend(error);
  const object = refusedObject(error);
  const named = blamed !== null ? [blamed] : object === null ? [] : usersOf(object, steps);
  return { error, frontends: new Set(named) };
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
    NOTHING_SENT,
  );
}
