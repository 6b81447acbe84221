import {
  API_GROUP,
  API_VERSION,
  CONTENT_TYPES,
  KIND,
  DEFAULT_BURST,
  DEFAULT_QPS,
  type ClientConnection,
  type ConntrackSection,
  type IptablesSection,
  type IpvsSection,
  type KubeProxyConfiguration,
  type Logging,
  type LogStreamOptions,
  type NftablesSection,
  type WinkernelSection,
} from './document.js';
import { durationFromNanoseconds } from './duration.js';
import { clip, invalid } from './errors.js';
import { HEALTHZ_PORT, isIPv4Text, METRICS_PORT, withPort } from './host-port.js';
import { readCluster, type ClusterConfiguration } from './kubeadm.js';
import { FieldReader, type Findings } from './reader.js';
import { Mapping, parseDocuments } from './yaml.js';

const SECOND = 1_000_000_000n;
const ZERO = durationFromNanoseconds(0n);
const SYNC_PERIOD = durationFromNanoseconds(30n * SECOND);
/** A minSyncPeriod of zero: syncs are paced by what they cost. */
const ADAPTIVE = ZERO;

/** The one configuration in a file, and the documents beside it that were passed over. */
export interface ConfigurationFile {
  readonly mapping: Mapping;
  /** kubeadm's document beside it. */
  readonly cluster: ClusterConfiguration | null;
  readonly passedOver: readonly string[];
}

/**
 * Finds the KubeProxyConfiguration among a file's documents: the first of the right version and kind.
 *
 * @returns what is wrong with each document when there is none.
 * @throws YamlError when the text is not YAML.
 */
export function findConfiguration(text: string): ConfigurationFile | readonly string[] {
  const documents = parseDocuments(text).map((document, index) => ({
    document,
    ...identify(document, `document ${index + 1}`),
  }));
  const ours = documents.find(({ problems }) => problems.length === 0)?.document;
  if (!(ours instanceof Mapping)) {
    return documents.length === 0 ? ['the file holds no document'] : documents.flatMap(({ problems }) => problems);
  }
  const others = documents.filter(({ document }) => document !== ours);
  const clusters = others.flatMap(({ document }) => readCluster(document) ?? []);
  const passedOver = others.filter(({ document }) => readCluster(document) === null).map(({ title }) => title);
  return { mapping: ours, cluster: clusters[0] ?? null, passedOver };
}

function identify(
  document: unknown,
  position: string,
): { readonly title: string; readonly problems: readonly string[] } {
  if (!(document instanceof Mapping))
    return { title: position, problems: [`${position}: Invalid value: must be a mapping`] };
  const findings: Findings = { strict: [], fatal: [] };
  const reader = new FieldReader(document, position, findings);
  const apiVersion = reader.text('apiVersion');
  const kind = reader.text('kind');
  if (findings.fatal.length === 0) {
    if (apiVersion === '') findings.fatal.push(`${position}.apiVersion: Required value: must be ${API_VERSION}`);
    else if (apiVersion.startsWith(`${API_GROUP}/`) && apiVersion !== API_VERSION) {
      findings.fatal.push(
        invalid(`${position}.apiVersion`, apiVersion, `is an unknown version, must be ${API_VERSION}`),
      );
    } else if (apiVersion !== API_VERSION)
      findings.fatal.push(invalid(`${position}.apiVersion`, apiVersion, `must be ${API_VERSION}`));
    if (kind === '') findings.fatal.push(`${position}.kind: Required value: must be ${KIND}`);
    else if (kind !== KIND) findings.fatal.push(invalid(`${position}.kind`, kind, `must be ${KIND}`));
  }
  return {
    title: `${position} (${clip(apiVersion || 'no apiVersion')}, ${clip(kind || 'no kind')})`,
    problems: findings.fatal,
  };
}

/** Decodes a document and fills in the defaults of v1alpha1. Problems go to `findings`; the result then holds defaults in their place. */
export function decodeConfiguration(mapping: Mapping, findings: Findings): KubeProxyConfiguration {
  const root = new FieldReader(mapping, KIND, findings);
  const bindAddress = root.filledText('bindAddress', '0.0.0.0');
  const [anyAddress, loopback] = isIPv4Text(bindAddress) ? ['0.0.0.0', '127.0.0.1'] : ['::', '::1'];
  root.text('apiVersion');
  root.text('kind');
  const configuration: KubeProxyConfiguration = {
    apiVersion: API_VERSION,
    kind: KIND,
    featureGates: root.truths('featureGates'),
    clientConnection: decodeClientConnection(root.section('clientConnection')),
    logging: decodeLogging(root.section('logging')),
    hostnameOverride: root.text('hostnameOverride'),
    bindAddress,
    healthzBindAddress: withPort(root.filledText('healthzBindAddress', anyAddress), HEALTHZ_PORT),
    metricsBindAddress: withPort(root.filledText('metricsBindAddress', loopback), METRICS_PORT),
    bindAddressHardFail: root.truth('bindAddressHardFail'),
    enableProfiling: root.truth('enableProfiling'),
    showHiddenMetricsForVersion: root.text('showHiddenMetricsForVersion'),
    mode: root.text('mode'),
    iptables: decodeIptables(root.section('iptables')),
    ipvs: decodeIpvs(root.section('ipvs')),
    nftables: decodeNftables(root.section('nftables')),
    winkernel: decodeWinkernel(root.section('winkernel')),
    detectLocalMode: root.text('detectLocalMode'),
    detectLocal: decodeDetectLocal(root.section('detectLocal')),
    clusterCIDR: root.text('clusterCIDR'),
    nodePortAddresses: root.texts('nodePortAddresses'),
    oomScoreAdj: root.integer('oomScoreAdj', -999),
    conntrack: decodeConntrack(root.section('conntrack')),
    configSyncPeriod: root.duration('configSyncPeriod') ?? durationFromNanoseconds(900n * SECOND),
    portRange: root.text('portRange'),
    windowsRunAsService: root.truth('windowsRunAsService'),
  };
  root.finish();
  return configuration;
}

