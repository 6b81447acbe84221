import type { IPAddress } from '../../base/ip.js';
import { frontendKey, serviceOf } from '../../plan/frontend-key.js';
import type { EndpointList } from '../../base/endpoint-list.js';
import {
  REPLACED_WHOLE,
  type FamilyTable,
  type FrontendKey,
  type FrontendPlan,
  type TableChange,
} from '../../plan/types.js';
import { handlingOf, healthCheckHandling, type Balancing, type Handling } from './load-balancers.js';

/** The mode's configuration. */
export interface KernelspaceSettings extends Balancing {
  /** Endpoint to which health checks of load balancers go; null: they are not forwarded (behaviour WK-08). */
  readonly healthCheckEndpoint: string | null;
  /** Where health is served that has no port of its own; null: nowhere. */
  readonly healthzPort: number | null;
}

/** A load balancer that is wanted, by addresses of endpoints. */
export interface Wanted {
  readonly plan: FrontendPlan;
  readonly handling: Handling;
  /** Null: the endpoint that health checks go to. */
  readonly endpoints: readonly IPAddress[] | null;
  /** Whether HNS may change it in place. */
  readonly inPlace: boolean;
}

export type Changes = Pick<TableChange, 'frontends' | 'healthChecks' | 'node' | 'ownEndpoints'>;

/** The desired load balancers, and which of them use an endpoint. Knows nothing of HNS. */
export class Desired {
  private readonly wanted = new Map<FrontendKey, Wanted>();
  private readonly users = new Map<IPAddress, Set<FrontendKey>>();
  /** Addresses of endpoints that are left to end their connections, and by which frontends. */
  private readonly leaving = new Map<IPAddress, Set<FrontendKey>>();
  private readonly leavingOf = new Map<FrontendKey, readonly IPAddress[]>();
  /** Frontends of load balancers' addresses that have endpoints. */
  private readonly ingress = new Set<FrontendKey>();
  private checks: ReadonlySet<FrontendKey> = new Set();

  constructor(
    private readonly table: () => FamilyTable,
    private readonly settings: KernelspaceSettings,
  ) {}

  get(key: FrontendKey): Wanted | undefined {
    return this.wanted.get(key);
  }

  entries(): Iterable<readonly [FrontendKey, Wanted]> {
    return this.wanted;
  }

  /** Addresses of endpoints that are used. */
  get addresses(): Iterable<IPAddress> {
    return this.users.keys();
  }

  /** Addresses whose endpoints a load balancer needs: its destinations, and its own, for which overlay networks have an endpoint. */
  endpointsOf(key: FrontendKey): readonly IPAddress[] {
    const wanted = this.wanted.get(key);
    if (wanted === undefined) return [];
    const { address } = wanted.plan;
    return address === null ? (wanted.endpoints ?? []) : [...(wanted.endpoints ?? []), address];
  }

  usersOf(address: IPAddress): ReadonlySet<FrontendKey> {
    return this.users.get(address) ?? NO_USERS;
  }

  /** Whether an endpoint at the address serves no more, and is still in a slice. */
  isLeaving(address: IPAddress): boolean {
    return this.leaving.has(address);
  }

  /** Answers the frontends whose load balancers may have changed, and the addresses that became used or unused. */
  update(changes: Changes): {
    readonly frontends: ReadonlySet<FrontendKey>;
    readonly addresses: ReadonlySet<IPAddress>;
  } {
    const frontends = new Set(changes.frontends);
    const addresses = new Set<IPAddress>(changes.ownEndpoints);
    let checksMoved = changes.healthChecks;
    for (const key of changes.frontends) {
      const wasIngress = this.ingress.has(key);
      const plan = this.table().frontend(key);
      const isServed = plan !== undefined && plan.endpoints.count > 0;
      if (isServed && plan.kind === 'LoadBalancer') this.ingress.add(key);
      else this.ingress.delete(key);
      checksMoved ||= wasIngress || this.ingress.has(key) || this.checks.has(key) || plan === undefined;
      this.put(key, isServed ? this.loadBalancerOf(plan) : undefined, addresses);
      this.leave(key, plan, addresses);
    }
    if (checksMoved) for (const key of this.placeChecks(addresses)) frontends.add(key);
    for (const address of addresses) for (const key of this.usersOf(address)) frontends.add(key);
    return { frontends, addresses };
  }

