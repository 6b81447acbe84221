import { parseKernelRelease, type KernelRelease } from '../../../src/base/kernel-release.js';
import { isMapping } from '../../../src/base/mapping.js';
import { clip, printValue } from '../../../src/config/errors.js';
import { Mapping } from '../../../src/config/yaml.js';
import { TranslateError, type FieldProblem } from '../../../src/sources/translate/errors.js';
import type { Interner } from '../../../src/sources/translate/intern.js';
import { identify } from '../../../src/sources/translate/metadata.js';
import { recognise, translate } from '../../../src/sources/translate/object.js';
import { objectKey, refOf, type Row, type RowRef } from '../../../src/state/rows.js';
import type { Report } from '../../../src/config/tables/report.js';
import type { TypeMeta } from '../../../src/config/tables/types.js';

/** Whether a document is an API object that the proxy reads, or a list of objects. */
export function isObject({ apiVersion, kind }: TypeMeta): boolean {
  return recognise(apiVersion, kind).type !== 'other';
}

/** What is read of an API object. */
interface ReadObject {
  /** Null where it cannot be used, or is not for the proxy. */
  readonly row: Row | null;
  /** Set for a Node. */
  readonly kernel: KernelRelease | null;
}

const NOTHING: ReadObject = { row: null, kernel: null };

/** Reads an API object as a user wrote it. */
export function readObject(
  meta: TypeMeta,
  mapping: Mapping,
  names: Interner,
  report: (report: Report) => void,
): ReadObject {
  return translateObject(meta, plain(mapping, meta.kind, report, new Map()), names, report);
}

/** Reads an API object by the translation that manifests go through, which names every field that is wrong. */
export function translateObject(
  { apiVersion, kind }: TypeMeta,
  object: unknown,
  names: Interner,
  report: (report: Report) => void,
): ReadObject {
  const recognition = recognise(apiVersion, kind);
  const say = (severity: Report['severity'], problem: FieldProblem, ref: RowRef | null): void => {
    report(reportOf(problem, severity, pathOf(kind, ref)));
  };
  if (recognition.type === 'other') return NOTHING;
  if (recognition.type === 'version') {
    const expected = recognition.versions.map((version) => printValue(version)).join(' or ');
    const value = printValue(apiVersion);
    const problem = 'is a version that is not known';
    report({ severity: 'error', rule: 'unknown-kind', path: `${kind}.apiVersion`, value, problem, expected });
    return NOTHING;
  }
  try {
    const { ref, row, warnings } = translate(recognition.kind, object, names);
    for (const warning of warnings) say('warning', warning, ref);
    return { row, kernel: kind === 'Node' ? kernelOf(object) : null };
  } catch (error) {
    if (!(error instanceof TranslateError)) throw error;
    const ref = identify(object, recognition.kind);
    for (const problem of error.problems) say('error', problem, ref);
    return NOTHING;
  }
}

/** What distinguishes an object from all others. */
export function keyOf(row: Row): string {
  const { kind, namespace, name } = refOf(row);
  return `${kind}/${objectKey(namespace, name)}`;
}

/** `Service[default/web]`. */
export function pathOf(kind: string, ref: RowRef | null): string {
  if (ref === null) return kind;
  return `${kind}[${clip(ref.namespace === '' ? ref.name : `${ref.namespace}/${ref.name}`)}]`;
}

function reportOf({ path, value, detail }: FieldProblem, severity: Report['severity'], object: string): Report {
  return {
    severity,
    rule: 'object',
    path: path === '' ? object : `${object}.${path}`,
    value: value === 'null' ? null : value,
    problem: detail,
    expected: '',
  };
}

/** What translators read: plain objects. Fields that are given twice are errors here. */
function plain(value: unknown, path: string, report: (report: Report) => void, known: Map<unknown, unknown>): unknown {
  if (typeof value !== 'object' || value === null) return value;
  const seen = known.get(value);
  if (seen !== undefined) return seen;
  if (Array.isArray(value)) {
    const items: unknown[] = [];
    known.set(value, items);
    for (const [index, item] of (value as unknown[]).entries())
      items.push(plain(item, `${path}[${index}]`, report, known));
    return items;
  }
  if (!(value instanceof Mapping)) return value;
  for (const name of value.duplicates) {
    const at = `${path}.${clip(name)}`;
    report({
      severity: 'error',
      rule: 'duplicate-field',
      path: at,
      value: null,
      problem: 'is given twice',
      expected: '',
    });
  }
  const object: Record<string, unknown> = Object.create(null) as Record<string, unknown>;
  known.set(value, object);
  for (const [name, item] of value.entries) object[name] = plain(item, `${path}.${clip(name)}`, report, known);
  return object;
}

/** What a Node object reports of its kernel; null: nothing, or it runs another system. */
function kernelOf(node: unknown): KernelRelease | null {
  const status = isMapping(node) ? node['status'] : null;
  const info = isMapping(status) ? status['nodeInfo'] : null;
  if (!isMapping(info) || (info['operatingSystem'] ?? 'linux') !== 'linux') return null;
  const { kernelVersion } = info;
  return typeof kernelVersion === 'string' ? parseKernelRelease(kernelVersion) : null;
}
