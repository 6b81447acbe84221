import { addressFromBytes, addressLength, familyOf, type IPAddress } from '../../../src/base/ip.js';
import { printEndpoint } from '../../../src/base/endpoint-list.js';
import { protocolNumber } from '../../../src/base/protocol.js';
import { KERNELSPACE } from '../../../src/dataplane/kernelspace/mode.js';
import { isOwnId } from '../../../src/dataplane/kernelspace/names.js';
import {
  HCN_ENDPOINT_FLAGS,
  HCN_LOAD_BALANCER_FLAGS,
  HCN_PORT_MAPPING_FLAGS,
  type HcnAddon,
  type HcnLoadBalancer,
  type NativeAddon,
} from '../../../src/native/contract.js';
import { SERVING, type EndpointSliceRow } from '../../../src/state/rows.js';
import type { StateChange } from '../../../src/state/writer.js';
import type { KernelVerdict } from '../courses.js';
import type { KernelPacket } from '../fake-kernel/packet.js';
import type { SeededRandom } from '../random.js';
import type { ScenarioMode, ScenarioWorld } from '../scenario-world.js';
import { FakeHns } from './fake-hns.js';

export const KERNELSPACE_STORIES: ScenarioMode = {
  definition: KERNELSPACE,
  forgetsGoneFlows: true,
  tellsRemembered: false,
  world: () => new HnsWorld(),
};

/** A node with HNS, and a CNI plugin that makes an endpoint for each pod of the node. */
export class HnsWorld implements ScenarioWorld {
  readonly hns = new FakeHns();
  readonly flows = null;
  readonly network = this.hns.addNetwork('cbr0');
  /** Endpoints by slice: what serves no more may stay in HNS as long as a slice has it. */
  private readonly inSlices = new Map<string, ReadonlyMap<IPAddress, { readonly serves: boolean }>>();
  /** Where load balancers send a client: by load balancer and source. */
  private readonly clients = new Map<string, string>();

  /** What is of another platform is not there to be asked. */
  get addon(): NativeAddon {
    const { hns } = this;
    const hcn: HcnAddon = {
      hcnVersion: () => hns.hcnVersion(),
      hcnIds: (kind) => hns.hcnIds(kind),
      hcnList: (kind, ids) => hns.hcnList(kind, ids),
      hcnApply: (operations) => hns.hcnApply(operations),
      hcnWatch: (onChange) => hns.hcnWatch(onChange),
    };
    return { hcn } as Partial<NativeAddon> as NativeAddon;
  }

  get transactions(): number {
    return this.hns.changes;
  }

  forgetCalls(): void {
    this.hns.committed.length = 0;
    this.hns.listed.length = 0;
  }

  /** Pods of the node come, and those that are now elsewhere go: HNS knows before anybody is told. */
  follow(changes: readonly StateChange[], nodeName: string): void {
    for (const change of changes) {
      if (change.type === 'remove') this.inSlices.delete(`${change.ref.namespace}/${change.ref.name}`);
      else if (change.row.kind === 'EndpointSlice') this.movePods(change.row, nodeName);
    }
  }

  endPods(): void {
    const slices = [...this.inSlices.values()];
    for (const [id, { Flags = 0 }] of [...this.hns.endpoints])
      if (
        (Flags & HCN_ENDPOINT_FLAGS.remote) === 0 &&
        !this.hns.addressesOf(id).some((address) => slices.some((slice) => slice.has(address)))
      )
        this.hns.removeEndpoint(id);
  }

  /** Whether an endpoint is there for connections that a pod ends, and for nothing else. */
  private isLeft(id: string): boolean {
    const slices = [...this.inSlices.values()];
    const isUsed = [...this.hns.loadBalancers.values()].some(({ HostComputeEndpoints }) =>
      HostComputeEndpoints?.includes(id),
    );
    return !isUsed && this.hns.addressesOf(id).some((address) => slices.some((each) => each.has(address)));
  }

  private movePods(row: EndpointSliceRow, nodeName: string): void {
    const { family, addresses, nodeNames, count } = row;
    const size = addressLength(family);
    const all = new Map<IPAddress, { readonly serves: boolean }>();
    this.inSlices.set(`${row.namespace}/${row.name}`, all);
    const pods = new Map<IPAddress, string>();
    for (const [id, { Flags = 0 }] of this.hns.endpoints)
      if ((Flags & HCN_ENDPOINT_FLAGS.remote) === 0)
        for (const address of this.hns.addressesOf(id)) pods.set(address, id);
    for (let index = 0; index < count; index++) {
      const address = addressFromBytes(Buffer.from(addresses.slice(index * size, (index + 1) * size), 'latin1'));
      all.set(address, { serves: ((row.conditions[index] ?? 0) & SERVING) !== 0 });
      const pod = pods.get(address);
      const isHere = nodeNames[index] === nodeName;
      if (isHere && pod === undefined) pods.set(address, this.hns.addEndpoint(this.network, [address]));
      if (isHere || pod === undefined) continue;
      this.hns.removeEndpoint(pod);
      pods.delete(address);
    }
  }

