import type { ConntrackAddon } from '../../native/contract.js';
import { flowScopes, type FlowScope, type FlowView } from './flow-scope.js';
import { staleFlows } from './stale-flows.js';

interface ConntrackReport {
  /** Flows that the kernel listed: once per protocol at most, of TCP only those that nothing was replied to. */
  readonly flows: number;
  /** Without those that were gone by themselves before. */
  readonly deleted: number;
  /** The failures. If there are any, the caller passes the same changes again to the next pass, with those that came since. */
  readonly errors: readonly Error[];
}

type Flows = Pick<ConntrackAddon, 'conntrackList' | 'conntrackDelete'>;

/** Removes flows that contradict the forwarding table, the same way for every mode. Knows nothing of earlier passes. */
export class ConntrackReconciler {
  readonly #kernel: Flows;

  constructor(kernel: Flows) {
    this.#kernel = kernel;
  }

  /**
   * One pass over one family. Call it after the rules are in the kernel: a flow deleted earlier would come back through the
   * old ones. Never rejects: if the kernel refuses, the report has the errors, and new flows go right all the same. One
   * protocol's failure does not stop the other's pass.
   */
  async reconcile(view: FlowView): Promise<ConntrackReport> {
    const total = { flows: 0, deleted: 0 };
    const errors: Error[] = [];
    for (const scope of flowScopes(view)) {
      try {
        const { flows, deleted } = await this.#reconcileScope(scope);
        total.flows += flows;
        total.deleted += deleted;
      } catch (error) {
        errors.push(error instanceof Error ? error : new Error(String(error)));
      }
    }
    return { ...total, errors };
  }

  async #reconcileScope(scope: FlowScope): Promise<{ flows: number; deleted: number }> {
    const filter = scope.filter();
    const listing = await this.#kernel.conntrackList(filter);
    const stale = staleFlows(listing, scope);
    if (stale.length === 0) return { flows: listing.count, deleted: 0 };
    const { deleted } = await this.#kernel.conntrackDelete(filter.family, stale);
    return { flows: listing.count, deleted };
  }
}
