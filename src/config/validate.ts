import { familyOf, parseAddress, parsePrefix } from '../base/ip.js';
import { isEndpointName, parseHnsNetwork } from './hns-network.js';
import { CONTENT_TYPES, KIND, type ClientConnection, type KubeProxyConfiguration, type Logging } from './document.js';
import { durationNanoseconds, type GoDuration } from './duration.js';
import { activeSection, defaultMode, modesOf, PRIMARY } from './effective.js';
import { invalid, printValue } from './errors.js';
import { isGateEnabled, lockedGateProblems } from './gates.js';
import { parseHostPort } from './host-port.js';
import { quantityValue } from './quantity.js';
import { PREVIOUS_MINOR } from './version.js';

const LOCAL_MODES = ['ClusterCIDR', 'NodeCIDR', 'BridgeInterface', 'InterfaceNamePrefix'] as const;
export type LocalMode = (typeof LOCAL_MODES)[number];

export function isLocalMode(text: string): text is LocalMode {
  return LOCAL_MODES.some((mode) => mode === text);
}

export const CONNTRACK_TIMEOUTS = [
  'tcpEstablishedTimeout',
  'tcpCloseWaitTimeout',
  'udpTimeout',
  'udpStreamTimeout',
] as const;
export const IPVS_TIMEOUTS = ['tcpTimeout', 'tcpFinTimeout', 'udpTimeout'] as const;

/** In nanoseconds; the kernel counts in ticks, with 31 bits. */
const MAX_IPVS_TIMEOUT = 2_147_483n * 1_000_000_000n;

type Problems = readonly string[];

/**
 * Checks a defaulted document against the rules of v1alpha1 and returns every violation with the path of the field in the user's file.
 * Like kube-proxy, it looks at the nftables and ipvs sections only in their own modes, and so it does at winkernel.
 */
export function validateConfiguration(document: KubeProxyConfiguration, platform: NodeJS.Platform): Problems {
  return [
    ...lockedGateProblems(document.featureGates).map((problem) => `${KIND}.featureGates: Invalid value: ${problem}`),
    ...validateMode(document, platform),
    ...validateConntrack(document),
    ...within('oomScoreAdj', document.oomScoreAdj, -1000, 1000),
    ...check(
      document.clientConnection.burst >= 0,
      'clientConnection.burst',
      document.clientConnection.burst,
      'must be non-negative',
    ),
    ...validateContentTypes(document.clientConnection),
    ...check(
      isPositive(document.configSyncPeriod),
      'configSyncPeriod',
      document.configSyncPeriod,
      'must be greater than 0',
    ),
    ...validateSyncPeriods(document),
    ...validateAddresses(document),
    ...validateNodePortAddresses(document.nodePortAddresses ?? []),
    ...validateHiddenMetrics(document.showHiddenMetricsForVersion),
    ...validateLocalDetection(document),
    ...validateLogging(document.logging, document.featureGates),
  ];
}

/** What the API server may answer in. kube-proxy knows no more of them, and then fails at every request. */
function validateContentTypes({ contentType, acceptContentTypes }: ClientConnection): Problems {
  const accepted = acceptContentTypes === '' ? [] : acceptContentTypes.split(',');
  const isKnown = (entry: string, known: readonly string[]): boolean => {
    const [type = '', ...parameters] = entry.split(';').map((part) => part.trim().toLowerCase());
    return known.includes(type) && !parameters.some((parameter) => parameter.startsWith('as='));
  };
  const detail = `must be ${CONTENT_TYPES.join(' or ')}`;
  return [
    ...check(
      contentType === '' || isKnown(contentType, CONTENT_TYPES),
      'clientConnection.contentType',
      contentType,
      detail,
    ),
    ...accepted.flatMap((entry) =>
      check(
        isKnown(entry, [...CONTENT_TYPES, 'application/*', '*/*']),
        'clientConnection.acceptContentTypes',
        entry.trim(),
        detail,
      ),
    ),
  ];
}

function validateWinkernel({ networkName, sourceVip }: KubeProxyConfiguration['winkernel']): Problems {
  const detail = 'must be the name of an HNS network, the beginning of one as "vpcbr*", or a type as "type=Overlay"';
  const isSource = sourceVip === '' || parseAddress(sourceVip) !== null || isEndpointName(sourceVip);
  return [
    ...check(networkName === '' || parseHnsNetwork(networkName) !== null, 'winkernel.networkName', networkName, detail),
    ...check(isSource, 'winkernel.sourceVip', sourceVip, 'must be an IP address or the name of an HNS endpoint'),
  ];
}

