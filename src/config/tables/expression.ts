import { Environment } from '@marcbachmann/cel-js';
import { messageOf } from '../../base/error-message.js';
import type { Rule } from './types.js';

/** An expression that was checked, ready for values. */
export interface Expression {
  readonly source: string;
  /** Throws an Error when it has no value. */
  evaluate(value: unknown): unknown;
}

/** What an expression may come to, as CEL names types; `dyn` is only known when it is evaluated. */
export type ResultType = 'bool' | 'string' | 'list';

/** Kept small: who writes an expression means a sentence, not a program. */
const MAX_BYTES = 10_240;
const LIMITS = { maxAstNodes: 2000, maxDepth: 50 } as const;

const environments = new Map<string, Environment>();

function environmentOf(variable: string): Environment {
  const options = { enableOptionalTypes: true, homogeneousAggregateLiterals: false, limits: LIMITS };
  const environment = environments.get(variable) ?? new Environment(options).registerVariable(variable, 'map');
  environments.set(variable, environment);
  return environment;
}

/** A field that is an expression over one variable, where it is given. */
export function expression(name: string, variable: string, ...types: readonly ResultType[]): Rule {
  return {
    name: 'expression',
    check: (section) => {
      const problem = section.has(name) ? problemOf(section.text(name), variable, types) : null;
      if (problem !== null)
        section.refuse('expression', name, problem, `an expression in CEL that comes to ${types.join(' or ')}`);
    },
  };
}

function problemOf(source: string, variable: string, types: readonly ResultType[]): string | null {
  if (Buffer.byteLength(source) > MAX_BYTES) return `has more than ${MAX_BYTES} bytes`;
  try {
    const { valid, error, type } = environmentOf(variable).check(source);
    if (!valid) throw error ?? new Error('cannot be checked');
    const found = String(type).replace(/<.*/, '');
    return found === 'dyn' || types.some((each) => each === found) ? null : `comes to ${found}`;
  } catch (error) {
    // Further lines show the place, which is the whole of most expressions.
    const [reason = ''] = messageOf(error).split('\n', 1);
    return reason;
  }
}

/** An expression that its field's rule has checked. */
export function compile(source: string, variable: string): Expression {
  const run = environmentOf(variable).parse(source);
  return { source, evaluate: (value) => run({ [variable]: value }) as unknown };
}

/** A value of JSON as CEL has it: whole numbers are int. */
export function celValue(value: unknown): unknown {
  if (typeof value === 'number') return Number.isSafeInteger(value) ? BigInt(value) : value;
  if (Array.isArray(value)) return value.map(celValue);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, celValue(each)]));
}
