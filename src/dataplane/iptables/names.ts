import { createHash } from 'node:crypto';
import type { Protocol } from '../../base/protocol.js';
import type { IptablesTable } from '../../native/contract.js';
import type { Footprint } from '../removal/footprint.js';
import { MARK_COMPANIONS, SHARED_CHAIN } from '../xtables/names.js';
import { PROBE_CHAIN } from '../xtables/probe.js';

/**
 * Names in the kernel. The fixed chains and those of Services have kube-proxy's names (behaviour IT-01, IT-02): other software and administrators
 * know them, and either proxy may start where the other stopped. Every other chain of ours in nat begins with `KUBE-SVC-`, because kube-proxy
 * removes chains of that prefix that it did not make; one it left behind could hold a reference that fails its whole restore.
 */
export const CHAIN = {
  ...SHARED_CHAIN,
  external: 'KUBE-EXTERNAL-SERVICES',
  /** Filter: what becomes of node ports without endpoints. */
  externalNodePorts: 'KUBE-EXTERNAL-NP',
  nodePorts: 'KUBE-NODEPORTS',
  /** Shared with kubelet. */
  firewall: 'KUBE-FIREWALL',
  hairpin: 'KUBE-SVC-HAIRPIN',
  canary: 'KUBE-PROXY-CANARY',
  /** Raw: gives attempts that may go elsewhere their timeouts. */
  retry: 'KUBE-RETRY',
  retryOf: { TCP: 'KUBE-RETRY-TCP', UDP: 'KUBE-RETRY-UDP' },
  retryNodePorts: { TCP: 'KUBE-RETRY-TCP-NP', UDP: 'KUBE-RETRY-UDP-NP' },
} as const;

/** There for a moment, to try rules where no packet comes by. */
export const TRIAL = { filter: PROBE_CHAIN, nat: 'KUBE-SVC-PROBE' } as const;

/** Beginnings of the names of chains that divide a long chain. */
export const DIVISION = {
  services: 'KUBE-SVC-IP',
  nodePorts: 'KUBE-SVC-NP',
  hairpin: CHAIN.hairpin,
  filterServices: CHAIN.services,
  external: CHAIN.external,
  externalNodePorts: CHAIN.externalNodePorts,
  proxyFirewall: CHAIN.proxyFirewall,
  healthChecks: CHAIN.nodePorts,
  retry: { TCP: 'KUBE-RETRY-TCP-IP', UDP: 'KUBE-RETRY-UDP-IP' },
  retryNodePorts: CHAIN.retryNodePorts,
} as const;

/**
 * Beginnings of the names of the chains that divide the ends of these further. With {@link hash16} behind them they have the
 * 28 characters that the kernel takes.
 */
export const DEEPER = {
  services: `${DIVISION.services}-`,
  hairpin: 'KUBE-SVC-HP-',
  filterServices: 'KUBE-REF-SV-',
  external: 'KUBE-REF-EX-',
  proxyFirewall: 'KUBE-REF-FW-',
  retry: { TCP: 'KUBE-RETRY-T', UDP: 'KUBE-RETRY-U' },
} as const;

const HASH_LENGTH = 16;

/** Whether a chain divides another at the end of a branch. @param prefix as in {@link DEEPER}. */
export function isDeeper(chain: string, prefix: string): boolean {
  return chain.startsWith(prefix) && chain.length === prefix.length + HASH_LENGTH;
}

/** Prefixes of the names of chains whose rules show which frontends there are. */
export const DISPATCH_PREFIXES: readonly string[] = [
  CHAIN.services,
  CHAIN.nodePorts,
  CHAIN.external,
  CHAIN.externalNodePorts,
  CHAIN.proxyFirewall,
  DIVISION.services,
  DIVISION.nodePorts,
  DEEPER.filterServices,
  DEEPER.external,
  DEEPER.proxyFirewall,
];

