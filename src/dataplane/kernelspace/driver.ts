import type { Family, IPAddress } from '../../base/ip.js';
import type { HnsNetworkChoice } from '../../config/hns-network.js';
import type { HcnAddon, HcnOperation } from '../../native/contract.js';
import { withinScope } from '../../plan/text.js';
import type { FamilyTable, FrontendKey, PacketScope, TableChange } from '../../plan/types.js';
import { EndedError, type QuarantinedFrontend, type Inspection } from '../contract.js';
import {
  NOTHING_SENT,
  type Delivered,
  type Driver,
  type SyncScope,
  type Tidied,
  type WaitForQuiet,
} from '../driver.js';
import { ATTEMPTS_NOT_COUNTED, attemptsWait, CONNECTIONS_GO_ON } from '../limitations.js';
import { undisturbed } from '../reconciler.js';
import { parts, readerInParts, servicesFirst, type HcnReader } from './batches.js';
import { quarantinedFrontends } from './quarantined-frontends.js';
import { readLoadBalancer, sameLoadBalancer, type LoadBalancer } from './load-balancers.js';
import { Desired, everythingOf, type KernelspaceSettings } from './desired.js';
import { dumpHns } from './dump.js';
import { EndpointSet } from './endpoints.js';
import { Ledgers, toSend } from './ledgers.js';
import {
  findNetwork,
  listLoadBalancers,
  listEndpoints,
  sameNetwork,
  type LoadBalancerKey,
  type LoadBalancers,
  type EndpointKey,
  type Endpoints,
  type Network,
  type Ownership,
} from './listing.js';
import type { Modifying } from './modifying.js';
import { resolve, type Resolution } from './resolution.js';
import { Writer } from './writer.js';

export interface KernelspaceOptions extends KernelspaceSettings {
  readonly hcn: HcnAddon;
  readonly family: Family;
  readonly network: HnsNetworkChoice;
  /** The configured source, if it is an address of the family. */
  readonly sourceVip: IPAddress | null;
  /** Name of the HNS endpoint that has the source; null: none is named. */
  readonly sourceVipEndpoint: string | null;
  /** Whether this family is served on overlay networks, which have one alone (behaviour WK-02). */
  readonly servesOverlay: boolean;
  readonly interfaceMac: (address: IPAddress) => string | null;
  /** Shared by all families. */
  readonly modifying: Modifying;
  /** Whether HNS's notifications call {@link KernelspaceDriver.stirred} when a network comes or goes. */
  readonly notifiesOfNetworks?: () => boolean;
  /** Milliseconds on a clock that only goes forward. */
  readonly now: () => number;
  readonly onOperations?: (operations: readonly HcnOperation[]) => void;
}

/** A family's settings from the configuration and the version of HNS. */
export type FamilySettings = Omit<
  KernelspaceOptions,
  'hcn' | 'now' | 'interfaceMac' | 'modifying' | 'notifiesOfNetworks' | 'onOperations'
>;

/** One look at HNS. */
export interface Look {
  readonly network: Network;
  readonly endpoints: Endpoints;
  readonly loadBalancers: LoadBalancers;
}

/** No more of what is not needed any more is removed in one sync. */
const MOST_REMOVALS = 100;
/** The most times that one sync writes to HNS: an object in another shape goes first, and its replacement comes then. */
const ROUNDS = 3;

