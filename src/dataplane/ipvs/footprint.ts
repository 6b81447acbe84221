import type { IptablesTable } from '../../native/contract.js';
import type { Footprint } from '../footprint.js';

/** Chains by table (behaviour IV-21); some have names that the iptables mode uses too. */
const CHAINS: Readonly<Record<IptablesTable, ReadonlySet<string>>> = {
  filter: new Set([
    'KUBE-FORWARD',
    'KUBE-NODE-PORT',
    'KUBE-PROXY-FIREWALL',
    'KUBE-SOURCE-RANGES-FIREWALL',
    'KUBE-IPVS-FILTER',
    'KUBE-IPVS-OUT-FILTER',
  ]),
  nat: new Set(['KUBE-SERVICES', 'KUBE-POSTROUTING', 'KUBE-NODE-PORT', 'KUBE-LOAD-BALANCER', 'KUBE-MARK-MASQ']),
  mangle: new Set(),
};

/** Chains that kube-proxy's rules in built-in chains lead to (IV-21). */
const HOOKED: ReadonlySet<string> = new Set([
  'KUBE-SERVICES',
  'KUBE-FORWARD',
  'KUBE-PROXY-FIREWALL',
  'KUBE-POSTROUTING',
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
    companions: new Map([['KUBE-MARK-MASQ', 'KUBE-POSTROUTING']]),
  },
  ipvs: {
    link: 'kube-ipvs0',
    sets: new Set(
      ['KUBE-', 'KUBE-6-'].flatMap((prefix) => SETS.map((name) => (prefix + name).slice(0, SET_NAME_LENGTH))),
    ),
  },
};
