import type { IPAddress } from '../../base/ip.js';
import type { IpvsServiceState } from '../../native/contract.js';
import { frontendKey, isNodePortKey, parseFrontendKey, serviceOf } from '../../plan/frontend-key.js';
import type { FrontendKey, FrontendPlan } from '../../plan/types.js';
import type { Changes, TableView } from '../table-view.js';
import { destinations, follow } from './destinations.js';
import {
  addressElement,
  elementsAt,
  hairpinElement,
  healthCheckElements,
  nodePortAddresses,
  nodePortElements,
  packVirtual,
  serviceKey,
  virtualService,
  type Element,
  type Scheduling,
  type ServiceKey,
  type Virtual,
} from './frontends.js';
import type { Ledgers } from './ledgers.js';
import type { SetRole } from './names.js';

/** So many kinds of virtual services share one object; more are rare. */
const MOST_STATES = 64;

/**
 * Sets the desired values in the ledgers. A frontend becomes one virtual service, a node port one at each of its addresses.
 * If a node port and another frontend meet at one address, the other frontend has it (behaviour NF-30).
 */
export class Desired {
  /** The frontend of each virtual service when it was last taken over. There are many, so no more is kept of one. */
  private readonly placed = new Map<ServiceKey, FrontendPlan>();
  /** Those of them, but for node ports, whose address the link is not to have. */
  private readonly unlinked = new Set<ServiceKey>();
  /** One for all virtual services that are alike. */
  private readonly states = new Map<string, IpvsServiceState>();
  private readonly nodePorts = new Map<FrontendKey, FrontendPlan>();
  private readonly linked = new Map<IPAddress, number>();
  private checks = new Map<string, Element>();
  /** Addresses of the node's other links. */
  private own: ReadonlySet<IPAddress> = new Set();
  /** Those of them where node ports answer. */
  private nodePortAt: readonly IPAddress[] = [];
  /** Load balancers with source ranges. */
  readonly restricted = new Map<FrontendKey, FrontendPlan>();
  /** Virtual services that the kernel has and that are not wanted any more, until they were checked for connections. */
  readonly closing = new Set<ServiceKey>();
  /**
   * Services (`namespace/name`) of virtual services at external addresses that are not wanted any more, until the Service is
   * known to be gone.
   */
  private readonly former = new Map<ServiceKey, string>();

  constructor(
    private readonly table: () => TableView,
    private readonly ledgers: Ledgers,
    private readonly scheduling: Scheduling,
  ) {}

  /** The frontend of which a virtual service is; undefined: of none that is wanted. */
  frontendOf(key: ServiceKey): FrontendKey | undefined {
    return this.placed.get(key)?.key;
  }

  /** Addresses of the node's other links, in the state of the last look. */
  get ownAddresses(): ReadonlySet<IPAddress> {
    return this.own;
  }

  /** Every frontend with what it needs beside a virtual service. */
  *needs(): IterableIterator<{
    readonly frontend: FrontendKey;
    readonly address: IPAddress | null;
    readonly elements: readonly Element[];
  }> {
    for (const [key, plan] of this.placed) {
      const virtual = virtualOf(key);
      const elements = [...elementsAt(plan, virtual), ...nodePortElements(plan)];
      if (!this.wasLinked(key, plan)) yield { frontend: plan.key, address: null, elements };
      else
        yield {
          frontend: plan.key,
          address: virtual.address,
          elements: [...elements, addressElement(virtual.address)],
        };
    }
  }

  /** Whether there is to be such a virtual service. */
  isServed(key: ServiceKey): boolean {
    const plan = this.placed.get(key);
    return plan !== undefined && this.stateOf(plan) !== null;
  }

  /** Whether some frontend is to be reached by an address on the link. */
  isLinked(address: IPAddress): boolean {
    return this.linked.has(address);
  }

  /** @param own addresses of the node's other links; null: as before. */
  update(changes: Changes, own: ReadonlySet<IPAddress> | null): void {
    const table = this.table();
    const touched = new Set<ServiceKey>();
    if (own !== null && !sameAddresses(own, this.own)) this.own = own;
    const nodePortAt = nodePortAddresses(table.node, this.own);
    const moved = changes.node || own === this.own || nodePortAt.join() !== this.nodePortAt.join();
    this.nodePortAt = nodePortAt;
    for (const key of moved ? this.everyFrontend() : changes.frontends) {
      this.followNodePort(key);
      for (const each of this.keysOf(key)) touched.add(each);
    }
    if (moved) for (const key of this.placed.keys()) touched.add(key);
    for (const key of touched) this.place(key);
    for (const address of changes.hairpinAddresses)
      this.desire(hairpinElement(address), table.hairpinAddresses.has(address));
    if (changes.healthChecks) this.followHealthChecks();
  }

