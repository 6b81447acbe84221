import type { Clock } from '../base/clock.js';
import { serviceSubject, type EventRecorder, type ProxyEvent } from '../base/events.js';
import type { Family } from '../base/ip.js';
import type { Log } from '../base/log.js';
import { printConflict, printHolder, printShortfall } from '../plan/text.js';
import type { Conflict, Shortfall } from '../plan/types.js';

/**
 * How long a conflict must have held before anybody is told. Two Services that exchange a port do so by two events of a watch, in between which both
 * have it: nobody wants to read of that.
 */
const SETTLED_MS = 3000;

/** What is told of once it has held for long enough. */
interface Finding {
  readonly family: Family;
  readonly text: string;
  readonly event: () => ProxyEvent;
}

interface Held {
  readonly finding: Finding;
  readonly since: number;
  reported: boolean;
}

export interface ConflictReportsOptions {
  readonly clock: Clock;
  readonly log: Log;
  readonly events: EventRecorder;
}

/**
 * Tells the log and the users of Services of conflicts that they lose, and of what the platform does not do for them: once of what stays, and the log once when
 * it is settled.
 */
export class ConflictReports {
  private held = new Map<string, Held>();
  private cancelTimer: (() => void) | null = null;

  constructor(private readonly options: ConflictReportsOptions) {}

  /** These are a family's now. Returns how many conflicts there are. */
  update(family: Family, conflicts: Iterable<Conflict>, shortfalls: Iterable<Shortfall>): number {
    const { clock, log } = this.options;
    const before = this.held;
    this.held = new Map([...before].filter(([, { finding }]) => finding.family !== family));
    const hold = (finding: Finding): void => {
      const { text } = finding;
      this.held.set(text, before.get(text) ?? { finding, since: clock.now(), reported: false });
    };
    const others = this.held.size;
    for (const conflict of conflicts) hold(conflictFinding(conflict));
    const count = this.held.size - others;
    for (const shortfall of shortfalls) hold(shortfallFinding(shortfall));
    for (const [text, { reported }] of before) if (reported && !this.held.has(text)) log.info(1, `settled: ${text}`);
    this.reportSettled();
    return count;
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
    held.reported = true;
    log.warn(text);
    events.record(held.finding.event());
  }
}

function conflictFinding(conflict: Conflict): Finding {
  const { family, winner, loser } = conflict;
  const event = (): ProxyEvent => ({
    type: 'Warning',
    reason: 'AddressConflict',
    action: 'ProgramService',
    regarding: serviceSubject(loser),
    related: serviceSubject(winner),
    note: `${printHolder(conflict)}; ${loser} gets no connections there`,
  });
  return { family, text: printConflict(conflict), event };
}

function shortfallFinding(shortfall: Shortfall): Finding {
  const { family, cause, servicePort, text } = shortfall;
  const event = (): ProxyEvent => ({
    type: 'Warning',
    reason: { platform: 'NotSupported', limit: 'TooManyFrontends' }[cause],
    action: 'ProgramService',
    regarding: serviceSubject(servicePort),
    related: null,
    note: `${servicePort}: ${text}`,
  });
  return { family, text: printShortfall(shortfall), event };
}
