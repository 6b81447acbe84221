import { parseDuration } from './duration.js';
import { Mapping } from './yaml.js';

type FieldPath = readonly [section: string | null, field: string];

/** Fields that v1alpha1's own types cannot leave out when they are written: a zero stands for unset there. */
const PERIODS: readonly FieldPath[] = [
  [null, 'configSyncPeriod'],
  ['iptables', 'syncPeriod'],
  ['ipvs', 'syncPeriod'],
  ['nftables', 'syncPeriod'],
  ['logging', 'flushFrequency'],
];
const LIMITS: readonly FieldPath[] = [
  ['clientConnection', 'qps'],
  ['clientConnection', 'burst'],
];

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
export interface Meant {
  readonly mapping: Mapping;
  /** Paths of zeros that were taken for unset where somebody may have meant them. */
  readonly doubtful: readonly string[];
}

/**
 * Takes the zeros that nobody meant out of a document. kubeadm and others write every field there is, what is unset as null or empty where the type can
 * say so and as zero where it cannot (behaviour CF-53): in a document with every such field these zeros are unset. One that has been edited since, and
 * still says elsewhere that something is unset, must start a node as well, but what is taken for unset there is to be named. In any other document
 * somebody wrote the zeros, and they count.
 */
export function withoutPlaceholders(document: Mapping): Meant {
  const isWhole = ALWAYS_WRITTEN.every((field) => document.entries.has(field));
  if (!isWhole && !saysUnset(document)) return { mapping: document, doubtful: [] };
  const zeros = [...PERIODS, ...(isWhole ? LIMITS : [])].filter(([section, field]) =>
    isZero(document.at(section === null ? [field] : [section, field])),
  );
  const mapping = zeros.reduce((below, [section, field]) => {
    const unset = new Mapping([[field, null]]);
    return below.merge(section === null ? unset : new Mapping([[section, unset]]));
  }, document);
  const doubtful = zeros.map(([section, field]) => (section === null ? field : `${section}.${field}`));
  return { mapping, doubtful: isWhole ? [] : doubtful };
}

function saysUnset(mapping: Mapping): boolean {
  return [...mapping.entries.values()].some(
    (value) => value === null || value === '' || (value instanceof Mapping && saysUnset(value)),
  );
}

function isZero(value: unknown): boolean {
  return value === 0 || (typeof value === 'string' && parseDuration(value) === parseDuration('0'));
}
