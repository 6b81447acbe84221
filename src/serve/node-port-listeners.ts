import { createServer, type Server, type Socket } from 'node:net';
import type { EndpointList } from '../base/endpoint-list.js';
import { errorCode, messageOf } from '../base/error-message.js';
import { serviceSubject, type EventRecorder } from '../base/events.js';
import type { Family, IPAddress } from '../base/ip.js';
import { NamespacePlaces } from '../base/namespace-places.js';
import type { PackedAddress } from '../base/pack-address.js';
import type { LoopbackConnections, LoopbackTable } from '../control/loopback.js';
import type { ListenerMetricNames } from '../dataplane/mode.js';
import { ListenerMetrics } from '../observe/listener-metrics.js';
import type { ProxyMetrics } from '../observe/metrics.js';
import { anyContains } from '../plan/facts.js';
import { isDatagramKey, isNodePortKey, namespaceOf, serviceOf } from '../plan/frontend-key.js';
import { endpointsFromLoopback, pickEndpoint } from '../plan/from-loopback.js';
import type { ServiceEndpoint } from '../plan/known-departures.js';
import type { FrontendKey, FrontendPlan, ObjectKey } from '../plan/types.js';
import { KEEP_ALIVE, RelayedConnections, type RelayedConnectionsOptions } from './relayed-connections.js';

/** Listeners, and those that a namespace has in any case; both families together. */
export const MAX_LISTENERS = 1024;
export const NAMESPACE_LISTENERS = 128;
/**
 * Connections, each with a socket on both sides, and those that a namespace has in any case. A way that nobody reads has a pipe, too: beyond 1,024 pipes of a
 * user the kernel makes small ones (pipe(7), pipe-user-pages-soft), which carry fewer bytes at a time.
 */
export const MAX_CONNECTIONS = 1024;
export const NAMESPACE_CONNECTIONS = 128;
/** A namespace that was refused connections is named again once it has no more than that. */
const REPORT_AGAIN = NAMESPACE_CONNECTIONS / 2;
const LISTEN_RETRY_MS = 5000;
/** Behind the address, in an endpoint's key. */
const PORT_BYTES = 2;

export interface NodePortListenersOptions extends RelayedConnectionsOptions {
  readonly events: EventRecorder;
  readonly metrics: Pick<ProxyMetrics, 'register'>;
  /** Names of its metrics; undefined: there are none. */
  readonly names: ListenerMetricNames | undefined;
  /** For tests: at least 0, and less than 1. */
  readonly random?: () => number;
}

/** A node port of one family. */
interface Listener {
  /** `namespace/name:port`. */
  readonly servicePort: string;
  readonly address: IPAddress;
  readonly port: number;
  readonly family: Family;
  readonly service: ObjectKey;
  plan: FrontendPlan;
  /** Null: there is no endpoint, or it cannot be opened. */
  server: Server | null;
  /** The failure reported last; null when all is well. */
  failure: string | null;
  /** Session affinity: the last endpoint, and when it was used. */
  pinned: { readonly endpoint: string; readonly at: number } | null;
  readonly connections: Set<Connection>;
}

/** One client and its endpoint. */
interface Connection {
  readonly endpoint: PackedAddress;
  /** Resets it. */
  readonly end: () => void;
}

/**
 * TCP connections to node ports on loopback, which rules cannot carry to endpoints: this process accepts them, and makes one to an endpoint for each. Which
 * endpoints there are is the plan's decision. What is connected stays so while its endpoint goes on, and ends with the node port.
 */
export class NodePortListeners implements LoopbackConnections {
  private readonly listeners: Readonly<Record<Family, Map<FrontendKey, Listener>>> = {
    IPv4: new Map(),
    IPv6: new Map(),
  };
  private readonly places = {
    listeners: new NamespacePlaces(MAX_LISTENERS, NAMESPACE_LISTENERS),
    connections: new NamespacePlaces(MAX_CONNECTIONS, NAMESPACE_CONNECTIONS),
  };
  /** Namespaces that were refused connections since they had few. */
  private readonly refused = new Set<string>();
  private cancelRetry: (() => void) | null = null;