/** The kernelspace mode of one family. The README of this folder explains what becomes of a packet. */
export class KernelspaceDriver implements Driver<Look> {
  readonly family: Family;
  readonly limitations = [
    attemptsWait('mode kernelspace leaves them to Windows'),
    CONNECTIONS_GO_ON,
    ATTEMPTS_NOT_COUNTED,
  ];
  readonly polls = 'everything';
  readonly replaces = false;
  readonly notes = null;
  readonly resets = null;
  private table: FamilyTable | null = null;
  private network: Network | null = null;
  /** Whether HNS had no such network when it was last looked for. */
  private lacksNetwork = false;
  private ending = false;
  /** To be reported by the sync under way. */
  private problems: readonly string[] = [];
  /** Calls and operations before the sync under way. */
  private before = { calls: 0, operations: 0 };
  /** The last sync did not remove all that is not needed any more. */
  private removalsLeft = false;
  /** When it is to be looked for endpoints that are awaited; null: none is. */
  private awaitedAt: number | null = null;
  /** Load balancers that the plan does not name and that stay until it does. */
  private kept = new Set<LoadBalancerKey>();
  private othersEndpoints: ReadonlySet<string> = new Set();
  private healthCheckEndpoint: string | null = null;
  /** The source of what is balanced on overlay networks; null: there is none. */
  private sourceVip: IPAddress | null;
  /** Frontends and addresses to be decided anew with the next sending. */
  private readonly touched = { frontends: new Set<LoadBalancerKey>(), addresses: new Set<EndpointKey>() };
  private readonly ledgers: Ledgers;
  private readonly desired: Desired;
  private readonly endpoints: EndpointSet;
  private readonly ownership: () => Ownership;
  private readonly writer: Writer;
  private readonly reader: HcnReader;

  constructor(private readonly options: KernelspaceOptions) {
    const { family, hcn, now, interfaceMac, modifying, onOperations = () => undefined } = options;
    this.family = family;
    this.sourceVip = options.sourceVip;
    const sourceVip = (): IPAddress | null => this.sourceVip;
    this.ledgers = new Ledgers(now);
    const { ledgers } = this;
    const table = (): FamilyTable => this.plan;
    this.desired = new Desired(table, options);
    const { desired } = this;
    this.endpoints = new EndpointSet({ family, ledgers, desired, table, sourceVip, interfaceMac }, now);
    this.ownership = () => ({
      isWanted: (key) => this.table?.frontend(key) !== undefined || desired.get(key) !== undefined,
      serviceCIDRs: this.table?.node.serviceCIDRs ?? [],
    });
    const inPlace = (key: LoadBalancerKey): boolean => desired.get(key)?.inPlace !== false;
    this.reader = readerInParts(hcn, () => {
      this.checkEnding();
    });
    this.writer = new Writer({ hcn, ledgers, modifying, inPlace, onOperations });
  }

  get dueAt(): number | null {
    return this.removalsLeft ? this.options.now() : this.awaitedAt;
  }

  prepare(): void {
    // The first listing needs the plan.
  }

  end(): void {
    this.ending = true;
  }

  desire(table: FamilyTable, change: TableChange): void {
    const isFirst = this.table === null;
    this.table = table;
    const { writer, kept } = this;
    this.before = { calls: writer.calls, operations: writer.operations };
    const changes = isFirst || change.node ? everythingOf(table, change) : change;
    const { frontends, addresses } = this.desired.update(changes);
    for (const key of frontends) this.touched.frontends.add(key);
    for (const address of addresses) this.touched.addresses.add(address);
    for (const address of change.clusterAddresses) this.touched.addresses.add(address);
    // They are among those that were touched.
    if (kept.size > 0) for (const key of change.frontends) kept.delete(key);
  }

  release(): void {
    for (const key of this.kept) this.touched.frontends.add(key);
    this.kept.clear();
  }

  /** None: HNS has connections of its own, which cannot be listed or removed (behaviour WK-11). */
  going(): readonly FrontendKey[] {
    return [];
  }

  isUntouched(): Promise<boolean> {
    return Promise.resolve(false);
  }

  list({ table }: SyncScope): Promise<Look> {
    return this.look(table);
  }

  losses({ network, endpoints, loadBalancers }: Look): readonly string[] {
    const isReplaced = this.network !== null && network.id !== this.network.id;
    const replaced = isReplaced ? [`network ${this.networkName} has come back with another id`] : [];
    return [...replaced, ...this.ledgers.differences(endpoints, loadBalancers)];
  }

