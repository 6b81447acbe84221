import type { Family, IPAddress } from '../base/ip.js';
import type { ObjectKey } from '../state/rows.js';
import { AddressCounts } from './address-counts.js';
import { AddressHolders } from './address-holders.js';
import { sameFrontend, strandsAttempts } from './frontend-fields.js';
import { frontendKey } from './frontend-key.js';
import { NO_PORTS, portsWithoutLocal, type PortsWithoutLocal } from './local-endpoints.js';
import type {
  Conflict,
  ConflictPair,
  FamilyTable,
  FrontendKey,
  FrontendKind,
  FrontendPlan,
  HealthCheckPlan,
  NodePlan,
  ServicePlan,
  ServiceLimitation,
  TableChange,
} from './types.js';

interface Claim {
  readonly plan: ServicePlan;
  readonly frontend: FrontendPlan;
}

/**
 * All Services' plans of one family. A Service claims a frontend: an address and port. Of several claims on one frontend
 * one holds it, and the others wait. A cluster IP comes first: the API gave it to one Service alone. Then comes an address
 * from a load balancer's status, then an external IP, which any user may name. On an address of this node an external IP
 * comes after a node port of another Service, and it does not get an address and port of the API server: a node that loses
 * that never learns of the Service's end. No address from outside may be another Service's cluster IP, with any port:
 * clients of that Service would reach this one. Among claims of one kind the oldest Service wins, in any order of arrival.
 * Work per change is proportional to the Service that changed.
 */
export class ForwardingTable implements FamilyTable {
  readonly family: Family;
  unsynced = false;
  /** Services that could not be planned, and why: the table has their former state. */
  readonly unplanned = new Map<ObjectKey, string>();
  /** Services whose change is left to a later plan: the table has their former state. */
  deferred: ReadonlySet<ObjectKey> = new Set();
  private nodePlan: NodePlan;
  private readonly plans = new Map<ObjectKey, ServicePlan>();
  private readonly checks = new Map<ObjectKey, HealthCheckPlan>();
  private readonly short = new Map<ObjectKey, readonly ServiceLimitation[]>();
  private readonly held = new Map<FrontendKey, Claim>();
  /** Claims that wait, best first; only for frontends that several Services claim, one of them maybe as a node port. */
  private readonly waiting = new Map<FrontendKey, readonly Claim[]>();
  private readonly changedClusterAddresses = new Set<IPAddress>();
  readonly clusterAddresses = new AddressHolders(this.changedClusterAddresses);
  /** External IPs and load balancer addresses. */
  private readonly addressesFromOutside = new AddressHolders();
  readonly hairpinAddresses = new AddressCounts();
  readonly ownEndpoints = new AddressCounts();
  /** The API server's endpoints: by frontend key, and by address alone. */
  private apiServers: ReadonlyMap<FrontendKey | IPAddress, Claim> = new Map();
  private withoutLocal = NO_PORTS;
  private endpoints = 0;
  private changedFrontends = new Set<FrontendKey>();
  private strandedAttempts = new Set<FrontendKey>();
  private healthChecksChanged = false;
  private nodeChanged = true;
  private waitingCount = 0;
  private findingChanges = 0;
  /** Plans of Services that got or lost a frontend during the change under way. */
  private readonly touched = new Set<ServicePlan>();

  constructor(node: NodePlan) {
    this.family = node.family;
    this.nodePlan = node;
  }

  get node(): NodePlan {
    return this.nodePlan;
  }

  frontend(key: FrontendKey): FrontendPlan | undefined {
    return this.held.get(key)?.frontend;
  }

  *frontends(): IterableIterator<FrontendPlan> {
    for (const claim of this.held.values()) yield claim.frontend;
  }

  /** Services that have a plan. */
  services(): Iterable<ObjectKey> {
    return this.plans.keys();
  }

  /** A Service's claims, whether or not it gets them. */
  plan(service: ObjectKey): ServicePlan | undefined {
    return this.plans.get(service);
  }

  /** How much there is, kept up to date by each change. Endpoints are distinct for each Service port. */
  get counts(): { readonly services: number; readonly frontends: number; readonly endpoints: number } {
    return { services: this.plans.size, frontends: this.held.size, endpoints: this.endpoints };
  }

  healthChecks(): Iterable<HealthCheckPlan> {
    return this.checks.values();
  }

