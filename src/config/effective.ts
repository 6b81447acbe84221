import { CONTENT_TYPES, PRIMARY } from './checks.js';
import { DEFAULT_BURST, DEFAULT_QPS, KUBE_PROXY, type KubeProxyConfiguration } from './document.js';
import { withoutInactive } from './tables/settings.js';

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

/** For users who set no mode. kube-proxy warns of the same since 1.37. */
export function unsetMode(platform: NodeJS.Platform): string {
  const later = platform === 'win32' ? '' : '; from Kubernetes 1.40 the default is nftables: set the mode to keep it';
  return `is not set, using ${defaultMode(platform)}${later}`;
}

/** The endpoint of the node itself where none is named (behaviour CL-44). */
const ROOT_ENDPOINT = 'cbr0';

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

/** The section whose masquerading acts: ipvs mode shares that of the iptables section. */
export function masqueradingSection(document: KubeProxyConfiguration): 'nftables' | 'iptables' {
  return document.mode === 'nftables' ? 'nftables' : 'iptables';
}

/**
 * What is in force: without what does not act in the document's mode but would look as if it did, and with the defaults in place of zeros that Kubernetes'
 * client library takes for them.
 */
export function inForce(document: KubeProxyConfiguration): KubeProxyConfiguration {
  const { qps, burst, contentType } = document.clientConnection;
  const clientConnection = {
    ...document.clientConnection,
    qps: qps || DEFAULT_QPS,
    burst: burst || DEFAULT_BURST,
    // A file's empty text means protobuf and is filled in where it is read. Only a flag leaves one here.
    contentType: contentType || CONTENT_TYPES[1],
  };
  return withoutInactive(KUBE_PROXY, { ...document, clientConnection }, document.mode);
}