  readBack({ network, endpoints, loadBalancers }: Look, { table, keeps }: SyncScope): boolean {
    this.checkModified(loadBalancers.made);
    this.network = network;
    this.healthCheckEndpoint = this.healthCheckEndpointIn(endpoints);
    this.sourceVip = this.sourceVipIn(endpoints);
    this.othersEndpoints = loadBalancers.othersEndpoints;
    this.ledgers.readBack(endpoints, loadBalancers);
    this.endpoints.update(endpoints);
    this.endpoints.noteMacs();
    this.touchEverything(network);
    const isUnnamed = (key: LoadBalancerKey): boolean =>
      this.desired.get(key) === undefined && table.frontend(key) === undefined;
    this.kept = new Set(keeps ? [...loadBalancers.made.keys()].filter(isUnnamed) : []);
    return this.kept.size > 0;
  }

  async deliver({ full }: SyncScope): Promise<Delivered | null> {
    const { writer, before } = this;
    if (!full) await this.readEndpoints();
    const unserved = this.unserved();
    this.problems = unserved === null ? [] : [unserved];
    this.removalsLeft = false;
    if (unserved === null) {
      writer.begin(full);
      this.removalsLeft = await this.send();
      if (writer.isOutdated) return null;
    }
    writer.finish();
    this.awaitedAt = this.endpoints.lookAt();
    const [transactions, elementOperations] = [writer.calls - before.calls, writer.operations - before.operations];
    return { sent: { ...NOTHING_SENT, transactions, elementOperations } };
  }

  /** Unneeded objects go with the delivery. */
  tidy(): Promise<Tidied> {
    return Promise.resolve({ problems: this.problems });
  }

  compare(table: FamilyTable, quiet: WaitForQuiet): Promise<boolean> {
    return undisturbed(quiet, async () => {
      const network = await this.findNetwork();
      if (network === null || !sameNetwork(network, this.network)) return true;
      const { endpoints, loadBalancers } = await this.lookAt(network, table);
      if (network.isOverlay && this.sourceVipIn(endpoints) !== this.sourceVip) return true;
      return this.endpoints.differ(endpoints) || this.ledgers.differences(endpoints, loadBalancers).length > 0;
    });
  }

  /** The network, where HNS does not notify of it. */
  async probe(quiet: WaitForQuiet): Promise<boolean> {
    // HNS does not notify of routes that an overlay network gets.
    const isNotified = this.options.notifiesOfNetworks?.() === true && this.network?.isOverlay !== true;
    return !isNotified && (await this.stirred(quiet));
  }

  /** Whether the network went, or is another, or is there again, or what is behind which node is another. */
  async stirred(quiet: WaitForQuiet): Promise<boolean> {
    const { isKnown, lasts } = await quiet();
    if (!isKnown && !this.lacksNetwork) return false;
    const network = await this.findNetwork();
    const stirs = isKnown ? !sameNetwork(network, this.network) : network !== null;
    return stirs && lasts();
  }

  async print(plan: FamilyTable, scope: PacketScope | null): Promise<readonly string[]> {
    const { network, endpoints, loadBalancers } = await this.look(plan);
    const idOf = (address: IPAddress): string | null =>
      endpoints.found.get(address) ?? endpoints.ids.get(address) ?? null;
    const resolution = this.resolution(network, idOf, this.healthCheckEndpointIn(endpoints), plan);
    const lines = dumpHns({ plan, loadBalancers, endpoints, resolution, settings: this.options });
    return scope === null ? lines : withinScope(lines, this.family, scope);
  }

  remembered(): Promise<Omit<Inspection, 'lines'>> {
    return Promise.resolve({ remembered: null, rememberedUnknown: REMEMBERED_UNKNOWN });
  }

  refused(): Promise<readonly []> {
    return Promise.resolve([]);
  }

  unremembered(): Promise<null> {
    return Promise.resolve(null);
  }

  private get plan(): FamilyTable {
    if (this.table === null) throw new Error('nothing is planned yet');
    return this.table;
  }

