import { isMapping } from '../../base/mapping.js';
import { cutMessage } from '../../base/outside-text.js';
import { objectKey, refOf, type Row, type RowKind, type RowRef } from '../../state/rows.js';
import { problemAt, TranslateError, type FieldProblem } from '../translate/errors.js';
import type { LeftOut } from '../left-out.js';
import type { Interner } from '../translate/intern.js';
import { identify } from '../translate/metadata.js';
import { recognise, translate } from '../translate/object.js';
import type { Pacer } from './pacer.js';
import { parseDocuments } from './parse.js';
import { ProblemList, type Problem } from './problems.js';

/** `kind/namespace/name`. */
export type RefKey = string;

export function refKey({ kind, namespace, name }: RowRef): RefKey {
  return `${kind}/${namespace}/${name}`;
}

export type Objects = ReadonlyMap<RefKey, Row>;

/** The result of one reading of a file, or of a URL's body. */
export interface Content {
  readonly rows: Objects;
  /** Objects that are in it and well-formed, but not ours to handle. */
  readonly absent: ReadonlySet<RefKey>;
  /** Objects that are in it but cannot be used. */
  readonly invalid: ReadonlySet<RefKey>;
  /** Part of it does not even identify the objects that it means. */
  readonly unidentified: boolean;
  /** Documents that have a value. */
  readonly documents: number;
  readonly problems: readonly Problem[];
}

/**
 * Reads every object in a text. What is wrong is in `problems`.
 *
 * @throws Error only when it was stopped.
 */
export async function readContent(text: string, file: string, names: Interner, pacer: Pacer): Promise<Content> {
  const reader = new ContentReader(file, names, pacer);
  for await (const document of parseDocuments(text, pacer)) {
    if (document.type === 'error') reader.refuseDocument(document.number, document.message);
    else if (document.value !== null && document.value !== undefined)
      await reader.readDocument(document.number, document.value);
  }
  return reader.content();
}

/**
 * What to hold of a file after reading it again. An object that cannot be used keeps its last good version. When a part does not identify its objects,
 * everything outside the good part stays: a half-written file unloads nothing.
 */
export function withLastGood(previous: Objects, content: Content): Objects {
  if (!content.unidentified && content.invalid.size === 0) return content.rows;
  const objects = new Map(content.rows);
  for (const [key, row] of previous) {
    if (objects.has(key) || content.absent.has(key)) continue;
    if (content.unidentified || content.invalid.has(key)) objects.set(key, row);
  }
  return objects;
}

/**
 * Whether objects may be missing of which there is no earlier version.
 *
 * @param objects what is held after this reading, @param before whether there was no earlier reading, or one that was incomplete.
 */
export function isUnsynced(content: Content, objects: Objects, before: boolean): boolean {
  return (content.unidentified && before) || [...content.invalid].some((key) => !objects.has(key));
}

/** `Service default/web`, `Node worker-1`. */
export function printRef({ kind, namespace, name }: RowRef): string {
  return namespace === '' ? `${kind} ${name}` : `${kind} ${namespace}/${name}`;
}

/** The kind of an object, where the object or its list names it. */
interface ObjectType {
  readonly apiVersion: string;
  readonly kind: string;
}

class ContentReader {
  private readonly rows = new Map<RefKey, Row>();
  private readonly absent = new Set<RefKey>();
  private readonly invalid = new Set<RefKey>();
  private unidentified = false;
  private documents = 0;
  private readonly problems = new ProblemList();
  /** Kinds passed over, and how many objects of each. */
  private readonly others = new Map<string, number>();

  constructor(
    private readonly file: string,
    private readonly names: Interner,
    private readonly pacer: Pacer,
  ) {}

  content(): Content {
    const { rows, absent, invalid, unidentified, documents } = this;
    for (const [type, count] of this.others) {
      const message = `passed over ${count} ${count === 1 ? 'object' : 'objects'} of kind ${type}`;
      this.problems.add({ severity: 'note', file: this.file, document: null, object: null, message });
    }
    return { rows, absent, invalid, unidentified, documents, problems: this.problems.all() };
  }

  /** A document that does not identify its objects. */
  refuseDocument(document: number, message: string, object: string | null = null): void {
    this.unidentified = true;
    this.add('error', document, object, message);
  }

