import type { KubeProxyConfiguration, Logging, LogStreamOptions, NftablesSection } from './document.js';
import { parseDuration, type GoDuration } from './duration.js';
import { flagSection } from './effective.js';
import type { FlagSetter } from './flag.js';

type Document = KubeProxyConfiguration;
type Change<T> = (document: Document, value: T) => Document;

// Each makes a setter of a change that takes one type of value; flags of that type give nothing else.
export const text =
  (change: Change<string>): FlagSetter =>
  (document, value) =>
    typeof value === 'string' ? change(document, value) : document;
/** Text that changes nothing when it is empty. */
export const filledText = (change: Change<string>): FlagSetter =>
  text((document, value) => (value === '' ? document : change(document, value)));
export const number =
  (change: Change<number>): FlagSetter =>
  (document, value) =>
    typeof value === 'number' ? change(document, value) : document;
export const truth =
  (change: Change<boolean>): FlagSetter =>
  (document, value) =>
    typeof value === 'boolean' ? change(document, value) : document;
export const words =
  (change: Change<readonly string[]>): FlagSetter =>
  (document, value) =>
    typeof value === 'object' ? change(document, value) : document;
export const duration =
  (change: Change<GoDuration>): FlagSetter =>
  (document, value) => {
    const parsed = typeof value === 'string' ? parseDuration(value) : null;
    return parsed === null ? document : change(document, parsed);
  };

type SectionName = 'clientConnection' | 'conntrack' | 'iptables' | 'ipvs' | 'winkernel' | 'detectLocal' | 'logging';

/** A change of one field of one section. */
export function into<S extends SectionName, F extends keyof Document[S]>(section: S, field: F): Change<Document[S][F]> {
  return (document, value) => ({ ...document, [section]: { ...document[section], [field]: value } });
}

export function stream<F extends keyof LogStreamOptions>(
  format: keyof Logging['options'],
  field: F,
): Change<LogStreamOptions[F]> {
  return (document, value) => {
    const { logging } = document;
    const options = { ...logging.options, [format]: { ...logging.options[format], [field]: value } };
    return { ...document, logging: { ...logging, options } };
  };
}

/** The section that iptables mode's flags mean: nftables mode has none of its own (behaviour FL-60). */
export function shared(change: Partial<NftablesSection>, document: Document): Document {
  const section = flagSection(document);
  return { ...document, [section]: { ...document[section], ...change } };
}

function pairs(entries: readonly string[]): (readonly [name: string, value: string])[] {
  return entries.map((entry) => {
    const [name = '', value = ''] = entry.split('=');
    return [name, value];
  });
}

export const withGates: Change<readonly string[]> = (document, entries) => ({
  ...document,
  featureGates: Object.fromEntries(pairs(entries).map(([name, value]) => [name, value === 'true'])),
});

/** The flag's entries come before the file's, and of several that match the first counts. */
export const withVmodule: Change<readonly string[]> = (document, entries) => {
  const given = pairs(entries).map(([filePattern, verbosity]) => ({ filePattern, verbosity: Number(verbosity) }));
  return { ...document, logging: { ...document.logging, vmodule: [...given, ...document.logging.vmodule] } };
};