  private readonly metrics: ListenerMetrics | null;
  private readonly relayed: RelayedConnections;

  constructor(private readonly options: NodePortListenersOptions) {
    const { names } = options;
    this.relayed = new RelayedConnections(options);
    this.metrics =
      names === undefined ? null : options.metrics.register((registry) => new ListenerMetrics(registry, names));
  }

  sync(
    table: LoopbackTable,
    { frontends, node }: { readonly frontends: ReadonlySet<FrontendKey>; readonly node: boolean },
  ): void {
    const held = this.listeners[table.family];
    const address = table.node.nodePortListener;
    const keys = node ? new Set([...held.keys(), ...(address === null ? [] : allKeys(table))]) : frontends;
    for (const key of keys) {
      if (!isNodePortKey(key) || isDatagramKey(key)) continue;
      const plan = table.frontend(key);
      const isWanted = address !== null && plan !== undefined && admits(plan, address);
      const listener = held.get(key);
      if (listener !== undefined && (!isWanted || plan.servicePort !== listener.servicePort))
        this.remove(key, listener);
      if (isWanted) this.want(key, plan, address);
    }
  }

  *endpoints(family: Family): IterableIterator<ServiceEndpoint> {
    for (const { service, connections } of this.listeners[family].values())
      for (const { endpoint } of connections) yield { service, address: endpoint };
  }

  failures(family: Family): readonly string[] {
    return [...this.listeners[family].values()].flatMap((listener) => printFailure(listener) ?? []);
  }

  reset(family: Family, gone: ReadonlyMap<ObjectKey, ReadonlySet<PackedAddress>>): number {
    let count = 0;
    for (const { service, connections } of this.listeners[family].values()) {
      const addresses = gone.get(service);
      for (const connection of addresses === undefined ? [] : [...connections]) {
        if (addresses?.has(connection.endpoint) !== true) continue;
        connection.end();
        count++;
      }
    }
    return count;
  }

  close(): void {
    for (const held of Object.values(this.listeners)) for (const [key, listener] of held) this.remove(key, listener);
    this.cancelRetry?.();
    this.relayed.close();
  }

  private want(key: FrontendKey, plan: FrontendPlan, address: IPAddress): void {
    const { family, port, servicePort } = plan;
    const held = this.listeners[family];
    const listener = held.get(key) ?? {
      family,
      service: serviceOf(servicePort),
      servicePort,
      address,
      port,
      plan,
      server: null,
      failure: null,
      pinned: null,
      connections: new Set(),
    };
    held.set(key, listener);
    if (plan.affinitySeconds !== listener.plan.affinitySeconds) listener.pinned = null;
    listener.plan = plan;
    // Nobody is let in who would be sent away: the kernel refuses the connection.
    if (endpointsFromLoopback(plan).list.count > 0) this.listen(listener);
    else {
      listener.failure = null;
      this.stopListening(listener);
    }
  }

  private remove(key: FrontendKey, listener: Listener): void {
    this.stopListening(listener);
    this.listeners[listener.family].delete(key);
    for (const connection of [...listener.connections]) connection.end();
  }

  private listen(listener: Listener): void {
    if (listener.server !== null) return;
    const { service, address, port } = listener;
    if (!this.places.listeners.take(namespaceOf(service))) {
      this.failed(
        listener,
        `too many listeners: a namespace has ${NAMESPACE_LISTENERS}, all together ${MAX_LISTENERS}`,
      );
      return;
    }
    const server = createServer({ allowHalfOpen: true, pauseOnConnect: true, ...KEEP_ALIVE });
    listener.server = server;
    server.on('connection', (client) => {
      client.on('error', () => undefined);
      if (listener.server === server) this.accept(listener, client);
      else client.resetAndDestroy();
    });
    server.on('error', (error) => {
      if (listener.server !== server) return;
      this.stopListening(listener);
      this.failed(listener, errorCode(error) ?? messageOf(error));
    });
    server.listen({ host: address, port, ipv6Only: true }, () => {
      if (listener.server !== server) {
        server.close();
        return;
      }
      if (listener.failure !== null)
        this.options.log.info(0, 'node port on loopback answers again', {
          servicePort: listener.servicePort,
          address,
          port,
        });
      listener.failure = null;
      this.count(listener.family);
    });
  }

