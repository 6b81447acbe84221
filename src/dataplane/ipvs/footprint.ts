import type { IptablesTable } from '../../native/contract.js';
import type { Footprint } from '../footprint.js';
import { MARK_COMPANIONS, SHARED_CHAIN } from '../xtables/names.js';

/** Chains by table (behaviour IV-21). */
const CHAINS: Readonly<Record<IptablesTable, ReadonlySet<string>>> = {
  filter: new Set([
    SHARED_CHAIN.forward,
    'KUBE-NODE-PORT',
    SHARED_CHAIN.proxyFirewall,
    'KUBE-SOURCE-RANGES-FIREWALL',
    'KUBE-IPVS-FILTER',
    'KUBE-IPVS-OUT-FILTER',
  ]),
  nat: new Set([
    SHARED_CHAIN.services,
    SHARED_CHAIN.postrouting,
    'KUBE-NODE-PORT',
    'KUBE-LOAD-BALANCER',
    SHARED_CHAIN.markMasquerade,
  ]),
  mangle: new Set(),
};

/** Chains that kube-proxy's rules in built-in chains lead to (IV-21). */
const HOOKED: ReadonlySet<string> = new Set([
  SHARED_CHAIN.services,
  SHARED_CHAIN.forward,
  SHARED_CHAIN.proxyFirewall,
  SHARED_CHAIN.postrouting,
  'KUBE-NODE-PORT',
  'KUBE-IPVS-FILTER',
  'KUBE-IPVS-OUT-FILTER',
]);

/** Sets of the IPv4 family, without the prefix (IV-10 to IV-19). */
const SETS = [
  'LOOP-BACK',
  'CLUSTER-IP',
  'EXTERNAL-IP',
  'EXTERNAL-IP-LOCAL',
  'LOAD-BALANCER',
  'LOAD-BALANCER-LOCAL',
  'LOAD-BALANCER-FW',
  'LOAD-BALANCER-SOURCE-CIDR',
  'LOAD-BALANCER-SOURCE-IP',
  'NODE-PORT-TCP',
  'NODE-PORT-LOCAL-TCP',
  'NODE-PORT-UDP',
  'NODE-PORT-LOCAL-UDP',
  'NODE-PORT-SCTP-HASH',
  'NODE-PORT-LOCAL-SCTP-HASH',
  'HEALTH-CHECK-NODE-PORT',
  'IPVS-IPS',
];

/** IPSET_MAXNAMELEN − 1; kube-proxy cuts longer names. */
const SET_NAME_LENGTH = 31;

/** What kube-proxy makes in ipvs mode. */
export const IPVS_FOOTPRINT: Footprint = {
  nftTables: [],
  chains: {
    isOwn: (table, chain) => CHAINS[table].has(chain),
    isPerService: () => false,
    hooked: HOOKED,
    companions: MARK_COMPANIONS,
  },
  ipvs: {
    link: 'kube-ipvs0',
    sets: new Set(
      ['KUBE-', 'KUBE-6-'].flatMap((prefix) => SETS.map((name) => (prefix + name).slice(0, SET_NAME_LENGTH))),
    ),
  },
};
