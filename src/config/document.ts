import type { GoDuration } from './duration.js';

/** KubeProxyConfiguration v1alpha1 with every default filled in, field for field as a user writes it. */
export interface KubeProxyConfiguration {
  readonly apiVersion: typeof API_VERSION;
  readonly kind: typeof KIND;
  readonly featureGates: Readonly<Record<string, boolean>>;
  readonly clientConnection: ClientConnection;
  readonly logging: Logging;
  readonly hostnameOverride: string;
  readonly bindAddress: string;
  readonly healthzBindAddress: string;
  readonly metricsBindAddress: string;
  readonly bindAddressHardFail: boolean;
  readonly enableProfiling: boolean;
  readonly showHiddenMetricsForVersion: string;
  readonly mode: string;
  readonly iptables: IptablesSection;
  readonly ipvs: IpvsSection;
  readonly nftables: NftablesSection;
  readonly winkernel: WinkernelSection;
  readonly detectLocalMode: string;
  readonly detectLocal: { readonly bridgeInterface: string; readonly interfaceNamePrefix: string };
  readonly clusterCIDR: string;
  /** Null when unset. */
  readonly nodePortAddresses: readonly string[] | null;
  readonly oomScoreAdj: number;
  readonly conntrack: ConntrackSection;
  readonly configSyncPeriod: GoDuration;
  readonly portRange: string;
  readonly windowsRunAsService: boolean;
}

export const API_GROUP = 'kubeproxy.config.k8s.io';
export const API_VERSION = 'kubeproxy.config.k8s.io/v1alpha1';
export const KIND = 'KubeProxyConfiguration';

/** Requests to the API server per second, and how many may come at once, when nothing is said. */
export const DEFAULT_QPS = 5;
export const DEFAULT_BURST = 10;

/** Those that the API source reads. */
export const CONTENT_TYPES = ['application/vnd.kubernetes.protobuf', 'application/json'] as const;

export interface ClientConnection {
  readonly kubeconfig: string;
  readonly acceptContentTypes: string;
  readonly contentType: string;
  readonly qps: number;
  readonly burst: number;
}

export interface Logging {
  readonly format: string;
  readonly flushFrequency: GoDuration;
  readonly verbosity: number;
  readonly vmodule: readonly { readonly filePattern: string; readonly verbosity: number }[];
  readonly options: { readonly json: LogStreamOptions; readonly text: LogStreamOptions };
}

export interface LogStreamOptions {
  readonly splitStream: boolean;
  /** A Kubernetes quantity of bytes. */
  readonly infoBufferSize: string;
}

export interface SyncPeriods {
  readonly syncPeriod: GoDuration;
  readonly minSyncPeriod: GoDuration;
}

export interface IptablesSection extends SyncPeriods {
  readonly masqueradeBit: number;
  readonly masqueradeAll: boolean;
  readonly localhostNodePorts: boolean;
}

export interface IpvsSection extends SyncPeriods {
  readonly scheduler: string;
  readonly excludeCIDRs: readonly string[] | null;
  readonly strictARP: boolean;
  readonly tcpTimeout: GoDuration;
  readonly tcpFinTimeout: GoDuration;
  readonly udpTimeout: GoDuration;
}

export interface NftablesSection extends SyncPeriods {
  readonly masqueradeBit: number;
  readonly masqueradeAll: boolean;
}

export interface WinkernelSection {
  readonly networkName: string;
  readonly sourceVip: string;
  readonly enableDSR: boolean;
  readonly rootHnsEndpointName: string;
  readonly forwardHealthCheckVip: boolean;
}

export interface ConntrackSection {
  readonly maxPerCore: number;
  readonly min: number;
  readonly tcpEstablishedTimeout: GoDuration;
  readonly tcpCloseWaitTimeout: GoDuration;
  readonly tcpBeLiberal: boolean;
  readonly udpTimeout: GoDuration;
  readonly udpStreamTimeout: GoDuration;
}
