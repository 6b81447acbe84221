import { clip, joinProblems, printValue } from '../errors.js';
import { KUBERNETES_MINOR } from '../version.js';
import { Mapping, parseDocuments } from '../yaml.js';
import { joinApiVersion, splitApiVersion } from './api-version.js';
import { readStruct, type Reading } from './read.js';
import { printReport, UNCOMPILED, type Report } from './report.js';
import type { Read, Section } from './section.js';
import type { EmbeddedType, KindTable, TypeMeta } from './types.js';

interface Environment {
  readonly report: (report: Report) => void;
  /** Minor release of Kubernetes that it is for. */
  readonly release: number;
  /** The tables of documents within. */
  readonly tableFor: (meta: TypeMeta) => KindTable | null;
  /** Reports a document within for which there is no table. */
  readonly reportUnknownKind: (meta: TypeMeta, path: string, report: (report: Report) => void) => void;
}

/** Reads a document of a known kind, and those within it. */
export function readByTable(
  { versions, table }: KindTable,
  { apiVersion }: TypeMeta,
  mapping: Mapping,
  path: string,
  environment: Environment,
): Section {
  const { report, release } = environment;
  const { version } = splitApiVersion(apiVersion);
  const { since, deprecated, removed, isServed = true } = versions[version] ?? {};
  const say = (severity: Report['severity'], problem: string): void => {
    report({
      severity,
      rule: 'version',
      path: `${path}.apiVersion`,
      value: printValue(apiVersion),
      problem,
      expected: '',
    });
  };
  if (since !== undefined && release < since) say('error', `exists since Kubernetes 1.${since} only`);
  else if (removed !== undefined && release >= removed) say('error', `is gone since Kubernetes 1.${removed}`);
  else if (deprecated !== undefined && release >= deprecated)
    say('warning', `is deprecated since Kubernetes 1.${deprecated}`);
  if (!isServed) say('warning', 'is a version of reference documents that no component reads');
  const reading: Reading = {
    version,
    release,
    report,
    readEmbedded: (type, within, at, parent) => readEmbedded(type, within, at, parent, environment),
  };
  return readStruct(table, mapping, path, reading, true);
}

/** By the table of its own kind, where that is known; otherwise as text, which can be compared. */
function readEmbedded(
  { kindOf, kinds }: EmbeddedType,
  mapping: Mapping,
  path: string,
  parent: Section,
  environment: Environment,
): Read | null {
  const { report, tableFor, reportUnknownKind } = environment;
  const known = kindOf?.(parent) ?? null;
  const own = metaOf(mapping);
  const meta = { apiVersion: own.apiVersion || (known?.apiVersion ?? ''), kind: own.kind || (known?.kind ?? '') };
  const say = (
    severity: Report['severity'],
    rule: string,
    name: string,
    value: string | null,
    problem: string,
    expected = '',
  ): null => {
    report({ severity, rule, path: `${path}${name}`, value, problem, expected });
    return null;
  };
  if (meta.kind === '' && meta.apiVersion === '')
    return say('warning', 'unknown-kind', '', null, 'has neither apiVersion nor kind: it was not checked');
  const wanted = kinds(parent);
  if (wanted.length > 0 && !wanted.includes(`${splitApiVersion(meta.apiVersion).group} ${meta.kind}`)) {
    const value = printValue(`${clip(meta.apiVersion)} ${clip(meta.kind)}`);
    const expected = wanted.map((each) => printValue(each)).join(' or ');
    return say('error', 'kind', '.kind', value, 'is not the kind that belongs here', expected);
  }
  const table = tableFor(meta);
  if (table !== null) return readByTable(table, meta, mapping, path, environment);
  if (known === null) reportUnknownKind(meta, `${path}.apiVersion`, report);
  return JSON.stringify(mapping, inOrder);
}

/** Mappings whose entries come in another order are the same. */
function inOrder(_key: string, value: unknown): unknown {
  if (!(value instanceof Mapping)) return value;
  return Object.fromEntries([...value.entries].sort(([one], [other]) => (one < other ? -1 : 1)));
}

/**
 * Reads a file of one document, strictly, for this program's own use.
 *
 * @param tables those of the kind, one for each of its groups.
 * @param make is called when the table finds nothing wrong, and may refuse more by the section; what it gives counts when it has not.
 * @param warn gets what is no reason to refuse the file.
 * @throws Error with every problem, each with the path of its field.
 */
export function readKind<T>(
  text: string,
  [first, ...others]: readonly [KindTable, ...KindTable[]],
  make: (section: Section) => T,
  warn: (problem: string) => void,
): T {
  const documents = parseDocuments(text);
  const [mapping] = documents;
  if (documents.length !== 1 || !(mapping instanceof Mapping))
    throw new Error(`must hold one document, a mapping, not ${documents.length}`);
  const { kind } = first;
  const errors: string[] = [];
  const report = (found: Report): void => {
    if (found.severity === 'error' || found.rule === UNCOMPILED) errors.push(printReport(found));
    else warn(printReport(found));
  };
  const meta = metaOf(mapping);
  const table = [first, ...others].find(
    ({ group, versions }) => meta.kind === kind && Object.keys(versions).some((version) => isOf(meta, group, version)),
  );
  if (table === undefined) throw new Error(unknown(meta, [first, ...others]));
  const section = readByTable(table, meta, mapping, kind, {
    report,
    release: KUBERNETES_MINOR,
    tableFor: () => null,
    reportUnknownKind: () => undefined,
  });
  const made = errors.length > 0 ? null : { value: make(section) };
  if (made === null || errors.length > 0) throw new Error(joinProblems(errors));
  return made.value;
}

function metaOf({ entries }: Mapping): TypeMeta {
  const [apiVersion = '', kind = ''] = ['apiVersion', 'kind'].map((name) => {
    const value = entries.get(name);
    return typeof value === 'string' ? value : '';
  });
  return { apiVersion, kind };
}

function isOf({ apiVersion }: TypeMeta, group: string, version: string): boolean {
  return apiVersion === joinApiVersion({ group, version });
}

function unknown({ apiVersion, kind }: TypeMeta, tables: readonly [KindTable, ...KindTable[]]): string {
  const wanted = tables[0].kind;
  if (kind !== wanted) return `${wanted}.kind: ${printValue(kind)}: is not known: should be ${printValue(wanted)}`;
  const known = tables.flatMap(({ group, versions }) =>
    Object.keys(versions).map((version) => printValue(joinApiVersion({ group, version }))),
  );
  return `${wanted}.apiVersion: ${printValue(apiVersion)}: is not known: should be ${known.join(' or ')}`;
}
