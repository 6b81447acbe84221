import { familyOf, isUnspecified, parsePrefix } from '../base/ip.js';
import { prefixes } from './checks.js';
import { KIND, KUBE_PROXY, type KubeProxyConfiguration } from './document.js';
import { durationNanoseconds } from './duration.js';
import { activeSection, defaultMode, modesOf } from './effective.js';
import { printValue } from './errors.js';
import { parseHostPort } from './host-port.js';
import { isGateEnabled } from './gates.js';
import { quantityValue } from './quantity.js';
import type { Report } from './tables/report.js';
import { checkSettings, refused } from './tables/settings.js';
import { KUBERNETES_MINOR } from './version.js';

const LOCAL_MODES = ['ClusterCIDR', 'NodeCIDR', 'BridgeInterface', 'InterfaceNamePrefix'] as const;
type LocalMode = (typeof LOCAL_MODES)[number];

export function isLocalMode(text: string): text is LocalMode {
  return LOCAL_MODES.some((mode) => mode === text);
}

type Problems = readonly Report[];

/**
 * Checks a defaulted document against the rules of v1alpha1 and returns every violation with the path of the field in the user's file: what the table says
 * of single fields, then what goes by several. Like kube-proxy, it looks at the nftables and ipvs sections only in their own modes, and so it does at
 * winkernel.
 *
 * @param release the minor release that the process reports.
 */
export function validateConfiguration(
  document: KubeProxyConfiguration,
  platform: NodeJS.Platform,
  release: number = KUBERNETES_MINOR,
): Problems {
  return [
    ...checkSettings(KUBE_PROXY, document, KIND, document.mode),
    ...validateHiddenMetrics(document, release),
    ...validateMode(document, platform),
    ...validateSyncPeriods(document),
    ...validateListeners(document),
    ...validateLocalDetection(document),
    ...validateLogging(document),
  ];
}

/** Only metrics of the release before can be hidden. */
function validateHiddenMetrics(
  { showHiddenMetricsForVersion: version }: KubeProxyConfiguration,
  release: number,
): Problems {
  const previous = `1.${release - 1}`;
  if (version === '' || version === previous) return [];
  return [
    wrong('showHiddenMetricsForVersion', version, `must be omitted or the previous minor version, "${previous}"`),
  ];
}

function validateMode({ mode, featureGates }: KubeProxyConfiguration, platform: NodeJS.Platform): Problems {
  const modes = modesOf(platform);
  if (mode === 'ipvs' && !isGateEnabled('KubeProxyIPVS', featureGates))
    return [forbidden('mode', 'mode ipvs needs feature gate KubeProxyIPVS')];
  const best = `blank (blank means the best-available proxy [currently ${defaultMode(platform)}])`;
  return modes.some((known) => known === mode) ? [] : [wrong('mode', mode, `must be ${modes.join(', ')} or ${best}`)];
}

function validateSyncPeriods(document: KubeProxyConfiguration): Problems {
  const section = activeSection(document);
  const { syncPeriod, minSyncPeriod } = document[section];
  const minimum = durationNanoseconds(minSyncPeriod);
  const problem = `must be greater than or equal to ${KIND}.${section}.minSyncPeriod (${minSyncPeriod})`;
  const isOrdered = minimum === 0n || durationNanoseconds(syncPeriod) >= minimum;
  return isOrdered ? [] : [wrong(`${section}.syncPeriod`, syncPeriod, problem)];
}

/** kube-proxy starts, and serves one of the two. */
function validateListeners({ healthzBindAddress, metricsBindAddress }: KubeProxyConfiguration): Problems {
  const [health, metrics] = [healthzBindAddress, metricsBindAddress].map(parseHostPort);
  if (typeof health !== 'object' || typeof metrics !== 'object' || health.port !== metrics.port) return [];
  const one = familyOf(health.address) === familyOf(metrics.address);
  const isTaken =
    health.address === metrics.address || (one && [health, metrics].some(({ address }) => isUnspecified(address)));
  const problem = `takes the port of ${KIND}.healthzBindAddress (${healthzBindAddress})`;
  return isTaken ? [wrong('metricsBindAddress', metricsBindAddress, problem)] : [];
}

