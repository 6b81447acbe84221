import type { Golden } from './golden.js';

const P = 'KubeProxyConfiguration';

export const PROXY: Golden = {
  apiVersion: 'kubeproxy.config.k8s.io/v1alpha1',
  kind: P,
  right: ['mode: nftables\nclusterCIDR: 10.244.0.0/16,fd00::/56\nnodePortAddresses: [primary]'],
  wrong: [
    [
      'clusterCIDR: 10.244.0.0/16\nMode: nftables\nmodes: x\niptables: {syncPeriod: 1s, syncPeriod: 2s, MASQUERADEALL: true}',
      `error: ${P}.iptables.MASQUERADEALL: has the wrong case: should be masqueradeAll`,
      `error: ${P}.iptables.syncPeriod: is given twice`,
      `error: ${P}.Mode: has the wrong case: should be mode`,
      `error: ${P}.modes: is an unknown field`,
    ],
    [
      'clusterCIDR: 10.244.0.0/33\niptables: {masqueradeBit: "14"}',
      `error: ${P}.iptables.masqueradeBit: "14": must be an integer in the range [-2147483648, 2147483647]`,
    ],
    [
      'clusterCIDR: 10.244.0.0/33\noomScoreAdj: 1001\nlogging: {format: xml}\ndetectLocalMode: ClusterCIDR',
      `error: ${P}.oomScoreAdj: 1001: must be within the range [-1000, 1000]`,
      `error: ${P}.clusterCIDR[0]: "10.244.0.0/33": must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)`,
      `error: ${P}.logging.format: "xml": supported values: "json", "text"`,
    ],
    [
      'detectLocalMode: BridgeInterface\nlogging: {options: {text: {splitStream: true}}}',
      `error: ${P}.detectLocal.bridgeInterface: is missing: detectLocalMode BridgeInterface needs it`,
      `error: ${P}.logging.options.text.splitStream: needs feature gate LoggingAlphaOptions`,
    ],
    ['clusterCIDR: 10.244.0.0/16\nportRange: 1-2', `warning: ${P}.portRange: has no effect`],
  ],
};