  verdict(packet: KernelPacket, localAddresses: readonly IPAddress[]): KernelVerdict {
    const found = this.loadBalancerOf(packet, localAddresses);
    if (found === null) return { type: 'none' };
    const [id, properties] = found;
    const [mapping] = properties.PortMappings ?? [];
    const all = this.targets(packet, properties);
    const chosen = (mapping?.DistributionType ?? 0) === 0 ? undefined : this.clients.get(`${id} ${packet.source}`);
    const endpoints = chosen !== undefined && all.includes(chosen) ? [chosen] : all;
    return endpoints.length === 0
      ? { type: 'none' }
      : { type: 'forward', endpoints: [...endpoints].sort(), masquerade: false, hairpin: [] };
  }

  connect(packet: KernelPacket, localAddresses: readonly IPAddress[], endpoint: string): void {
    const found = this.loadBalancerOf(packet, localAddresses);
    if (found === null || !this.targets(packet, found[1]).includes(endpoint))
      throw new Error(`no way leads to ${endpoint}`);
    this.clients.set(`${found[0]} ${packet.source}`, endpoint);
  }

  private loadBalancerOf(
    { destination, port, protocol }: KernelPacket,
    localAddresses: readonly IPAddress[],
  ): readonly [id: string, properties: HcnLoadBalancer] | null {
    const family = familyOf(destination) === 'IPv6' ? HCN_LOAD_BALANCER_FLAGS.ipv6 : 0;
    const takes = ({ PortMappings = [], Flags = 0 }: HcnLoadBalancer): boolean =>
      (Flags & HCN_LOAD_BALANCER_FLAGS.ipv6) === family &&
      PortMappings.some(({ Protocol, ExternalPort }) => Protocol === protocolNumber(protocol) && ExternalPort === port);
    const all = [...this.hns.loadBalancers].filter(([, properties]) => takes(properties));
    const own = all.find(([, { FrontendVIPs = [] }]) => FrontendVIPs.includes(destination));
    if (own !== undefined || !localAddresses.includes(destination)) return own ?? null;
    const isNodePort = ({ FrontendVIPs = [], PortMappings = [] }: HcnLoadBalancer): boolean =>
      FrontendVIPs.length === 0 &&
      PortMappings.some(({ Flags = 0 }) => (Flags & HCN_PORT_MAPPING_FLAGS.localRoutedVip) !== 0);
    return all.find(([, properties]) => isNodePort(properties)) ?? null;
  }

  private targets(
    { destination }: KernelPacket,
    { HostComputeEndpoints = [], PortMappings = [] }: HcnLoadBalancer,
  ): readonly string[] {
    const [mapping] = PortMappings;
    // What stays for the connections of pods that serve no more promises nothing to new ones.
    const ends = (address: IPAddress): boolean => {
      const states = [...this.inSlices.values()].flatMap((slice) => slice.get(address) ?? []);
      return states.length > 0 && states.every(({ serves }) => !serves);
    };
    return HostComputeEndpoints.flatMap((id) => this.hns.addressesOf(id))
      .filter((address) => familyOf(address) === familyOf(destination) && !ends(address))
      .map((address) => printEndpoint(address, mapping?.InternalPort ?? 0));
  }

  /** A full sync looks at everything whatever happened. */
  touch(): void {
    return;
  }

  failAtRandom(random: SeededRandom): void {
    this.hns.faults.atRandom(random);
  }

  loseAnswers(count: number): void {
    for (let index = 0; index < count; index++) this.hns.faults.planned.push('lose-answer');
  }

  failNoMore(): void {
    this.hns.faults.atRandom(null);
  }

  /** Remote endpoints that no load balancer uses. */
  leftovers(): readonly string[] {
    const used = new Set(
      [...this.hns.loadBalancers.values()].flatMap(({ HostComputeEndpoints = [] }) => HostComputeEndpoints),
    );
    const made = [...this.hns.endpoints.keys()].filter((id) => isOwnId(id) && !used.has(id) && !this.isLeft(id));
    return made.map((id) => `endpoint ${this.hns.addressesOf(id).join()}`);
  }

  contents(): readonly string[] {
    const { hns } = this;
    const name = (id: string): string => hns.addressesOf(id).join() || id;
    return [
      ...[...hns.endpoints]
        .filter(([id, { Flags = 0 }]) => (Flags & HCN_ENDPOINT_FLAGS.remote) !== 0 && !this.isLeft(id))
        .map(([id, { MacAddress = '' }]) => `${name(id)} ${MacAddress}`),
      ...[...hns.loadBalancers.values()].map(({ ID, HostComputeEndpoints = [], ...rest }) =>
        JSON.stringify({ isOurs: isOwnId(ID ?? ''), endpoints: HostComputeEndpoints.map(name).sort(), ...rest }),
      ),
    ].sort();
  }
}
