import { printValue } from '../../../src/config/errors.js';
import { readStruct } from '../../../src/config/tables/read.js';
import { printReport, type Report } from '../../../src/config/tables/report.js';
import { fieldOf, type StructType, type Type } from '../../../src/config/tables/types.js';
import { Mapping } from '../../../src/config/yaml.js';
import { FLAGS, KUBELET, type CommandLine } from './command-lines.js';
import type { Document } from './documents.js';
import type { Finding } from './findings.js';
import { argumentsIn, gatesIn, valueOf, type Argument } from './tables/flags.js';
import { KUBELET_FLAGS, SETTINGS } from './tables/kubelet-flags.js';
import { KUBELET_SYNTAXES } from './tables/kubelet-syntax.js';
import { KUBELET_CONFIGURATION } from './tables/kubelet.js';

/** Flags of the node agent are settings of its file under other names: the rules on several fields are rules on flags. */

const ARGUMENTS = 'kubeletExtraArgs';

/** The fields without their rules. */
function withoutRules(type: StructType): StructType {
  const bare = (of: Type): Type => (of.is === 'struct' ? withoutRules(of) : of);
  const fields = Object.entries(type.fields).map(([name, of]) => {
    const field = fieldOf(of);
    return [name, { ...field, type: bare(field.type) }] as const;
  });
  return { ...type, fields: Object.fromEntries(fields), rules: [] };
}

const FIELDS = withoutRules(KUBELET_CONFIGURATION);

/** Findings of rules across settings; single values are judged elsewhere. */
function broken(settings: Mapping, release: number): ReadonlyMap<string, Report> {
  const read = (type: StructType): readonly Report[] => {
    const found: Report[] = [];
    const report = (each: Report): void => {
      found.push(each);
    };
    readStruct(type, settings, '', { version: 'v1beta1', release, report, readEmbedded: () => null }, true);
    return found;
  };
  const single = new Set(read(FIELDS).map(printReport));
  return new Map(
    read(KUBELET_CONFIGURATION)
      .map((report) => [printReport(report), report] as const)
      // Gates by themselves are judged where the flag is.
      .filter(([text, { path }]) => !single.has(text) && !path.startsWith('.featureGates')),
  );
}

/** A flag's value as its field has it; undefined: it cannot be read, as is reported where it is. */
function settingOf({ name, text }: Argument): unknown {
  if (name === 'feature-gates') return new Mapping(gatesIn(text));
  const syntax = KUBELET_SYNTAXES[name];
  if (syntax !== undefined) return syntax.read(text) ?? undefined;
  return valueOf(fieldOf(KUBELET_FLAGS[name] ?? { is: 'any' }).type, text);
}

/** A flag that is given again adds to a list or a map. */
function joined(before: unknown, value: unknown): unknown {
  if (Array.isArray(before) && Array.isArray(value)) return [...(before as unknown[]), ...(value as unknown[])];
  return before instanceof Mapping && value instanceof Mapping ? before.merge(value) : value;
}

/** Flags over a file. Each replaces its field; gates add to those of the file. */
function withFlags(file: Mapping, given: readonly Argument[]): Mapping {
  const values = new Map<string, unknown>();
  for (const argument of given) {
    const [value, before] = [settingOf(argument), values.get(argument.name)];
    if (value === undefined) continue;
    values.set(argument.name, joined(before, value));
  }
  return [...values].reduce((below, [name, value]) => put(below, (SETTINGS[name] ?? '').split('.'), value), file);
}

function put(within: Mapping, [name = '', ...rest]: readonly string[], value: unknown): Mapping {
  const held = within.entries.get(name);
  const below = held instanceof Mapping ? held : new Mapping([]);
  const added = name === 'featureGates' && value instanceof Mapping ? below.merge(value) : value;
  return new Mapping([...within.entries, [name, rest.length === 0 ? added : put(below, rest, value)]]);
}

/** Flags of one kubelet, and where each is. */
interface Given {
  readonly flags: readonly Argument[];
  readonly placeOf: (index: number) => Pick<Finding, 'file' | 'document' | 'line' | 'path'>;
}

/** The first KubeletConfiguration among parsed documents. */
export function kubeletFile(values: readonly unknown[]): Mapping | null {
  const found = values.find(
    (value) => value instanceof Mapping && value.entries.get('kind') === 'KubeletConfiguration',
  );
  return found instanceof Mapping ? found : null;
}

/** Where flags in documents of kubeadm break rules, over a file of the kubelet. */
export function settingsFindings(
  file: Mapping | null,
  documents: readonly Document[],
  release: number,
): readonly Finding[] {
  return documents.flatMap((document) => {
    const registration = document.section?.section('nodeRegistration') ?? null;
    if (registration === null) return [];
    const flags = argumentsIn(registration, ARGUMENTS);
    const { file: name, document: number } = document;
    const placeOf = (index: number): ReturnType<Given['placeOf']> => ({
      file: name,
      document: number,
      line: null,
      path: `${registration.path}.${flags[index]?.path ?? ARGUMENTS}`,
    });
    return flagFindings(file, { flags, placeOf }, release);
  });
}

/** Where flags of a command line break rules, over a file of the kubelet. */
export function lineFindings(
  file: Mapping | null,
  { program, section, source, places }: CommandLine,
  release: number,
): readonly Finding[] {
  if (program !== KUBELET) return [];
  const placeOf = (index: number): ReturnType<Given['placeOf']> => ({
    ...source,
    line: places[index]?.line ?? null,
    path: places[index]?.path ?? '',
  });
  return flagFindings(file, { flags: argumentsIn(section, FLAGS), placeOf }, release);
}

/** Findings of flags over a file. Rules that the file breaks by itself are reported with the file. */
function flagFindings(over: Mapping | null, { flags, placeOf }: Given, release: number): readonly Finding[] {
  const file = over ?? new Mapping([]);
  const given = flags
    .map((argument, index) => ({ ...argument, name: argument.name.replaceAll('_', '-'), index }))
    .filter(({ name }) => name in SETTINGS);
  if (given.length === 0) return [];
  const before = broken(file, release);
  return [...broken(withFlags(file, given), release)]
    .filter(([text]) => !before.has(text))
    .map(([, report]) => findingOf(report, given, placeOf));
}

/** At the flag of the field, or else at the last one: they are wrong together. */
function findingOf(
  { severity, rule, path, problem, expected }: Report,
  given: readonly (Argument & { readonly index: number })[],
  placeOf: Given['placeOf'],
): Finding {
  const field = path.replace(/^\./, '');
  const own = given.findLast(({ name }) => {
    const setting = SETTINGS[name] ?? '';
    return isWithin(field, setting) || isWithin(setting, field);
  });
  const { name, text, index } = own ?? given.at(-1) ?? { name: '', text: '', index: 0 };
  const isSecret = fieldOf(KUBELET_FLAGS[name] ?? { is: 'any' }).secret === true;
  const subject = own === undefined ? `${field} ` : isSecret ? '' : `${printValue(text)} `;
  return { severity, rule, ...placeOf(index), value: null, problem: `--${name}: ${subject}${problem}`, expected };
}

function isWithin(field: string, setting: string): boolean {
  return field === setting || field.startsWith(`${setting}.`) || field.startsWith(`${setting}[`);
}
