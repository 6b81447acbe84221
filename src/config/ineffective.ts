import { KIND, type ConntrackSection, type KubeProxyConfiguration, type Logging } from './document.js';
import { decodeConfiguration } from './decode.js';
import { durationMilliseconds, type GoDuration } from './duration.js';
import { masqueradingSection } from './effective.js';
import { clip, joinProblems } from './errors.js';
import { ineffectiveGates, unknownGates } from './gates.js';
import { CONNTRACK_TIMEOUTS, IPVS_TIMEOUTS, isZeroQuantity } from './validate.js';
import { Mapping } from './yaml.js';

/** Sections that act in the mode of their name; masquerading also where another mode takes it from them. */
const MODE_SECTIONS = ['iptables', 'ipvs', 'nftables', 'winkernel'] as const;
const MASQUERADING = ['masqueradeAll', 'masqueradeBit'];
/** What kernelspace mode takes from another's section (behaviour FL-24, FL-25). */
const PERIODS = ['iptables.syncPeriod', 'iptables.minSyncPeriod'];

/**
 * Names what the user set and this program does not heed, one line per field. Fields at their defaults, and fields that are null or
 * zero where that means the default, are not mentioned.
 *
 * @param document as decoded, before fields of other modes are cleared.
 * @param readsServer whether there is an API server to read from.
 */
export function describeIneffective(document: KubeProxyConfiguration, readsServer: boolean): readonly string[] {
  const defaults = defaultsFor(document);
  const changed = (section: (typeof MODE_SECTIONS)[number]): string[] => {
    const untouched = new Map(Object.entries(defaults[section]));
    return Object.entries(document[section])
      .filter(([field, value]) => JSON.stringify(value ?? []) !== JSON.stringify(untouched.get(field) ?? []))
      .map(([field]) => `${section}.${field}`);
  };
  const shared = MASQUERADING.map((field) => `${masqueradingSection(document)}.${field}`);
  const isWindows = document.mode === 'kernelspace';
  const acting = isWindows ? PERIODS : shared;
  const otherModes = MODE_SECTIONS.filter((section) => section !== (isWindows ? 'winkernel' : document.mode))
    .flatMap(changed)
    .filter((field) => !acting.includes(field));
  const gates = unknownGates(document.featureGates).map(clip);
  const unsupported = ineffectiveGates(document.featureGates);
  const { logging, windowsRunAsService, portRange } = document;
  const isFlushSet = logging.flushFrequency !== defaults.logging.flushFrequency;
  return [
    ...describeRequests(document, defaults, readsServer),
    ...(portRange === '' ? [] : [`${KIND}.portRange: has no effect`]),
    ...(document.mode === 'kernelspace'
      ? describePlatform(document, defaults)
      : [...describeDetection(document), ...describeConntrack(document.conntrack, defaults.conntrack)]),
    ...(document.mode === 'ipvs' ? describeSeconds('ipvs', document.ipvs, IPVS_TIMEOUTS) : []),
    ...(windowsRunAsService && process.platform !== 'win32'
      ? [`${KIND}.windowsRunAsService: has no effect on Linux`]
      : []),
    ...(document.showHiddenMetricsForVersion === ''
      ? []
      : [`${KIND}.showHiddenMetricsForVersion: has no effect, no metric was hidden since then`]),
    ...unusedStreamOptions(logging).map((option) => `${KIND}.logging.options.${option}`),
    ...otherModes.map(
      (field) => `${KIND}.${field}: has no effect in mode ${document.mode}${inItsPlace(field, document)}`,
    ),
    ...(isFlushSet && !isBuffered(logging)
      ? [`${KIND}.logging.flushFrequency: has no effect, log lines are written unbuffered`]
      : []),
    ...(unsupported.length > 0 ? [`${KIND}.featureGates: not supported, no effect: ${joinProblems(unsupported)}`] : []),
    ...(gates.length > 0 ? [`${KIND}.featureGates: unknown gates have no effect: ${joinProblems(gates)}`] : []),
  ];
}

/** Schedulers that hash, which mode nftables does for Services that ask for it. */
const HASHING = ['mh', 'sh'];

/** What does the same in the mode there is. */
function inItsPlace(field: string, { mode, ipvs }: KubeProxyConfiguration): string {
  return mode === 'nftables' && field === 'ipvs.scheduler' && HASHING.includes(ipvs.scheduler)
    ? `; in the place of "${ipvs.scheduler}": --balance=hash=address for all Services, or their annotation pointsman.dev/balance`
    : '';
}

/** What has nothing to act on where the platform balances by itself. */
function describePlatform(document: KubeProxyConfiguration, defaults: KubeProxyConfiguration): string[] {
  const { detectLocalMode, detectLocal, clusterCIDR, nodePortAddresses, conntrack } = document;
  const untouched = new Map<string, unknown>(Object.entries(defaults.conntrack));
  const isSet: readonly (readonly [field: string, isSet: boolean])[] = [
    ['detectLocalMode', detectLocalMode !== 'ClusterCIDR'],
    ['clusterCIDR', clusterCIDR !== ''],
    ['detectLocal.bridgeInterface', detectLocal.bridgeInterface !== ''],
    ['detectLocal.interfaceNamePrefix', detectLocal.interfaceNamePrefix !== ''],
    ['nodePortAddresses', (nodePortAddresses ?? []).length > 0],
    ...Object.entries(conntrack).map(
      ([field, value]) => [`conntrack.${field}`, value !== untouched.get(field)] as const,
    ),
  ];
  return isSet.flatMap(([field, is]) => (is ? [`${KIND}.${field}: has no effect in mode ${document.mode}`] : []));
}

