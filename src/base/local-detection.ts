import type { IPPrefix } from './ip.js';

/** How a source is recognised as a pod of this cluster (KubeProxyConfiguration detectLocalMode, detectLocal, clusterCIDR). */
export type LocalDetection =
  /** Detects by address: at most one prefix per family. */
  | { readonly type: 'ClusterCIDR'; readonly prefixes: readonly IPPrefix[] }
  /** Detects by address, within the Node's own pod CIDRs. */
  | { readonly type: 'NodeCIDR' }
  | { readonly type: 'BridgeInterface'; readonly name: string }
  | { readonly type: 'InterfaceNamePrefix'; readonly prefix: string };
