import { KUBE_PROXY } from './document.js';
import { parseDuration } from './duration.js';
import { leaves } from './tables/settings.js';
import { Mapping } from './yaml.js';

/** What every release's types write, whatever is set. Nobody else writes all of them. */
const ALWAYS_WRITTEN = [
  'bindAddress',
  'clientConnection',
  'clusterCIDR',
  'configSyncPeriod',
  'conntrack',
  'enableProfiling',
  'healthzBindAddress',
  'hostnameOverride',
  'iptables',
  'ipvs',
  'metricsBindAddress',
  'mode',
  'portRange',
] as const;

/** A document without zeros that mean nothing. */
interface Meant {
  readonly mapping: Mapping;
  /** Paths of zeros that were taken for unset where the user may have meant them. */
  readonly ambiguous: readonly string[];
}

/**
 * Removes zeros without a meaning from a document. kubeadm and other programs write every field: an unset one as null or
 * empty, or as zero if its type has no such value (behaviour CF-53). In a document with every such field these zeros are
 * unset. An edited document that still marks other fields as unset must start a node too, and the zeros that are taken for
 * unset are named. In any other document the zeros were written on purpose, and they count.
 */
export function withoutPlaceholders(document: Mapping): Meant {
  const isWhole = ALWAYS_WRITTEN.every((field) => document.entries.has(field));
  if (!isWhole && !saysUnset(document)) return { mapping: document, ambiguous: [] };
  const zeros = leaves(KUBE_PROXY)
    .filter(({ field: { unsetAsZero } }) => unsetAsZero === 'where something is unset' || (isWhole && unsetAsZero))
    .filter(({ path }) => isZero(document.at(path)));
  const mapping = zeros.reduce((below, { path }) => below.merge(unset(path)), document);
  return { mapping, ambiguous: isWhole ? [] : zeros.map(({ path }) => path.join('.')) };
}

function unset([name = '', ...rest]: readonly string[]): Mapping {
  return new Mapping([[name, rest.length === 0 ? null : unset(rest)]]);
}

function saysUnset(mapping: Mapping): boolean {
  return [...mapping.entries.values()].some(
    (value) => value === null || value === '' || (value instanceof Mapping && saysUnset(value)),
  );
}

function isZero(value: unknown): boolean {
  return value === 0 || (typeof value === 'string' && parseDuration(value) === parseDuration('0'));
}
