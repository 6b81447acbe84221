import type { FlowTraffic } from '../../dataplane/conntrack/flow-sums.js';
import type { RefusedPackets } from '../../dataplane/contract.js';
import type { FrontendPlan } from '../../plan/types.js';
import type { ObjectKey } from '../../state/rows.js';
import type { MetricFamily } from '../exposition.js';

/** What stands for a namespace, Service, port and endpoint where there are more than are distinguished: no object can have this name. */
export const OTHER = '_other';

/** What went through one port of a Service since the process counts. */
export interface PortTraffic extends FlowTraffic {
  /** Empty for the unnamed port. */
  readonly port: string;
  readonly protocol: FrontendPlan['protocol'];
  /** Empty where endpoints are not distinguished. */
  readonly endpoints: readonly (FlowTraffic & { readonly endpoint: string })[];
  readonly refused: readonly Refused[];
}

/** The same with the Service. */
export interface ServiceTraffic extends PortTraffic {
  readonly service: ObjectKey;
}

/** Packets that got no further, of one verdict and reason. */
export type Refused = Omit<RefusedPackets, 'frontend'>;

type Sum = { -readonly [Number in keyof FlowTraffic]: number };

interface PortSeries {
  readonly service: ObjectKey;
  readonly port: string;
  readonly protocol: FrontendPlan['protocol'];
  readonly sum: Sum;
  readonly endpoints: Map<string, Sum>;
  readonly refused: Map<string, Refused>;
}

export interface SeriesLimits {
  /** Whether endpoints are distinguished. */
  readonly endpoints: boolean;
  /** How many Service ports are, and how many endpoints of all of them together. */
  readonly max: number;
}

/** What went through each port of a Service, and to each endpoint where that is asked for. However many there are, it is so large and no larger. */
export class ServiceSeries {
  private readonly ports = new Map<string, PortSeries>();
  /** Of Service ports that are not distinguished. */
  private readonly rest: Sum = nothing();
  private readonly restRefused: PortSeries['refused'] = new Map();
  private isRestUsed = false;
  private endpointCount = 0;

  constructor(private readonly limits: SeriesLimits) {}

  /**
   * Adds what came on top.
   *
   * @param endpoint asked for where endpoints are distinguished.
   */
  add(frontend: Pick<FrontendPlan, 'servicePort' | 'protocol'>, endpoint: () => string, more: FlowTraffic): void {
    const series = this.seriesOf(frontend);
    if (series === null) {
      this.isRestUsed = true;
      addTo(this.rest, more);
      return;
    }
    addTo(series.sum, more);
    if (this.limits.endpoints) addTo(this.endpointSum(series, endpoint()), more);
  }

  /** Adds packets that got no further, to any frontend of a Service port. */
  addRefused(
    frontend: Pick<FrontendPlan, 'servicePort' | 'protocol'>,
    { verdict, reason, packets: more }: Refused,
  ): void {
    const series = this.seriesOf(frontend);
    this.isRestUsed ||= series === null;
    const refused = series?.refused ?? this.restRefused;
    const key = `${verdict} ${reason}`;
    refused.set(key, { verdict, reason, packets: more + (refused.get(key)?.packets ?? 0) });
  }

  /** Services that are gone make room for others. */
  retain(exists: (service: ObjectKey) => boolean): void {
    for (const [key, series] of this.ports) {
      if (exists(series.service)) continue;
      this.endpointCount -= series.endpoints.size;
      this.ports.delete(key);
    }
  }

  /** Endpoints of a Service port that are in none of its lists any more are left out from now on. @param current asked for if there is any series of one. */
  retainEndpoints(frontend: Pick<FrontendPlan, 'servicePort' | 'protocol'>, current: () => ReadonlySet<string>): void {
    const series = this.ports.get(keyOf(frontend));
    if (series === undefined || series.endpoints.size === 0) return;
    const kept = current();
    for (const endpoint of series.endpoints.keys()) {
      if (endpoint === OTHER || kept.has(endpoint)) continue;
      series.endpoints.delete(endpoint);
      this.endpointCount--;
    }
  }

  /** Of one Service; what is not distinguished is not there. */
  trafficOf(service: ObjectKey): readonly PortTraffic[] {
    return [...this.ports.values()].filter((series) => series.service === service).map(portTraffic);
  }

  /** Of all Services; the last is of those that are not distinguished, where there are some. */
  traffic(): readonly ServiceTraffic[] {
    const all = [...this.ports.values()].map((series) => ({ service: series.service, ...portTraffic(series) }));
    if (!this.isRestUsed) return all;
    const refused = [...this.restRefused.values()];
    return [...all, { service: OTHER, port: '', protocol: 'TCP', ...this.rest, endpoints: [], refused }];
  }