  async readDocument(document: number, value: unknown): Promise<void> {
    this.documents++;
    const type = typeOf(value);
    if (type === null) {
      this.refuseDocument(document, 'must be a mapping with the texts apiVersion and kind');
    } else if (type.kind.endsWith('List') && isMapping(value)) {
      await this.readList(document, type, value['items'] ?? []);
    } else {
      this.readObject(document, type, value, null);
    }
  }

  /** A `List` of anything, or a list of one kind as the API server gives it, whose items leave out what they are. */
  private async readList(document: number, list: ObjectType, items: unknown): Promise<void> {
    const itemKind = list.kind.slice(0, -'List'.length);
    const itemType = itemKind === '' ? null : { apiVersion: list.apiVersion, kind: itemKind };
    if (itemType !== null && recognise(itemType.apiVersion, itemType.kind).type === 'other') {
      this.passOver(list);
      return;
    }
    if (!Array.isArray(items)) {
      this.refuseDocument(document, 'items: must be a list');
      return;
    }
    for (const [index, item] of (items as readonly unknown[]).entries()) {
      const at = `items[${index}]`;
      const type = typeOf(item) ?? (isMapping(item) ? itemType : null);
      if (type === null) this.refuseDocument(document, 'must be a mapping with the texts apiVersion and kind', at);
      else if (type.kind === 'List') this.refuseDocument(document, 'a list inside a list is not read', at);
      else this.readObject(document, type, item, at);
      if (this.pacer.due()) await this.pacer.rest();
    }
  }

  private readObject(document: number, type: ObjectType, object: unknown, at: string | null): void {
    const recognition = recognise(type.apiVersion, type.kind);
    switch (recognition.type) {
      case 'other':
        this.passOver(type);
        return;
      case 'version':
        this.refuseObject(document, recognition.kind, object, at, [
          problemAt('apiVersion', type.apiVersion, `must be ${recognition.versions.join(' or ')}`),
        ]);
        return;
      case 'ours':
        this.translateObject(document, recognition.kind, object, at);
    }
  }

  private translateObject(document: number, kind: RowKind, object: unknown, at: string | null): void {
    try {
      const { ref, row, warnings, service = null } = translate(kind, object, this.names);
      const key = refKey(ref);
      const name = printRef(ref);
      if (this.rows.has(key) || this.absent.has(key)) {
        this.add('error', document, name, 'is given twice in this file: the first one counts');
        return;
      }
      if (row === null) this.absent.add(key);
      else this.rows.set(refKey(refOf(row)), row);
      if (warnings.length > 0) this.add('warning', document, name, warnings.join('; '), leftOut(ref, service));
    } catch (error) {
      if (!(error instanceof TranslateError)) throw error;
      this.refuseObject(document, kind, object, at, error.problems, error.service);
    }
  }

  private refuseObject(
    document: number,
    kind: RowKind,
    object: unknown,
    at: string | null,
    problems: readonly FieldProblem[],
    service: string | null = null,
  ): void {
    const ref = identify(object, kind);
    if (ref === null) {
      this.refuseDocument(document, problems.join('; '), at === null ? kind : `${at}: ${kind}`);
      return;
    }
    this.invalid.add(refKey(ref));
    this.add('error', document, printRef(ref), problems.join('; '), leftOut(ref, service));
  }

  private passOver({ apiVersion, kind }: ObjectType): void {
    const type = `${apiVersion} ${kind}`.slice(0, 200);
    this.others.set(type, (this.others.get(type) ?? 0) + 1);
  }

  private add(
    severity: Problem['severity'],
    document: number,
    object: string | null,
    message: string,
    leftOut?: Problem['leftOut'],
  ): void {
    const shown = object === null ? null : cutMessage(object);
    const problem = { severity, file: this.file, document, object: shown, message: cutMessage(message) };
    this.problems.add(leftOut === undefined ? problem : { ...problem, leftOut });
  }
}

/** @param service name of the Service that the object is of; null: none, or it is not known. */
function leftOut(ref: RowRef, service: string | null): Pick<LeftOut, 'ref' | 'service'> {
  const name = ref.kind === 'Service' ? ref.name : service;
  return { ref, service: name === null ? null : objectKey(ref.namespace, name) };
}

function typeOf(value: unknown): ObjectType | null {
  if (!isMapping(value)) return null;
  const { apiVersion, kind } = value;
  return typeof apiVersion === 'string' && typeof kind === 'string' && kind !== '' ? { apiVersion, kind } : null;
}
