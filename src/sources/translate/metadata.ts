import { isMapping } from '../../base/mapping.js';
import { parseTimestamp } from '../../base/timestamp.js';
import type { RowKind, RowRef } from '../../state/rows.js';
import type { FieldProblem } from './errors.js';
import type { Fields } from './fields.js';

/** What a translator makes of one object. */
export interface Translation<R> {
  readonly ref: RowRef;
  /** Null: the object is well-formed but not ours to handle, which counts as absent. */
  readonly row: R | null;
  /** Entries left out. */
  readonly warnings: readonly FieldProblem[];
  /** Name of the Service that an EndpointSlice is of; absent: another kind, or it names none. */
  readonly service?: string;
}

/** The most characters of a label's value, which a zone is, and of an object's name. */
export const LONGEST_LABEL = 63;
export const LONGEST_NAME = 253;

const LABEL = {
  pattern: /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/,
  max: LONGEST_LABEL,
  says: 'a DNS label: at most 63 of a-z, 0-9 and -',
};
const SUBDOMAIN = {
  pattern: /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/,
  max: LONGEST_NAME,
  says: 'a DNS subdomain: at most 253 of a-z, 0-9, - and .',
};

/** The forms the API requires of names. */
const NAME_FORMS = { label: LABEL, subdomain: SUBDOMAIN } as const;

type NameForm = keyof typeof NAME_FORMS;

const FORM_OF_KIND: Readonly<Record<RowKind, NameForm>> = {
  Service: 'label',
  EndpointSlice: 'subdomain',
  Node: 'subdomain',
  ServiceCIDR: 'subdomain',
};

const NAMESPACED: Readonly<Record<RowKind, boolean>> = {
  Service: true,
  EndpointSlice: true,
  Node: false,
  ServiceCIDR: false,
};

/** Reads namespace and name; a namespaced object without a namespace is in `default`, as kubectl would put it. */
export function readRef(object: Fields, kind: RowKind): RowRef {
  const metadata = object.section('metadata');
  const name = metadata.requiredString('name');
  if (name !== '') checkName(metadata, 'name', name, FORM_OF_KIND[kind]);
  if (!NAMESPACED[kind]) return { kind, namespace: '', name };
  const namespace = metadata.string('namespace') ?? '';
  if (namespace !== '') checkName(metadata, 'namespace', namespace, 'label');
  return { kind, namespace: namespace === '' ? 'default' : namespace, name };
}

/** Which object this is meant to be, however wrong the rest of it; null when it does not identify itself. Never throws. */
export function identify(object: unknown, kind: RowKind): RowRef | null {
  const metadata = isMapping(object) ? object['metadata'] : null;
  if (!isMapping(metadata)) return null;
  const { name, namespace } = metadata;
  if (typeof name !== 'string' || name === '') return null;
  if (!NAMESPACED[kind]) return { kind, namespace: '', name };
  if ((namespace ?? '') !== '' && typeof namespace !== 'string') return null;
  return { kind, namespace: typeof namespace === 'string' && namespace !== '' ? namespace : 'default', name };
}

export function checkName(fields: Fields, path: string, name: string, form: NameForm): void {
  const { pattern, max, says } = NAME_FORMS[form];
  if (name.length > max || !pattern.test(name)) fields.refuse(path, name, `must be ${says}`);
}

/** A time in milliseconds since the epoch; null when absent or refused. */
export function readTime(fields: Fields, name: string): number | null {
  const value = fields.raw(name);
  // Protobuf has no text of it.
  if (value instanceof Date) return value.getTime();
  const text = fields.string(name);
  if (text === null) return null;
  const time = parseTimestamp(text);
  if (time !== null) return time;
  fields.refuse(name, text, 'must be a time such as "2025-01-31T12:00:00Z"');
  return null;
}