function decodeClientConnection(reader: FieldReader): ClientConnection {
  const section: ClientConnection = {
    kubeconfig: reader.text('kubeconfig'),
    acceptContentTypes: reader.text('acceptContentTypes'),
    contentType: reader.filledText('contentType', CONTENT_TYPES[0]),
    qps: reader.float32('qps', DEFAULT_QPS),
    burst: reader.integer('burst', DEFAULT_BURST),
  };
  reader.finish();
  return section;
}

function decodeLogging(reader: FieldReader): Logging {
  const options = reader.section('options');
  const section: Logging = {
    format: reader.filledText('format', 'text'),
    flushFrequency: reader.duration('flushFrequency', 'integers') ?? durationFromNanoseconds(5n * SECOND),
    verbosity: reader.integer('verbosity', 0, 'uint32'),
    vmodule: reader.sections('vmodule').map((item) => {
      const entry = { filePattern: item.text('filePattern'), verbosity: item.integer('verbosity', 0, 'uint32') };
      item.finish();
      return entry;
    }),
    options: { json: decodeStreamOptions(options.section('json')), text: decodeStreamOptions(options.section('text')) },
  };
  options.finish();
  reader.finish();
  return section;
}

function decodeStreamOptions(reader: FieldReader): LogStreamOptions {
  const options: LogStreamOptions = {
    splitStream: reader.truth('splitStream'),
    infoBufferSize: reader.quantity('infoBufferSize'),
  };
  reader.finish();
  return options;
}

function decodeIptables(reader: FieldReader): IptablesSection {
  const section: IptablesSection = {
    masqueradeBit: reader.integer('masqueradeBit', 14),
    masqueradeAll: reader.truth('masqueradeAll'),
    localhostNodePorts: reader.truth('localhostNodePorts', true),
    syncPeriod: reader.duration('syncPeriod') ?? SYNC_PERIOD,
    minSyncPeriod: reader.duration('minSyncPeriod') ?? ADAPTIVE,
  };
  reader.finish();
  return section;
}

function decodeIpvs(reader: FieldReader): IpvsSection {
  const section: IpvsSection = {
    syncPeriod: reader.duration('syncPeriod') ?? SYNC_PERIOD,
    minSyncPeriod: reader.duration('minSyncPeriod') ?? ADAPTIVE,
    scheduler: reader.text('scheduler'),
    excludeCIDRs: reader.texts('excludeCIDRs'),
    strictARP: reader.truth('strictARP'),
    tcpTimeout: reader.duration('tcpTimeout') ?? ZERO,
    tcpFinTimeout: reader.duration('tcpFinTimeout') ?? ZERO,
    udpTimeout: reader.duration('udpTimeout') ?? ZERO,
  };
  reader.finish();
  return section;
}

function decodeNftables(reader: FieldReader): NftablesSection {
  const section: NftablesSection = {
    masqueradeBit: reader.integer('masqueradeBit', 14),
    masqueradeAll: reader.truth('masqueradeAll'),
    syncPeriod: reader.duration('syncPeriod') ?? SYNC_PERIOD,
    minSyncPeriod: reader.duration('minSyncPeriod') ?? ADAPTIVE,
  };
  reader.finish();
  return section;
}

function decodeWinkernel(reader: FieldReader): WinkernelSection {
  const section: WinkernelSection = {
    networkName: reader.text('networkName'),
    sourceVip: reader.text('sourceVip'),
    enableDSR: reader.truth('enableDSR'),
    rootHnsEndpointName: reader.text('rootHnsEndpointName'),
    forwardHealthCheckVip: reader.truth('forwardHealthCheckVip'),
  };
  reader.finish();
  return section;
}

function decodeDetectLocal(reader: FieldReader): KubeProxyConfiguration['detectLocal'] {
  const section = {
    bridgeInterface: reader.text('bridgeInterface'),
    interfaceNamePrefix: reader.text('interfaceNamePrefix'),
  };
  reader.finish();
  return section;
}

function decodeConntrack(reader: FieldReader): ConntrackSection {
  const section: ConntrackSection = {
    maxPerCore: reader.integer('maxPerCore', 32768),
    min: reader.integer('min', 131072),
    tcpEstablishedTimeout: reader.duration('tcpEstablishedTimeout') ?? durationFromNanoseconds(86400n * SECOND),
    tcpCloseWaitTimeout: reader.duration('tcpCloseWaitTimeout') ?? durationFromNanoseconds(3600n * SECOND),
    tcpBeLiberal: reader.truth('tcpBeLiberal'),
    udpTimeout: reader.duration('udpTimeout') ?? ZERO,
    udpStreamTimeout: reader.duration('udpStreamTimeout') ?? ZERO,
  };
  reader.finish();
  return section;
}
