import type { Family, IPAddress } from '../../base/ip.js';
import type { HcnAddon, HcnOperation } from '../../native/contract.js';
import { withinScope } from '../../plan/text.js';
import type { FamilyTable, FrontendKey, ObjectKey, PacketScope, TableChange } from '../../plan/types.js';
import { EndedError, type Inspection, type Limitation, type QuarantinedFrontend } from '../contract.js';
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
import { readerInParts, type HcnReader } from './batches.js';
import { quarantinedFrontends } from './quarantined-frontends.js';
import { Desired, everythingOf } from './desired.js';
import { dumpHns } from './dump.js';
import { EndpointSet } from './endpoints.js';
import { Ledgers } from './ledgers.js';
import {
  findNetwork,
  listLoadBalancers,
  listEndpoints,
  sameNetwork,
  type LoadBalancerKey,
  type LoadBalancers,
  type Endpoints,
  type Network,
  type Ownership,
} from './listing.js';
import { typeOf, type LoadBalancerFailures } from './load-balancer-failures.js';
import type { Modifying } from './modifying.js';
import { type Found, resolutionOf } from './resolution.js';
import { networkName, whyUnserved, type FamilySettings } from './settings.js';
import { Writer, type RefusedLoadBalancer } from './writer.js';
import { Sending } from './sending.js';

export interface KernelspaceOptions extends FamilySettings {
  readonly hcn: HcnAddon;
  readonly interfaceMac: (address: IPAddress) => string | null;
  /** Shared by all families. */
  readonly modifying: Modifying;
  /** Whether HNS's notifications call {@link KernelspaceDriver.stirred} when a network comes or goes. */
  readonly notifiesOfNetworks?: () => boolean;
  /** Milliseconds on a clock that only goes forward. */
  readonly now: () => number;
  readonly onOperations?: (operations: readonly HcnOperation[]) => void;
  readonly failures?: LoadBalancerFailures;
}

/** One look at HNS. */
export interface Look {
  readonly network: Network;
  readonly endpoints: Endpoints;
  readonly loadBalancers: LoadBalancers;
}

/** The kernelspace mode of one family. The README of this folder explains what becomes of a packet. */
export class KernelspaceDriver implements Driver<Look> {
  readonly family: Family;
  readonly polls = 'everything';
  readonly replaces = false;
  readonly notes = null;
  readonly resets = null;
  private table: FamilyTable | null = null;
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
  /** Null: not looked yet. */
  private found: Found | null = null;
  private readonly ledgers: Ledgers;
  private readonly desired: Desired;
  private readonly endpoints: EndpointSet;
  private readonly ownership: () => Ownership;
  private readonly writer: Writer;
  private readonly reader: HcnReader;
  private readonly sending: Sending;

  constructor(private readonly options: KernelspaceOptions) {
    const { family, hcn, now, interfaceMac, modifying, onOperations = () => undefined, failures } = options;
    this.family = family;
    const sourceVip = (): IPAddress | null => (this.found ?? options).sourceVip;
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
    const checkEnding = (): void => {
      if (this.ending) throw new EndedError();
    };
    this.reader = readerInParts(hcn, checkEnding);
    const onRefused: RefusedLoadBalancer = (operation, key, held, { errno }) => {
      failures?.add(operation, family, typeOf(desired.get(key), held), errno);
    };
    this.writer = new Writer({ hcn, ledgers, modifying, inPlace, onOperations, onRefused });
    const { endpoints, writer, reader } = this;
    this.sending = new Sending({ ledgers, desired, endpoints, writer, reader, modifying, table, checkEnding });
  }

  get limitations(): readonly Limitation[] {
    const { draining } = this.sending;
    return draining.size === 0 ? LIMITATIONS : [...LIMITATIONS, onlyDraining(draining)];
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
    const { writer } = this;
    const { touched, kept } = this.sending;
    this.before = { calls: writer.calls, operations: writer.operations };
    const changes = isFirst || change.node ? everythingOf(table, change) : change;
    const { frontends, addresses } = this.desired.update(changes);
    for (const key of frontends) touched.frontends.add(key);
    for (const address of addresses) touched.addresses.add(address);
    for (const address of change.clusterAddresses) touched.addresses.add(address);
    // They are among those that were touched.
    if (kept.size > 0) for (const key of change.frontends) kept.delete(key);
  }