  private stopListening(listener: Listener): void {
    const { server, service } = listener;
    if (server === null) return;
    listener.server = null;
    server.close();
    this.places.listeners.free(namespaceOf(service));
    this.count(listener.family);
  }

  private failed(listener: Listener, reason: string): void {
    const isNew = listener.failure !== reason;
    listener.failure = reason;
    this.metrics?.failed(listener.family);
    this.retryLater();
    if (isNew) this.report(listener, reason);
  }

  private report(listener: Listener, reason: string): void {
    const { log, events } = this.options;
    const { servicePort, address, port } = listener;
    log.warn('cannot listen for a node port on loopback, will be retried', { servicePort, address, port, reason });
    events.record({
      type: 'Warning',
      reason: 'LocalhostNodePortFailed',
      action: 'Listen',
      regarding: serviceSubject(servicePort),
      related: null,
      note: printFailure(listener) ?? reason,
    });
  }

  private retryLater(): void {
    const { clock } = this.options;
    this.cancelRetry ??= clock.callAt(clock.now() + LISTEN_RETRY_MS, () => {
      this.cancelRetry = null;
      for (const held of Object.values(this.listeners))
        for (const listener of held.values()) if (listener.failure !== null) this.listen(listener);
    });
  }

  private accept(listener: Listener, client: Socket): void {
    const { service, plan } = listener;
    const { connections } = this.places;
    const namespace = namespaceOf(service);
    if (!connections.take(namespace)) {
      client.resetAndDestroy();
      if (!this.refused.has(namespace))
        this.options.log.warn('too many connections to node ports on loopback: new ones are reset', {
          service,
          ofNamespace: connections.takenBy(namespace),
          most: MAX_CONNECTIONS,
        });
      this.refused.add(namespace);
      return;
    }
    const { address, port, packed } = this.pick(listener, plan);
    const end = this.relayed.connect(client, { host: address, port }, () => {
      listener.connections.delete(connection);
      connections.free(namespace);
      if (connections.takenBy(namespace) <= REPORT_AGAIN) this.refused.delete(namespace);
    });
    const connection = { endpoint: packed, end };
    listener.connections.add(connection);
  }

  /** Session affinity as in kube-proxy: all clients are one, and each connection begins its time anew. */
  private pick(
    listener: Listener,
    plan: FrontendPlan,
  ): { readonly address: IPAddress; readonly port: number; readonly packed: PackedAddress } {
    const endpoints = endpointsFromLoopback(plan);
    const { list } = endpoints;
    const now = this.options.clock.now();
    const { affinitySeconds } = plan;
    const { pinned } = listener;
    const isPinned = affinitySeconds !== null && pinned !== null && now - pinned.at <= affinitySeconds * 1000;
    const held = isPinned ? placeOf(list, pinned.endpoint) : -1;
    const index = held >= 0 ? held : pickEndpoint(endpoints, (this.options.random ?? Math.random)());
    const endpoint = list.key(index);
    if (affinitySeconds !== null) listener.pinned = { endpoint, at: now };
    return { address: list.address(index), port: list.port(index), packed: endpoint.slice(0, -PORT_BYTES) };
  }

  private count(family: Family): void {
    const listening = [...this.listeners[family].values()].filter(({ server }) => server?.listening === true);
    this.metrics?.open(family, listening.length);
  }
}

/** Null: all is well. */
function printFailure({ servicePort, address, port, failure }: Listener): string | null {
  return failure === null ? null : `cannot listen on ${address} for node port ${port} of ${servicePort}: ${failure}`;
}

/** The place of an endpoint in a list; -1: it is not there. */
function placeOf(list: EndpointList, endpoint: string): number {
  for (let index = 0; index < list.count; index++) if (list.key(index) === endpoint) return index;
  return -1;
}

function allKeys(table: LoopbackTable): readonly FrontendKey[] {
  return [...table.frontends()].map(({ key }) => key);
}

function admits({ sourceRanges }: FrontendPlan, address: IPAddress): boolean {
  return sourceRanges === null || anyContains(sourceRanges, address);
}