function validateLocalDetection({ detectLocalMode, detectLocal, clusterCIDR }: KubeProxyConfiguration): Problems {
  const required = (field: 'bridgeInterface' | 'interfaceNamePrefix'): Problems => {
    const name = detectLocal[field];
    if (name === '')
      return [refused(`${KIND}.detectLocal.${field}`, 'required', null, `detectLocalMode ${detectLocalMode} needs it`)];
    return isInterfaceName(name) ? [] : [wrong(`detectLocal.${field}`, name, NO_INTERFACE)];
  };
  if (!isLocalMode(detectLocalMode)) return [unsupported('detectLocalMode', detectLocalMode, LOCAL_MODES)];
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

const NO_INTERFACE = 'is no interface name of Linux: at most 15 bytes, without blanks, slashes and colons';

/** kube-proxy takes any text, and then no sync of it succeeds. */
function isInterfaceName(text: string): boolean {
  return Buffer.byteLength(text) <= 15 && !/[\s/:]/.test(text);
}

/** The list is split at commas and not trimmed: `a, b` has an invalid second entry. */
function validateClusterCIDR(text: string): Problems {
  const entries = text.split(',');
  const families = entries.map((entry) => parsePrefix(entry)).flatMap((each) => (each === null ? [] : familyOf(each)));
  const isTwice = entries.length === 2 && families.length === 2 && families[0] === families[1];
  return [
    ...prefixes(entries).map(({ at, value, problem }) => wrong(`clusterCIDR${at}`, value, problem)),
    ...(entries.length > 2 ? [wrong('clusterCIDR', text, 'only one CIDR, or one per IP family, is allowed')] : []),
    ...(isTwice ? [wrong('clusterCIDR', text, 'two CIDRs must be of different IP families')] : []),
  ];
}

function validateLogging({ logging, featureGates }: KubeProxyConfiguration): Problems {
  const { format, vmodule, options } = logging;
  const isKnown = format === 'text' || format === 'json';
  const hasBeta = isGateEnabled('LoggingBetaOptions', featureGates);
  const hasAlpha = isGateEnabled('LoggingAlphaOptions', featureGates);
  const alpha = Object.entries(options).flatMap(([name, { splitStream, infoBufferSize }]) => [
    ...(splitStream ? [`logging.options.${name}.splitStream`] : []),
    ...(isZeroQuantity(infoBufferSize) ? [] : [`logging.options.${name}.infoBufferSize`]),
  ]);
  return [
    ...(isKnown ? [] : [unsupported('logging.format', format, ['json', 'text'])]),
    ...(format === 'json' && !hasBeta
      ? [forbidden('logging.format', 'format json needs feature gate LoggingBetaOptions')]
      : []),
    ...(vmodule.length > 0 && format !== 'text'
      ? [forbidden('logging.vmodule', 'only supported for text log format')]
      : []),
    ...(hasAlpha ? [] : alpha.map((path) => forbidden(path, 'needs feature gate LoggingAlphaOptions'))),
  ];
}

export function isZeroQuantity(quantity: string): boolean {
  return quantityValue(quantity) === 0;
}

function wrong(path: string, value: unknown, problem: string): Report {
  return refused(`${KIND}.${path}`, 'value', printValue(value), problem);
}

function unsupported(path: string, value: string, supported: readonly string[]): Report {
  const problem = `supported values: ${supported.map((each) => printValue(each)).join(', ')}`;
  return refused(`${KIND}.${path}`, 'unsupported', printValue(value), problem);
}

function forbidden(path: string, problem: string): Report {
  return refused(`${KIND}.${path}`, 'forbidden', null, problem);
}
