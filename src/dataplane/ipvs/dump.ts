import { addressFromBytes, addressLength, type Family, type IPAddress, type IPPrefix } from '../../base/ip.js';
import type { IptablesAddon, IptablesChainListing, IpvsServiceState } from '../../native/contract.js';
import { UNHELD } from '../../plan/frontend-fields.js';
import { frontendKey } from '../../plan/frontend-key.js';
import { hairpinLine, printNode, printFrontends } from '../../plan/text.js';
import type { Balance, FrontendKind, FrontendPlan, NodePlan } from '../../plan/types.js';
import { statesOf } from '../xtables/chain-states.js';
import { printDifferences } from '../xtables/differences.js';
import type { Destinations } from './destinations.js';
import { isOwnChain } from './footprint.js';
import {
  askedHashing,
  noEndpoints,
  packNodePort,
  packVirtual,
  serviceKey,
  unpackPort,
  unpackVirtual,
  type ElementKey,
  type Virtual,
} from './frontends.js';
import type { Listing } from './listing.js';
import { CHAIN, SET_ROLES, type SetRole } from './names.js';
import { chains as wantedChains, HOOKS } from './rules.js';

interface DumpParts {
  readonly addon: Pick<IptablesAddon, 'iptablesDigests'>;
  readonly family: Family;
  readonly listing: Listing;
  readonly chains: readonly IptablesChainListing[];
  readonly node: NodePlan;
}

/**
 * The kernel's content in the lines of plan/text.ts, sorted. Sets show which frontends there are, and virtual services show
 * where they lead. What only waits for the end of its connections is left out.
 */
export async function dumpKernel(parts: DumpParts): Promise<readonly string[]> {
  const { family, listing, chains, node } = parts;
  const isEmpty = SET_ROLES.length === listing.missingSets.length && listing.held.services.size === 0;
  if (isEmpty && !chains.some(({ table, name }) => isOwnChain(table, name))) return [];
  const frontends = new Reader(family, listing).read();
  const lines = new Set(printFrontends(family, frontends));
  for (const key of listing.held.elements.hairpin.keys()) lines.add(hairpinLine(family, unpack(family, key, 0)));
  const differences = await compareRules(parts, frontends);
  for (const line of differences.length === 0 ? printNode(node) : differences) lines.add(line);
  return [...lines].sort();
}

const KINDS: readonly (readonly [SetRole, FrontendKind, FrontendPlan['masquerade']])[] = [
  ['cluster', 'ClusterIP', 'off-cluster'],
  ['external', 'ExternalIP', 'always'],
  ['externalLocal', 'ExternalIP', 'node'],
  ['loadBalancer', 'LoadBalancer', 'always'],
  ['loadBalancerLocal', 'LoadBalancer', 'node'],
  ['sctpNodePorts', 'NodePort', 'always'],
  ['sctpNodePortsLocal', 'NodePort', 'node'],
];

const PORTS = [
  ['tcpNodePorts', 'TCP', 'always'],
  ['tcpNodePortsLocal', 'TCP', 'node'],
  ['udpNodePorts', 'UDP', 'always'],
  ['udpNodePortsLocal', 'UDP', 'node'],
] as const;

class Reader {
  private readonly admitted = new Map<ElementKey, IPPrefix[]>();

  constructor(
    private readonly family: Family,
    private readonly listing: Listing,
  ) {}

  read(): readonly FrontendPlan[] {
    this.readAdmitted();
    const { elements } = this.listing.held;
    const found: FrontendPlan[] = [];
    for (const [role, kind, masquerade] of KINDS)
      for (const key of elements[role].keys())
        found.push(this.frontend(unpackVirtual(this.family, key), { kind, masquerade }));
    for (const [role, protocol, masquerade] of PORTS)
      for (const key of elements[role].keys()) {
        const port = unpackPort(key);
        const addresses = [...this.listing.own].filter((address) => this.hasTraces({ address, port, protocol }));
        const [address = this.none] = addresses;
        found.push(this.frontend({ address, port, protocol }, { kind: 'NodePort', masquerade }));
      }
    return found;
  }