  /** Includes Services that wait for their frontends. Each change keeps it up to date, so reading it costs nothing. */
  get portsWithoutLocal(): PortsWithoutLocal {
    return this.withoutLocal;
  }

  /** Every claim that waits: for a pair of Services there may be thousands. */
  *conflicts(): IterableIterator<Conflict> {
    for (const key of this.waiting.keys()) yield* this.conflictsAt(key);
  }

  /** The conflicts on one frontend: one for each claim that waits, best first. */
  conflictsAt(key: FrontendKey): readonly Conflict[] {
    return (this.waiting.get(key) ?? []).flatMap((loser) => {
      const winner = this.winnerOver(loser);
      return winner === null ? [] : [conflictOf(winner, loser)];
    });
  }

  /** One for each two Services, for any number of frontends that both claim. The time grows with the claims that wait. */
  conflictPairs(): readonly ConflictPair[] {
    const pairs = new Map<
      ObjectKey,
      Map<ObjectKey, { count: number; readonly winner: Claim; readonly loser: Claim }>
    >();
    for (const losers of this.waiting.values()) {
      for (const loser of losers) {
        const winner = this.winnerOver(loser);
        if (winner === null) continue;
        const ofWinner = pairs.get(winner.plan.service) ?? new Map<ObjectKey, never>();
        pairs.set(winner.plan.service, ofWinner);
        const pair = ofWinner.get(loser.plan.service);
        if (pair === undefined) ofWinner.set(loser.plan.service, { count: 1, winner, loser });
        else pair.count++;
      }
    }
    const all = [...pairs.values()].flatMap((ofWinner) => [...ofWinner.values()]);
    return all.map(({ count, winner, loser }) => ({ count, first: conflictOf(winner, loser) }));
  }

  /** How many claims wait. */
  get conflictCount(): number {
    return this.waitingCount;
  }

  /** Changes when conflicts or limitations may have changed. */
  get findingsVersion(): number {
    return this.findingChanges;
  }

  /**
   * Conflicts that a Service would have with this plan, independent of its current one, and its side in each. At most one
   * for each frontend, with the first of the other Services. Changes nothing.
   */
  *conflictsOf(plan: ServicePlan): IterableIterator<{ readonly conflict: Conflict; readonly own: 'winner' | 'loser' }> {
    for (const frontend of plan.frontends) {
      const claim = { plan, frontend };
      const ahead = this.ahead(claim);
      if (ahead !== null) {
        yield { conflict: conflictOf(ahead, claim), own: 'loser' };
        continue;
      }
      const isOther = (other: Claim | undefined): boolean => other !== undefined && other.plan.service !== plan.service;
      const holder = this.held.get(frontend.key);
      const other = isOther(holder) ? holder : this.waiting.get(frontend.key)?.find(isOther);
      if (other === undefined) continue;
      const wins = compare(claim, other).order < 0;
      yield wins
        ? { conflict: conflictOf(claim, other), own: 'winner' }
        : { conflict: conflictOf(other, claim), own: 'loser' };
    }
  }

  /** The limitations of all Services, whether they hold their frontends or wait for them. */
  *limitations(): IterableIterator<ServiceLimitation> {
    for (const ofService of this.short.values()) yield* ofService;
  }

  setNode(plan: NodePlan): void {
    if (JSON.stringify(plan) === JSON.stringify(this.nodePlan)) return;
    const addresses = new Set([...this.nodePlan.nodePortAddresses, ...plan.nodePortAddresses]);
    const isSame = this.nodePlan.nodePortAddresses.join() === plan.nodePortAddresses.join();
    const [before, after] = [this.nodePlan.ownAddresses, plan.ownAddresses];
    const { sharesClusterIPs } = this.nodePlan;
    this.nodePlan = plan;
    this.nodeChanged = true;
    if (before?.join() !== after?.join()) this.decideExternalIPs(this.apiServers);
    if (sharesClusterIPs !== plan.sharesClusterIPs)
      for (const address of this.clusterAddresses) this.decideFromOutside(address);
    const nodePorts = isSame ? [] : [...this.held.values()].filter(({ frontend }) => frontend.kind === 'NodePort');
    for (const { frontend } of nodePorts) this.decideAgain(frontend, [...addresses]);
    this.noteTouched();
  }

