import { namesLoopback, parsePrefix } from '../base/ip.js';
import { NODE_PORT_WORDS } from './checks.js';
import { decodeConfiguration } from './decode.js';
import { KIND, KUBE_PROXY, type KubeProxyConfiguration, type Logging } from './document.js';
import { durationMilliseconds, type GoDuration } from './duration.js';
import { applyPlatformDefaults, LINUX_MODES, masqueradingSection, WINDOWS_MODES } from './effective.js';
import { clip, joinProblems } from './errors.js';
import { ineffectiveGates, isGateEnabled, LOCALHOST_GATE, unknownGates } from './gates.js';
import { inactive, remarked } from './tables/settings.js';
import type { Report } from './tables/report.js';
import { isZeroQuantity } from './validate.js';
import { Mapping } from './yaml.js';

type Remark = readonly [path: string, problem: string];

/**
 * Names what the user set and this program does not heed, once for each field. Fields at their defaults, and fields that are null or
 * zero where that means the default, are not mentioned.
 *
 * @param document as decoded, before fields of other modes are cleared.
 * @param readsServer whether there is an API server to read from.
 */
export function describeIneffective(document: KubeProxyConfiguration, readsServer: boolean): readonly Report[] {
  const defaults = defaultsFor(document);
  const { mode, logging, windowsRunAsService, portRange, conntrack, ipvs } = document;
  const isLinux = mode !== 'kernelspace';
  const isFlushSet = logging.flushFrequency !== defaults.logging.flushFrequency;
  const gates = unknownGates(document.featureGates).map(clip);
  const unsupported = ineffectiveGates(document.featureGates);
  const remarks: readonly Remark[] = [
    ...describeRequests(document, defaults, readsServer),
    ...only(portRange !== '', 'portRange', 'has no effect'),
    ...(isLinux ? [...describeDetection(document), ...describeConntrack(document, defaults)] : []),
    ...(isLinux ? describeSeconds('conntrack', conntrack) : []),
    ...(mode === 'ipvs' ? describeSeconds('ipvs', ipvs) : []),
    ...only(windowsRunAsService && isLinux, 'windowsRunAsService', 'has no effect on Linux'),
    ...only(
      document.showHiddenMetricsForVersion !== '',
      'showHiddenMetricsForVersion',
      'has no effect, no metric was hidden since then',
    ),
    ...describeLoopback(document),
    ...unusedStreamOptions(logging),
    ...otherModes(document, defaults),
    ...only(
      isFlushSet && !isBuffered(logging),
      'logging.flushFrequency',
      'has no effect, log lines are written unbuffered',
    ),
    ...only(unsupported.length > 0, 'featureGates', `not supported, no effect: ${joinProblems(unsupported)}`),
    ...only(gates.length > 0, 'featureGates', `unknown gates have no effect: ${joinProblems(gates)}`),
  ];
  return remarks.map(([path, problem]) => remarked(`${KIND}.${path}`, 'no-effect', problem));
}

function only(applies: boolean, path: string, problem: string): readonly Remark[] {
  return applies ? [[path, problem]] : [];
}

/** Of a mode that there is not nothing is known. */
function otherModes(document: KubeProxyConfiguration, defaults: KubeProxyConfiguration): readonly Remark[] {
  const { mode } = document;
  if (![...LINUX_MODES, ...WINDOWS_MODES].some((known) => known === mode)) return [];
  return inactive(KUBE_PROXY, document, defaults, mode).map((path) => [
    path,
    `has no effect in mode ${mode}${inItsPlace(path, document)}`,
  ]);
}

/** Schedulers that hash, which mode nftables does for Services that ask for it. */
const HASHING = ['mh', 'sh'];

/** What does the same in the mode there is. */
function inItsPlace(path: string, { mode, ipvs }: KubeProxyConfiguration): string {
  return mode === 'nftables' && path === 'ipvs.scheduler' && HASHING.includes(ipvs.scheduler)
    ? `; in the place of "${ipvs.scheduler}": --balance=hash=address for all Services, or their annotation pointsman.dev/balance`
    : '';
}

