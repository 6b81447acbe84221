import type { Clock } from '../base/clock.js';
import type { Family } from '../base/ip.js';
import type { Log } from '../base/log.js';
import type { FamilyDataplane, RefusedPackets } from '../dataplane/contract.js';
import type { ServiceSeries } from '../observe/telemetry/service-series.js';
import type { ForwardingTable } from '../plan/forwarding-table.js';
import { CountPoller } from './count-poller.js';

/** Rules in force, and the plan that says whose they are. */
export interface RefusingFamily {
  readonly table: Pick<ForwardingTable, 'family' | 'frontend' | 'plan' | 'counts'>;
  /** Another one from the moment that another mode is in force. */
  readonly dataplane: Pick<FamilyDataplane, 'refused'>;
}

interface ServiceRefusalsParts {
  readonly families: readonly RefusingFamily[];
  readonly series: ServiceSeries;
  readonly log: Log;
  readonly clock: Clock;
}

/** What the kernel had counted when it was last asked. */
interface Look {
  readonly dataplane: RefusingFamily['dataplane'];
  readonly counts: ReadonlyMap<string, RefusedPackets>;
}

/** Takes what rules have counted of packets that they refused and dropped, and counts it for the Service port whose frontend they were addressed to. */
export class ServiceRefusals extends CountPoller<ServiceRefusalsParts> {
  private readonly looks = new Map<Family, Look>();

  constructor(parts: ServiceRefusalsParts) {
    const tables = parts.families.map(({ table }) => table);
    super(parts, tables, 'cannot count refused packets of Services');
  }

  protected override async take(): Promise<void> {
    const { families, series } = this.parts;
    series.retain((service) => families.some(({ table }) => table.plan(service) !== undefined));
    await Promise.all(families.map(({ table, dataplane }) => this.takeOf(table, dataplane)));
  }

  private async takeOf(table: RefusingFamily['table'], dataplane: RefusingFamily['dataplane']): Promise<void> {
    const rows = await dataplane.refused();
    const before = this.looks.get(table.family);
    const counts = added(rows);
    this.looks.set(table.family, { dataplane, counts });
    // What rules of a mode had counted when they were first looked at was before this process counts.
    if (before?.dataplane !== dataplane) return;
    for (const [key, row] of counts) {
      const seen = before.counts.get(key)?.packets ?? 0;
      const frontend = table.frontend(row.frontend);
      // Less than before is another counter, from the beginning.
      const packets = row.packets < seen ? row.packets : row.packets - seen;
      if (packets > 0 && frontend !== undefined) this.parts.series.addRefused(frontend, { ...row, packets });
    }
  }
}

/** What belongs together in one row. */
function added(rows: readonly RefusedPackets[]): ReadonlyMap<string, RefusedPackets> {
  const counts = new Map<string, RefusedPackets>();
  for (const row of rows) {
    if (row.packets === 0) continue;
    const key = `${row.frontend} ${row.verdict} ${row.reason}`;
    const packets = row.packets + (counts.get(key)?.packets ?? 0);
    counts.set(key, { ...row, packets });
  }
  return counts;
}
