import type { IPAddress } from '../../base/ip.js';
import { serviceOf } from '../../plan/frontend-key.js';
import type { FamilyTable, ObjectKey } from '../../plan/types.js';
import { parts, servicesFirst, type HcnReader } from './batches.js';
import type { Desired } from './desired.js';
import type { EndpointSet } from './endpoints.js';
import { toSend, type Ledgers } from './ledgers.js';
import type { EndpointKey, LoadBalancerKey, Network } from './listing.js';
import { readLoadBalancer, sameLoadBalancer, type LoadBalancer } from './load-balancers.js';
import type { Modifying } from './modifying.js';
import { remainder, resolutionOf, resolve, type Found } from './resolution.js';
import type { Writer } from './writer.js';

/** No more of what is not needed any more is removed in one sync. */
const MOST_REMOVALS = 100;
/** The most times that one sync writes to HNS: an object in another shape goes first, and its replacement comes then. */
const ROUNDS = 3;

interface SendingParts {
  readonly ledgers: Ledgers;
  readonly desired: Desired;
  readonly endpoints: EndpointSet;
  readonly writer: Writer;
  readonly reader: HcnReader;
  /** Shared by all families. */
  readonly modifying: Modifying;
  readonly table: () => FamilyTable;
  /** @throws EndedError when the process ends. */
  readonly checkEnding: () => void;
}

/** The order in which one family's objects come and go, and the frontends and addresses that are yet to be decided. */
export class Sending {
  /** To be decided anew with the next sending. */
  readonly touched = { frontends: new Set<LoadBalancerKey>(), addresses: new Set<EndpointKey>() };
  /** Load balancers that the plan does not name and that stay until it does. */
  kept = new Set<LoadBalancerKey>();
  /** Load balancers that exist only for connections under way, and their Services. */
  readonly draining = new Map<LoadBalancerKey, ObjectKey>();

  constructor(private readonly parts: SendingParts) {}

  /** All is decided anew. */
  touchEverything(network: Network): void {
    const { frontends, addresses } = this.touched;
    for (const address of this.parts.endpoints.everyAddress(network)) addresses.add(address);
    for (const [key] of this.parts.desired.entries()) frontends.add(key);
    for (const key of this.parts.ledgers.loadBalancers.acknowledged.keys()) frontends.add(key);
  }

  /**
   * Removals make room. Then each Service's endpoints come, and its load balancers. Endpoints are removed last. Answers whether
   * there is more to remove.
   */
  async send(found: Found): Promise<boolean> {
    const { touched } = this;
    const { writer, endpoints, modifying } = this.parts;
    let left = false;
    for (let round = 0; round < ROUNDS && !writer.isOutdated; round++) {
      endpoints.desire(found.network, touched.addresses);
      const canModify = modifying.isPossible;
      left = await this.sendServices(found);
      if (!modifying.isProven) await this.lookAtModified();
      const gone = await this.removeEndpoints(found);
      left ||= gone.left;
      if (!gone.isReplaced && canModify === modifying.isPossible) break;
    }
    if (!writer.isOutdated) touched.addresses.clear();
    return left;
  }

  /** Answers whether more load balancers have to go. */
  private async sendServices(found: Found): Promise<boolean> {
    const { touched } = this;
    const { writer, ledgers, desired } = this.parts;
    const { endpoints, loadBalancers } = ledgers;
    const missing = new Set(toSend(endpoints));
    for (const key of missing) for (const user of desired.usersOf(key as IPAddress)) touched.frontends.add(user);
    const make = async (keys: Iterable<EndpointKey>): Promise<void> => {
      const made = [...keys].filter((key) => missing.delete(key) && !endpoints.acknowledged.has(key));
      await writer.makeEndpoints(found.network, made);
    };
    for (const key of toSend(loadBalancers)) touched.frontends.add(key);
    const all = [...touched.frontends];
    const goes = (key: LoadBalancerKey): boolean => desired.get(key) === undefined;
    this.desireLoadBalancers(found, all.filter(goes));
    const going = toSend(loadBalancers).filter((key) => loadBalancers.desired(key) === undefined && goes(key));
    const shrunk = toSend(loadBalancers).filter((key) => loadBalancers.desired(key) !== undefined && goes(key));
    for (const keys of parts([...going.slice(0, MOST_REMOVALS), ...shrunk], () => 1))
      await this.batch(() => writer.loadBalancers(keys));
    if (found.sourceVip !== null) await make([found.sourceVip]);
    const coming = servicesFirst(
      all.filter((key) => !goes(key)),
      desired,
    );
    const needs = (key: LoadBalancerKey): readonly EndpointKey[] =>
      desired.endpointsOf(key).filter((each) => missing.has(each));
    for (const keys of parts(coming, (key) => 1 + needs(key).length)) {
      await this.batch(() => make(keys.flatMap(needs)));
      this.desireLoadBalancers(found, keys);
      const pending = new Set(toSend(loadBalancers));
      await this.batch(() => writer.loadBalancers(keys.filter((key) => pending.has(key))));
    }
    for (const keys of parts([...missing], () => 1)) await this.batch(() => make(keys));
    return going.length > MOST_REMOVALS;
  }