  /** Why nothing of the family is served; null: it is. */
  private unserved(): string | null {
    const { servesOverlay, sourceVipEndpoint, features } = this.options;
    if (this.network?.isOverlay !== true) return null;
    const name = this.networkName;
    if (!servesOverlay) return `HNS network ${name} is an overlay, which has one family: ${this.family} is not served`;
    if (this.sourceVip === null && sourceVipEndpoint !== null)
      throw new Error(
        `winkernel.sourceVip: HNS network ${name} has no endpoint ${sourceVipEndpoint} with an ${this.family} address`,
      );
    if (this.sourceVip === null)
      throw new Error(`winkernel.sourceVip: required for the overlay network ${name}, in ${this.family}`);
    if (!features.remoteSubnet)
      throw new Error('this version of HNS has no remote subnets, which overlay networks need');
    return null;
  }

  private async look(table: FamilyTable | null): Promise<Look> {
    const network = await this.findNetwork();
    this.lacksNetwork = network === null;
    if (network === null) throw new Error(`there is no HNS network ${this.networkName}: has the CNI plugin made it?`);
    return await this.lookAt(network, table);
  }

  private findNetwork(): Promise<Network | null> {
    return findNetwork(this.reader, this.options.network);
  }

  private async lookAt(network: Network, table: FamilyTable | null): Promise<Look> {
    const { family } = this.options;
    const hcn = this.reader;
    const endpoints = await listEndpoints(hcn, family, network);
    const isPlanned = (key: FrontendKey): boolean => table?.frontend(key) !== undefined;
    const ownership = this.ownership();
    const loadBalancers = await listLoadBalancers(hcn, family, endpoints, {
      ...ownership,
      isWanted: (key) => isPlanned(key) || ownership.isWanted(key),
    });
    return { network, endpoints, loadBalancers };
  }

  /** All is decided anew. */
  private touchEverything(network: Network): void {
    const { frontends, addresses } = this.touched;
    for (const address of this.endpoints.everyAddress(network)) addresses.add(address);
    for (const [key] of this.desired.entries()) frontends.add(key);
    for (const key of this.ledgers.loadBalancers.acknowledged.keys()) frontends.add(key);
  }

  /** Looks for pods of this node that are used and not known, and on overlay networks for what is behind which node. */
  private async readEndpoints(): Promise<void> {
    const { network, endpoints, touched, desired, reader: hcn } = this;
    if (network === null) return;
    endpoints.desire(network, touched.addresses);
    const isNew = [...touched.addresses].some((key) => this.ledgers.endpoints.isPending(key));
    if (network.isOverlay && isNew) {
      const found = (await this.findNetwork()) ?? network;
      if (!sameNetwork(found, network)) this.touchEverything(found);
      this.network = found;
    }
    const changed = await endpoints.forgetGone(hcn, touched.addresses);
    if (endpoints.awaited.size > 0) changed.push(...(await endpoints.look(hcn, network)));
    for (const address of changed) {
      touched.addresses.add(address);
      for (const key of desired.usersOf(address)) touched.frontends.add(key);
    }
  }

  /** As it is configured. */
  private get networkName(): string {
    const { by, text } = this.options.network;
    return by === 'name' ? text : by === 'prefix' ? `${text}*` : `of type ${text}`;
  }

  private sourceVipIn({ addressByName }: Endpoints): IPAddress | null {
    const { sourceVip, sourceVipEndpoint: name } = this.options;
    return name === null ? sourceVip : (addressByName.get(name.toLowerCase()) ?? null);
  }

  private healthCheckEndpointIn({ byName }: Endpoints): string | null {
    const { healthCheckEndpoint: name } = this.options;
    return name === null ? null : (byName.get(name) ?? null);
  }

  private resolution(
    network: Network,
    idOf: Resolution['idOf'],
    healthCheckEndpoint: string | null,
    table: FamilyTable,
  ): Resolution {
    const isOwn = (address: IPAddress): boolean => table.ownEndpoints.has(address);
    const { sourceVip } = this;
    return { network, idOf, isOwn, healthCheckEndpoint, sourceVip, nodeAddress: table.node.address };
  }

