import { parseAddress, parsePrefix, type IPAddress, type IPPrefix, type NodePortAddress } from '../base/ip.js';
import type { LocalDetection } from '../base/local-detection.js';
import type { BalanceSettings } from '../base/balance.js';
import type { RetryTimes } from '../base/conntrack-timeouts.js';
import type { ServiceLimits } from '../base/service-limits.js';
import { parseHnsNetwork, type HnsNetworkChoice } from './hns-network.js';
import type { IpvsSection, KubeProxyConfiguration, Logging } from './document.js';
import { durationMilliseconds } from './duration.js';
import type { EventRates } from './event-rates.js';
import { NODE_PORT_WORDS, PRIMARY } from './checks.js';
import { activeSection, LINUX_MODES, masqueradingSection, WINDOWS_MODES, type ProxyMode } from './effective.js';
import { isGateEnabled, LOCALHOST_GATE } from './gates.js';
import { parseHostPort, type HostPort } from './host-port.js';
import { quantityValue } from './quantity.js';
import type { LogFileConfig } from './audit.js';
import type { ClientCertificateConfig } from './client-certificate.js';
import type { SecuredConfig } from './secured.js';
import type { TelemetryConfig } from './telemetry.js';
import { isLocalMode } from './validate.js';

/**
 * The process's whole configuration, resolved: no defaults left to apply, no text left to parse. What does not act has one value, whatever was said: two
 * configurations that mean the same are equal. Times are in milliseconds. Frozen.
 */
export interface Config {
  readonly mode: ProxyMode;
  /** The Node object this process serves; lower case. */
  readonly nodeName: string;
  /** The API server to read objects from; null: manifests only. */
  readonly kubernetes: KubernetesConfig | null;
  /** Files, directories and URLs to read objects from. */
  readonly manifests: readonly ManifestsSource[];
  /** How often they are looked at for what nothing tells of; above 0. */
  readonly fileCheckFrequency: number;
  readonly httpCheckFrequency: number;
  /** Overrides the node's primary address of its family, and the primary family, unless it is unspecified (`0.0.0.0`, `::`). Nothing is bound to it. */
  readonly bindAddress: IPAddress;
  /** Path of the Unix socket on which the running process is asked; null: none. */
  readonly statusSocket: string | null;
  /** Path of the `TracingConfiguration`; null: nothing is traced. */
  readonly tracingFile: string | null;
  /** Where /healthz and /livez are served; null: nowhere. */
  readonly healthz: HostPort | null;
  /** Where /metrics and what belongs to it are served. */
  readonly metrics: HostPort;
  /** Their access control; null: plain HTTP, open to all clients. */
  readonly secured: SecuredConfig | null;
  /** Where changes of the kernel are written down; null: nowhere. */
  readonly changeLog: LogFileConfig | null;
  /** What is counted of Services; null: nothing. */
  readonly serviceTelemetry: TelemetryConfig | null;
  /** How much of one Service is programmed. */
  readonly serviceLimits: ServiceLimits;
  /** How connections are shared as far as Services do not say it. */
  readonly balance: BalanceSettings;
  /** When unanswered attempts go to another endpoint; never in other modes than nftables. */
  readonly retryTimes: RetryTimes;
  /** Whether /debug/pprof is served there too. */
  readonly profiling: boolean;
  /** Whether /flagz and /statusz are. */
  readonly flagz: boolean;
  readonly statusz: boolean;
  /** Whether not being able to listen ends the process. */
  readonly bindAddressHardFail: boolean;
  /** How often everything is checked, and a bound for how long a failed sync waits. Above 0. */
  readonly syncPeriod: number;
  /** The least time between two syncs; 0: they are paced by what they cost. */
  readonly minSyncPeriod: number;
  readonly masqueradeAll: boolean;
  /** 0–31: the bit of the packet mark that asks for source NAT. */
  readonly masqueradeBit: number;
  /** Bits of an IPv6 address by which session affinity takes clients for the same one, 1–128; 128 in other modes than nftables. */
  readonly affinityIPv6Prefix: number;
  /** Whether connections to pods that are in no slice any more are reset; false in other modes than nftables. */
  readonly resetRemovedEndpoints: boolean;
  /** Whether node ports answer on loopback: in iptables mode by rules, in nftables mode by listeners; in other modes never. */
  readonly localhostNodePorts: boolean;
  /** Which kernel interface iptables mode writes; auto: the one that this host uses. */
  readonly iptablesFlavor: IptablesFlavorChoice;
  /** Null in other modes than ipvs. */
  readonly ipvs: IpvsConfig | null;
  /** Null in other modes than kernelspace. */
  readonly kernelspace: KernelspaceConfig | null;
  readonly localDetection: LocalDetection;
  /** Local addresses where node ports answer: the node's primary ones, and those within the prefixes. A family that has neither answers on all of its addresses. */
  readonly nodePortAddresses: readonly NodePortAddress[];
  /** Whether Services' external IPs are served. */
  readonly allowExternalIPs: boolean;
  /** Whether external IPs and load balancer addresses within the cluster's own ranges are served. */
  readonly externalIPsInClusterRanges: boolean;
  readonly conntrack: ConntrackSettings;
  /** Written to /proc/self/oom_score_adj: -1000 to 1000. */
  readonly oomScoreAdj: number;
  readonly logging: LoggingConfig;
}

