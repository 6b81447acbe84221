import {
  CONTENT_TYPES,
  DEFAULT_BURST,
  DEFAULT_QPS,
  type KubeProxyConfiguration,
  type SyncPeriods,
} from './document.js';
import { durationFromNanoseconds } from './duration.js';

export const LINUX_MODES = ['iptables', 'ipvs', 'nftables'] as const;

export const WINDOWS_MODES = ['kernelspace'] as const;

export type ProxyMode = (typeof LINUX_MODES | typeof WINDOWS_MODES)[number];

/** Modes for hosts of a platform. */
export function modesOf(platform: NodeJS.Platform): readonly ProxyMode[] {
  return platform === 'win32' ? WINDOWS_MODES : LINUX_MODES;
}

/** What an unset mode means on a platform, as in kube-proxy (behaviour CL-44). */
export function defaultMode(platform: NodeJS.Platform): ProxyMode {
  return platform === 'win32' ? 'kernelspace' : 'iptables';
}

/** The endpoint of the node itself where none is named (behaviour CL-44). */
const ROOT_ENDPOINT = 'cbr0';

/** The word for "the node's own primary addresses" in nodePortAddresses. */
export const PRIMARY = 'primary';

/** Fills in what depends on the platform and the mode. */
export function applyPlatformDefaults(
  document: KubeProxyConfiguration,
  platform: NodeJS.Platform,
): KubeProxyConfiguration {
  const mode = document.mode || defaultMode(platform);
  const { winkernel } = document;
  // An empty list is as good as none, in a file as on the command line: every local address is `0.0.0.0/0` here.
  const isPrimary = mode === 'nftables' && (document.nodePortAddresses ?? []).length === 0;
  return {
    ...document,
    mode,
    detectLocalMode: document.detectLocalMode || 'ClusterCIDR',
    nodePortAddresses: isPrimary ? [PRIMARY] : document.nodePortAddresses,
    winkernel:
      platform === 'win32'
        ? { ...winkernel, rootHnsEndpointName: winkernel.rootHnsEndpointName || ROOT_ENDPOINT }
        : winkernel,
  };
}

/** The section whose sync periods act in the document's mode. */
export function activeSection(document: KubeProxyConfiguration): 'nftables' | 'ipvs' | 'iptables' {
  return document.mode === 'nftables' || document.mode === 'ipvs' ? document.mode : 'iptables';
}

/** The section that flags without one of their own mean, such as --masquerade-all. */
export function flagSection(document: KubeProxyConfiguration): 'nftables' | 'iptables' {
  return document.mode === 'nftables' ? 'nftables' : 'iptables';
}

/** The section whose masquerading acts: ipvs mode shares that of the iptables section. */
export function masqueradingSection(document: KubeProxyConfiguration): 'nftables' | 'iptables' {
  return document.mode === 'nftables' ? 'nftables' : 'iptables';
}

/**
 * What is in force: without what does not act in the document's mode but would look as if it did, sync periods and masqueradeAll of the other sections,
 * and with the defaults in place of zeros that Kubernetes' client library takes for them.
 */
export function inForce(document: KubeProxyConfiguration): KubeProxyConfiguration {
  const active = activeSection(document);
  const masquerading = masqueradingSection(document);
  const none = durationFromNanoseconds(0n);
  const periods = (section: 'nftables' | 'ipvs' | 'iptables'): SyncPeriods =>
    section === active ? document[section] : { syncPeriod: none, minSyncPeriod: none };
  const masqueradeAll = (section: 'nftables' | 'iptables'): boolean =>
    section === masquerading && document[section].masqueradeAll;
  const { iptables, ipvs, nftables, clientConnection } = document;
  const { qps, burst, contentType } = clientConnection;
  return {
    ...document,
    clientConnection: {
      ...clientConnection,
      qps: qps || DEFAULT_QPS,
      burst: burst || DEFAULT_BURST,
      // A file's empty text means protobuf and is filled in where it is read. Only a flag leaves one here.
      contentType: contentType || CONTENT_TYPES[1],
    },
    iptables: { ...iptables, ...pickPeriods(periods('iptables')), masqueradeAll: masqueradeAll('iptables') },
    ipvs: { ...ipvs, ...pickPeriods(periods('ipvs')) },
    nftables: { ...nftables, ...pickPeriods(periods('nftables')), masqueradeAll: masqueradeAll('nftables') },
  };
}

function pickPeriods({ syncPeriod, minSyncPeriod }: SyncPeriods): SyncPeriods {
  return { syncPeriod, minSyncPeriod };
}