  /**
   * Removals make room. Then each Service's endpoints come, and its load balancers. Endpoints are removed last. Answers whether
   * there is more to remove.
   */
  private async send(): Promise<boolean> {
    const { network, writer, touched } = this;
    const { modifying } = this.options;
    if (network === null) return false;
    let left = false;
    for (let round = 0; round < ROUNDS && !writer.isOutdated; round++) {
      this.endpoints.desire(network, touched.addresses);
      const canModify = modifying.isPossible;
      left = await this.sendServices(network);
      if (!modifying.isProven) await this.lookAtModified();
      const gone = await this.removeEndpoints();
      left ||= gone.left;
      if (!gone.isReplaced && canModify === modifying.isPossible) break;
    }
    if (!writer.isOutdated) touched.addresses.clear();
    return left;
  }

  /** Answers whether more load balancers have to go. */
  private async sendServices(network: Network): Promise<boolean> {
    const { writer, ledgers, touched, desired } = this;
    const { endpoints, loadBalancers } = ledgers;
    const missing = new Set(toSend(endpoints));
    for (const key of missing) for (const user of desired.usersOf(key as IPAddress)) touched.frontends.add(user);
    const make = async (keys: Iterable<EndpointKey>): Promise<void> => {
      const made = [...keys].filter((key) => missing.delete(key) && !endpoints.acknowledged.has(key));
      await writer.makeEndpoints(network, made);
    };
    for (const key of toSend(loadBalancers)) touched.frontends.add(key);
    const all = [...touched.frontends];
    const goes = (key: LoadBalancerKey): boolean => desired.get(key) === undefined;
    this.desireLoadBalancers(network, all.filter(goes));
    const going = toSend(loadBalancers).filter((key) => loadBalancers.desired(key) === undefined && goes(key));
    const shrunk = toSend(loadBalancers).filter((key) => loadBalancers.desired(key) !== undefined && goes(key));
    for (const keys of parts([...going.slice(0, MOST_REMOVALS), ...shrunk], () => 1))
      await this.batch(() => writer.loadBalancers(keys));
    if (this.sourceVip !== null) await make([this.sourceVip]);
    const coming = servicesFirst(
      all.filter((key) => !goes(key)),
      desired,
    );
    const needs = (key: LoadBalancerKey): readonly EndpointKey[] =>
      desired.endpointsOf(key).filter((each) => missing.has(each));
    for (const keys of parts(coming, (key) => 1 + needs(key).length)) {
      await this.batch(() => make(keys.flatMap(needs)));
      this.desireLoadBalancers(network, keys);
      const pending = new Set(toSend(loadBalancers));
      await this.batch(() => writer.loadBalancers(keys.filter((key) => pending.has(key))));
    }
    for (const keys of parts([...missing], () => 1)) await this.batch(() => make(keys));
    return going.length > MOST_REMOVALS;
  }

  /** One batch of operations to HNS. @throws EndedError when the process ends. */
  private async batch(send: () => Promise<void>): Promise<void> {
    this.checkEnding();
    await send();
  }

  private checkEnding(): void {
    if (this.ending) throw new EndedError();
  }

  private desireLoadBalancers(network: Network, keys: readonly LoadBalancerKey[]): void {
    const { ledgers, desired, touched, kept, endpoints, healthCheckEndpoint } = this;
    const resolution = this.resolution(network, (address) => endpoints.idOf(address), healthCheckEndpoint, this.plan);
    for (const key of keys) {
      touched.frontends.delete(key);
      const wanted = desired.get(key);
      const isKept = wanted === undefined && kept.has(key);
      if (isKept) ledgers.loadBalancers.desire(key, ledgers.loadBalancers.acknowledged.get(key));
      else if (wanted === undefined) ledgers.loadBalancers.desire(key, this.left(key));
      else ledgers.loadBalancers.desire(key, resolve(wanted, resolution) ?? undefined);
    }
  }

  /** The rest of a load balancer none of whose endpoints serves any more; undefined: nothing. */
  private left(key: LoadBalancerKey): LoadBalancer | undefined {
    const held = this.ledgers.loadBalancers.acknowledged.get(key);
    const kept = this.desired.kept(key);
    if (held === undefined || kept === null) return undefined;
    const ids = new Set(kept.map((address) => this.endpoints.idOf(address)));
    const endpoints = held.endpoints.filter((id) => ids.has(id));
    return endpoints.length === 0 ? undefined : { ...held, endpoints };
  }

