import type { Family } from '../../base/ip.js';
import type { FrontendKey } from '../../plan/types.js';

/** What a pass over the leftovers did. */
export interface RemovalReport {
  /** One line per kind of object. */
  readonly removed: readonly string[];
  /** What stays because others need it. */
  readonly kept: readonly string[];
  /** What stays for a while because connections depend on it; the next pass looks again. */
  readonly waiting: readonly string[];
  readonly problems: readonly Error[];
  /** Frontends of what was removed that are gone, and whose flows of UDP and SCTP nobody confirmed removed. */
  readonly goneFlows: ReadonlyMap<Family, readonly FrontendKey[]>;
}

/** Collects the report; what fails does not keep the rest from being removed. */
export class Removal implements RemovalReport {
  readonly removed: string[] = [];
  readonly kept: string[] = [];
  readonly waiting: string[] = [];
  readonly problems: Error[] = [];
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
