import type { ApiObject } from '../api-objects.js';
import { metadataOf } from './resources.js';

export type Predicate = (object: ApiObject) => boolean;

/** The objects that both selectors choose; empty selectors choose all. Throws TypeError on one that is not understood. */
export function selection(labelSelector: string, fieldSelector: string): Predicate {
  const predicates = [...split(labelSelector).map(labelPredicate), ...split(fieldSelector).map(fieldPredicate)];
  return (object) => predicates.every((predicate) => predicate(object));
}

/** At commas that are not within parentheses. */
function split(selector: string): readonly string[] {
  return selector
    .split(/,(?![^(]*\))/)
    .map((term) => term.trim())
    .filter((term) => term !== '');
}

function labelPredicate(term: string): Predicate {
  const set = /^(\S+)\s+(in|notin)\s+\(([^)]*)\)$/.exec(term);
  if (set !== null) {
    const [, key = '', operator, list = ''] = set;
    const values: readonly unknown[] = list.split(',').map((value) => value.trim());
    return (object) => values.includes(labelOf(object, key)) === (operator === 'in');
  }
  const equality = /^([^!=\s]+)\s*(==|=|!=)\s*([^!=\s]*)$/.exec(term);
  if (equality !== null) {
    const [, key = '', operator, value] = equality;
    return (object) => (labelOf(object, key) === value) === (operator !== '!=');
  }
  const existence = /^(!?)([^!=\s]+)$/.exec(term);
  if (existence === null) throw new TypeError(`label selector not understood: ${term}`);
  const [, not, key = ''] = existence;
  return (object) => (labelOf(object, key) !== undefined) === (not === '');
}

function labelOf(object: ApiObject, key: string): unknown {
  const labels = metadataOf(object)['labels'];
  return typeof labels === 'object' && labels !== null ? (labels as ApiObject)[key] : undefined;
}

const FIELDS: readonly string[] = ['metadata.name', 'metadata.namespace', 'spec.clusterIP', 'spec.type'];

function fieldPredicate(term: string): Predicate {
  const match = /^([\w.]+)(==|=|!=)(.*)$/.exec(term);
  const [, path = '', operator, value] = match ?? [];
  if (!FIELDS.includes(path)) throw new TypeError(`field label not supported: ${path}`);
  return (object) => (fieldOf(object, path) === value) === (operator !== '!=');
}

function fieldOf(object: ApiObject, path: string): string {
  let value: unknown = object;
  for (const name of path.split('.')) {
    value = typeof value === 'object' && value !== null ? (value as ApiObject)[name] : undefined;
  }
  return typeof value === 'string' ? value : '';
}