  private frontend(virtual: Virtual, { kind, masquerade }: Pick<FrontendPlan, 'kind' | 'masquerade'>): FrontendPlan {
    const { elements, services, destinations } = this.listing.held;
    const key = packVirtual(virtual);
    const held = (role: SetRole): boolean => elements[role].has(key);
    const none = noEndpoints(this.family);
    const endpoints = destinations.get(serviceKey(virtual))?.active ?? none;
    const drops = held('dropping') || held('droppingOthers');
    const seconds = services.get(serviceKey(virtual))?.timeoutSeconds ?? 0;
    const { port, protocol } = virtual;
    const [address, named] =
      kind === 'NodePort' ? [null, packNodePort(this.family, port, protocol)] : [virtual.address, key];
    return {
      kind,
      masquerade,
      endpoints,
      address,
      port,
      protocol,
      family: this.family,
      key: frontendKey(address, port, protocol),
      servicePort: elements.names.get(named) ?? '',
      localEndpoints: masquerade !== 'node' ? null : drops ? none : endpoints,
      whenEmpty: drops ? 'drop' : 'reject',
      affinitySeconds: seconds === 0 ? null : seconds,
      sourceRanges: held('restricted') ? (this.admitted.get(key)?.sort() ?? []) : null,
      retrySeconds: null,
      balance: balanceOf(services.get(serviceKey(virtual)), destinations.get(serviceKey(virtual))),
      ...UNHELD,
    };
  }

  private hasTraces(virtual: Virtual): boolean {
    const { services, elements } = this.listing.held;
    const key = packVirtual(virtual);
    return services.has(serviceKey(virtual)) || elements.dropping.has(key) || elements.refusing.has(key);
  }

  private readAdmitted(): void {
    const { admittedPrefixes, admittedAddresses } = this.listing.held.elements;
    const length = addressLength(this.family);
    const size = length + 3;
    const add = (key: ElementKey, bits: number): void => {
      const range = `${unpack(this.family, key, size)}/${bits}` as IPPrefix;
      const frontend = key.slice(0, size);
      this.admitted.set(frontend, [...(this.admitted.get(frontend) ?? []), range]);
    };
    for (const key of admittedPrefixes.keys()) add(key, key.charCodeAt(size + length));
    for (const key of admittedAddresses.keys()) add(key, length * 8);
  }

  private get none(): IPAddress {
    return addressFromBytes(new Uint8Array(addressLength(this.family)));
  }
}

/** As the plan has it where it is asked for; null: equally, by the scheduler of all. */
function balanceOf(state: IpvsServiceState | undefined, held: Destinations | undefined): Balance | null {
  const by = state === undefined ? null : askedHashing(state);
  if (held === undefined || (by === null && held.weights === undefined)) return null;
  const weights = held.weights ?? new Array<number>(held.active.count).fill(1);
  const shares = { weights, slots: null };
  return { by: by ?? 'random', endpoints: shares, localEndpoints: shares };
}

function unpack(family: Family, key: ElementKey, at: number): IPAddress {
  return addressFromBytes(Buffer.from(key.slice(at, at + addressLength(family)), 'latin1'));
}

async function compareRules(
  { addon, family, chains, node }: DumpParts,
  frontends: readonly FrontendPlan[],
): Promise<readonly string[]> {
  const restricted = frontends.filter(({ sourceRanges }) => sourceRanges !== null);
  // Whether refusals are counted is no setting of the node.
  const counts = chains.some(({ name }) => name === CHAIN.noEndpoints);
  const wanted = await statesOf(addon, family, wantedChains(node, restricted, counts));
  return printDifferences(family, chains, wanted, isOwnChain, HOOKS);
}
