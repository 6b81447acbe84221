import type { Clock } from '../base/clock.js';
import { serviceSubject, type EventRecorder } from '../base/events.js';
import type { Family } from '../base/ip.js';
import type { Log } from '../base/log.js';
import { printConflict, printHolder } from '../plan/text.js';
import type { Conflict } from '../plan/types.js';

/**
 * How long a conflict must have held before anybody is told. Two Services that exchange a port do so by two events of a watch, in between which both
 * have it: nobody wants to read of that.
 */
const SETTLED_MS = 3000;

interface Held {
  readonly conflict: Conflict;
  readonly since: number;
  reported: boolean;
}

export interface ConflictReportsOptions {
  readonly clock: Clock;
  readonly log: Log;
  readonly events: EventRecorder;
}

/** Tells the log and the users of Services that lose of conflicts: once of one that stays, and the log once when it is settled. */
export class ConflictReports {
  private held = new Map<string, Held>();
  private cancelTimer: (() => void) | null = null;

  constructor(private readonly options: ConflictReportsOptions) {}

  /** These are a family's conflicts now. Returns how many there are. */
  update(family: Family, conflicts: Iterable<Conflict>): number {
    const { clock, log } = this.options;
    const before = this.held;
    this.held = new Map([...before].filter(([, { conflict }]) => conflict.family !== family));
    const others = this.held.size;
    for (const conflict of conflicts) {
      const text = printConflict(conflict);
      this.held.set(text, before.get(text) ?? { conflict, since: clock.now(), reported: false });
    }
    for (const [text, { reported }] of before) if (reported && !this.held.has(text)) log.info(1, `settled: ${text}`);
    this.reportSettled();
    return this.held.size - others;
  }

  private reportSettled(): void {
    const { clock } = this.options;
    this.cancelTimer?.();
    this.cancelTimer = null;
    const now = clock.now();
    let next = Infinity;
    for (const [text, held] of this.held) {
      if (held.reported) continue;
      const due = held.since + SETTLED_MS;
      if (due > now) next = Math.min(next, due);
      else this.report(text, held);
    }
    if (next === Infinity) return;
    this.cancelTimer = clock.callAt(next, () => {
      this.reportSettled();
    });
  }

  private report(text: string, held: Held): void {
    const { log, events } = this.options;
    const { winner, loser } = held.conflict;
    held.reported = true;
    log.warn(text);
    events.record({
      type: 'Warning',
      reason: 'AddressConflict',
      action: 'ProgramService',
      regarding: serviceSubject(loser),
      related: serviceSubject(winner),
      note: `${printHolder(held.conflict)}; ${loser} gets no connections there`,
    });
  }
}