  /** Sets again what is desired of virtual services, after another look at the kernel. */
  repeat(): void {
    const { services, elements } = this.ledgers;
    for (const key of this.placed.keys()) this.desireService(key);
    for (const key of services.acknowledged.keys()) {
      if (this.placed.has(key)) continue;
      this.closing.add(key);
      // A process before this one may have served what it is found to be.
      const element = packVirtual(virtualOf(key));
      const name = elements.names.acknowledged.get(element) ?? '';
      if (name !== '' && EXTERNAL_ROLES.some((role) => elements[role].acknowledged.has(element)))
        this.former.set(key, serviceOf(name));
    }
  }

  /**
   * Selects unwanted virtual services whose address was given up by a Service that goes on: the address may be a load
   * balancer's elsewhere by now. With a virtual service, or on the link, it would be refused on this node until the last old
   * connection ends.
   */
  givenUp(keys: Iterable<ServiceKey>): ReadonlySet<ServiceKey> {
    const asked = [...keys].flatMap((key): [ServiceKey, string][] => {
      const service = this.former.get(key);
      return service === undefined || this.linked.has(virtualOf(key).address) ? [] : [[key, service]];
    });
    if (asked.length === 0) return NONE;
    const living = new Set<string>();
    for (const { servicePort } of this.table().frontends()) living.add(serviceOf(servicePort));
    for (const [key, service] of asked) if (!living.has(service)) this.former.delete(key);
    return new Set(asked.flatMap(([key, service]) => (living.has(service) ? [key] : [])));
  }

  /** Every element that is wanted. */
  *elements(): IterableIterator<Element> {
    for (const [key, plan] of this.placed) yield* elementsAt(plan, virtualOf(key));
    for (const plan of this.nodePorts.values()) yield* nodePortElements(plan);
    for (const address of this.linked.keys()) yield addressElement(address);
    for (const address of this.table().hairpinAddresses) yield hairpinElement(address);
    yield* this.checks.values();
  }

  private everyFrontend(): ReadonlySet<FrontendKey> {
    const keys = new Set(this.nodePorts.keys());
    for (const { key } of this.table().frontends()) keys.add(key);
    return keys;
  }

  /** Where a frontend is, as far as the table goes. */
  private keysOf(key: FrontendKey): readonly ServiceKey[] {
    if (!isNodePortKey(key)) return [key];
    const { port, protocol } = parseFrontendKey(key);
    return this.nodePortAt.map((address) => serviceKey({ address, port, protocol }));
  }

  private place(key: ServiceKey): void {
    const virtual = virtualOf(key);
    const before = this.placed.get(key);
    const after = this.holder(virtual);
    const wasLinked = before !== undefined && this.wasLinked(key, before);
    const isLinked = after !== undefined && this.needsLink(after, virtual.address);
    const elementsOf = (plan: FrontendPlan | undefined): readonly Element[] =>
      plan === undefined ? [] : elementsAt(plan, virtual);
    this.replace(elementsOf(before), elementsOf(after));
    if (after === undefined) this.placed.delete(key);
    else this.placed.set(key, after);
    if (after !== undefined) this.former.delete(key);
    else if (before !== undefined && isExternal(before)) this.former.set(key, serviceOf(before.servicePort));
    if (after === undefined || isLinked || after.kind === 'NodePort') this.unlinked.delete(key);
    else this.unlinked.add(key);
    if (after !== undefined && after.sourceRanges !== null) this.restricted.set(key, after);
    else this.restricted.delete(key);
    this.link(virtual.address, Number(isLinked) - Number(wasLinked));
    this.desireService(key);
  }

  private holder({ address, port, protocol }: Virtual): FrontendPlan | undefined {
    const table = this.table();
    const own = table.frontend(frontendKey(address, port, protocol));
    if (own !== undefined || !this.nodePortAt.includes(address)) return own;
    return table.frontend(frontendKey(null, port, protocol));
  }

  private wasLinked(key: ServiceKey, { kind }: FrontendPlan): boolean {
    return kind !== 'NodePort' && !this.unlinked.has(key);
  }

