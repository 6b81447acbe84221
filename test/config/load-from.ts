import type { Target } from '../../src/config/load.js';
import { ConfigError } from '../../src/config/errors.js';
import { loadCommand } from '../support/load-command.js';

export type Loaded = Extract<ReturnType<typeof loadCommand>, { readonly config: unknown }>;

export const HEADER = 'apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\n';

export const LINUX: Target = { platform: 'linux', environment: {} };
export const WINDOWS: Target = { platform: 'win32', environment: {} };

/** @param files text by path; a directory is there when it has files, or by its own path ending in a slash. */
export function load(
  argv: readonly string[],
  files: Readonly<Record<string, string>> = {},
  target: Target = LINUX,
): ReturnType<typeof loadCommand> {
  const missing = (call: string, path: string): Error =>
    new Error(`ENOENT: no such file or directory, ${call} '${path}'`);
  const read = (path: string): string => {
    const text = files[path];
    if (text === undefined) throw missing('open', path);
    return text;
  };
  const list = (directory: string): string[] => {
    const inside = Object.keys(files).filter((path) => path.startsWith(`${directory}/`));
    if (inside.length === 0) throw missing('scandir', directory);
    return inside.map((path) => path.slice(directory.length + 1)).filter((name) => name !== '');
  };
  return loadCommand(argv, { read, list }, () => ' Worker-1.Example ', target);
}

/** What is said of a configuration that names no pods, as most of the tests' do not. */
export const NO_PODS =
  'KubeProxyConfiguration.clusterCIDR: is not set, so every source counts as a pod, and traffic of other clients to cluster IPs is not masqueraded';

/** Loads with flags that make a whole configuration. The warnings are without {@link NO_PODS}. */
export function loaded(argv: readonly string[], files?: Readonly<Record<string, string>>, target?: Target): Loaded {
  const result = load(['--manifests=objects.yaml', ...argv], files, target);
  if (!('config' in result)) throw new Error(`expected a configuration, got ${result.command}`);
  return { ...result, warnings: result.warnings.filter((warning) => warning !== NO_PODS) };
}

/** Loads a file's body, the version and kind put before it. */
export function fromFile(body: string, argv: readonly string[] = [], target?: Target): Loaded {
  return loaded(['--config=kube-proxy.yaml', ...argv], { 'kube-proxy.yaml': HEADER + body }, target);
}

/** The error of a call that must fail. */
export function failure(call: () => unknown): ConfigError {
  try {
    call();
  } catch (error) {
    if (error instanceof ConfigError) return error;
    throw error;
  }
  throw new Error('expected a ConfigError');
}

/** What kubeadm puts into its ConfigMap: three settings, and the zero value of everything else (CF-53). */
export const KUBEADM = `${HEADER}bindAddress: 0.0.0.0
bindAddressHardFail: false
clientConnection:
  acceptContentTypes: ""
  burst: 0
  contentType: ""
  kubeconfig: /var/lib/kube-proxy/kubeconfig.conf
  qps: 0
clusterCIDR: 10.244.0.0/16
configSyncPeriod: 0s
conntrack:
  maxPerCore: null
  min: null
  tcpBeLiberal: false
  tcpCloseWaitTimeout: null
  tcpEstablishedTimeout: null
  udpStreamTimeout: 0s
  udpTimeout: 0s
detectLocal:
  bridgeInterface: ""
  interfaceNamePrefix: ""
detectLocalMode: ""
enableProfiling: false
healthzBindAddress: ""
hostnameOverride: ""
iptables:
  localhostNodePorts: null
  masqueradeAll: false
  masqueradeBit: null
  minSyncPeriod: 0s
  syncPeriod: 0s
ipvs:
  excludeCIDRs: null
  minSyncPeriod: 0s
  scheduler: ""
  strictARP: false
  syncPeriod: 0s
  tcpFinTimeout: 0s
  tcpTimeout: 0s
  udpTimeout: 0s
logging:
  flushFrequency: 0
  options:
    json:
      infoBufferSize: "0"
    text:
      infoBufferSize: "0"
  verbosity: 0
metricsBindAddress: ""
mode: ""
nftables:
  masqueradeAll: false
  masqueradeBit: null
  minSyncPeriod: 0s
  syncPeriod: 0s
nodePortAddresses: null
oomScoreAdj: null
portRange: ""
showHiddenMetricsForVersion: ""
winkernel:
  enableDSR: false
  forwardHealthCheckVip: false
  networkName: ""
  rootHnsEndpointName: ""
  sourceVip: ""
`;
