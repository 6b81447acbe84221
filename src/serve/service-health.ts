import type { RequestListener, Server } from 'node:http';
import type { Clock } from '../base/clock.js';
import { errorCode } from '../base/error-message.js';
import { familyOf, type Family, type IPAddress } from '../base/ip.js';
import type { Log } from '../base/log.js';
import type { FamilyHealthChecks, HealthChecks } from '../control/family-sync.js';
import type { ObjectKey } from '../state/rows.js';
import type { ClientShares } from './client-shares.js';
import { ConnectionLimit } from './connection-limit.js';
import { answerWhole, JSON_HEADERS, listen, shut, WILDCARD } from './listener.js';

/** Time between attempts to listen where it failed, unless a sync comes first. */
const LISTEN_RETRY_MS = 5000;
/** Of all Services together: there may be a thousand of them, and each has a listener open to all clients. */
export const MAX_CONNECTIONS = 1024;

/** One family's health checks as of its last successful sync. */
interface ServiceHealthOptions {
  /** Whether the proxy itself is healthy; asked at each request. */
  readonly proxyHealthy: () => boolean;
  readonly shares: ClientShares;
  readonly clock: Clock;
  readonly log: Log;
  /** Called when a Service's port cannot be listened on: once until it works again or fails for another reason. */
  readonly onListenFailure: (service: ObjectKey, port: number, error: Error) => void;
}

/** One Service in one family: all its sockets, or none. */
interface Check {
  readonly service: ObjectKey;
  readonly family: Family;
  readonly port: number;
  localEndpoints: number;
  readonly servers: Map<IPAddress, Server>;
  /** Code of the failure reported last; null when all is well. */
  failure: string | null;
}

/**
 * The servers on Services' health check node ports, which tell load balancers whether this node has endpoints of its own. `sync` only
 * notes what is wanted and returns; sockets follow in the background, one reconciliation at a time, closing before opening.
 */
export class ServiceHealth implements HealthChecks {
  private readonly checks = new Map<Family, Map<ObjectKey, Check>>();
  private readonly addresses = new Map<Family, readonly IPAddress[]>();
  /** Dropped by a sync, sockets perhaps still open. */
  private readonly dropped: Check[] = [];
  private work: Promise<void> = Promise.resolve();
  private cancelRetry: (() => void) | null = null;
  private closed = false;
  private readonly connections: ConnectionLimit;

  constructor(private readonly options: ServiceHealthOptions) {
    this.connections = new ConnectionLimit(MAX_CONNECTIONS, options.shares);
  }

  /**
   * Makes these the health checks of the families named; other families keep theirs. New endpoint counts hold when the call returns; the
   * promise resolves when the sockets are as wanted or have failed. Never rejects.
   */
  sync(families: readonly FamilyHealthChecks[]): Promise<void> {
    if (this.closed) return this.work;
    const changes = families.map((checks) => this.want(checks));
    const failing = this.all().some((check) => check.failure !== null);
    return changes.includes(true) || failing ? this.reconcile() : this.work;
  }

  async close(): Promise<void> {
    this.closed = true;
    this.dropped.push(...this.all());
    this.checks.clear();
    await this.reconcile();
  }

  private all(): readonly Check[] {
    return [...this.checks.values()].flatMap((checks) => [...checks.values()]);
  }

  /** Whether sockets have to change. */
  private want({ family, plans, addresses }: FamilyHealthChecks): boolean {
    const wanted = new Map(plans.map((plan) => [plan.service, plan]));
    const held = this.checks.get(family) ?? new Map<ObjectKey, Check>();
    this.checks.set(family, held);
    let changed = this.listenOn(family, addresses);
    for (const [service, check] of held) {
      if (wanted.get(service)?.port === check.port) continue;
      held.delete(service);
      this.dropped.push(check);
      changed = true;
    }
    for (const { service, port, localEndpoints } of wanted.values()) {
      const check = held.get(service);
      if (check !== undefined) {
        check.localEndpoints = localEndpoints;
        continue;
      }
      held.set(service, { service, family, port, localEndpoints, servers: new Map(), failure: null });
      changed = true;
    }
    return changed;
  }

  /** Whether the family's listening addresses changed. */
  private listenOn(family: Family, addresses: 'all' | readonly IPAddress[]): boolean {
    const own = addresses === 'all' ? [WILDCARD[family]] : addresses.filter((address) => familyOf(address) === family);
    const before = this.addresses.get(family) ?? [];
    const after = [...new Set(own)];
    this.addresses.set(family, after);
    return before.length !== after.length || !after.every((address) => before.includes(address));
  }

  private reconcile(): Promise<void> {
    this.work = this.work.then(() => this.reconcileOnce());
    return this.work;
  }

  private async reconcileOnce(): Promise<void> {
    this.cancelRetry?.();
    this.cancelRetry = null;
    const dropped = this.dropped.splice(0);
    // A port may move from one Service to another, or from the wildcard to single addresses: close first.
    await Promise.all([
      ...dropped.map((check) => this.closeAll(check)),
      ...this.all().map((check) => this.closeUnwanted(check)),
    ]);
    await Promise.all(this.all().map((check) => this.openMissing(check)));
    if (this.closed || !this.all().some((check) => check.failure !== null)) return;
    const { clock } = this.options;
    this.cancelRetry = clock.callAt(clock.now() + LISTEN_RETRY_MS, () => void this.reconcile());
  }

  private async closeUnwanted(check: Check): Promise<void> {
    const wanted = this.addresses.get(check.family) ?? [];
    await closeServers(
      check,
      [...check.servers.keys()].filter((address) => !wanted.includes(address)),
    );
  }

  private async closeAll(check: Check): Promise<void> {
    await closeServers(check, [...check.servers.keys()]);
  }

  private async openMissing(check: Check): Promise<void> {
    const { service, family, port, servers } = check;
    const { log, onListenFailure } = this.options;
    const onError = (error: Error): void => {
      log.error(error, 'service health server', { service, port });
    };
    try {
      for (const address of this.addresses.get(family) ?? []) {
        if (servers.has(address)) continue;
        servers.set(
          address,
          await listen({ address, port, dualStack: false }, this.handler(check), onError, this.connections),
        );
      }
      if (check.failure !== null && servers.size > 0)
        log.info(0, 'listening on health check node port again', { service, port, family });
      check.failure = null;
    } catch (error) {
      // Half of the addresses would let one load balancer see this node and another not.
      await this.closeAll(check);
      const failure = errorCode(error) ?? String(error);
      if (failure === check.failure) return;
      check.failure = failure;
      onListenFailure(service, port, error instanceof Error ? error : new Error(failure));
    }
  }

  /** Answers any method and path. */
  private handler(check: Check): RequestListener {
    const slash = check.service.indexOf('/');
    const service = { namespace: check.service.slice(0, slash), name: check.service.slice(slash + 1) };
    return (_request, response) => {
      const { localEndpoints } = check;
      const serviceProxyHealthy = this.options.proxyHealthy();
      const headers = { ...JSON_HEADERS, 'X-Load-Balancing-Endpoint-Weight': String(localEndpoints) };
      const body = JSON.stringify({ service, localEndpoints, serviceProxyHealthy }, null, '\t');
      answerWhole(response, localEndpoints !== 0 && serviceProxyHealthy ? 200 : 503, headers, body);
    };
  }
}

async function closeServers(check: Check, addresses: readonly IPAddress[]): Promise<void> {
  const servers = addresses.flatMap((address) => check.servers.get(address) ?? []);
  for (const address of addresses) check.servers.delete(address);
  await Promise.all(servers.map(shut));
}
