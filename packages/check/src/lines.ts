import { EVENT_ID, getScalarValue, parseEvents, YAMLException, type Event } from 'js-yaml';

/** A value as it is written. */
interface Node {
  /** Offset into the text; -1: nothing is written. */
  readonly at: number;
  /** The text of a scalar. */
  readonly text: string | null;
  /** The fields of a mapping; keys that are no text are left out. */
  readonly fields: readonly (readonly [key: string, keyAt: number, value: Node])[];
  /** The items of a sequence. */
  readonly items: readonly Node[];
}

/** Where fields are in a text of YAML. */
export class Lines {
  readonly #documents: readonly Node[];
  readonly #starts: readonly number[];

  constructor(text: string) {
    this.#documents = readNodes(text);
    this.#starts = [0, ...[...text.matchAll(/\n/g)].map(({ index }) => index + 1)];
  }

  /**
   * The line of a field, counted from 1; of one that is not there, or that an alias stands for, the line of what it would be in. Of a field that is given
   * twice the last, which counts.
   *
   * @param document counted from 1.
   * @param path `Kind.field.field[index]`, `Kind[namespace/name].field` or `items[index].field`.
   * @returns null where there is no such document.
   */
  lineOf(document: number, path: string): number | null {
    const root = this.#documents[document - 1];
    if (root === undefined) return null;
    const { node, rest } = this.#start(root, path);
    return this.#lineAt(findWithin(node, rest) ?? node.at);
  }

  /** A path begins with what its document is, unless it begins with a field. */
  #start(root: Node, path: string): { readonly node: Node; readonly rest: string } {
    const [, kind = '', name, rest = ''] = /^([^.[]*)(?:\[([^\]]*)\])?(.*)$/s.exec(path) ?? [];
    if (root.fields.some(([key]) => key === kind)) return { node: root, rest: `.${path}` };
    const named = fieldOf(root, 'items')?.items.find((item) => name !== undefined && nameOf(item) === name);
    return { node: named ?? root, rest };
  }

  #lineAt(offset: number): number {
    let [low, high] = [0, this.#starts.length];
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if ((this.#starts[middle] ?? 0) <= offset) low = middle;
      else high = middle;
    }
    return low + 1;
  }
}

/** Offset of what a path leads to, as far as it leads; null: not a step. */
function findWithin(node: Node, path: string): number | null {
  const [index, item] = itemAt(node, path);
  if (item !== undefined) return findWithin(item, path.slice(index.length)) ?? (item.at < 0 ? null : item.at);
  const field = fieldAt(node, path);
  if (field === undefined) return null;
  const [key, keyAt, value] = field;
  return findWithin(value, path.slice(1 + key.length)) ?? keyAt;
}

function itemAt({ items }: Node, path: string): readonly [text: string, item: Node | undefined] {
  const [text = '', index] = /^\[(\d+)\]/.exec(path) ?? [];
  return [text, index === undefined ? undefined : items[Number(index)]];
}

/** Keys may hold dots, so the longest that fits counts. */
function fieldAt({ fields }: Node, path: string): Node['fields'][number] | undefined {
  const rest = path.startsWith('.') ? path.slice(1) : '';
  const fits = (key: string): boolean => rest.startsWith(key) && /^(?:$|[.[])/.test(rest.slice(key.length));
  const fitting = fields.filter(([key]) => key !== '' && fits(key));
  const longest = fitting.reduce((length, [key]) => Math.max(length, key.length), 0);
  return fitting.findLast(([key]) => key.length === longest);
}

function fieldOf({ fields }: Node, name: string): Node | undefined {
  return fields.findLast(([key]) => key === name)?.[2];
}

/** `namespace/name` of an object, as paths have it. */
function nameOf(object: Node): string {
  const metadata = fieldOf(object, 'metadata');
  const part = (name: string): string => (metadata === undefined ? '' : (fieldOf(metadata, name)?.text ?? ''));
  return [part('namespace') || 'default', part('name')].join('/');
}

/** The documents of a text; none of what is no YAML. */
function readNodes(text: string): readonly Node[] {
  try {
    const events = parseEvents(text, {}).values();
    const documents: Node[] = [];
    while (events.next().value !== undefined) documents.push(readAll(events, text)[0] ?? node(0));
    return documents;
  } catch (error) {
    if (error instanceof YAMLException) return [];
    throw error;
  }
}

/** Everything up to the event that ends what is open. As deep as the parser lets documents be. */
function readAll(events: Iterator<Event>, source: string): readonly Node[] {
  const nodes: Node[] = [];
  for (;;) {
    const { value: event } = events.next() as IteratorResult<Event, undefined>;
    if (event === undefined || event.type === EVENT_ID.POP) return nodes;
    if (event.type === EVENT_ID.SEQUENCE) nodes.push(node(event.start, null, NONE, readAll(events, source)));
    else if (event.type === EVENT_ID.MAPPING) nodes.push(node(event.start, null, pairs(readAll(events, source))));
    else if (event.type === EVENT_ID.ALIAS) nodes.push(node(event.anchorStart));
    else if (event.type === EVENT_ID.SCALAR) nodes.push(node(event.valueStart, getScalarValue(source, event)));
  }
}

const NONE: readonly never[] = [];

function node(
  at: number,
  text: string | null = null,
  fields: Node['fields'] = NONE,
  items: Node['items'] = NONE,
): Node {
  return { at, text, fields, items };
}

function pairs(nodes: readonly Node[]): Node['fields'] {
  const fields: (readonly [string, number, Node])[] = [];
  for (let index = 0; index + 1 < nodes.length; index += 2) {
    const [key, value] = [nodes[index], nodes[index + 1]];
    if (typeof key?.text === 'string' && value !== undefined) fields.push([key.text, key.at, value]);
  }
  return fields;
}