/** Requests to the API server, where there is one. */
function describeRequests(
  { clientConnection, configSyncPeriod }: KubeProxyConfiguration,
  defaults: KubeProxyConfiguration,
  readsServer: boolean,
): string[] {
  const limits = ['qps', 'burst'] as const;
  const { burst, qps } = clientConnection;
  if (readsServer)
    return [
      ...limits
        .filter((field) => clientConnection[field] === 0)
        .map((field) => `${KIND}.clientConnection.${field}: 0 means the default, ${defaults.clientConnection[field]}`),
      ...(qps < 0 && ![defaults.clientConnection.burst, 0].includes(burst)
        ? [`${KIND}.clientConnection.burst: has no effect, as a negative qps limits nothing`]
        : []),
    ];
  const fields = (['acceptContentTypes', 'contentType', ...limits] as const)
    .filter((field) => ![defaults.clientConnection[field], 0].includes(clientConnection[field]))
    .map((field) => `clientConnection.${field}`);
  const period = configSyncPeriod === defaults.configSyncPeriod ? [] : ['configSyncPeriod'];
  return [...fields, ...period].map((field) => `${KIND}.${field}: has no effect, everything is read from --manifests`);
}

/** The kernel counts timeouts in seconds, and the table's least size is one of a size that is set. */
function describeConntrack(conntrack: ConntrackSection, defaults: ConntrackSection): string[] {
  const { maxPerCore, min } = conntrack;
  return [
    ...(maxPerCore === 0 && ![defaults.min, 0].includes(min)
      ? [`${KIND}.conntrack.min: has no effect with maxPerCore 0`]
      : []),
    ...describeSeconds('conntrack', conntrack, CONNTRACK_TIMEOUTS),
  ];
}

function describeSeconds<F extends string>(
  section: string,
  timeouts: Readonly<Record<F, GoDuration>>,
  fields: readonly F[],
): string[] {
  return fields
    .filter((field) => durationMilliseconds(timeouts[field]) % 1000 !== 0)
    .map(
      (field) => `${KIND}.${section}.${field}: the kernel takes whole seconds, of ${timeouts[field]} and at least 1`,
    );
}

/** How pods are told from others goes by one of several fields. */
function describeDetection(document: KubeProxyConfiguration): string[] {
  const { detectLocalMode, detectLocal, clusterCIDR } = document;
  const unused = [
    ...(clusterCIDR !== '' && detectLocalMode !== 'ClusterCIDR' ? ['clusterCIDR'] : []),
    ...(detectLocal.bridgeInterface !== '' && detectLocalMode !== 'BridgeInterface'
      ? ['detectLocal.bridgeInterface']
      : []),
    ...(detectLocal.interfaceNamePrefix !== '' && detectLocalMode !== 'InterfaceNamePrefix'
      ? ['detectLocal.interfaceNamePrefix']
      : []),
  ];
  const isBlind = clusterCIDR === '' && detectLocalMode === 'ClusterCIDR';
  return [
    ...unused.map((field) => `${KIND}.${field}: has no effect with detectLocalMode ${detectLocalMode}`),
    ...(isBlind && !document[masqueradingSection(document)].masqueradeAll
      ? [
          `${KIND}.clusterCIDR: is not set, so every source counts as a pod, and what others send to cluster IPs is not masqueraded`,
        ]
      : []),
  ];
}

/** A stream's options act in their own format, and a buffer only on a stream of its own. */
function unusedStreamOptions({ format, options }: Logging): string[] {
  return Object.entries(options).flatMap(([name, { splitStream, infoBufferSize }]) => {
    const isBuffer = !isZeroQuantity(infoBufferSize);
    if (name !== format)
      return [...(splitStream ? ['splitStream'] : []), ...(isBuffer ? ['infoBufferSize'] : [])].map(
        (field) => `${name}.${field}: has no effect in format ${clip(format)}`,
      );
    return isBuffer && !splitStream ? [`${name}.infoBufferSize: has no effect without splitStream`] : [];
  });
}

function isBuffered({ format, options }: Logging): boolean {
  const { splitStream, infoBufferSize } = options[format === 'json' ? 'json' : 'text'];
  return splitStream && !isZeroQuantity(infoBufferSize);
}

/** Some defaults follow the bind address, so they are taken from a document that sets nothing else. */
function defaultsFor({ bindAddress }: KubeProxyConfiguration): KubeProxyConfiguration {
  return decodeConfiguration(new Mapping([['bindAddress', bindAddress]]), { strict: [], fatal: [] });
}
