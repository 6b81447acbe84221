import { parseDuration } from './duration.js';
import { Mapping } from './yaml.js';

/** Fields that v1alpha1's own types cannot leave out when they are written: a zero stands for unset there. */
const PLACEHOLDERS: readonly (readonly [section: string | null, field: string])[] = [
  [null, 'configSyncPeriod'],
  ['iptables', 'syncPeriod'],
  ['ipvs', 'syncPeriod'],
  ['nftables', 'syncPeriod'],
  ['logging', 'flushFrequency'],
  ['clientConnection', 'qps'],
  ['clientConnection', 'burst'],
];

/**
 * A document without the zeros that nobody meant. kubeadm and others write every field there is, what is unset as null where the type can say so and
 * as zero where it cannot (behaviour CF-53). So where something is null the zeros of such fields are unset too; in a document without any null somebody
 * wrote them, and they count.
 */
export function withoutPlaceholders(document: Mapping): Mapping {
  if (!saysNull(document)) return document;
  const overlays = PLACEHOLDERS.filter(([section, field]) => isZero(valueAt(document, section, field)));
  return overlays.reduce((below, [section, field]) => {
    const unset = new Mapping([[field, null]]);
    return below.merge(section === null ? unset : new Mapping([[section, unset]]));
  }, document);
}

function saysNull(mapping: Mapping): boolean {
  return [...mapping.entries.values()].some((value) => value === null || (value instanceof Mapping && saysNull(value)));
}

function valueAt(document: Mapping, section: string | null, field: string): unknown {
  const within = section === null ? document : document.entries.get(section);
  return within instanceof Mapping ? within.entries.get(field) : undefined;
}

function isZero(value: unknown): boolean {
  return value === 0 || (typeof value === 'string' && parseDuration(value) === parseDuration('0'));
}
