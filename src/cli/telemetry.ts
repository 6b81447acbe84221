import type { Clock } from '../base/clock.js';
import type { Family, IPAddress } from '../base/ip.js';
import type { Log } from '../base/log.js';
import type { TelemetryConfig } from '../config/telemetry.js';
import { ServiceFlows } from '../control/service-flows.js';
import { ServiceRefusals, type RefusingFamily } from '../control/service-refusals.js';
import type { ConntrackAddon } from '../native/contract.js';
import type { MetricFamily } from '../observe/exposition.js';
import { ProgrammingTimes } from '../observe/telemetry/programming-times.js';
import { ServiceSeries, type PortTraffic } from '../observe/telemetry/service-series.js';
import type { CountedTraffic, ServiceTelemetry } from '../observe/telemetry/service-telemetry.js';
import { attemptFamilies } from '../observe/telemetry/attempt-series.js';
import type { AcknowledgedSync, Commit } from '../observe/cycle-observer.js';
import type { ObjectKey } from '../state/rows.js';
import type { Attempts } from './attempts.js';

interface TelemetryParts {
  readonly config: TelemetryConfig;
  readonly conntrack: Pick<ConntrackAddon, 'conntrackCount'>;
  readonly families: readonly RefusingFamily[];
  readonly localAddresses: () => readonly IPAddress[];
  readonly attempts: Pick<Attempts, 'always' | 'ask'>;
  readonly log: Log;
  readonly clock: Clock;
}

/** The most rows that the addon counts between two readings: some ten megabytes. */
const MOST_WAYS = 65_536;
/** Flows end in bursts, when the kernel collects expired ones. Some 25,000 fit. The kernel takes memory only for waiting ones. */
const ENDS_BUFFER = 32 << 20;

/**
 * Starts to count the traffic of Services. If the kernel's flows cannot be followed, this is logged, and the rest is counted.
 */
export async function openTelemetry(parts: TelemetryParts): Promise<ServiceTelemetry> {
  const { config, conntrack, families, log, clock } = parts;
  const series = new ServiceSeries(config);
  const refusals = new ServiceRefusals({ families, series, log, clock });
  await Promise.all([refusals.start(), parts.attempts.always()]);
  const tables = families.map(({ table }) => table);
  let flows: ServiceFlows | null = null;
  try {
    flows = new ServiceFlows({ ...parts, tables, counter: conntrack.conntrackCount(MOST_WAYS, ENDS_BUFFER), series });
    await flows.start();
  } catch (error) {
    log.error(error, 'flows of Services are not counted', { flag: '--service-telemetry' });
  }
  const times = new ProgrammingTimes(() => clock.now(), config.max);
  const attempts = async (): Promise<readonly MetricFamily[]> => {
    const { tallies } = await parts.attempts.ask();
    return attemptFamilies([...tallies.values()], config.max);
  };
  return new Telemetry(series, flows, refusals, attempts, times, tables);
}

class Telemetry implements ServiceTelemetry {
  constructor(
    private readonly series: ServiceSeries,
    private readonly flows: ServiceFlows | null,
    private readonly refusals: ServiceRefusals,
    private readonly attempts: () => Promise<readonly MetricFamily[]>,
    private readonly times: ProgrammingTimes,
    private readonly tables: readonly RefusingFamily['table'][],
  ) {}

  committed(commit: Commit): void {
    this.times.committed(commit);
  }

  took(family: Family): void {
    this.times.took(family);
  }

  deferred(family: Family, services: ReadonlySet<ObjectKey>): void {
    this.times.deferred(family, services);
  }

  acknowledged(sync: AcknowledgedSync): void {
    this.times.acknowledged(sync);
    for (const key of sync.changes.frontends) {
      const frontend = sync.table.frontend(key);
      if (frontend !== undefined) this.flows?.frontendChanged(frontend);
    }
  }

  async families(): Promise<readonly MetricFamily[]> {
    await this.collect();
    this.times.retain((service) => this.tables.some((table) => table.plan(service) !== undefined));
    const attempts = await this.attempts();
    return [...this.series.families(), ...attempts, ...(this.flows?.families() ?? []), this.times.family()];
  }

  trafficOf(service: ObjectKey): readonly PortTraffic[] {
    void this.collect();
    return this.series.trafficOf(service);
  }

  async traffic(): Promise<CountedTraffic> {
    await this.collect();
    return { at: Math.max(0, ...this.pollers().map(({ takenAt }) => takenAt ?? 0)), services: this.series.traffic() };
  }

  stop(): void {
    this.flows?.stop();
    this.refusals.stop();
  }

  /** All or none, so that all numbers are of one time. */
  private async collect(): Promise<void> {
    const pollers = this.pollers();
    if (pollers.every(({ isDue }) => isDue)) await Promise.all(pollers.map((poller) => poller.collect()));
  }

  private pollers(): readonly Pick<ServiceRefusals, 'isDue' | 'takenAt' | 'collect'>[] {
    return this.flows === null ? [this.refusals] : [this.flows, this.refusals];
  }
}
