import type { KernelRelease } from '../../../src/base/kernel-release.js';
import { mostSimilar } from '../../../src/base/similar.js';
import { YamlError } from '../../../src/base/yaml.js';
import { API_GROUP, API_VERSION, KIND, type KubeProxyConfiguration } from '../../../src/config/document.js';
import { clip, printValue } from '../../../src/config/errors.js';
import { fillClusterCIDR, readCluster, type ClusterConfiguration } from '../../../src/config/kubeadm.js';
import { Mapping, readMappings } from '../../../src/config/yaml.js';
import { joinApiVersion, splitApiVersion } from '../../../src/config/tables/api-version.js';
import { readByTable } from '../../../src/config/tables/document.js';
import type { Report } from '../../../src/config/tables/report.js';
import type { Section } from '../../../src/config/tables/section.js';
import type { TypeMeta } from '../../../src/config/tables/types.js';
import { isEnvironmentOrUnit, linesOfObject, linesOfText, type CommandLine } from './command-lines.js';
import { FindingList, firstOf, ofFile, type Finding } from './findings.js';
import { impliedMeta, KINDS, tableFor, tablesOf } from './kinds.js';
import { readProxy, type Target } from './proxy.js';
import { isObject, readObject, translateObject } from './objects.js';
import { Interner } from '../../../src/sources/translate/intern.js';
import type { Row } from '../../../src/state/rows.js';

/** A document of a known kind, as far as it could be read. */
export interface Document {
  readonly file: string;
  /** Counted from 1; null for an object of a list that an API server gave. */
  readonly document: number | null;
  readonly kind: string;
  /** Null for kinds that are not read by a table. */
  readonly section: Section | null;
  /** Set for the kind that the proxy reads itself. */
  readonly proxy: KubeProxyConfiguration | null;
  /** Set for API objects; a list has a document for each. */
  readonly row: Row | null;
  /** Set for Nodes. */
  readonly kernel: KernelRelease | null;
}

/** The limit of one file, however many documents it has. */
const MAX_FINDINGS = 500;

/** The content of one file. */
interface FileContent {
  /** As parsed, one for each document. */
  readonly values: readonly unknown[];
  readonly documents: readonly Document[];
  readonly commandLines: readonly CommandLine[];
  readonly findings: readonly Finding[];
  /** Why nothing could be read; null: it was. */
  readonly unreadable: string | null;
}

/** The release that the first ClusterConfiguration of a text names; null: none does. */
export function releaseIn(text: string): number | null {
  const parsed = text.includes('kubernetesVersion') ? parse(text) : [];
  if (typeof parsed === 'string') return null;
  for (const value of parsed) {
    if (!(value instanceof Mapping) || value.entries.get('kind') !== 'ClusterConfiguration') continue;
    const version = value.entries.get('kubernetesVersion');
    const [, minor] = (typeof version === 'string' ? VERSION.exec(version) : null) ?? [];
    if (minor !== undefined) return Number(minor);
  }
  return null;
}

/** A version, or a label such as stable-1.37. */
const VERSION = /^(?:v|(?:stable|latest)-)?1\.(\d{1,3})(?:\.|$)/;

/** Reads every document of a text. Nothing is thrown for its content. */
export function readFile(text: string, file: string, target: Target): FileContent {
  if (isEnvironmentOrUnit(text)) return readLines(text, file, target);
  const parsed = parse(text);
  if (typeof parsed === 'string') return { ...NOTHING, unreadable: parsed };
  const findings: Finding[] = [];
  const commandLines: CommandLine[] = [];
  const names = new Interner();
  const cluster = parsed.map(readCluster).find((each) => each !== null) ?? null;
  const documents = parsed.flatMap((value, index): readonly Document[] => {
    if (value === null) return [];
    const lines = linesOfObject(value, file, index + 1, target.release);
    commandLines.push(...lines);
    if (lines.length > 0) return [];
    const list = new FindingList(file, index + 1);
    const report = (found: Report): void => {
      list.add(found);
    };
    const read = readDocument(value, { ...target, report, names, cluster });
    findings.push(...list.all());
    return read.map((content) => ({ file, document: index + 1, ...content }));
  });
  findings.push(...commandLines.flatMap((line) => line.findings));
  return { values: parsed, documents, commandLines, findings: firstOf(findings, MAX_FINDINGS, file), unreadable: null };
}

const NOTHING: FileContent = { values: [], documents: [], commandLines: [], findings: [], unreadable: null };

/** Reads an environment file or a unit of systemd. */
function readLines(text: string, file: string, { release }: Target): FileContent {
  const commandLines = linesOfText(text, file, release);
  const findings = commandLines.flatMap((line) => line.findings);
  const nothing = ofFile('warning', 'unknown-kind', file, 'has no command line that is known here: it was not checked');
  const all = commandLines.length === 0 ? [nothing] : firstOf(findings, MAX_FINDINGS, file);
  return { ...NOTHING, commandLines, findings: all };
}

