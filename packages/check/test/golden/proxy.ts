import type { Golden } from './golden.js';

const P = 'KubeProxyConfiguration';

export const PROXY: Golden = {
  apiVersion: 'kubeproxy.config.k8s.io/v1alpha1',
  kind: P,
  right: [
    'mode: nftables\nclusterCIDR: 10.244.0.0/16,fd00::/56\nnodePortAddresses: [primary]',
    'mode: kernelspace\nwinkernel: {networkName: cbr0}\nwindowsRunAsService: true',
  ],
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
    [
      'clusterCIDR: 10.244.0.0/16\nmode: iptables\nnftables: {masqueradeBit: 32}\nhealthzBindAddress: 127.0.0.1:10249',
      `error: ${P}.metricsBindAddress: "127.0.0.1:10249": takes the port of ${P}.healthzBindAddress (127.0.0.1:10249)`,
      `warning: ${P}.nftables.masqueradeBit: has no effect in mode iptables`,
      `warning: ${P}.nftables.masqueradeBit: 32: must be within the range [0, 31]`,
    ],
    [
      'clusterCIDR: 10.244.0.0/16\nmode: nftables\nipvs: {excludeCIDRs: [a]}\nwinkernel: {sourceVip: "1.2.3"}\niptables: {syncPeriod: 7s}',
      `warning: ${P}.ipvs.excludeCIDRs: has no effect in mode nftables`,
      `warning: ${P}.ipvs.excludeCIDRs[0]: "a": must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)`,
      `warning: ${P}.winkernel.sourceVip: has no effect in mode nftables`,
      `warning: ${P}.winkernel.sourceVip: "1.2.3": must be an IP address or the name of an HNS endpoint`,
      `warning: ${P}.iptables.syncPeriod: has no effect in mode nftables`,
    ],
    ['clusterCIDR: 10.244.0.0/16\nportRange: 1-2', `warning: ${P}.portRange: has no effect`],
    [
      'clusterCIDR: 10.244.0.0/16\nmode: ipvs\nipvs: {scheduler: dh}',
      `warning: ${P}.ipvs.scheduler: scheduler "dh": one endpoint of a Service gets all connections, and they are refused while it drains`,
    ],
    [
      `mode: userspace
bindAddress: here
healthzBindAddress: "10256"
metricsBindAddress: 127.0.0.1:70000
nodePortAddresses: [primary, 10.0.0.0/8, x]
configSyncPeriod: -1s
clientConnection: {burst: -1, contentType: text/plain, acceptContentTypes: application/xml}
showHiddenMetricsForVersion: "1.20"
clusterCIDR: 10.0.0.0/8,10.1.0.0/16
conntrack: {maxPerCore: -1, min: -1, tcpEstablishedTimeout: -1s, tcpCloseWaitTimeout: -1s, udpTimeout: -1s, udpStreamTimeout: -1s}
iptables: {masqueradeBit: 32, syncPeriod: 1s, minSyncPeriod: 2s}`,
      `error: ${P}.iptables.masqueradeBit: 32: must be within the range [0, 31]`,
      `error: ${P}.mode: "userspace": must be iptables, ipvs, nftables or blank (blank means the best-available proxy [currently iptables]), on Linux`,
      `error: ${P}.mode: "userspace": must be kernelspace or blank (blank means the best-available proxy [currently kernelspace]), on Windows`,
      `error: ${P}.conntrack.maxPerCore: -1: must be greater than or equal to 0`,
      `error: ${P}.conntrack.min: -1: must be greater than or equal to 0`,
      `error: ${P}.conntrack.tcpEstablishedTimeout: "-1s": must be greater than or equal to 0`,
      `error: ${P}.conntrack.tcpCloseWaitTimeout: "-1s": must be greater than or equal to 0`,
      `error: ${P}.conntrack.udpTimeout: "-1s": must be greater than or equal to 0`,
      `error: ${P}.conntrack.udpStreamTimeout: "-1s": must be greater than or equal to 0`,
      `error: ${P}.clientConnection.burst: -1: must be non-negative`,
      `error: ${P}.clientConnection.contentType: "text/plain": must be application/vnd.kubernetes.protobuf or application/json`,
      `error: ${P}.clientConnection.acceptContentTypes: "application/xml": must be application/vnd.kubernetes.protobuf or application/json`,
      `error: ${P}.configSyncPeriod: "-1s": must be greater than 0`,
      `error: ${P}.iptables.syncPeriod: "1s": must be greater than or equal to ${P}.iptables.minSyncPeriod (2s)`,
      `error: ${P}.bindAddress: "here": not a valid textual representation of an IP address`,
      `error: ${P}.healthzBindAddress: "10256": must be IP:port`,
      `error: ${P}.metricsBindAddress: "127.0.0.1:70000": must be a valid port`,
      `error: ${P}.nodePortAddresses[2]: "x": must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64), or one of primary, localhost, all`,
      `error: ${P}.showHiddenMetricsForVersion: "1.20": must be omitted or the previous minor version, "1.35"`,
      `error: ${P}.clusterCIDR: "10.0.0.0/8,10.1.0.0/16": two CIDRs must be of different IP families`,
      `warning: ${P}.showHiddenMetricsForVersion: has no effect, no metric was hidden since then`,
    ],
    [
      'clusterCIDR: 10.0.0.0/8\nfeatureGates: {A: x}\nlogging: {verbosity: -1, vmodule: [{filePattern: a, verbosity: -1}]}',
      `error: ${P}.featureGates.A: "x": must be true or false`,
      `error: ${P}.logging.verbosity: -1: must be an integer in the range [0, 4294967295]`,
      `error: ${P}.logging.vmodule[0].verbosity: -1: must be an integer in the range [0, 4294967295]`,
    ],
    [
      'clusterCIDR: 10.0.0.0/8\niptables: {syncPeriod: -1s, minSyncPeriod: -1s}',
      `error: ${P}.iptables.syncPeriod: "-1s": must be greater than 0`,
      `error: ${P}.iptables.minSyncPeriod: "-1s": must be greater than or equal to 0`,
    ],
    [
      'detectLocalMode: Bridge',
      `error: ${P}.detectLocalMode: "Bridge": supported values: "ClusterCIDR", "NodeCIDR", "BridgeInterface", "InterfaceNamePrefix"`,
    ],
    [
      'detectLocalMode: InterfaceNamePrefix',
      `error: ${P}.detectLocal.interfaceNamePrefix: is missing: detectLocalMode InterfaceNamePrefix needs it`,
    ],
    [
      'detectLocalMode: InterfaceNamePrefix\ndetectLocal: {interfaceNamePrefix: a/b}',
      `error: ${P}.detectLocal.interfaceNamePrefix: "a/b": is no interface name of Linux: at most 15 bytes, without blanks, slashes and colons`,
    ],
    [
      'mode: nftables\nclusterCIDR: 10.0.0.0/8\nnftables: {masqueradeBit: -1, syncPeriod: -1s, minSyncPeriod: -1s}',
      `error: ${P}.nftables.masqueradeBit: -1: must be within the range [0, 31]`,
      `error: ${P}.nftables.syncPeriod: "-1s": must be greater than 0`,
      `error: ${P}.nftables.minSyncPeriod: "-1s": must be greater than or equal to 0`,
    ],
    [
      'mode: ipvs\nclusterCIDR: 10.0.0.0/8\nipvs: {scheduler: "r r", excludeCIDRs: [x], tcpTimeout: -1s, tcpFinTimeout: -1s, udpTimeout: 1000h, syncPeriod: -1s}',
      `error: ${P}.ipvs.tcpTimeout: "-1s": must be greater than or equal to 0`,
      `error: ${P}.ipvs.tcpFinTimeout: "-1s": must be greater than or equal to 0`,
      `error: ${P}.ipvs.udpTimeout: "1000h0m0s": must be at most 596h31m23s, the maximum of ip_vs`,
      `error: ${P}.ipvs.scheduler: "r r": is no scheduler name of ip_vs: at most 15 bytes, without blanks`,
      `error: ${P}.ipvs.excludeCIDRs[0]: "x": must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)`,
      `error: ${P}.ipvs.syncPeriod: "-1s": must be greater than 0`,
    ],
    [
      'clusterCIDR: 10.0.0.0/8\nlogging: {format: json, flushFrequency: -1s, vmodule: [{filePattern: "a=b", verbosity: 1}, {filePattern: "", verbosity: 1}], options: {json: {infoBufferSize: 1Ki}}}',
      `error: ${P}.logging.flushFrequency: "-1s": must be greater than 0`,
      `error: ${P}.logging.vmodule: only supported for text log format`,
      `error: ${P}.logging.vmodule[0].filePattern: "a=b": must not contain equal signs or commas`,
      `error: ${P}.logging.vmodule[1].filePattern: is missing: must not be empty`,
      `error: ${P}.logging.options.json.infoBufferSize: needs feature gate LoggingAlphaOptions`,
      `warning: ${P}.logging.options.json.infoBufferSize: has no effect without splitStream`,
      `warning: ${P}.logging.flushFrequency: has no effect, log lines are written unbuffered`,
    ],
  ],
};