function validateMode(
  { mode, iptables, ipvs, nftables, winkernel }: KubeProxyConfiguration,
  platform: NodeJS.Platform,
): Problems {
  const problems = [...within('iptables.masqueradeBit', iptables.masqueradeBit, 0, 31)];
  const modes = modesOf(platform);
  if (!modes.some((known) => known === mode)) {
    const detail = `must be ${modes.join(', ')} or blank (blank means the best-available proxy [currently ${defaultMode(platform)}])`;
    problems.push(invalid(`${KIND}.mode`, mode, detail));
  }
  if (mode === 'kernelspace') problems.push(...validateWinkernel(winkernel));
  if (mode === 'nftables') problems.push(...within('nftables.masqueradeBit', nftables.masqueradeBit, 0, 31));
  if (mode !== 'ipvs') return problems;
  for (const field of IPVS_TIMEOUTS) {
    const isCountable = durationNanoseconds(ipvs[field]) <= MAX_IPVS_TIMEOUT;
    problems.push(
      ...notNegative(`ipvs.${field}`, ipvs[field]),
      ...check(isCountable, `ipvs.${field}`, ipvs[field], 'must be at most 596h31m23s, which is what ip_vs can count'),
    );
  }
  if (!/^[^\s\p{C}]{0,15}$/u.test(ipvs.scheduler) || Buffer.byteLength(ipvs.scheduler) > 15)
    problems.push(
      invalid(
        `${KIND}.ipvs.scheduler`,
        ipvs.scheduler,
        'is not what ip_vs calls schedulers: at most 15 bytes, without blanks',
      ),
    );
  return [...problems, ...prefixes('ipvs.excludeCIDRs', ipvs.excludeCIDRs ?? [])];
}

function validateConntrack({ conntrack }: KubeProxyConfiguration): Problems {
  const counts = (['maxPerCore', 'min'] as const).flatMap((field) =>
    check(conntrack[field] >= 0, `conntrack.${field}`, conntrack[field], 'must be greater than or equal to 0'),
  );
  const timeouts = CONNTRACK_TIMEOUTS.flatMap((field) => notNegative(`conntrack.${field}`, conntrack[field]));
  return [...counts, ...timeouts];
}

function validateSyncPeriods(document: KubeProxyConfiguration): Problems {
  const section = activeSection(document);
  const { syncPeriod, minSyncPeriod } = document[section];
  const minimum = durationNanoseconds(minSyncPeriod);
  const isOrdered = minimum === 0n || durationNanoseconds(syncPeriod) >= minimum;
  return [
    ...check(isPositive(syncPeriod), `${section}.syncPeriod`, syncPeriod, 'must be greater than 0'),
    ...notNegative(`${section}.minSyncPeriod`, minSyncPeriod),
    ...check(
      isOrdered,
      `${section}.syncPeriod`,
      syncPeriod,
      `must be greater than or equal to ${KIND}.${section}.minSyncPeriod (${minSyncPeriod})`,
    ),
  ];
}

function validateAddresses({ bindAddress, healthzBindAddress, metricsBindAddress }: KubeProxyConfiguration): Problems {
  const listeners = Object.entries({ healthzBindAddress, metricsBindAddress }).flatMap(([field, value]) => {
    // Only a flag can empty them, which switches health checks off; metrics have no such switch.
    if (field === 'healthzBindAddress' && value === '') return [];
    const parsed = parseHostPort(value);
    return typeof parsed === 'string' ? [invalid(`${KIND}.${field}`, value, parsed)] : [];
  });
  return [
    ...check(
      parseAddress(bindAddress) !== null,
      'bindAddress',
      bindAddress,
      'not a valid textual representation of an IP address',
    ),
    ...listeners,
  ];
}

function validateNodePortAddresses(entries: readonly string[]): Problems {
  if (!entries.includes(PRIMARY)) return prefixes('nodePortAddresses', entries);
  if (entries.length === 1) return [];
  const index = entries.indexOf(PRIMARY);
  const alone = invalid(`${KIND}.nodePortAddresses[${index}]`, PRIMARY, `can't use both '${PRIMARY}' and CIDRs`);
  return [alone, ...prefixes('nodePortAddresses', entries, PRIMARY)];
}

function validateHiddenMetrics(version: string): Problems {
  const isAllowed = version === '' || version === PREVIOUS_MINOR;
  return check(
    isAllowed,
    'showHiddenMetricsForVersion',
    version,
    `must be omitted or the previous minor version, "${PREVIOUS_MINOR}"`,
  );
}

