import type { Family, IPAddress } from '../base/ip.js';
import type { SyncReport } from '../dataplane/contract.js';
import type { FrontendKey, FrontendPlan } from '../plan/types.js';
import type { RowEdit } from '../state/store.js';

/** Connections that were reset because their endpoints are gone. */
export interface ResetConnections {
  readonly family: Family;
  readonly connections: number;
  readonly endpoints: readonly IPAddress[];
}

/** What the sync cycle tells whoever follows objects on their way to the kernel. */
export interface ChangeFollower {
  /**
   * Rows were committed to the state.
   *
   * @param receivedAt when that was heard of, on performance.now's clock; null: now.
   */
  committed(edits: readonly RowEdit[], receivedAt: number | null): void;
  /** Another configuration counts from now on. */
  reconfigured(): void;
  /** A run begins, which brings a family everything that was committed so far. */
  took(family: Family): void;
  /**
   * The kernel acknowledged a sync, and with it all that earlier ones owed.
   *
   * @param frontends those that changed.
   */
  acknowledged(
    report: SyncReport,
    frontends: ReadonlySet<FrontendKey>,
    plan: (key: FrontendKey) => FrontendPlan | undefined,
  ): void;
  /** Absent: of no interest. */
  connectionsReset?(reset: ResetConnections): void;
}

/** All of them as one; null: there are none. */
export function followedBy(followers: readonly ChangeFollower[]): ChangeFollower | null {
  const [first] = followers;
  if (first === undefined) return null;
  if (followers.length === 1) return first;
  return {
    committed: (...about) => {
      for (const each of followers) each.committed(...about);
    },
    reconfigured: () => {
      for (const each of followers) each.reconfigured();
    },
    took: (family) => {
      for (const each of followers) each.took(family);
    },
    acknowledged: (...about) => {
      for (const each of followers) each.acknowledged(...about);
    },
    connectionsReset: (reset) => {
      for (const each of followers) each.connectionsReset?.(reset);
    },
  };
}