  release(): void {
    const { touched, kept } = this.sending;
    for (const key of kept) touched.frontends.add(key);
    kept.clear();
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
    const { sending } = this;
    sending.checkModified(loadBalancers.made);
    this.found = this.foundIn({ network, endpoints, loadBalancers });
    this.ledgers.readBack(endpoints, loadBalancers);
    this.endpoints.update(endpoints);
    this.endpoints.noteMacs();
    sending.touchEverything(network);
    const isUnnamed = (key: LoadBalancerKey): boolean =>
      this.desired.get(key) === undefined && table.frontend(key) === undefined;
    sending.kept = new Set(keeps ? [...loadBalancers.made.keys()].filter(isUnnamed) : []);
    return sending.kept.size > 0;
  }

  async deliver({ full }: SyncScope): Promise<Delivered | null> {
    const { writer, before } = this;
    if (!full) await this.readEndpoints();
    const { found } = this;
    const unserved = found === null ? null : whyUnserved(found, this.options);
    this.problems = unserved === null ? [] : [unserved];
    this.removalsLeft = false;
    if (unserved === null) {
      writer.begin(full);
      this.removalsLeft = found !== null && (await this.sending.send(found));
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
      if (network.isOverlay && this.sourceVipIn(endpoints) !== this.found?.sourceVip) return true;
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
    const look = await this.look(plan);
    const { endpoints, loadBalancers } = look;
    const idOf = (address: IPAddress): string | null =>
      endpoints.found.get(address) ?? endpoints.ids.get(address) ?? null;
    const resolution = resolutionOf(this.foundIn(look), idOf, plan);
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

  private get network(): Network | null {
    return this.found?.network ?? null;
  }

  private get networkName(): string {
    return networkName(this.options);
  }

  private get plan(): FamilyTable {
    if (this.table === null) throw new Error('nothing is planned yet');
    return this.table;
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

  /** Looks for pods of this node that are used and not known, and on overlay networks for what is behind which node. */
  private async readEndpoints(): Promise<void> {
    const { found, endpoints, sending, desired, reader: hcn } = this;
    if (found === null) return;
    const { network } = found;
    const { touched } = sending;
    endpoints.desire(network, touched.addresses);
    const isNew = [...touched.addresses].some((key) => this.ledgers.endpoints.isPending(key));
    if (network.isOverlay && isNew) {
      const present = (await this.findNetwork()) ?? network;
      if (!sameNetwork(present, network)) sending.touchEverything(present);
      this.found = { ...found, network: present };
    }
    const changed = await endpoints.forgetGone(hcn, touched.addresses);
    if (endpoints.awaited.size > 0) changed.push(...(await endpoints.look(hcn, network)));
    for (const address of changed) {
      touched.addresses.add(address);
      for (const key of desired.usersOf(address)) touched.frontends.add(key);
    }
  }

  private sourceVipIn({ addressByName }: Endpoints): IPAddress | null {
    const { sourceVip, sourceVipEndpoint: name } = this.options;
    return name === null ? sourceVip : (addressByName.get(name.toLowerCase()) ?? null);
  }

  private foundIn({ network, endpoints, loadBalancers: { othersEndpoints } }: Look): Found {
    const { healthCheckEndpoint: name } = this.options;
    const healthCheckEndpoint = name === null ? null : (endpoints.byName.get(name) ?? null);
    return { network, healthCheckEndpoint, sourceVip: this.sourceVipIn(endpoints), othersEndpoints };
  }

  quarantined(): readonly QuarantinedFrontend[] {
    const { ledgers, desired, endpoints } = this;
    const { now } = this.options;
    return quarantinedFrontends({ ledgers, desired, awaited: endpoints.awaited, now, networkName: this.networkName });
  }

  /** Removes everything of the mode's, by a driver that does nothing else; nothing there is success. */
  async remove(): Promise<void> {
    const { ledgers, writer } = this;
    const { endpoints, loadBalancers } = await this.look(this.table);
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
    const [refused] = [...ledgers.loadBalancers.quarantined.values(), ...ledgers.endpoints.quarantined.values()];
    if (refused !== undefined) throw new Error(refused.reason);
  }
}

const LIMITATIONS: readonly Limitation[] = [
  attemptsWait('mode kernelspace leaves them to Windows'),
  CONNECTIONS_GO_ON,
  ATTEMPTS_NOT_COUNTED,
];

/** So many Services are named. */
const MOST_NAMED = 3;

function onlyDraining(draining: ReadonlyMap<LoadBalancerKey, ObjectKey>): Limitation {
  const services = [...new Set(draining.values())].sort();
  const named = services.slice(0, MOST_NAMED).join(', ') + (services.length > MOST_NAMED ? ' …' : '');
  const text = `load balancers without a ready endpoint exist only for connections under way: ${draining.size}, of ${named}`;
  return { of: 'mode', text };
}

const REMEMBERED_UNKNOWN = 'in mode kernelspace HNS decides by a digest of the source, and does not report them';