  /** Behaviour IV-01. */
  private needsLink({ kind }: FrontendPlan, address: IPAddress): boolean {
    return kind === 'ClusterIP' || (kind !== 'NodePort' && !this.own.has(address));
  }

  private link(address: IPAddress, uses: number): void {
    if (uses === 0) return;
    const count = (this.linked.get(address) ?? 0) + uses;
    if (count > 0) this.linked.set(address, count);
    else this.linked.delete(address);
    this.desireAddress(address);
  }

  /** @param isNeeded as long as a virtual service has connections its address stays. */
  desireAddress(address: IPAddress, isNeeded = this.linked.has(address)): void {
    this.ledgers.addresses.desire(address, isNeeded ? true : undefined);
    this.desire(addressElement(address), isNeeded);
  }

  private desireService(key: ServiceKey): void {
    const { services, destinations: held } = this.ledgers;
    const plan = this.placed.get(key);
    const state = plan === undefined ? null : this.stateOf(plan);
    if (plan === undefined || state === null) {
      if (services.acknowledged.has(key)) this.closing.add(key);
      else this.abandon(key);
      return;
    }
    this.closing.delete(key);
    services.desire(key, state);
    const weights = plan.balance?.endpoints.weights ?? null;
    held.desire(key, follow(plan.endpoints, held.acknowledged.get(key), plan.flowEndpoints, weights));
  }

  private stateOf(plan: FrontendPlan): IpvsServiceState | null {
    const state = virtualService(plan, this.scheduling);
    if (state === null) return null;
    // Timeouts are what tenants write.
    if (this.states.size >= MOST_STATES) this.states.clear();
    const name = `${state.scheduler} ${state.flags} ${state.timeoutSeconds}`;
    const shared = this.states.get(name) ?? state;
    this.states.set(name, shared);
    return shared;
  }

  /** Lets a virtual service go, with all its destinations. */
  abandon(key: ServiceKey): void {
    this.closing.delete(key);
    this.former.delete(key);
    this.ledgers.services.desire(key, undefined);
    this.ledgers.destinations.desire(key, undefined);
  }

  /** Lets a virtual service stay for its connections. */
  linger(key: ServiceKey, wanted: ReturnType<typeof destinations>): void {
    this.closing.delete(key);
    const { services, destinations: held } = this.ledgers;
    services.desire(key, services.acknowledged.get(key));
    held.desire(key, wanted);
  }

  private followNodePort(key: FrontendKey): void {
    if (!isNodePortKey(key)) return;
    const before = this.nodePorts.get(key);
    const after = this.table().frontend(key);
    this.replace(
      before === undefined ? [] : nodePortElements(before),
      after === undefined ? [] : nodePortElements(after),
    );
    if (after === undefined) this.nodePorts.delete(key);
    else this.nodePorts.set(key, after);
  }

  private followHealthChecks(): void {
    const wanted = new Map(healthCheckElements(this.table().healthChecks()).map((element) => [element.key, element]));
    for (const [key, element] of this.checks) if (!wanted.has(key)) this.desire(element, false);
    for (const element of wanted.values()) this.desire(element, true);
    this.checks = wanted;
  }

  private replace(before: readonly Element[], after: readonly Element[]): void {
    const kept = new Set<string>();
    for (const element of after) {
      kept.add(element.role + element.key);
      this.desire(element, true);
    }
    for (const element of before) if (!kept.has(element.role + element.key)) this.desire(element, false);
  }

  private desire({ role, key, comment }: Element, isWanted: boolean): void {
    this.ledgers.elements[role].desire(key, isWanted ? comment : undefined);
  }
}

const NONE: ReadonlySet<ServiceKey> = new Set();
/** Sets of frontends at addresses that are not the cluster's alone. */
const EXTERNAL_ROLES: readonly SetRole[] = ['external', 'externalLocal', 'loadBalancer', 'loadBalancerLocal'];

function isExternal({ kind }: FrontendPlan): boolean {
  return kind === 'ExternalIP' || kind === 'LoadBalancer';
}

export function virtualOf(key: ServiceKey): Virtual {
  const { address, port, protocol } = parseFrontendKey(key);
  if (address === null) throw new TypeError(`a virtual service has an address, and ${key} has none`);
  return { address, port, protocol };
}

export function sameAddresses(one: ReadonlySet<string>, other: ReadonlySet<string>): boolean {
  return one.size === other.size && [...one].every((each) => other.has(each));
}