/** How to reach the API server and what to ask of it. With neither kubeconfig nor master: as a pod does. */
export interface KubernetesConfig {
  /** Path; empty: none. */
  readonly kubeconfig: string;
  /** Counts in place of the kubeconfig's server; empty: none. */
  readonly master: string;
  /** The Accept header; empty: what follows from `contentType`. */
  readonly acceptContentTypes: string;
  readonly contentType: string;
  /** Requests per second; negative: unlimited. Never 0. */
  readonly qps: number;
  /** Requests that may come at once; at least 1. */
  readonly burst: number;
  /** How often what came from the API server is checked. Above 0. */
  readonly configSyncPeriod: number;
  /** Path of an `EgressSelectorConfiguration`; null: none. */
  readonly egressFile: string | null;
  /** Of events about what is read. */
  readonly events: EventRates;
  /** Null: the author of the kubeconfig looks after its certificate. */
  readonly clientCertificate: ClientCertificateConfig | null;
}

/** Where to read objects from. */
export type ManifestsSource = PathSource | UrlSource;

/** A file or a directory. */
export interface PathSource {
  readonly type: 'path';
  readonly path: string;
  /** By which it is shown; no other source has it. */
  readonly name: string;
}

export interface UrlSource {
  readonly type: 'url';
  /** May hold credentials and is never shown. */
  readonly url: string;
  /** By which it is shown; no other source has it. */
  readonly name: string;
  /** Sent with every request, and likely credentials. */
  readonly headers: readonly HttpHeader[];
  /** Paths of files with further headers, those of other origins among them. */
  readonly headerFiles: readonly string[];
  /** Whether all URLs have the same origin, so that headers that name none are for this one. */
  readonly isOnlyOrigin: boolean;
  /** Path of the certificates that vouch for the server; null: those that the system trusts. */
  readonly authorityFile: string | null;
  /** Paths of the certificate and its key that identify clients; both null: none do. */
  readonly certificateFile: string | null;
  readonly keyFile: string | null;
}

export interface HttpHeader {
  readonly name: string;
  readonly value: string;
}

/** Settings of ipvs mode alone. */
export interface IpvsConfig {
  readonly scheduler: string;
  /** Virtual services within these are left alone, unless a Service has them. */
  readonly excludeCIDRs: readonly IPPrefix[];
  /** Whether the node answers ARP for an address on the link that has it alone. */
  readonly strictARP: boolean;
  /** Of idle connections; 0 leaves the kernel's own, as with the next two. */
  readonly tcpTimeout: number;
  readonly tcpFinTimeout: number;
  readonly udpTimeout: number;
}

/** Settings of kernelspace mode alone. */
export interface KernelspaceConfig {
  /** Of the HNS network, as it is written; empty: none is named. */
  readonly networkName: string;
  /** The same as it is meant; null: none is named. */
  readonly network: HnsNetworkChoice | null;
  /** What is balanced on overlay networks has it for a source; null: none is named, or an endpoint has it. */
  readonly sourceVip: IPAddress | null;
  /** Name of the HNS endpoint that has the source; null: none is named, or it is an address. */
  readonly sourceVipEndpoint: string | null;
  /** Whether answers of cluster IPs' endpoints go straight to the client. */
  readonly enableDSR: boolean;
  /** Of the HNS endpoint of the node itself. */
  readonly rootHnsEndpointName: string;
  /** Whether health checks that are sent to a load balancer's address go to that endpoint. */
  readonly forwardHealthCheckVip: boolean;
  /** Where those go whose Service has no port of its own for them: that of /healthz. Null: nowhere, or none are sent on. */
  readonly healthzPort: number | null;
}

/** Kernel settings to make at start; 0 leaves the kernel's own. */
interface ConntrackSettings {
  /** Table size per CPU core. */
  readonly maxPerCore: number;
  /** Least table size; 0 without `maxPerCore`. */
  readonly min: number;
  readonly tcpEstablishedTimeout: number;
  readonly tcpCloseWaitTimeout: number;
  /** Only true is ever written. */
  readonly tcpBeLiberal: boolean;
  readonly udpTimeout: number;
  readonly udpStreamTimeout: number;
}

