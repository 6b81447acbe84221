import type { IptablesTable } from '../../native/contract.js';

/** What kube-proxy calls its objects, in every mode that has been (behaviour IT-01, IT-02, IV-10 to IV-21). */

const FIXED: Readonly<Record<IptablesTable, ReadonlySet<string>>> = {
  filter: new Set([
    'KUBE-SERVICES',
    'KUBE-EXTERNAL-SERVICES',
    'KUBE-NODEPORTS',
    'KUBE-FORWARD',
    'KUBE-PROXY-FIREWALL',
    'KUBE-PROXY-CANARY',
    'KUBE-PROXY-PROBE',
    'KUBE-NODE-PORT',
    'KUBE-SOURCE-RANGES-FIREWALL',
    'KUBE-IPVS-FILTER',
    'KUBE-IPVS-OUT-FILTER',
  ]),
  nat: new Set([
    'KUBE-SERVICES',
    'KUBE-NODEPORTS',
    'KUBE-POSTROUTING',
    'KUBE-MARK-MASQ',
    'KUBE-PROXY-CANARY',
    'KUBE-NODE-PORT',
    'KUBE-LOAD-BALANCER',
  ]),
  mangle: new Set(['KUBE-PROXY-CANARY']),
};

/** Chains of single Services and endpoints, in nat. */
const PER_SERVICE = /^KUBE-(SVC|SVL|FW|EXT|SEP)-/;

/** Chains in filter into which the iptables mode divides long ones, or to which they lead. */
const DIVIDED = /^KUBE-(SERVICES|EXTERNAL-SERVICES|EXTERNAL-NP|NODEPORTS|PROXY-FIREWALL)-|^KUBE-EXTERNAL-NP$/;

/** Of the ipvs mode alone; its other chains have names that the iptables mode uses too. */
const IPVS_ONLY: ReadonlySet<string> = new Set([
  'KUBE-NODE-PORT',
  'KUBE-LOAD-BALANCER',
  'KUBE-SOURCE-RANGES-FIREWALL',
  'KUBE-IPVS-FILTER',
  'KUBE-IPVS-OUT-FILTER',
]);

/** Chains that kube-proxy's rules in built-in chains lead to (IT-10 to IT-17, IV-21). */
const HOOKED: ReadonlySet<string> = new Set([
  'KUBE-SERVICES',
  'KUBE-EXTERNAL-SERVICES',
  'KUBE-NODEPORTS',
  'KUBE-FORWARD',
  'KUBE-PROXY-FIREWALL',
  'KUBE-POSTROUTING',
  'KUBE-NODE-PORT',
  'KUBE-IPVS-FILTER',
  'KUBE-IPVS-OUT-FILTER',
]);

export const TABLES: readonly IptablesTable[] = ['mangle', 'filter', 'nat'];

/** Marks packets for {@link MASQUERADE_CHAIN}; other software's rules lead to it. */
export const MARK_CHAIN = 'KUBE-MARK-MASQ';
export const MASQUERADE_CHAIN = 'KUBE-POSTROUTING';

/** Chains that no rule but kube-proxy's has a reason to lead to. KUBE-FIREWALL and everything of kubelet's is not among them. */
export function isLeftoverChain(table: IptablesTable, chain: string, ipvsOnly: boolean): boolean {
  if (ipvsOnly) return IPVS_ONLY.has(chain) && FIXED[table].has(chain);
  return FIXED[table].has(chain) || (table === 'nat' ? PER_SERVICE : DIVIDED).test(chain);
}

export function isServiceChain(chain: string): boolean {
  return PER_SERVICE.test(chain);
}

export function isHooked(chain: string): boolean {
  return HOOKED.has(chain);
}

export const IPVS_LINK = 'kube-ipvs0';

const IPVS_SETS = [
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

/** The ipvs mode's sets of both families. */
export const IPVS_SET_NAMES: ReadonlySet<string> = new Set(
  ['KUBE-', 'KUBE-6-'].flatMap((prefix) => IPVS_SETS.map((name) => (prefix + name).slice(0, SET_NAME_LENGTH))),
);
