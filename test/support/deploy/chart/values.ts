import { readFileSync } from 'node:fs';
import { load } from 'js-yaml';
import type { ApiObject } from '../../api-objects.js';
import { projectFile } from '../../lab/agent.js';
import { fieldsOf } from '../kustomize.js';

export type Schema = Readonly<Record<string, unknown>>;

export function chartSchema(): Schema {
  return JSON.parse(readFileSync(projectFile('deploy/chart/values.schema.json'), 'utf8')) as Schema;
}

/** The chart's values with some of a user's, merged as Helm does: maps by their fields, all else as a whole. Throws on what the schema refuses. */
export function withValues(given: ApiObject): ApiObject {
  const values = merged(fieldsOf(load(readFileSync(projectFile('deploy/chart/values.yaml'), 'utf8'))), given);
  const [problem] = refused(values, chartSchema(), 'values');
  if (problem !== undefined) throw new Error(problem);
  return values;
}

function merged(one: ApiObject, other: ApiObject): ApiObject {
  const both = Object.entries(other).map(([name, value]) => {
    const isMap = typeof value === 'object' && value !== null && !Array.isArray(value);
    return [name, isMap ? merged(fieldsOf(one[name]), fieldsOf(value)) : value] as const;
  });
  return { ...one, ...Object.fromEntries(both) };
}

const TYPES: Readonly<Record<string, (value: unknown) => boolean>> = {
  object: (value) => typeof value === 'object' && value !== null && !Array.isArray(value),
  array: (value) => Array.isArray(value),
  string: (value) => typeof value === 'string',
  boolean: (value) => typeof value === 'boolean',
  integer: (value) => Number.isInteger(value),
};
const KNOWN = [
  '$schema',
  'title',
  'type',
  'properties',
  'additionalProperties',
  'enum',
  'pattern',
  'minimum',
  'minLength',
];

/** What a schema has against a value, as far as the chart's schema goes; a keyword that is not known here is an error. */
export function refused(value: unknown, schema: Schema, path: string): string[] {
  for (const keyword of Object.keys(schema))
    if (!KNOWN.includes(keyword)) throw new Error(`${path}: what is ${keyword}?`);
  const { type, enum: allowed, pattern, minimum, minLength, properties, additionalProperties } = schema;
  const problems: string[] = [];
  const check = (isRight: boolean, problem: string): void => {
    if (!isRight) problems.push(`${path}: ${problem}`);
  };
  if (typeof type === 'string') check(TYPES[type]?.(value) ?? false, `not of type ${type}`);
  if (Array.isArray(allowed)) check(allowed.includes(value), `not one of ${allowed.join(', ')}`);
  if (typeof value === 'string') {
    if (typeof pattern === 'string') check(new RegExp(pattern).test(value), `does not match ${pattern}`);
    if (typeof minLength === 'number') check(value.length >= minLength, 'too short');
  }
  if (typeof value === 'number' && typeof minimum === 'number') check(value >= minimum, `less than ${minimum}`);
  const named = properties === undefined ? null : fieldsOf(properties);
  for (const [name, each] of Object.entries(fieldsOf(value))) {
    if (named !== null && name in named) problems.push(...refused(each, fieldsOf(named[name]), `${path}.${name}`));
    else if (typeof additionalProperties === 'object')
      problems.push(...refused(each, fieldsOf(additionalProperties), `${path}.${name}`));
    else if (additionalProperties === false) problems.push(`${path}.${name}: no such value`);
  }
  return problems;
}