export interface LoggingConfig {
  readonly format: 'text' | 'json';
  /** Lines of this verbosity and below are written. */
  readonly verbosity: number;
  /** Other thresholds for some source files, first match wins. */
  readonly vmodule: readonly { readonly filePattern: string; readonly verbosity: number }[];
  /** Whether messages go to standard output; errors go to standard error either way. */
  readonly splitStream: boolean;
  /** Bytes of messages that are gathered before they are written, with split streams; 0: none. */
  readonly infoBufferSize: number;
  /** How long they are gathered at the most; 0 when they are not. */
  readonly flushFrequency: number;
}

export const IPTABLES_FLAVORS = ['auto', 'legacy', 'nft'] as const;
export type IptablesFlavorChoice = (typeof IPTABLES_FLAVORS)[number];

/** Settings that do not come from the v1alpha1 document, as they are in force. */
type OwnSettings = Pick<
  Config,
  | 'nodeName'
  | 'manifests'
  | 'fileCheckFrequency'
  | 'httpCheckFrequency'
  | 'statusSocket'
  | 'tracingFile'
  | 'iptablesFlavor'
  | 'secured'
  | 'changeLog'
  | 'affinityIPv6Prefix'
  | 'resetRemovedEndpoints'
  | 'externalIPsInClusterRanges'
  | 'serviceTelemetry'
  | 'serviceLimits'
  | 'balance'
  | 'retryTimes'
>;

/** What does not come from the v1alpha1 document. */
export interface Environment
  extends OwnSettings, Pick<KubernetesConfig, 'master' | 'egressFile' | 'events' | 'clientCertificate'> {
  /** The HNS network where the document names none; empty: none. */
  readonly kubeNetwork: string;
}

/** Translates a document that passed validation. @throws TypeError when it had not. */
export function buildConfig(document: KubeProxyConfiguration, environment: Environment): Config {
  const section = document[activeSection(document)];
  const { conntrack } = document;
  const { master, egressFile, events, clientCertificate, kubeNetwork, ...own } = environment;
  return deepFreeze({
    kubernetes: kubernetes(document, { manifests: own.manifests, master, egressFile, events, clientCertificate }),
    mode: checked(
      'mode',
      [...LINUX_MODES, ...WINDOWS_MODES].find((mode) => mode === document.mode),
    ),
    bindAddress: checked('bindAddress', parseAddress(document.bindAddress)),
    healthz: healthzOf(document),
    metrics: hostPort('metricsBindAddress', document.metricsBindAddress),
    ...own,
    profiling: document.enableProfiling,
    flagz: isGateEnabled('ComponentFlagz', document.featureGates),
    statusz: isGateEnabled('ComponentStatusz', document.featureGates),
    bindAddressHardFail: document.bindAddressHardFail,
    syncPeriod: durationMilliseconds(section.syncPeriod),
    minSyncPeriod: durationMilliseconds(section.minSyncPeriod),
    masqueradeAll: document[masqueradingSection(document)].masqueradeAll,
    masqueradeBit: document[masqueradingSection(document)].masqueradeBit,
    localhostNodePorts: answersOnLoopback(document),
    ipvs: document.mode === 'ipvs' ? ipvs(document.ipvs) : null,
    kernelspace: document.mode === 'kernelspace' ? kernelspace(document, kubeNetwork) : null,
    localDetection: document.mode === 'kernelspace' ? NO_DETECTION : localDetection(document),
    nodePortAddresses: document.mode === 'kernelspace' ? EVERY_ADDRESS : nodePortPrefixes(document),
    allowExternalIPs: isGateEnabled('AllowServiceExternalIPs', document.featureGates),
    conntrack: {
      ...conntrack,
      min: conntrack.maxPerCore === 0 ? 0 : conntrack.min,
      tcpEstablishedTimeout: durationMilliseconds(conntrack.tcpEstablishedTimeout),
      tcpCloseWaitTimeout: durationMilliseconds(conntrack.tcpCloseWaitTimeout),
      udpTimeout: durationMilliseconds(conntrack.udpTimeout),
      udpStreamTimeout: durationMilliseconds(conntrack.udpStreamTimeout),
    },
    oomScoreAdj: document.oomScoreAdj,
    logging: buildLogging(document.logging),
  } satisfies Config);
}

/**
 * Manifests stand in for the API server, unless it is named expressly.
 *
 * @param isOnly whether there are no manifests.
 */
export function readsServer({ clientConnection }: KubeProxyConfiguration, master: string, isOnly: boolean): boolean {
  return isOnly || clientConnection.kubeconfig !== '' || master !== '';
}

function kubernetes(
  document: KubeProxyConfiguration,
  {
    master,
    manifests,
    egressFile,
    events,
    clientCertificate,
  }: Omit<Environment, keyof OwnSettings | 'kubeNetwork'> & Pick<Environment, 'manifests'>,
): KubernetesConfig | null {
  if (!readsServer(document, master, manifests.length === 0)) return null;
  const { clientConnection, configSyncPeriod } = document;
  return {
    ...clientConnection,
    master,
    configSyncPeriod: durationMilliseconds(configSyncPeriod),
    egressFile,
    events,
    clientCertificate,
  };
}