  /** Replaces what one Service asks for; null when it asks for nothing any more. */
  setService(service: ObjectKey, plan: ServicePlan | null): void {
    const previous = this.plans.get(service);
    const keys = new Set<FrontendKey>();
    for (const frontend of previous?.frontends ?? []) keys.add(frontend.key);
    for (const frontend of plan?.frontends ?? []) keys.add(frontend.key);
    const next = new Map(plan?.frontends.map((frontend) => [frontend.key, frontend]));
    for (const key of keys) {
      const frontend = next.get(key);
      this.replaceClaim(key, service, plan !== null && frontend !== undefined ? { plan, frontend } : null);
    }
    if (service === API_SERVER) {
      const before = this.apiServers;
      this.apiServers = apiServersOf(plan);
      this.decideExternalIPs(new Map([...before, ...this.apiServers]));
    }
    this.replaceAddresses(service, previous, plan);
    this.noteTouched();
    this.hairpinAddresses.replace(previous?.hairpinAddresses ?? [], plan?.hairpinAddresses ?? []);
    this.ownEndpoints.replace(previous?.ownEndpoints ?? [], plan?.ownEndpoints ?? []);
    this.countWithoutLocal(previous, plan);
    this.endpoints += countEndpoints(plan) - countEndpoints(previous);
    this.healthChecksChanged ||= this.checks.get(service)?.port !== plan?.healthCheck?.port;
    put(this.checks, service, plan?.healthCheck ?? null);
    if (this.short.has(service) || (plan?.limitations.length ?? 0) > 0) this.findingChanges++;
    put(this.short, service, plan === null || plan.limitations.length === 0 ? null : plan.limitations);
    put(this.plans, service, plan);
  }

  /** Takes the changes since the last call. */
  takeChange(): TableChange {
    const change: TableChange = {
      frontends: this.changedFrontends,
      attempts: this.strandedAttempts,
      clusterAddresses: new Set(this.changedClusterAddresses),
      hairpinAddresses: this.hairpinAddresses.takeChanged(),
      ownEndpoints: this.ownEndpoints.takeChanged(),
      healthChecks: this.healthChecksChanged,
      node: this.nodeChanged,
    };
    this.changedClusterAddresses.clear();
    this.changedFrontends = new Set();
    this.strandedAttempts = new Set();
    this.healthChecksChanged = false;
    this.nodeChanged = false;
    return change;
  }

  private replaceAddresses(service: ObjectKey, previous: ServicePlan | undefined, plan: ServicePlan | null): void {
    const isFromOutside = ({ kind }: FrontendPlan): boolean => kind === 'ExternalIP' || kind === 'LoadBalancer';
    const former = addressesOf(previous, isFromOutside);
    this.addressesFromOutside.replace(service, former, plan, addressesOf(plan, isFromOutside));
    const before = addressesOf(previous, isClusterIP);
    const after = addressesOf(plan, isClusterIP);
    this.clusterAddresses.replace(service, before, plan, after);
    if (before.join() === after.join()) return;
    for (const address of new Set([...before, ...after])) this.decideFromOutside(address);
  }

  /** An address became a cluster IP, or is none any more: claims on it from outside are decided anew. */
  private decideFromOutside(address: IPAddress): void {
    for (const { frontends } of this.addressesFromOutside.of(address))
      for (const frontend of frontends) if (frontend.address === address) this.decideOn(frontend.key);
  }

  private countWithoutLocal(previous: ServicePlan | undefined, next: ServicePlan | null): void {
    const before = previous === undefined ? NO_PORTS : portsWithoutLocal(previous);
    const after = next === null ? NO_PORTS : portsWithoutLocal(next);
    if (before.internal === after.internal && before.external === after.external) return;
    this.withoutLocal = {
      internal: this.withoutLocal.internal - before.internal + after.internal,
      external: this.withoutLocal.external - before.external + after.external,
    };
  }

  /** Frontends that remember clients by the key of one that another Service got or lost have changed, too. */
  private noteTouched(): void {
    for (const { frontends } of this.touched)
      for (const { key, clientKeys } of frontends) if (clientKeys !== null) this.changedFrontends.add(key);
    this.touched.clear();
  }

  /** Replaces the claim of one Service on a frontend, and decides anew which Service holds it. */
  private replaceClaim(key: FrontendKey, service: ObjectKey, claim: Claim | null): void {
    const holder = this.held.get(key);
    const isAlone = !this.waiting.has(key) && (holder === undefined || holder.plan.service === service);
    if (isAlone && (claim === null || this.ahead(claim) === null)) {
      if (claim === null) this.held.delete(key);
      else this.held.set(key, claim);
    } else {
      const claims = this.claimsOn(key);
      const before = claims.findIndex((candidate) => candidate.plan.service === service);
      if (before >= 0) claims.splice(before, 1);
      if (claim !== null) insert(claims, claim);
      this.decide(key, claims);
    }
    this.noteChange(key, holder);
  }

