import type { Clock } from '../base/clock.js';
import { messageOf } from '../base/error-message.js';
import { isLoopback, type IPAddress } from '../base/ip.js';
import type { Log } from '../base/log.js';
import { attribute } from '../dataplane/conntrack/flow-sums.js';
import { Turns } from '../dataplane/turns.js';
import type { FlowCounter } from '../native/contract.js';
import type { MetricFamily } from '../observe/exposition.js';
import type { ServiceSeries } from '../observe/telemetry/service-series.js';
import type { ForwardingTable } from '../plan/forwarding-table.js';
import type { FrontendPlan } from '../plan/types.js';
import type { ObjectKey } from '../state/rows.js';

export interface ServiceFlowsParts {
  readonly counter: Pick<FlowCounter, 'take' | 'stop'>;
  readonly tables: readonly Pick<ForwardingTable, 'family' | 'frontend' | 'plan' | 'counts'>[];
  readonly localAddresses: () => readonly IPAddress[];
  readonly series: ServiceSeries;
  readonly log: Log;
  readonly clock: Clock;
}

/** Without anybody who asks. What ends is kept by its way until then, and finds its Service if that is still there. */
const INTERVAL_MS = 30_000;
/** Of the time, to list flows: 50,000 take a sixth of a second. */
const SHARE = 0.01;

/** Takes what the kernel says of flows, and counts it for the Service port whose frontend they were addressed to. */
export class ServiceFlows {
  private readonly turns: Turns;
  private pass: Promise<void> | null = null;
  private cancel: (() => void) | null = null;
  private stopped = false;
  /** What was there before is known. */
  private based = false;
  private planned = false;
  private overruns = 0;
  private unattributed = 0;
  private leftOut = 0;
  private living = 0;
  private failure: string | null = null;
  /** Service ports that changed since the last pass. */
  private readonly changed = new Map<string, FrontendPlan>();

  constructor(private readonly parts: ServiceFlowsParts) {
    const { clock } = parts;
    this.turns = new Turns(() => clock.now(), SHARE);
  }

  /** Resolves when what was there before is known, which does not count. Never rejects. */
  async start(): Promise<void> {
    await this.collect();
    this.schedule();
  }

  stop(): void {
    this.stopped = true;
    this.cancel?.();
    this.parts.counter.stop();
  }

  /** What was counted by now is in the series, unless the last look is so recent that another would cost more than its share. Never rejects. */
  async collect(): Promise<void> {
    if (this.pass === null && (!this.turns.isDue || this.stopped || !this.isPlanned())) return;
    this.pass ??= this.turns
      .take(() => this.take())
      .then(
        () => {
          this.failed(null);
        },
        (error: unknown) => {
          this.failed(error);
        },
      )
      .finally(() => {
        this.pass = null;
      });
    await this.pass;
  }

  /** The frontend's Service port has other endpoints than before. */
  frontendChanged(frontend: FrontendPlan): void {
    this.changed.set(`${frontend.servicePort}/${frontend.protocol}`, frontend);
  }

  /** How well it counts. */
  families(): readonly MetricFamily[] {
    const row = (name: string, type: MetricFamily['type'], help: string, value: number): MetricFamily => ({
      name: `pointsman_service_telemetry_${name}`,
      ...{ help, type, values: [{ labels: {}, value }] },
    });
    return [
      row('overruns_total', 'counter', 'Times that ends of flows came faster than they were read.', this.overruns),
      row(
        'unattributed_connections_total',
        'counter',
        'Translated connections that were to no frontend of a Service.',
        this.unattributed,
      ),
      row('left_out_connections_total', 'counter', 'Connections beyond those that are told apart.', this.leftOut),
      row('flows', 'gauge', 'Translated flows that were there when they were last listed.', this.living),
    ];
  }

  private schedule(): void {
    const { clock } = this.parts;
    if (this.stopped) return;
    this.cancel = clock.callAt(clock.now() + INTERVAL_MS, () => {
      void this.collect().then(() => {
        this.schedule();
      });
    });
  }

  private async take(): Promise<void> {
    const { counter, tables, localAddresses, series } = this.parts;
    const sums = await counter.take();
    this.based = true;
    this.overruns += sums.overruns;
    this.leftOut += sums.leftOut[0] ?? 0;
    this.living = sums.living;
    const local = new Set(localAddresses());
    const isLocal = (address: IPAddress): boolean => isLoopback(address) || local.has(address);
    this.unattributed += await attribute(sums, { tables, isLocal }, (...counted) => {
      series.add(...counted);
    });
    series.retain((service) => this.exists(service));
    for (const frontend of this.changed.values()) series.retainEndpoints(frontend, () => this.endpointsOf(frontend));
    this.changed.clear();
  }

  /** Rules of a process before this one may forward already: what goes through them waits until there is a plan that says whose it is. */
  private isPlanned(): boolean {
    this.planned ||= this.parts.tables.some(({ counts }) => counts.services > 0);
    return this.planned || !this.based;
  }

  private exists(service: ObjectKey): boolean {
    return this.parts.tables.some((table) => table.plan(service) !== undefined);
  }

  /** Those that connections may go to, or that flows may keep. */
  private endpointsOf({ servicePort, protocol }: FrontendPlan): ReadonlySet<string> {
    const [service = ''] = servicePort.split(':');
    const frontends = this.parts.tables.flatMap((table) => table.plan(service)?.frontends ?? []);
    const own = frontends.filter((frontend) => frontend.servicePort === servicePort && frontend.protocol === protocol);
    const lists = own.flatMap(({ endpoints, localEndpoints, flowEndpoints }) => [
      endpoints,
      localEndpoints,
      flowEndpoints,
    ]);
    return new Set(lists.flatMap((list) => list?.toStrings() ?? []));
  }

  /** Speaks when it breaks and when the reason changes. */
  private failed(error: unknown): void {
    const message = error === null ? null : messageOf(error);
    if (message !== null && message !== this.failure) this.parts.log.error(error, 'cannot count flows of Services');
    this.failure = message;
  }
}
