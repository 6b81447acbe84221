import { printValue } from '../../../src/config/errors.js';
import { readStruct } from '../../../src/config/tables/read.js';
import { printReport, type Report } from '../../../src/config/tables/report.js';
import { fieldOf, type StructType, type Type } from '../../../src/config/tables/types.js';
import { Mapping } from '../../../src/config/yaml.js';
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

/**
 * Where flags of a file of kubeadm break rules, over the KubeletConfiguration that the file has, or over the defaults. What that breaks by itself is reported
 * there.
 */
export function settingsFindings(
  values: readonly unknown[],
  documents: readonly Document[],
  release: number,
): readonly Finding[] {
  const kubelet = values.find(
    (value) => value instanceof Mapping && value.entries.get('kind') === 'KubeletConfiguration',
  );
  const file = kubelet instanceof Mapping ? kubelet : new Mapping([]);
  return documents.flatMap((document) => {
    const registration = document.section?.section('nodeRegistration') ?? null;
    const given = (registration === null ? [] : argumentsIn(registration, ARGUMENTS))
      .map((argument) => ({ ...argument, name: argument.name.replaceAll('_', '-') }))
      .filter(({ name }) => name in SETTINGS);
    if (registration === null || given.length === 0) return [];
    const settings = withFlags(file, given);
    const before = broken(file, release);
    return [...broken(settings, release)]
      .filter(([text]) => !before.has(text))
      .map(([, report]) => findingOf(report, given, document, registration.path));
  });
}

/** At the flag of the field, or else at the last one: they are wrong together. */
function findingOf(
  { severity, rule, path, problem, expected }: Report,
  given: readonly Argument[],
  { file, document }: Document,
  at: string,
): Finding {
  const field = path.replace(/^\./, '');
  const own = given.findLast(({ name }) => {
    const setting = SETTINGS[name] ?? '';
    return field === setting || field.startsWith(`${setting}.`) || setting.startsWith(`${field}.`);
  });
  const { name, text, path: place } = own ?? given.at(-1) ?? { name: '', text: '', path: ARGUMENTS };
  const isSecret = fieldOf(KUBELET_FLAGS[name] ?? { is: 'any' }).secret === true;
  const subject = own === undefined ? `${field} ` : isSecret ? '' : `${printValue(text)} `;
  return {
    severity,
    rule,
    file,
    document,
    line: null,
    path: `${at}.${place}`,
    value: null,
    problem: `--${name}: ${subject}${problem}`,
    expected,
  };
}