const SERVICE_CHAIN = /^KUBE-(SVC|SVL|FW|EXT|SEP|XLB)-/;
const FILTER_CHAIN = /^KUBE-(SERVICES|EXTERNAL-SERVICES|EXTERNAL-NP|NODEPORTS|PROXY-FIREWALL|REF)(-|$)/;
const RAW_CHAIN = /^KUBE-RETRY(-|$)/;
const FIXED_FILTER: readonly string[] = [CHAIN.forward, PROBE_CHAIN];
const FIXED_NAT: readonly string[] = [CHAIN.services, CHAIN.nodePorts, CHAIN.postrouting, CHAIN.markMasquerade];

/** Whether a chain is this mode's, or kube-proxy's in the same mode, to change and remove. {@link CHAIN.firewall} is not: kubelet shares it. */
export function isOwnChain(table: IptablesTable, chain: string): boolean {
  if (chain === CHAIN.canary) return true;
  if (table === 'raw') return chain === PROBE_CHAIN || RAW_CHAIN.test(chain);
  if (table === 'nat') return FIXED_NAT.includes(chain) || SERVICE_CHAIN.test(chain);
  return table === 'filter' && (FIXED_FILTER.includes(chain) || FILTER_CHAIN.test(chain));
}

/** Chains that the jumps from built-in chains lead to, ours and kube-proxy's in this mode (behaviour IT-10 to IT-17). */
const HOOKED: ReadonlySet<string> = new Set([
  CHAIN.services,
  CHAIN.external,
  CHAIN.nodePorts,
  CHAIN.forward,
  CHAIN.proxyFirewall,
  CHAIN.postrouting,
  CHAIN.retry,
]);

/** Whether a chain of filter is, or divides, {@link CHAIN.proxyFirewall}. */
export function isFirewallChain(chain: string): boolean {
  return chain.startsWith(DIVISION.proxyFirewall) || isDeeper(chain, DEEPER.proxyFirewall);
}

/** The names of our timeout policies: protocol and family, and seconds. */
export const POLICY_NAME = /^K([tuTU])([0-9]{2})$/;

export const IPTABLES_FOOTPRINT: Footprint = {
  nftTables: [],
  chains: {
    isOwn: isOwnChain,
    isPerService: (chain) => SERVICE_CHAIN.test(chain),
    hooked: HOOKED,
    companions: MARK_COMPANIONS,
  },
  ipvs: null,
  isOwnPolicy: (name) => POLICY_NAME.test(name),
};

/** The 16 characters that stand for a Service port in the names of its chains. */
export function serviceHash(servicePort: string, protocol: Protocol): string {
  return hash16(servicePort + protocol.toLowerCase());
}

const HASHED = /KUBE-(?:SVC|SVL|EXT|FW)-([A-Z2-7]{16})(?![A-Z0-9])/;

/**
 * The Service port, as {@link serviceHash}, of the first chain that a text names. Null: it names none, or only chains of one
 * endpoint of kube-proxy's.
 */
export function hashIn(text: string): string | null {
  return HASHED.exec(text)?.[1] ?? null;
}

/** The `recent` list of clients of one endpoint of a Service port. @param endpoint as `address:port`, `[v6]:port`. */
export function clientList(servicePort: string, protocol: Protocol, endpoint: string): string {
  return `KUBE-SEP-${hash16(servicePort + protocol.toLowerCase() + endpoint)}`;
}

const BASE32 = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567';

/** The first 16 characters of the base32 form (RFC 4648) of the text's SHA-256. */
export function hash16(text: string): string {
  const digest = createHash('sha256').update(text).digest();
  let bits = 0n;
  for (const byte of digest.subarray(0, 10)) bits = (bits << 8n) | BigInt(byte);
  let name = '';
  for (let shift = 75n; shift >= 0n; shift -= 5n) name += BASE32[Number((bits >> shift) & 31n)] ?? '';
  return name;
}
