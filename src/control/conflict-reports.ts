import type { Clock } from '../base/clock.js';
import { serviceSubject, type EventRecorder, type ProxyEvent } from '../base/events.js';
import type { Family } from '../base/ip.js';
import type { Log } from '../base/log.js';
import type { ForwardingTable } from '../plan/forwarding-table.js';
import { printConflictPair, printCount, printHolder, printLimitation } from '../plan/text.js';
import type { ConflictPair, ServiceLimitation } from '../plan/types.js';
import { serviceOf } from '../plan/frontend-key.js';

/**
 * How long a conflict must have held before it is reported. Two Services that exchange a port do so by two events of a watch, in between which both
 * have it: that is no news.
 */
const SETTLED_MS = 3000;

/** What is reported once it has held for long enough. */
interface Finding {
  readonly family: Family;
  /** The same for all that two Services claim both, however many frontends these are. */
  readonly key: string;
  readonly text: () => string;
  /** The same event for both families: its `finding` names none. */
  readonly event: () => ProxyEvent;
}

interface Held {
  /** As of now. */
  finding: Finding;
  readonly since: number;
  reported: boolean;
}

interface ConflictReportsOptions {
  readonly clock: Clock;
  readonly log: Log;
  readonly events: EventRecorder;
}

/** So many lines at once: one Service of a tenant may be in conflict with all others. */
export const LINES = 100;

/** A family's table, as far as it says what Services do not get. */
export type Findings = Pick<ForwardingTable, 'family' | 'conflictPairs' | 'limitations' | 'findingsVersion'>;

/**
 * Tells the log and the users of Services of conflicts that they lose, and of what they do not get otherwise: of two Services once, however many frontends both
 * claim, and the log once when it is resolved.
 */
export class ConflictReports {
  private held = new Map<string, Held>();
  private readonly versions = new Map<Family, number>();
  private cancelTimer: (() => void) | null = null;

  constructor(private readonly options: ConflictReportsOptions) {}

  /** A family has been synced. Takes time only where its findings have changed. */
  update(table: Findings): void {
    const { clock } = this.options;
    const { family, findingsVersion } = table;
    if (this.versions.get(family) === findingsVersion) return;
    this.versions.set(family, findingsVersion);
    const before = this.held;
    this.held = new Map([...before].filter(([, { finding }]) => finding.family !== family));
    const hold = (finding: Finding): void => {
      const held = before.get(finding.key) ?? { finding, since: clock.now(), reported: false };
      held.finding = finding;
      this.held.set(finding.key, held);
    };
    for (const pair of table.conflictPairs()) hold(conflictFinding(pair));
    for (const limitation of table.limitations()) hold(limitationFinding(limitation));
    this.reportGone([...before].flatMap(([key, held]) => (held.reported && !this.held.has(key) ? held : [])));
    this.reportSettled();
  }

  private reportGone(gone: readonly Held[]): void {
    const { log } = this.options;
    for (const { finding } of gone.slice(0, LINES)) log.info(0, `resolved: ${finding.text()}`);
    if (gone.length > LINES) log.info(0, `resolved: ${gone.length - LINES} more conflicts`);
  }

  private reportSettled(): void {
    const { clock, log, events } = this.options;
    this.cancelTimer?.();
    this.cancelTimer = null;
    const now = clock.now();
    let next = Infinity;
    let reported = 0;
    for (const held of this.held.values()) {
      if (held.reported) continue;
      const due = held.since + SETTLED_MS;
      if (due > now) {
        next = Math.min(next, due);
        continue;
      }
      held.reported = true;
      if (++reported <= LINES) log.warn(held.finding.text());
      events.record(held.finding.event());
    }
    if (reported > LINES)
      log.warn('more Services are in conflict; pointsman status has them', { more: reported - LINES });
    if (next === Infinity) return;
    this.cancelTimer = clock.callAt(next, () => {
      this.reportSettled();
    });
  }
}

function conflictFinding(pair: ConflictPair): Finding {
  const { first } = pair;
  const { family, winner, loser } = first;
  const pairKey = `conflict ${serviceOf(winner)} ${serviceOf(loser)}`;
  const event = (): ProxyEvent => ({
    finding: pairKey,
    type: 'Warning',
    reason: 'AddressConflict',
    action: 'ProgramService',
    regarding: serviceSubject(loser),
    related: serviceSubject(winner),
    note: `${printHolder(first)}; ${loser} gets no connections there${printCount(pair)}`,
  });
  return { family, key: `${family} ${pairKey}`, text: () => printConflictPair(pair), event };
}

const REASONS: Readonly<Record<ServiceLimitation['cause'], string>> = {
  platform: 'NotSupported',
  limit: 'TooManyFrontends',
  'source-ranges': 'EveryClientAdmitted',
  annotation: 'InvalidAnnotation',
  address: 'AddressRefused',
  mode: 'NotSupported',
  slots: 'NoSlots',
};

function limitationFinding(limitation: ServiceLimitation): Finding {
  const { family, cause, servicePort, text } = limitation;
  // A Service has several limitations of the platform, told apart by their texts; of each other cause it has one.
  const causeKey = `${cause} ${servicePort}${cause === 'platform' ? ` ${text}` : ''}`;
  const event = (): ProxyEvent => ({
    finding: causeKey,
    type: 'Warning',
    reason: REASONS[cause],
    action: 'ProgramService',
    regarding: serviceSubject(servicePort),
    related: null,
    note: `${servicePort}: ${text}`,
  });
  return { family, key: `${family} ${causeKey}`, text: () => printLimitation(limitation), event };
}