  /** Until HNS was seen to modify what it reports as modified: it may answer success and change nothing. */
  private async lookAtModified(): Promise<void> {
    const { ledgers, writer } = this;
    const ids = [...writer.modified.keys()].flatMap((key) => ledgers.loadBalancerIds.get(key) ?? []);
    if (ids.length === 0) return;
    const looked = new Map<LoadBalancerKey, LoadBalancer>();
    for (const { properties } of await this.reader.hcnList('loadBalancer', ids)) {
      const read = readLoadBalancer(properties);
      if (read !== null) looked.set(read.key, read.loadBalancer);
    }
    for (const key of this.checkModified(looked)) ledgers.loadBalancers.readBack(key, looked.get(key));
  }

  /** Answers the load balancers that HNS reported as changed, and that are unchanged. */
  private checkModified(looked: ReadonlyMap<LoadBalancerKey, LoadBalancer>): readonly LoadBalancerKey[] {
    const { modifying } = this.options;
    const { acknowledged } = this.ledgers.loadBalancers;
    const unchanged: LoadBalancerKey[] = [];
    for (const [key, before] of this.writer.modified) {
      const [held, wanted] = [looked.get(key), acknowledged.get(key)];
      if (held === undefined || wanted === undefined) continue;
      if (sameLoadBalancer(held, wanted)) modifying.prove();
      else if (sameLoadBalancer(held, before)) unchanged.push(key);
    }
    this.writer.modified.clear();
    if (unchanged.length > 0) modifying.refute();
    return unchanged;
  }

  /** Those that no load balancer uses any more. Answers whether one is to be made anew, and whether more have to go. */
  private async removeEndpoints(): Promise<{ readonly isReplaced: boolean; readonly left: boolean }> {
    const { endpoints, endpointIds, loadBalancers } = this.ledgers;
    const going = toSend(endpoints).filter((key) => endpoints.acknowledged.has(key));
    if (going.length === 0) return { isReplaced: false, left: false };
    const inUse = new Set(this.othersEndpoints);
    for (const key of [...loadBalancers.pending(), ...loadBalancers.quarantined.keys(), ...this.kept])
      for (const id of loadBalancers.acknowledged.get(key)?.endpoints ?? []) inUse.add(id);
    const unused = going.filter((key) => !inUse.has(endpointIds.get(key) ?? ''));
    const now = unused.slice(0, MOST_REMOVALS);
    for (const keys of parts(now, () => 1)) await this.batch(() => this.writer.removeEndpoints(keys));
    const isReplaced = now.some((key) => endpoints.desired(key) !== undefined && !endpoints.acknowledged.has(key));
    return { isReplaced, left: unused.length > now.length };
  }

  quarantined(): readonly QuarantinedFrontend[] {
    const { ledgers, desired, endpoints } = this;
    const { now } = this.options;
    return quarantinedFrontends({ ledgers, desired, awaited: endpoints.awaited, now, networkName: this.networkName });
  }

  /** Removes everything of the mode's, by a driver that does nothing else; nothing there is success. */
  async remove(): Promise<void> {
    const { ledgers, writer } = this;
    const { network, endpoints, loadBalancers } = await this.look(this.table);
    ledgers.readBack(endpoints, loadBalancers);
    writer.begin(true);
    for (const key of loadBalancers.made.keys()) ledgers.loadBalancers.desire(key, undefined);
    await writer.loadBalancers([...loadBalancers.made.keys()]);
    const unused = [...endpoints.made.keys()].filter(
      (key) => !loadBalancers.othersEndpoints.has(endpoints.ids.get(key) ?? ''),
    );
    for (const key of unused) ledgers.endpoints.desire(key, undefined);
    await writer.removeEndpoints(unused);
    writer.finish();
    this.network = network;
    const [refused] = [...ledgers.loadBalancers.quarantined.values(), ...ledgers.endpoints.quarantined.values()];
    if (refused !== undefined) throw new Error(refused.reason);
  }
}

const REMEMBERED_UNKNOWN = 'in mode kernelspace HNS decides by a digest of the source, and does not report them';