  private loadBalancerOf(plan: FrontendPlan): Wanted {
    const { endpoints, loadBalancerFlags } = plan;
    const handling = handlingOf(plan, this.settings);
    return { plan, handling, endpoints: addressesOf(endpoints), inPlace: (loadBalancerFlags & REPLACED_WHOLE) === 0 };
  }

  /** One for each address of a load balancer and port of its Service's health checks, unless a Service has that frontend. */
  private placeChecks(addresses: Set<IPAddress>): ReadonlySet<FrontendKey> {
    const { healthCheckEndpoint, healthzPort } = this.settings;
    if (healthCheckEndpoint === null) return NO_USERS;
    const table = this.table();
    const ports = new Map([...table.healthChecks()].map(({ service, port }) => [service, port]));
    const placed = new Map<FrontendKey, Wanted>();
    for (const each of this.ingress) {
      const plan = table.frontend(each);
      const service = serviceOf(plan?.servicePort ?? '');
      const port = ports.get(service) ?? healthzPort;
      if (plan === undefined || port === null) continue;
      const key = frontendKey(plan.address, port, 'TCP');
      if (table.frontend(key) !== undefined || placed.has(key)) continue;
      const handling = healthCheckHandling(plan, port, this.settings);
      placed.set(key, { plan, handling, endpoints: null, inPlace: true });
    }
    const touched = new Set([...this.checks, ...placed.keys()]);
    for (const key of touched) if (table.frontend(key) === undefined) this.put(key, placed.get(key), addresses);
    this.checks = new Set(placed.keys());
    return touched;
  }

  private leave(key: FrontendKey, plan: FrontendPlan | undefined, addresses: Set<IPAddress>): void {
    const used = new Set(this.wanted.get(key)?.endpoints);
    const after = plan === undefined ? [] : addressesOf(plan.flowEndpoints).filter((address) => !used.has(address));
    for (const address of this.leavingOf.get(key) ?? []) {
      const frontends = this.leaving.get(address);
      frontends?.delete(key);
      if (frontends?.size === 0) this.leaving.delete(address);
      addresses.add(address);
    }
    if (after.length === 0) this.leavingOf.delete(key);
    else this.leavingOf.set(key, after);
    for (const address of after) {
      this.leaving.set(address, (this.leaving.get(address) ?? new Set<FrontendKey>()).add(key));
      addresses.add(address);
    }
  }

  private put(key: FrontendKey, next: Wanted | undefined, addresses: Set<IPAddress>): void {
    const before = this.wanted.get(key)?.endpoints ?? [];
    const after = new Set(next?.endpoints);
    if (next === undefined) this.wanted.delete(key);
    else this.wanted.set(key, next);
    for (const address of before) {
      if (after.has(address)) continue;
      const users = this.users.get(address);
      users?.delete(key);
      if (users?.size === 0) this.users.delete(address);
      addresses.add(address);
    }
    const known = new Set(before);
    for (const address of after) {
      if (known.has(address)) continue;
      const users = this.users.get(address);
      if (users === undefined) this.users.set(address, new Set([key]));
      else users.add(key);
      addresses.add(address);
    }
  }
}

function addressesOf(list: EndpointList | null): readonly IPAddress[] {
  if (list === null) return [];
  return [...new Set(Array.from({ length: list.count }, (_, index) => list.address(index)))];
}

const NO_USERS: ReadonlySet<never> = new Set();

/** A change, and all that the table has. */
export function everythingOf(table: FamilyTable, change: TableChange): TableChange {
  const frontends = new Set(change.frontends);
  for (const { key } of table.frontends()) frontends.add(key);
  return { ...change, frontends, healthChecks: true };
}