  /** One batch of operations to HNS. @throws EndedError when the process ends. */
  private async batch(send: () => Promise<void>): Promise<void> {
    this.parts.checkEnding();
    await send();
  }

  private desireLoadBalancers(found: Found, keys: readonly LoadBalancerKey[]): void {
    const { touched, kept } = this;
    const { ledgers, desired, endpoints, table } = this.parts;
    const { loadBalancers } = ledgers;
    const resolution = resolutionOf(found, (address) => endpoints.idOf(address), table());
    for (const key of keys) {
      touched.frontends.delete(key);
      const wanted = desired.get(key);
      const held = loadBalancers.acknowledged.get(key);
      const frontend = table().frontend(key);
      const rest = wanted === undefined ? remainder(held, frontend, resolution.idOf) : null;
      if (rest !== null && frontend !== undefined) this.draining.set(key, serviceOf(frontend.servicePort));
      else this.draining.delete(key);
      if (wanted !== undefined) loadBalancers.desire(key, resolve(wanted, resolution) ?? undefined);
      else loadBalancers.desire(key, kept.has(key) ? held : (rest ?? undefined));
    }
  }

  /** Until HNS was seen to modify what it reports as modified: it may answer success and change nothing. */
  private async lookAtModified(): Promise<void> {
    const { ledgers, writer, reader } = this.parts;
    const ids = [...writer.modified.keys()].flatMap((key) => ledgers.loadBalancerIds.get(key) ?? []);
    if (ids.length === 0) return;
    const looked = new Map<LoadBalancerKey, LoadBalancer>();
    for (const { properties } of await reader.hcnList('loadBalancer', ids)) {
      const read = readLoadBalancer(properties);
      if (read !== null) looked.set(read.key, read.loadBalancer);
    }
    for (const key of this.checkModified(looked)) ledgers.loadBalancers.readBack(key, looked.get(key));
  }

  /** Answers the load balancers that HNS reported as changed, and that are unchanged. */
  checkModified(looked: ReadonlyMap<LoadBalancerKey, LoadBalancer>): readonly LoadBalancerKey[] {
    const { modifying, writer, ledgers } = this.parts;
    const { acknowledged } = ledgers.loadBalancers;
    const unchanged: LoadBalancerKey[] = [];
    for (const [key, before] of writer.modified) {
      const [held, wanted] = [looked.get(key), acknowledged.get(key)];
      if (held === undefined || wanted === undefined) continue;
      if (sameLoadBalancer(held, wanted)) modifying.prove();
      else if (sameLoadBalancer(held, before)) unchanged.push(key);
    }
    writer.modified.clear();
    if (unchanged.length > 0) modifying.refute();
    return unchanged;
  }

  /** Those that no load balancer uses any more. Answers whether one is to be made anew, and whether more have to go. */
  private async removeEndpoints({
    othersEndpoints,
  }: Found): Promise<{ readonly isReplaced: boolean; readonly left: boolean }> {
    const { writer, ledgers } = this.parts;
    const { endpoints, endpointIds, loadBalancers } = ledgers;
    const going = toSend(endpoints).filter((key) => endpoints.acknowledged.has(key));
    if (going.length === 0) return { isReplaced: false, left: false };
    const inUse = new Set(othersEndpoints);
    for (const key of [...loadBalancers.pending(), ...loadBalancers.quarantined.keys(), ...this.kept])
      for (const id of loadBalancers.acknowledged.get(key)?.endpoints ?? []) inUse.add(id);
    const unused = going.filter((key) => !inUse.has(endpointIds.get(key) ?? ''));
    const now = unused.slice(0, MOST_REMOVALS);
    for (const keys of parts(now, () => 1)) await this.batch(() => writer.removeEndpoints(keys));
    const isReplaced = now.some((key) => endpoints.desired(key) !== undefined && !endpoints.acknowledged.has(key));
    return { isReplaced, left: unused.length > now.length };
  }
}