function validateLocalDetection({ detectLocalMode, detectLocal, clusterCIDR }: KubeProxyConfiguration): Problems {
  if (!isLocalMode(detectLocalMode)) {
    const supported = LOCAL_MODES.map((mode) => printValue(mode)).join(', ');
    return [
      `${KIND}.detectLocalMode: Unsupported value: ${printValue(detectLocalMode)}: supported values: ${supported}`,
    ];
  }
  const required = (field: 'bridgeInterface' | 'interfaceNamePrefix'): Problems =>
    detectLocal[field] === ''
      ? [`${KIND}.detectLocal.${field}: Required value: detectLocalMode ${detectLocalMode} needs it`]
      : check(isInterfaceName(detectLocal[field]), `detectLocal.${field}`, detectLocal[field], NO_INTERFACE);
  switch (detectLocalMode) {
    case 'ClusterCIDR':
      return clusterCIDR === '' ? [] : validateClusterCIDR(clusterCIDR);
    case 'NodeCIDR':
      return [];
    case 'BridgeInterface':
      return required('bridgeInterface');
    case 'InterfaceNamePrefix':
      return required('interfaceNamePrefix');
  }
}

const NO_INTERFACE = 'is not what Linux calls interfaces: at most 15 bytes, without blanks, slashes and colons';

/** kube-proxy takes any text, and then no sync of it succeeds. */
function isInterfaceName(text: string): boolean {
  return Buffer.byteLength(text) <= 15 && !/[\s/:]/.test(text);
}

/** The list is split at commas and not trimmed: `a, b` has an invalid second entry. */
function validateClusterCIDR(text: string): Problems {
  const entries = text.split(',');
  const problems = [...prefixes('clusterCIDR', entries)];
  if (entries.length > 2)
    problems.push(invalid(`${KIND}.clusterCIDR`, text, 'only one CIDR, or one per IP family, is allowed'));
  const families = entries
    .map((entry) => parsePrefix(entry))
    .flatMap((prefix) => (prefix === null ? [] : [familyOf(prefix)]));
  if (entries.length === 2 && families.length === 2 && families[0] === families[1]) {
    problems.push(invalid(`${KIND}.clusterCIDR`, text, 'two CIDRs must be of different IP families'));
  }
  return problems;
}

function validateLogging(logging: Logging, gates: KubeProxyConfiguration['featureGates']): Problems {
  const { format, flushFrequency, verbosity, vmodule, options } = logging;
  const problems: string[] = [];
  if (format === 'json') {
    if (!isGateEnabled('LoggingBetaOptions', gates))
      problems.push(forbidden('logging.format', 'format json needs feature gate LoggingBetaOptions'));
  } else if (format !== 'text') {
    problems.push(`${KIND}.logging.format: Unsupported value: ${printValue(format)}: supported values: "json", "text"`);
  }
  problems.push(
    ...check(isPositive(flushFrequency), 'logging.flushFrequency', flushFrequency, 'must be greater than 0'),
  );
  problems.push(...within('logging.verbosity', verbosity, 0, MAX_VERBOSITY));
  if (vmodule.length > 0 && format !== 'text')
    problems.push(forbidden('logging.vmodule', 'only supported for text log format'));
  for (const [index, { filePattern, verbosity: level }] of vmodule.entries()) {
    const path = `logging.vmodule[${index}]`;
    if (filePattern === '') problems.push(`${KIND}.${path}.filePattern: Required value: must not be empty`);
    problems.push(
      ...check(!/[=,]/.test(filePattern), `${path}.filePattern`, filePattern, 'must not contain equal signs or commas'),
    );
    problems.push(...within(`${path}.verbosity`, level, 0, MAX_VERBOSITY));
  }
  if (isGateEnabled('LoggingAlphaOptions', gates)) return problems;
  for (const [name, { splitStream, infoBufferSize }] of Object.entries(options)) {
    if (splitStream) problems.push(forbidden(`logging.options.${name}.splitStream`, ALPHA_ONLY));
    if (!isZeroQuantity(infoBufferSize)) problems.push(forbidden(`logging.options.${name}.infoBufferSize`, ALPHA_ONLY));
  }
  return problems;
}

const ALPHA_ONLY = 'needs feature gate LoggingAlphaOptions';
const MAX_VERBOSITY = 2 ** 31 - 1;

export function isZeroQuantity(quantity: string): boolean {
  return quantityValue(quantity) === 0;
}

function isPositive(duration: GoDuration): boolean {
  return durationNanoseconds(duration) > 0n;
}

function notNegative(path: string, duration: GoDuration): Problems {
  return check(durationNanoseconds(duration) >= 0n, path, duration, 'must be greater than or equal to 0');
}

function prefixes(path: string, entries: readonly string[], except?: string): Problems {
  return entries.flatMap((entry, index) =>
    check(
      entry === except || parsePrefix(entry) !== null,
      `${path}[${index}]`,
      entry,
      'must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)',
    ),
  );
}

function within(path: string, value: number, min: number, max: number): Problems {
  return check(value >= min && value <= max, path, value, `must be within the range [${min}, ${max}]`);
}

function check(holds: boolean, path: string, value: unknown, detail: string): Problems {
  return holds ? [] : [invalid(`${KIND}.${path}`, value, detail)];
}

function forbidden(path: string, detail: string): string {
  return `${KIND}.${path}: Forbidden: ${detail}`;
}
