import { Environment } from '@marcbachmann/cel-js';
import { messageOf } from '../../base/error-message.js';
import type { Section } from '../../config/tables/section.js';

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

/** Compiles expressions over one variable. */
export class Compiler {
  private readonly environment: Environment;

  constructor(private readonly variable: string) {
    const options = { enableOptionalTypes: true, homogeneousAggregateLiterals: false, limits: LIMITS };
    this.environment = new Environment(options).registerVariable(variable, 'map');
  }

  /** That of a field, which is refused where it cannot be used; then it is null. */
  compile(section: Section, name: string, types: readonly ResultType[]): Expression | null {
    const source = section.text(name);
    const refuse = (problem: string): null => {
      section.refuse('expression', name, problem, `an expression in CEL that comes to ${types.join(' or ')}`);
      return null;
    };
    if (Buffer.byteLength(source) > MAX_BYTES) return refuse(`has more than ${MAX_BYTES} bytes`);
    try {
      const { valid, error, type } = this.environment.check(source);
      if (!valid) throw error ?? new Error('cannot be checked');
      const found = String(type).replace(/<.*/, '');
      if (found !== 'dyn' && !types.some((each) => each === found)) return refuse(`comes to ${found}`);
      const run = this.environment.parse(source);
      return { source, evaluate: (value) => run({ [this.variable]: value }) as unknown };
    } catch (error) {
      // Further lines show the place, which is the whole of most expressions.
      const [reason = ''] = messageOf(error).split('\n', 1);
      return refuse(reason);
    }
  }
}

/** A value of JSON as CEL has it: whole numbers are int. */
export function celValue(value: unknown): unknown {
  if (typeof value === 'number') return Number.isSafeInteger(value) ? BigInt(value) : value;
  if (Array.isArray(value)) return value.map(celValue);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, celValue(each)]));
}