/** What an empty name of a scheduler means (behaviour IV-02). */
const DEFAULT_SCHEDULER = 'rr';

function ipvs({ scheduler, excludeCIDRs, strictARP, ...timeouts }: IpvsSection): IpvsConfig {
  return {
    scheduler: scheduler || DEFAULT_SCHEDULER,
    excludeCIDRs: prefixList('ipvs.excludeCIDRs', excludeCIDRs ?? []),
    strictARP,
    tcpTimeout: durationMilliseconds(timeouts.tcpTimeout),
    tcpFinTimeout: durationMilliseconds(timeouts.tcpFinTimeout),
    udpTimeout: durationMilliseconds(timeouts.udpTimeout),
  };
}

function answersOnLoopback({ mode, iptables, featureGates }: KubeProxyConfiguration): boolean {
  if (mode === 'nftables') return isGateEnabled(LOCALHOST_GATE, featureGates);
  return mode === 'iptables' && iptables.localhostNodePorts;
}

/** Behaviour WK-01. */
function healthzOf({ healthzBindAddress: text }: KubeProxyConfiguration): HostPort | null {
  return text === '' ? null : hostPort('healthzBindAddress', text);
}

function kernelspace(document: KubeProxyConfiguration, kubeNetwork: string): KernelspaceConfig {
  const { networkName: configured, sourceVip, ...rest } = document.winkernel;
  const networkName = configured || kubeNetwork;
  const address = parseAddress(sourceVip);
  return {
    ...rest,
    healthzPort: rest.forwardHealthCheckVip ? (healthzOf(document)?.port ?? null) : null,
    networkName,
    network: parseHnsNetwork(networkName),
    sourceVip: address,
    sourceVipEndpoint: address === null && sourceVip !== '' ? sourceVip : null,
  };
}

function buildLogging({ format: name, verbosity, vmodule, options, flushFrequency }: Logging): LoggingConfig {
  const format = name === 'json' ? 'json' : 'text';
  const { splitStream, infoBufferSize: size } = options[format];
  const infoBufferSize = splitStream ? Math.max(0, quantityValue(size)) : 0;
  return {
    format,
    verbosity,
    vmodule,
    splitStream,
    infoBufferSize,
    flushFrequency: infoBufferSize === 0 ? 0 : durationMilliseconds(flushFrequency),
  };
}

function localDetection({ detectLocalMode, detectLocal, clusterCIDR }: KubeProxyConfiguration): LocalDetection {
  const type = checked('detectLocalMode', isLocalMode(detectLocalMode) ? detectLocalMode : null);
  switch (type) {
    case 'ClusterCIDR':
      return { type, prefixes: clusterCIDR === '' ? [] : prefixList('clusterCIDR', clusterCIDR.split(',')) };
    case 'NodeCIDR':
      return { type };
    case 'BridgeInterface':
      return { type, name: detectLocal.bridgeInterface };
    case 'InterfaceNamePrefix':
      return { type, prefix: detectLocal.interfaceNamePrefix };
  }
}

/** HNS tells no pods from others, and opens node ports on every address of the node. */
const NO_DETECTION: LocalDetection = { type: 'ClusterCIDR', prefixes: [] };
const EVERY_ADDRESS: readonly IPPrefix[] = prefixList('nodePortAddresses', ['0.0.0.0/0', '::/0']);

function nodePortPrefixes({ nodePortAddresses }: KubeProxyConfiguration): Config['nodePortAddresses'] {
  const entries = nodePortAddresses ?? [];
  const prefixes = entries.filter((entry) => entry !== PRIMARY).flatMap((entry) => NODE_PORT_WORDS.get(entry) ?? entry);
  const primary: readonly NodePortAddress[] = entries.includes(PRIMARY) ? [PRIMARY] : [];
  return [...primary, ...prefixList('nodePortAddresses', prefixes)];
}

function prefixList(field: string, entries: readonly string[]): IPPrefix[] {
  return entries.map((entry) => checked(field, parsePrefix(entry)));
}

function hostPort(field: string, text: string): HostPort {
  const parsed = parseHostPort(text);
  return checked(field, typeof parsed === 'string' ? null : parsed);
}

function checked<T>(field: string, value: T | null | undefined): T {
  if (value === null || value === undefined) throw new TypeError(`${field} has not been validated`);
  return value;
}

function deepFreeze<T>(value: T): T {
  if (typeof value === 'object' && value !== null) {
    Object.freeze(value);
    for (const part of Object.values(value)) deepFreeze(part);
  }
  return value;
}