/** Reads objects of one kind as an API server lists them: without their kind, which the list gives. */
export function readListed(
  meta: TypeMeta,
  items: readonly unknown[],
  list: FindingList,
  names: Interner,
): readonly Document[] {
  const report = (found: Report): void => {
    list.add(found);
  };
  return items.map((item) => ({
    file: list.file,
    document: null,
    kind: meta.kind,
    section: null,
    proxy: null,
    ...translateObject(meta, item, names, report),
  }));
}

function parse(text: string): readonly unknown[] | string {
  try {
    return readMappings(text);
  } catch (error) {
    if (error instanceof YamlError) return error.withoutText;
    throw error;
  }
}

type DocumentContent = Omit<Document, 'file' | 'document'>;

interface Environment extends Target {
  readonly report: (report: Report) => void;
  readonly names: Interner;
  /** What kubeadm reads in the same file, because it fills in the fields that the proxy's configuration leaves out. */
  readonly cluster: ClusterConfiguration | null;
}

/** @param at where it is in its document; empty: it is the document. */
function readDocument(value: unknown, environment: Environment, at = ''): readonly DocumentContent[] {
  const { report, release, platform, names, cluster } = environment;
  const meta = readMeta(value, at, report);
  if (!(value instanceof Mapping) || meta === null) return [];
  const { apiVersion, kind } = meta;
  const nothing = { kind, section: null, proxy: null, row: null, kernel: null };
  if (kind === KIND && apiVersion === API_VERSION) {
    const filled = cluster === null ? value : fillClusterCIDR(value, cluster);
    return [{ ...nothing, proxy: readProxy(filled, { release, platform }, report) }];
  }
  if (isObject(meta)) return [{ ...nothing, ...readObject(meta, value, names, report) }];
  const table = tableFor(meta);
  if (table !== null)
    return [
      { ...nothing, section: readByTable(table, meta, value, kind, { report, release, tableFor, reportUnknownKind }) },
    ];
  const items = kind.endsWith('List') ? value.entries.get('items') : null;
  if (Array.isArray(items)) return readItems(meta, items, environment);
  reportUnknownKind(meta, 'apiVersion', report);
  return [];
}

/** Reads the items of a `List` of anything, or of one kind, whose items may leave out their kind. */
function readItems(
  { apiVersion, kind }: TypeMeta,
  items: readonly unknown[],
  environment: Environment,
): readonly DocumentContent[] {
  const itemKind = kind.slice(0, -'List'.length);
  return items.flatMap((item, index) => {
    const isTyped = itemKind === '' || !(item instanceof Mapping) || item.has(['kind']);
    const typed = isTyped ? item : item.merge(new Mapping(Object.entries({ apiVersion, kind: itemKind })));
    return readDocument(typed, environment, `items[${index}]`);
  });
}

function readMeta(value: unknown, at: string, report: (report: Report) => void): TypeMeta | null {
  const refuse = (rule: string, name: string, problem: string): null => {
    const path = [at, name].filter((part) => part !== '').join('.');
    report({ severity: 'error', rule, path, value: null, problem, expected: '' });
    return null;
  };
  if (!(value instanceof Mapping)) return refuse('type', '', 'is no mapping');
  const implied = impliedMeta(value);
  const apiVersion = value.entries.get('apiVersion') ?? implied?.apiVersion ?? '';
  const kind = value.entries.get('kind') ?? implied?.kind ?? '';
  if (typeof apiVersion !== 'string' || apiVersion === '') return refuse('required', 'apiVersion', 'is missing');
  if (typeof kind !== 'string' || kind === '') return refuse('required', 'kind', 'is missing');
  return { apiVersion, kind };
}

/** A kind or version of a group that is known is an error, as it is ours to know; one that is not known at all may be another program's. */
function reportUnknownKind({ apiVersion, kind }: TypeMeta, path: string, report: (report: Report) => void): void {
  const known = [
    ...tablesOf(kind).flatMap(({ group, versions }) =>
      Object.keys(versions).map((version) => joinApiVersion({ group, version })),
    ),
    ...(kind === KIND ? [API_VERSION] : []),
  ];
  const { group } = splitApiVersion(apiVersion);
  const kinds = kindsOf(group);
  const isOurs = kinds.length > 0;
  const isVersion = kinds.includes(kind);
  const similar = isOurs && !isVersion ? mostSimilar(kind, kinds) : null;
  report({
    severity: isOurs ? 'error' : 'warning',
    rule: 'unknown-kind',
    path: isOurs && !isVersion ? path.replace(/apiVersion$/, 'kind') : path,
    value: printValue(`${clip(apiVersion)} ${clip(kind)}`),
    problem: isVersion
      ? 'is a version that is not known'
      : isOurs
        ? 'is no kind of its group'
        : 'is a kind that is not known here: it was not checked',
    expected: (similar === null ? known : [similar]).map((each) => printValue(each)).join(' or '),
  });
}

/** Kinds of a group that has no others. The core group has many more. */
function kindsOf(group: string): readonly string[] {
  if (group === '') return [];
  return [
    ...KINDS.filter((table) => table.group === group).map(({ kind }) => kind),
    ...(group === API_GROUP ? [KIND] : []),
  ];
}
