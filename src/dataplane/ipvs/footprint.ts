import { FAMILIES } from '../../base/ip.js';
import type { Protocol } from '../../base/protocol.js';
import type { IptablesTable } from '../../native/contract.js';
import type { Footprint } from '../removal/footprint.js';
import { MARK_COMPANIONS } from '../xtables/names.js';
import {
  CHAIN,
  COUNTER_ROLES,
  counterName,
  FRONTEND_ROLES,
  LINK,
  PEER_HAIRPIN,
  SET_PREFIXES,
  SET_ROLES,
  setName,
  type SetRole,
} from './names.js';

/** Chains by table (behaviour IV-21). */
const CHAINS: Readonly<Record<IptablesTable, ReadonlySet<string>>> = {
  filter: new Set([
    CHAIN.forward,
    CHAIN.nodePort,
    CHAIN.proxyFirewall,
    CHAIN.sourceRanges,
    CHAIN.guard,
    CHAIN.outGuard,
    CHAIN.noEndpoints,
    CHAIN.noLocal,
  ]),
  nat: new Set([
    CHAIN.services,
    CHAIN.postrouting,
    CHAIN.nodePort,
    CHAIN.loadBalancer,
    CHAIN.markMasquerade,
    CHAIN.noEndpoints,
  ]),
  mangle: new Set(),
  raw: new Set(),
  security: new Set(),
};

/** Chains that rules in built-in chains lead to, kube-proxy's and ours (IV-21). */
const HOOKED: ReadonlySet<string> = new Set([
  CHAIN.services,
  CHAIN.forward,
  CHAIN.proxyFirewall,
  CHAIN.postrouting,
  CHAIN.nodePort,
  CHAIN.guard,
  CHAIN.outGuard,
]);

/** SCTP has a virtual service for each element of a set by address. */
const PORT_ROLES: readonly (readonly [role: SetRole, protocol: Protocol])[] = [
  ['tcpNodePorts', 'TCP'],
  ['tcpNodePortsLocal', 'TCP'],
  ['udpNodePorts', 'UDP'],
  ['udpNodePortsLocal', 'UDP'],
];

export function isOwnChain(table: IptablesTable, chain: string): boolean {
  return CHAINS[table].has(chain);
}

/** The objects that kube-proxy makes in ipvs mode, and those that we make. */
export const IPVS_FOOTPRINT: Footprint = {
  nftTables: [],
  chains: { isOwn: isOwnChain, isPerService: () => false, hooked: HOOKED, companions: MARK_COMPANIONS },
  ipvs: {
    link: LINK,
    portSets: new Map(
      FAMILIES.flatMap((family) => PORT_ROLES.map(([role, protocol]) => [setName(family, role), protocol] as const)),
    ),
    frontendSets: new Set(FAMILIES.flatMap((family) => FRONTEND_ROLES.map((role) => setName(family, role)))),
    sets: new Set(
      FAMILIES.flatMap((family) => [
        SET_PREFIXES[family] + PEER_HAIRPIN,
        ...SET_ROLES.map((role) => setName(family, role)),
        ...COUNTER_ROLES.map((role) => counterName(family, role)),
      ]),
    ),
  },
};
