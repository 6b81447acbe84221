import type { Clock } from '../base/clock.js';
import { serviceSubject, type EventRecorder } from '../base/events.js';
import type { Family } from '../base/ip.js';
import type { Log } from '../base/log.js';
import type { FamilyDataplane, UnrememberedClients } from '../dataplane/contract.js';
import type { ProxyMetrics } from '../observe/metrics.js';
import type { ForwardingTable } from '../plan/forwarding-table.js';
import { frontendKey, parseFrontendKey } from '../plan/frontend-key.js';
import type { FrontendKey } from '../plan/types.js';
import { CountPoller } from './count-poller.js';

/** Rules in force, and the plan that says whose they are. */
interface RememberingFamily {
  readonly table: Pick<ForwardingTable, 'family' | 'frontend' | 'counts'>;
  /** Another one from the moment that another mode is in force. */
  readonly dataplane: Pick<FamilyDataplane, 'unremembered'>;
}

interface AffinityOverflowParts {
  readonly families: readonly RememberingFamily[];
  readonly metrics: Pick<ProxyMetrics, 'unremembered'>;
  readonly log: Log;
  readonly events: EventRecorder;
  readonly clock: Clock;
}

/** A Service port whose session affinity had no room for clients lately. */
export interface FullAffinity {
  readonly servicePort: string;
  /** Whose clients were not remembered, as the kernel counts them. */
  readonly connections: number;
}

/** What the kernel had counted when it was last asked. */
interface Look {
  readonly dataplane: RememberingFamily['dataplane'];
  readonly counts: ReadonlyMap<FrontendKey, number>;
}

/**
 * Takes what rules have counted of clients for whom session affinity had no room, for the metrics and the status, and reports each Service port once, until it
 * had room for as long as the kernel remembers.
 */
export class AffinityOverflow extends CountPoller<AffinityOverflowParts> {
  private readonly looks = new Map<Family, Look>();
  private readonly full = new Map<Family, ReadonlyMap<string, FullAffinity>>();

  constructor(parts: AffinityOverflowParts) {
    const tables = parts.families.map(({ table }) => table);
    super(parts, tables, 'cannot count clients without room in session affinity');
  }

  of(family: Family): readonly FullAffinity[] {
    return [...(this.full.get(family)?.values() ?? [])];
  }

  protected override async take(): Promise<void> {
    await Promise.all(this.parts.families.map((family) => this.takeOf(family)));
  }

  private async takeOf({ table, dataplane }: RememberingFamily): Promise<void> {
    const { family } = table;
    const rows = await dataplane.unremembered();
    const before = this.looks.get(family);
    const counts = new Map(rows?.map(({ asked, connections }) => [asked, connections]));
    this.looks.set(family, { dataplane, counts });
    // What a mode's rules had counted when they were first looked at was before this process counts.
    const isFirst = before?.dataplane !== dataplane;
    if (rows !== null) this.parts.metrics.unremembered(family, isFirst ? 0 : increase(before.counts, counts));
    this.report(table, rows ?? []);
  }

  private report(table: RememberingFamily['table'], rows: readonly UnrememberedClients[]): void {
    const { family } = table;
    const before = this.full.get(family);
    const now = new Map<string, FullAffinity>();
    for (const { asked, connections } of rows) {
      const servicePort = ownerOf(table, asked);
      if (servicePort === null || connections === 0) continue;
      now.set(servicePort, { servicePort, connections: connections + (now.get(servicePort)?.connections ?? 0) });
    }
    this.full.set(family, now);
    const { log, events } = this.parts;
    for (const servicePort of now.keys()) {
      if (before?.has(servicePort) === true) continue;
      log.warn('session affinity has no room for more clients: they are balanced anew', { family, servicePort });
      events.record({
        type: 'Warning',
        reason: 'AffinityFull',
        action: 'ProgramService',
        regarding: serviceSubject(servicePort),
        related: null,
        note: `${servicePort}: session affinity has no room for more clients in ${family}: new ones are balanced, and not remembered`,
        // On as many nodes as clients reach: one is enough.
        finding: `${family} affinity ${servicePort}`,
      });
    }
    for (const servicePort of before?.keys() ?? [])
      if (!now.has(servicePort)) log.info(1, 'session affinity has room again', { family, servicePort });
  }
}

/** In one line, as the status has it. */
export function printFullAffinity({ servicePort, connections }: FullAffinity): string {
  return `no room for session affinity: ${servicePort}, ${connections} connections of clients that are not remembered`;
}

/** The Service port that clients asked for; null: none has this any more. */
function ownerOf(table: RememberingFamily['table'], asked: FrontendKey): string | null {
  const { port, protocol } = parseFrontendKey(asked);
  const plan = table.frontend(asked) ?? table.frontend(frontendKey(null, port, protocol));
  return plan?.servicePort ?? null;
}

/** Less than before is another counter, from the beginning. */
function increase(before: ReadonlyMap<FrontendKey, number>, now: ReadonlyMap<FrontendKey, number>): number {
  let sum = 0;
  for (const [key, count] of now) {
    const seen = before.get(key) ?? 0;
    sum += count < seen ? count : count - seen;
  }
  return sum;
}