  /** Best first. */
  private claimsOn(key: FrontendKey): Claim[] {
    const holder = this.held.get(key);
    const losers = this.waiting.get(key) ?? [];
    if (holder === undefined) return [...losers];
    const claims = [holder, ...losers];
    const [best] = losers;
    // One that is better may wait for a node port, or for the API server.
    if (best !== undefined && compare(best, holder).order < 0) claims.sort((one, other) => compare(one, other).order);
    return claims;
  }

  /** @param claims all on a frontend, best first. */
  private decide(key: FrontendKey, claims: readonly Claim[]): void {
    const best = claims.find((claim) => this.ahead(claim) === null);
    const rest = claims.filter((claim) => claim !== best);
    const before = this.waiting.get(key)?.length ?? 0;
    this.waitingCount += rest.length - before;
    if (before > 0 || rest.length > 0) this.findingChanges++;
    if (best === undefined) this.held.delete(key);
    else this.held.set(key, best);
    if (rest.length === 0) this.waiting.delete(key);
    else this.waiting.set(key, rest);
  }

  private noteChange(key: FrontendKey, before: Claim | undefined): void {
    const after = this.held.get(key);
    if (!sameFrontend(before?.frontend, after?.frontend)) this.changedFrontends.add(key);
    if (strandsAttempts(before?.frontend, after?.frontend)) this.strandedAttempts.add(key);
    if (before?.plan.service === after?.plan.service) return;
    for (const claim of [before, after]) if (claim !== undefined) this.touched.add(claim.plan);
    const frontend = (after ?? before)?.frontend;
    if (frontend?.kind === 'NodePort') this.decideAgain(frontend, this.nodePlan.nodePortAddresses);
  }

  /** Another Service gained, lost or moved a node port: external IPs on its addresses yield to it, or no longer do. */
  private decideAgain({ port, protocol }: FrontendPlan, addresses: readonly IPAddress[]): void {
    for (const address of addresses) this.decideOn(frontendKey(address, port, protocol));
  }

  private decideOn(key: FrontendKey): void {
    const before = this.held.get(key);
    const claims = this.claimsOn(key);
    if (claims.length === 0) return;
    this.decide(key, claims);
    this.noteChange(key, before);
  }

  /** API servers come and go rarely, so that a pass over all frontends is no cost. */
  private decideExternalIPs(keys: ReadonlyMap<string, unknown>): void {
    const isConcerned = ({ frontend: { kind, key, address } }: Claim): boolean =>
      kind === 'ExternalIP' && (keys.has(key) || keys.has(address ?? ''));
    const claims = [...this.held.values(), ...[...this.waiting.values()].flat()].filter(isConcerned);
    for (const { frontend } of claims) this.decideOn(frontend.key);
  }

  /**
   * The claim of another Service that an address from outside yields to, with all ports: the address is its cluster IP. An
   * external IP yields to the API server, too, and to a node port on an address of this node. The API gave the port to that
   * Service alone. Where the mode makes the Services' addresses the node's, the node reaches no port any more of a host
   * whose address is an external IP.
   */
  private ahead({ frontend, plan }: Claim): Claim | null {
    const { kind, key, address, port, protocol } = frontend;
    if (kind === 'ClusterIP' || address === null) return null;
    const { ownAddresses, nodePortAddresses, sharesClusterIPs } = this.nodePlan;
    const holder = sharesClusterIPs ? null : this.clusterIPOfOther(address, plan.service);
    if (holder !== null || kind !== 'ExternalIP') return holder;
    const isWhole = ownAddresses?.includes(address) === false;
    const other =
      this.apiServers.get(isWhole ? address : key) ??
      (nodePortAddresses.includes(address) ? this.held.get(frontendKey(null, port, protocol)) : undefined);
    return other === undefined || other.plan.service === plan.service ? null : other;
  }

  private clusterIPOfOther(address: IPAddress, service: ObjectKey): Claim | null {
    const plan = this.clusterAddresses.ofOther(address, service);
    const frontend = plan?.frontends.find((each) => isClusterIP(each) && each.address === address);
    return plan === undefined || frontend === undefined ? null : { plan, frontend };
  }

