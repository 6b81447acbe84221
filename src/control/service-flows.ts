import type { Clock } from '../base/clock.js';
import { isLoopback, type IPAddress } from '../base/ip.js';
import type { Log } from '../base/log.js';
import { attribute } from '../dataplane/conntrack/flow-sums.js';
import type { FlowCounter } from '../native/contract.js';
import type { MetricFamily } from '../observe/exposition.js';
import type { ServiceSeries } from '../observe/telemetry/service-series.js';
import type { ForwardingTable } from '../plan/forwarding-table.js';
import type { FrontendPlan } from '../plan/types.js';
import type { ObjectKey } from '../state/rows.js';
import { CountPoller } from './count-poller.js';
import { serviceOf } from '../plan/frontend-key.js';

interface ServiceFlowsParts {
  readonly counter: Pick<FlowCounter, 'take' | 'stop'>;
  readonly tables: readonly Pick<ForwardingTable, 'family' | 'frontend' | 'plan' | 'counts'>[];
  readonly localAddresses: () => readonly IPAddress[];
  readonly series: ServiceSeries;
  readonly log: Log;
  readonly clock: Clock;
}

/** Takes what the kernel says of flows, and counts it for the Service port whose frontend they were addressed to. */
export class ServiceFlows extends CountPoller<ServiceFlowsParts> {
  private overruns = 0;
  private unattributed = 0;
  private leftOut = 0;
  private living = 0;
  /** Service ports that changed since the last pass. */
  private readonly changed = new Map<string, FrontendPlan>();

  constructor(parts: ServiceFlowsParts) {
    super(parts, parts.tables, 'cannot count flows of Services');
  }

  override stop(): void {
    super.stop();
    this.parts.counter.stop();
  }

  /** The frontend's Service port has other endpoints than before. */
  frontendChanged(frontend: FrontendPlan): void {
    this.changed.set(`${frontend.servicePort}/${frontend.protocol}`, frontend);
  }

  /** How well it counts. */
  families(): readonly MetricFamily[] {
    const row = (name: string, type: MetricFamily['type'], help: string, value: number): MetricFamily => ({
      name: `pointsman_service_telemetry_${name}`,
      help,
      type,
      values: [{ labels: {}, value }],
    });
    return [
      row('overruns_total', 'counter', 'Times that events of ended flows were lost.', this.overruns),
      row(
        'unattributed_connections_total',
        'counter',
        'Translated connections to no frontend of a Service.',
        this.unattributed,
      ),
      row(
        'left_out_connections_total',
        'counter',
        'Connections beyond the pairs of frontend and endpoint that are counted separately.',
        this.leftOut,
      ),
      row('flows', 'gauge', 'Translated flows at the last listing.', this.living),
    ];
  }

  protected override async take(): Promise<void> {
    const { counter, tables, localAddresses, series } = this.parts;
    const sums = await counter.take();
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

  private exists(service: ObjectKey): boolean {
    return this.parts.tables.some((table) => table.plan(service) !== undefined);
  }

  /** Those that connections may go to, or that flows may keep. */
  private endpointsOf({ servicePort, protocol }: FrontendPlan): ReadonlySet<string> {
    const service = serviceOf(servicePort);
    const frontends = this.parts.tables.flatMap((table) => table.plan(service)?.frontends ?? []);
    const own = frontends.filter((frontend) => frontend.servicePort === servicePort && frontend.protocol === protocol);
    const lists = own.flatMap(({ endpoints, localEndpoints, flowEndpoints }) => [
      endpoints,
      localEndpoints,
      flowEndpoints,
    ]);
    return new Set(lists.flatMap((list) => list?.toStrings() ?? []));
  }
}
