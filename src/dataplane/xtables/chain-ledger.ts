import type { IptablesTable } from '../../native/contract.js';
import { Ledger } from '../ledger.js';
import { countStates, type ChainState, type ChainStates, type RuleCounts } from './chain-states.js';
import { tableOf, tablesBefore } from './operations.js';
import type { ChainId } from './rules.js';

/** A stream in flight. Ends once. */
interface StreamClaim {
  acknowledge(): void;
  /** The tables before this one were written; this one and those after it were not. */
  refuse(table: IptablesTable): void;
  /** The result is unknown. */
  lose(): void;
}

/** A mode's chains of one family: the desired ones, those in the kernel, and their number of rules. */
export class ChainLedger {
  private readonly ledger: Ledger<ChainId, ChainState>;
  private counts: RuleCounts = { filter: 0, nat: 0 };

  /** @param now milliseconds on a clock that only goes forward. */
  constructor(now: () => number) {
    this.ledger = new Ledger({ same: (one, other) => one.digest === other.digest, now });
  }

  /** The kernel's state; for {@link unknown} chains the state before. */
  get acknowledged(): ReadonlyMap<ChainId, ChainState> {
    return this.ledger.acknowledged;
  }

  /** Chains that were sent and whose answer was lost: they are pending. */
  get unknown(): ReadonlySet<ChainId> {
    return this.ledger.unknown;
  }

  /** Rules that the kernel holds. */
  get held(): RuleCounts {
    return this.counts;
  }

  /** The chains to write or to remove. */
  pending(which: 'written' | 'removed'): readonly ChainId[] {
    return [...this.ledger.pending()].filter((id) => (this.ledger.desired(id) === undefined) === (which === 'removed'));
  }

  /** @param state undefined: the chain is to be removed. */
  desire(id: ChainId, state: ChainState | undefined): void {
    this.ledger.desire(id, state);
  }

  /** Begins a stream that writes and removes these chains. */
  claim(ids: readonly ChainId[]): StreamClaim {
    const tables = [...new Set(ids.map(tableOf))];
    const claims = tables.map((table) => {
      const own = ids.filter((id) => tableOf(id) === table);
      return { table, own, claim: this.ledger.claim(own) };
    });
    const end = (isWritten: (table: IptablesTable) => boolean): void => {
      for (const { table, own, claim } of claims) {
        if (!isWritten(table)) claim.refuse();
        else
          this.counting(own, () => {
            claim.acknowledge();
          });
      }
    };
    return {
      acknowledge: () => {
        end(() => true);
      },
      refuse: (refused) => {
        end((table) => tablesBefore(refused).includes(table));
      },
      lose: () => {
        for (const { claim } of claims) claim.lose();
      },
    };
  }

  /** A listing found these chains of the mode in the kernel, and no others. */
  readBackAll(listed: ChainStates): void {
    this.ledger.readBackAll(listed);
    this.counts = countStates(listed);
  }

  /** Treats chains that cannot be removed as removed, until {@link readBackAll}. */
  forget(ids: readonly ChainId[]): void {
    this.counting(ids, () => {
      for (const id of ids) this.ledger.readBack(id, undefined);
    });
  }

  /** Keeps count of the rules of chains that something changes. */
  private counting(ids: readonly ChainId[], change: () => void): void {
    const before = this.countOf(ids);
    change();
    const after = this.countOf(ids);
    const { filter, nat } = this.counts;
    this.counts = { filter: filter + after.filter - before.filter, nat: nat + after.nat - before.nat };
  }

  private countOf(ids: readonly ChainId[]): RuleCounts {
    const states: [ChainId, ChainState][] = [];
    for (const id of ids) {
      const state = this.acknowledged.get(id);
      if (state !== undefined) states.push([id, state]);
    }
    return countStates(states);
  }
}
