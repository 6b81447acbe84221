import type { Clock } from '../base/clock.js';
import type { Family } from '../base/ip.js';
import type { ForeignChange } from '../dataplane/contract.js';

interface DriftOptions {
  readonly clock: Clock;
  /** Asks for a run of the loop at once. */
  readonly check: () => void;
  /** Asks for comparisons beside the loop. */
  readonly audit: () => void;
  /** A family is not what it should be, perhaps; called once until it was checked. */
  readonly onSuspicion: (family: Family, process: string | null) => void;
}

interface Suspicion {
  /** The clock's, in milliseconds. */
  readonly since: number;
  /** When a check may start. */
  readonly checkAt: number;
  /** Whether a check failed, and no other was asked for since. */
  readonly hasFailed: boolean;
}

/** Commits come in bursts: a script of several, a reload. */
const DEBOUNCE_MS = 3;
/** Who changes our table all the time is answered at once for so many milliseconds of checking, and then for this part of all time. */
const ALLOWANCE_MS = 2000;
const SHARE = 0.2;
/** Least time between two audits for what may have been missed. */
const AUDIT_SPACING_MS = 5000;

/** Decides when what others do to our tables is looked at: at once, unless it happens all the time. */
export class Drift {
  private readonly suspicions = new Map<Family, Suspicion>();
  /** Taken by a check that has not ended. */
  private readonly underCheck = new Map<Family, Suspicion>();
  /** Time that checks took, less what has been earned back since. */
  private readonly spent = new Map<Family, { readonly ms: number; readonly at: number }>();
  private auditAt = -Infinity;
  private auditAsked = false;

  constructor(private readonly options: DriftOptions) {}

  noticed({ families, missed, process }: ForeignChange): void {
    for (const family of families) this.suspect(family, process);
    if (missed) this.missed();
  }

  /** @param process who is to blame; null when unknown. */
  suspect(family: Family, process: string | null): void {
    const open = this.suspicions.get(family);
    if (open?.hasFailed === false) return;
    const now = this.options.clock.now();
    const checkAt = Math.max(now + DEBOUNCE_MS, now + (this.spentMs(family, now) - ALLOWANCE_MS) / SHARE);
    // The loop's own retry may come before.
    this.suspicions.set(family, { since: now, checkAt, ...open, hasFailed: false });
    if (open === undefined) this.options.onSuspicion(family, process);
    this.options.clock.callAt(checkAt, this.options.check);
  }

  /** A run of the family begins: whether it has to check. */
  begin(family: Family): boolean {
    const suspicion = this.suspicions.get(family);
    if (suspicion === undefined || this.options.clock.now() < suspicion.checkAt) return false;
    this.suspicions.delete(family);
    this.underCheck.set(family, suspicion);
    return true;
  }

  /** The run has ended. Answers how many milliseconds ago a suspicion arose that it has resolved; null for none. */
  ended(family: Family, startedAt: number, succeeded: boolean): number | null {
    const suspicion = this.underCheck.get(family);
    if (suspicion === undefined) return null;
    this.underCheck.delete(family);
    const now = this.options.clock.now();
    this.spent.set(family, { ms: this.spentMs(family, now) + now - startedAt, at: now });
    if (succeeded) return now - suspicion.since;
    // The loop tries again, ever more rarely, and at once when something more is heard: it may be what was lacking.
    if (!this.suspicions.has(family)) this.suspicions.set(family, { ...suspicion, hasFailed: true });
    return null;
  }

  suspects(family: Family): boolean {
    return this.suspicions.has(family);
  }

  private missed(): void {
    if (this.auditAsked) return;
    this.auditAsked = true;
    const at = Math.max(this.options.clock.now() + DEBOUNCE_MS, this.auditAt + AUDIT_SPACING_MS);
    this.options.clock.callAt(at, () => {
      this.auditAsked = false;
      this.auditAt = this.options.clock.now();
      this.options.audit();
    });
  }

  private spentMs(family: Family, now: number): number {
    const spentMs = this.spent.get(family);
    return spentMs === undefined ? 0 : Math.max(0, spentMs.ms - SHARE * (now - spentMs.at));
  }
}