  private winnerOver(loser: Claim): Claim | null {
    return this.held.get(loser.frontend.key) ?? this.ahead(loser);
  }
}

/** The Service that each API server adds its own address to. */
const API_SERVER: ObjectKey = 'default/kubernetes';

function apiServersOf(plan: ServicePlan | null): ReadonlyMap<FrontendKey | IPAddress, Claim> {
  const claims = new Map<FrontendKey | IPAddress, Claim>();
  if (plan === null) return claims;
  for (const frontend of plan.frontends) {
    const { endpoints, protocol } = frontend;
    for (let index = 0; index < endpoints.count; index++) {
      const address = endpoints.address(index);
      for (const key of [address, frontendKey(address, endpoints.port(index), protocol)])
        claims.set(key, { plan, frontend });
    }
  }
  return claims;
}

function put<Value>(map: Map<ObjectKey, Value>, key: ObjectKey, value: Value | null): void {
  if (value === null) map.delete(key);
  else map.set(key, value);
}

/** Inserts a claim into a list that is sorted, best first. A binary search, as many Services may claim one address. */
function insert(claims: Claim[], claim: Claim): void {
  let low = 0;
  let high = claims.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    const other = claims[middle];
    if (other !== undefined && compare(other, claim).order < 0) low = middle + 1;
    else high = middle;
  }
  claims.splice(low, 0, claim);
}

/**
 * The kind with the smaller number wins. For node ports see {@link ForwardingTable} too: on addresses of other kinds they
 * come before external IPs.
 */
const RANKS: Readonly<Record<FrontendKind, number>> = { ClusterIP: 0, LoadBalancer: 1, NodePort: 2, ExternalIP: 3 };

/** Order below 0: `one` comes first. */
function compare(one: Claim, other: Claim): { readonly order: number; readonly reason: Conflict['reason'] } {
  const rank = RANKS[one.frontend.kind] - RANKS[other.frontend.kind];
  return rank === 0 ? compareAge(one.plan, other.plan) : { order: rank, reason: 'kind' };
}

type Aged = Pick<ServicePlan, 'service' | 'creationTime'>;

/** Order below 0: `one` comes first, as the oldest does, without a creation time last; the smaller key among equals. */
export function compareAge(one: Aged, other: Aged): { readonly order: number; readonly reason: 'age' | 'key' } {
  const age = ({ creationTime }: Aged): number => creationTime ?? Number.POSITIVE_INFINITY;
  if (age(one) !== age(other)) return { order: age(one) < age(other) ? -1 : 1, reason: 'age' };
  return { order: one.service < other.service ? -1 : 1, reason: 'key' };
}

function conflictOf(winner: Claim, loser: Claim): Conflict {
  const isSame = winner.frontend.key === loser.frontend.key || winner.frontend.kind === 'NodePort';
  const other = winner.frontend.address === loser.frontend.address ? 'cluster-ip' : 'endpoint';
  return {
    // The winner's may be a node port, or have it as an endpoint.
    frontend: loser.frontend.key,
    family: winner.frontend.family,
    winner: winner.frontend.servicePort,
    loser: loser.frontend.servicePort,
    winnerKind: winner.frontend.kind,
    loserKind: loser.frontend.kind,
    reason: isSame ? compare(winner, loser).reason : other,
  };
}

/** Over all ports of a Service. */
export function countEndpoints(plan: ServicePlan | null | undefined): number {
  let sum = 0;
  let most = 0;
  let before: FrontendPlan | null = null;
  // The frontends of a port are beside each other.
  for (const frontend of plan?.frontends ?? []) {
    if (frontend.servicePort !== before?.servicePort || frontend.protocol !== before.protocol) {
      sum += most;
      most = 0;
    }
    most = Math.max(most, frontend.endpoints.count);
    before = frontend;
  }
  return sum + most;
}

function isClusterIP({ kind }: FrontendPlan): boolean {
  return kind === 'ClusterIP';
}

function addressesOf(
  plan: ServicePlan | null | undefined,
  isWanted: (frontend: FrontendPlan) => boolean,
): readonly IPAddress[] {
  const addresses = new Set<IPAddress>();
  for (const frontend of plan?.frontends ?? [])
    if (frontend.address !== null && isWanted(frontend)) addresses.add(frontend.address);
  return [...addresses];
}