/** Requests to the API server, where there is one. */
function describeRequests(
  { clientConnection, configSyncPeriod }: KubeProxyConfiguration,
  { clientConnection: unset, configSyncPeriod: period }: KubeProxyConfiguration,
  readsServer: boolean,
): readonly Remark[] {
  const { burst, qps } = clientConnection;
  const isSet = (field: keyof typeof unset): boolean => ![unset[field], 0].includes(clientConnection[field]);
  const limits = ['qps', 'burst'] as const;
  if (readsServer)
    return [
      ...limits.flatMap((field) =>
        only(clientConnection[field] === 0, `clientConnection.${field}`, `0 means the default, ${unset[field]}`),
      ),
      ...only(
        qps < 0 && isSet('burst') && burst !== 0,
        'clientConnection.burst',
        'has no effect, as a negative qps limits nothing',
      ),
    ];
  const why = 'has no effect, everything is read from --manifests';
  return [
    ...(['acceptContentTypes', 'contentType', ...limits] as const).flatMap((field) =>
      only(isSet(field), `clientConnection.${field}`, why),
    ),
    ...only(configSyncPeriod !== period, 'configSyncPeriod', why),
  ];
}

/** The table's least size is one of a size that is set. */
function describeConntrack(
  { conntrack: { maxPerCore, min } }: KubeProxyConfiguration,
  { conntrack: unset }: KubeProxyConfiguration,
): readonly Remark[] {
  return only(maxPerCore === 0 && ![unset.min, 0].includes(min), 'conntrack.min', 'has no effect with maxPerCore 0');
}

/** The kernel counts timeouts in seconds. */
function describeSeconds(section: string, fields: object): readonly Remark[] {
  return Object.entries(fields).flatMap(([field, value]: [string, unknown]) => {
    if (!field.endsWith('Timeout')) return [];
    const isWhole = durationMilliseconds(value as GoDuration) % 1000 === 0;
    return only(!isWhole, `${section}.${field}`, `the kernel takes whole seconds, of ${String(value)} and at least 1`);
  });
}

/** One of several fields says how pods are recognized. */
function describeDetection(document: KubeProxyConfiguration): readonly Remark[] {
  const { detectLocalMode: mode, detectLocal, clusterCIDR } = document;
  const { bridgeInterface, interfaceNamePrefix } = detectLocal;
  const why = `has no effect with detectLocalMode ${mode}`;
  const isBlind =
    clusterCIDR === '' && mode === 'ClusterCIDR' && !document[masqueradingSection(document)].masqueradeAll;
  return [
    ...only(clusterCIDR !== '' && mode !== 'ClusterCIDR', 'clusterCIDR', why),
    ...only(bridgeInterface !== '' && mode !== 'BridgeInterface', 'detectLocal.bridgeInterface', why),
    ...only(interfaceNamePrefix !== '' && mode !== 'InterfaceNamePrefix', 'detectLocal.interfaceNamePrefix', why),
    ...only(
      isBlind,
      'clusterCIDR',
      'is not set, so every source counts as a pod, and traffic of other clients to cluster IPs is not masqueraded',
    ),
  ];
}

/** Node ports on loopback, where a prefix or word names it. */
function describeLoopback({ mode, featureGates, nodePortAddresses }: KubeProxyConfiguration): readonly Remark[] {
  const prefixes = (nodePortAddresses ?? []).flatMap((entry) => NODE_PORT_WORDS.get(entry) ?? entry).map(parsePrefix);
  const isNamed = prefixes.some((prefix) => prefix !== null && namesLoopback(prefix));
  return only(
    isNamed && mode === 'nftables' && !isGateEnabled(LOCALHOST_GATE, featureGates),
    'nodePortAddresses',
    `node ports answer on loopback in mode nftables only with feature gate ${LOCALHOST_GATE}`,
  );
}

/** A stream's options act in their own format, and a buffer only on a stream of its own. */
function unusedStreamOptions({ format, options }: Logging): readonly Remark[] {
  return Object.entries(options).flatMap(([name, { splitStream, infoBufferSize }]) => {
    const at = `logging.options.${name}`;
    const isBuffer = !isZeroQuantity(infoBufferSize);
    const why = `has no effect in format ${clip(format)}`;
    if (name === format)
      return only(isBuffer && !splitStream, `${at}.infoBufferSize`, 'has no effect without splitStream');
    return [...only(splitStream, `${at}.splitStream`, why), ...only(isBuffer, `${at}.infoBufferSize`, why)];
  });
}

function isBuffered({ format, options }: Logging): boolean {
  const { splitStream, infoBufferSize } = options[format === 'json' ? 'json' : 'text'];
  return splitStream && !isZeroQuantity(infoBufferSize);
}

/** Some defaults follow the bind address and the mode, so they are taken from a document that sets nothing else. */
function defaultsFor({ bindAddress, mode }: KubeProxyConfiguration): KubeProxyConfiguration {
  const decoded = decodeConfiguration(new Mapping([['bindAddress', bindAddress]]));
  return applyPlatformDefaults({ ...decoded, mode }, mode === 'kernelspace' ? 'win32' : 'linux');
}
