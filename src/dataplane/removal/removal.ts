import type { Family } from '../../base/ip.js';
import type { FrontendKey } from '../../plan/types.js';

/** The result of a pass over the leftovers. */
export interface RemovalReport {
  /** One line per kind of object. */
  readonly removed: readonly string[];
  /** Objects that stay because others need them. */
  readonly kept: readonly string[];
  /** Objects that stay for a while because connections depend on them; the next pass looks again. */
  readonly waiting: readonly string[];
  readonly problems: readonly Error[];
  /** Whether a mode's link was removed, and nothing of others is left that its sysctls are for. */
  readonly freesSysctls: boolean;
  /** Frontends of what was removed that are gone, and whose flows of UDP and SCTP are not confirmed removed. */
  readonly goneFlows: ReadonlyMap<Family, readonly FrontendKey[]>;
}

/** Collects the report; what fails does not keep the rest from being removed. */
export class Removal implements RemovalReport {
  readonly removed: string[] = [];
  readonly kept: string[] = [];
  readonly waiting: string[] = [];
  readonly problems: Error[] = [];
  freesSysctls = false;
  readonly goneFlows = new Map<Family, readonly FrontendKey[]>();

  /** The call's result; `fallback` when it fails. */
  async attempt<T>(fallback: T, call: () => Promise<T>): Promise<T> {
    try {
      return await call();
    } catch (error) {
      this.problems.push(error instanceof Error ? error : new Error(String(error)));
      return fallback;
    }
  }
}
