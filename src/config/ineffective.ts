import { KIND, type KubeProxyConfiguration } from './document.js';
import { decodeConfiguration } from './decode.js';
import { clip, joinProblems } from './errors.js';
import { unknownGates } from './gates.js';
import { isZeroQuantity } from './validate.js';
import { Mapping } from './yaml.js';

/** Fields of sections that act only in other modes than nftables. */
const OTHER_MODES = ['iptables', 'ipvs', 'winkernel'] as const;

/**
 * Names what the user set and this program does not heed, one line per field. Fields at their defaults, and fields that are null or
 * zero where that means the default, are not mentioned.
 *
 * @param document as decoded, before fields of other modes are cleared.
 */
export function describeIneffective(document: KubeProxyConfiguration): readonly string[] {
  const defaults = defaultsFor(document);
  const changed = (section: 'clientConnection' | (typeof OTHER_MODES)[number]): string[] => {
    const untouched = new Map(Object.entries(defaults[section]));
    return Object.entries(document[section])
      .filter(([field, value]) => JSON.stringify(value ?? []) !== JSON.stringify(untouched.get(field) ?? []))
      .map(([field]) => `${section}.${field}`);
  };
  const topLevel = (
    [
      'metricsBindAddress',
      'enableProfiling',
      'showHiddenMetricsForVersion',
      'configSyncPeriod',
      'windowsRunAsService',
    ] as const
  ).filter((field) => document[field] !== defaults[field]);
  const unsupported = [...changed('clientConnection'), ...topLevel, ...changedLogOptions(document)];
  const otherModes = document.mode === 'nftables' ? OTHER_MODES.flatMap(changed) : [];
  const gates = unknownGates(document.featureGates).map(clip);
  const isFlushSet = document.logging.flushFrequency !== defaults.logging.flushFrequency;
  return [
    ...unsupported.map((field) => `${KIND}.${field}: is not supported yet and has no effect`),
    ...otherModes.map((field) => `${KIND}.${field}: has no effect in mode ${document.mode}`),
    ...(isFlushSet ? [`${KIND}.logging.flushFrequency: has no effect, log lines are written unbuffered`] : []),
    ...(gates.length > 0 ? [`${KIND}.featureGates: unknown gates have no effect: ${joinProblems(gates)}`] : []),
  ];
}

function changedLogOptions({ logging }: KubeProxyConfiguration): string[] {
  return Object.entries(logging.options).flatMap(([format, { splitStream, infoBufferSize }]) => [
    ...(splitStream ? [`logging.options.${format}.splitStream`] : []),
    ...(isZeroQuantity(infoBufferSize) ? [] : [`logging.options.${format}.infoBufferSize`]),
  ]);
}

/** Some defaults follow the bind address, so they are taken from a document that sets nothing else. */
function defaultsFor({ bindAddress }: KubeProxyConfiguration): KubeProxyConfiguration {
  return decodeConfiguration(new Mapping([['bindAddress', bindAddress]]), { strict: [], fatal: [] });
}