  families(): readonly MetricFamily[] {
    const { rest, restRefused } = this;
    const ports = [...this.ports.values()].map((series) => ({ ...series, labels: labelsOf(series) }));
    const others = { namespace: OTHER, service: OTHER, port: OTHER, protocol: OTHER };
    const counted: readonly (Counted & Pick<PortSeries, 'refused'>)[] = this.isRestUsed
      ? [...ports, { labels: others, sum: rest, refused: restRefused }]
      : ports;
    const endpoints = [...this.ports.values()].flatMap((series) =>
      [...series.endpoints].map(([endpoint, sum]) => ({ labels: { ...labelsOf(series), endpoint }, sum })),
    );
    return [
      ...familiesOf('pointsman_service', 'to a Service port', counted),
      ...(['refused', 'dropped'] as const).map((verdict) => refusedFamily(verdict, counted)),
      ...familiesOf('pointsman_service_endpoint', 'to an endpoint of a Service port', endpoints),
    ];
  }

  private seriesOf(frontend: Pick<FrontendPlan, 'servicePort' | 'protocol'>): PortSeries | null {
    const key = keyOf(frontend);
    const known = this.ports.get(key);
    if (known !== undefined) return known;
    if (this.ports.size >= this.limits.max) return null;
    const [service = '', port = ''] = frontend.servicePort.split(':');
    const made = { service, port, protocol: frontend.protocol, sum: nothing() };
    const series: PortSeries = { ...made, endpoints: new Map(), refused: new Map() };
    this.ports.set(key, series);
    return series;
  }

  private endpointSum({ endpoints }: PortSeries, endpoint: string): Sum {
    const known = endpoints.get(endpoint);
    if (known !== undefined) return known;
    const name = this.endpointCount < this.limits.max ? endpoint : OTHER;
    const sum = endpoints.get(name) ?? nothing();
    if (!endpoints.has(name)) {
      endpoints.set(name, sum);
      this.endpointCount++;
    }
    return sum;
  }
}

function portTraffic({ port, protocol, sum, endpoints, refused }: PortSeries): PortTraffic {
  return {
    port,
    protocol,
    ...sum,
    endpoints: [...endpoints].map(([endpoint, each]) => ({ endpoint, ...each })),
    refused: [...refused.values()],
  };
}

function keyOf({ servicePort, protocol }: Pick<FrontendPlan, 'servicePort' | 'protocol'>): string {
  return `${servicePort}/${protocol}`;
}

function labelsOf({ service, port, protocol }: PortSeries): Record<string, string> {
  const [namespace = '', name = ''] = service.split('/');
  return { namespace, service: name, port, protocol };
}

function nothing(): Sum {
  return { connections: 0, requestPackets: 0, requestBytes: 0, replyPackets: 0, replyBytes: 0 };
}

function addTo(sum: Sum, more: FlowTraffic): void {
  sum.connections += more.connections;
  sum.requestPackets += more.requestPackets;
  sum.requestBytes += more.requestBytes;
  sum.replyPackets += more.replyPackets;
  sum.replyBytes += more.replyBytes;
}

interface Counted {
  readonly labels: Record<string, string>;
  readonly sum: FlowTraffic;
}

function familiesOf(prefix: string, what: string, counted: readonly Counted[]): readonly MetricFamily[] {
  const directed = (request: keyof FlowTraffic, reply: keyof FlowTraffic): MetricFamily['values'] =>
    counted.flatMap(({ labels, sum }) => [
      { labels: { ...labels, direction: 'request' }, value: sum[request] },
      { labels: { ...labels, direction: 'reply' }, value: sum[reply] },
    ]);
  return [
    {
      name: `${prefix}_connections_total`,
      help: `Connections, or flows of datagrams, ${what} from this node.`,
      type: 'counter',
      values: counted.map(({ labels, sum }) => ({ labels, value: sum.connections })),
    },
    {
      name: `${prefix}_packets_total`,
      help: `Packets of connections ${what}.`,
      type: 'counter',
      values: directed('requestPackets', 'replyPackets'),
    },
    {
      name: `${prefix}_bytes_total`,
      help: `Bytes of connections ${what}, with the headers of IP.`,
      type: 'counter',
      values: directed('requestBytes', 'replyBytes'),
    },
  ];
}

function refusedFamily(
  verdict: Refused['verdict'],
  counted: readonly (Counted & Pick<PortSeries, 'refused'>)[],
): MetricFamily {
  return {
    name: `pointsman_service_${verdict}_packets_total`,
    help: `Packets to a Service port that this node ${verdict}: the first of a connection and those that repeat it.`,
    type: 'counter',
    values: counted.flatMap(({ labels, refused }) =>
      [...refused.values()]
        .filter((each) => each.verdict === verdict)
        .map(({ reason, packets }) => ({ labels: { ...labels, reason }, value: packets })),
    ),
  };
}
