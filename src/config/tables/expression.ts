import { Environment } from '@marcbachmann/cel-js';
import { messageOf } from '../../base/error-message.js';
import {
  compileRegularExpression,
  compileUnknown,
  RegularExpressionsNeeded,
  type RegularExpression,
} from './regular-expression.js';
import { UNCOMPILED } from './report.js';
import type { Section } from './section.js';
import type { Rule } from './types.js';

/** An expression that was checked, ready for values. */
export interface Expression {
  readonly source: string;
  /** Throws an Error when it has no value. */
  evaluate(value: unknown): unknown;
}

/** What an expression may come to, as CEL names types; `dyn` is only known when it is evaluated. */
export type ResultType = 'bool' | 'string' | 'list<string>';

/** Kept small: who writes an expression means a sentence, not a program. */
const MAX_BYTES = 10_240;
const OPTIONS = {
  enableOptionalTypes: true,
  homogeneousAggregateLiterals: false,
  limits: { maxAstNodes: 2000, maxDepth: 50 },
} as const;

/** Called instead of the library's `matches`, which uses JavaScript's engine. It is no identifier of CEL, so no expression can name it. */
const MATCHES = 'matches (RE2)';

const environments = new Map<string, Environment>();

function environmentOf(variable: string): Environment {
  const known = environments.get(variable);
  if (known !== undefined) return known;
  const text = { name: 'text', type: 'string' };
  const pattern = { name: 'pattern', type: 'string' };
  const made = new Environment(OPTIONS)
    .registerVariable(variable, 'map')
    .registerFunction({
      name: MATCHES,
      receiverType: 'string',
      returnType: 'bool',
      params: [pattern],
      handler: matches,
    })
    .registerFunction({ name: MATCHES, returnType: 'bool', params: [text, pattern], handler: matches });
  environments.set(variable, made);
  return made;
}

type Literals = ReadonlyMap<string, RegularExpression>;

/** Of the expression that is being evaluated. */
let literals: Literals = new Map();

function matches(text: string, pattern: string): boolean {
  return (literals.get(pattern) ?? compileUnknown(pattern)).matches(text);
}

/** A field that is an expression over claims, which may be anything, where it is given. */
export function expression(name: string, variable: string, ...types: readonly ResultType[]): Rule {
  return {
    name: 'expression',
    check: (section) => {
      const source = section.text(name);
      const problem = section.has(name) ? (problemOf(source, variable, types) ?? macroProblem(source, variable)) : null;
      const expected = `an expression in CEL that evaluates to ${types.map(printType).join(' or ')}`;
      if (problem !== null) report(section, name, variable, problem, expected);
    },
  };
}

function printType(type: ResultType): string {
  return type === 'list<string>' ? 'list of string' : type;
}

/** Fields of a variable and their types, as CEL writes them. */
export interface Shape {
  readonly [name: string]: string | Shape;
}

/**
 * A field that is an expression over one variable and comes to true or false, where it is given. As in the API server, that has to be known from the types
 * alone, and of a claim nothing is known.
 *
 * @param shape of the variable; null: claims, which may be anything.
 */
export function condition(name: string, variable: string, shape: Shape | null = null): Rule {
  return {
    name: 'expression',
    check: (section) => {
      const source = section.text(name);
      const problem = section.has(name)
        ? (problemOf(source, variable, ['bool']) ?? typeProblem(source, variable, shape))
        : null;
      if (problem !== null) report(section, name, variable, problem, 'an expression in CEL that evaluates to bool');
    },
  };
}

/** Functions that every API server has beyond CEL's own, those of strings and sets among them. */
const SERVER_FUNCTIONS =
  `isSorted sum min max indexOf lastIndexOf find findAll url isURL getScheme getHost getHostname getPort
  getEscapedPath getQuery quantity isQuantity sign isGreaterThan isLessThan compareTo asInteger asApproximateFloat isInteger
  add sub ip isIP isCanonical family isUnspecified isLoopback isLinkLocalMulticast isLinkLocalUnicast isGlobalUnicast cidr
  isCIDR containsIP containsCIDR prefixLength masked semver isSemver major minor patch named validate charAt format join
  lowerAscii upperAscii quote replace reverse split substring trim contains intersects equivalent distinct flatten range
  slice sort sortBy first last transformList transformMap transformMapEntry existsOne string optMap optFlatMap
  ofNonZeroValue`.split(/\s+/);

/** Functions that an expression calls; none if it cannot be parsed. */
function calledFunctions(source: string, variable: string): ReadonlySet<string> {
  const names = new Set<string>();
  try {
    visit(environmentOf(variable).parse(source).ast, (name) => {
      names.add(name);
      return name;
    });
  } catch {
    // A text that is no expression calls nothing.
  }
  return names;
}

/** As the library says that it does not know a function, the namespace of one, or what a macro that it does not have names. */
const UNKNOWN_FUNCTION =
  /overload|no such|not found|unknown function|undeclared|^Unknown variable: (?:ip|format|sets|strings)$/i;

/** An expression that only the API server can compile is a warning, which a reader for this program's own use takes for an error. */
function report(section: Section, name: string, variable: string, problem: string, expected: string): void {
  const called = calledFunctions(section.text(name), variable);
  const isUnknown =
    UNKNOWN_FUNCTION.test(problem) ||
    (problem.startsWith('Unknown variable') && (called.has('optMap') || called.has('optFlatMap')));
  if (isUnknown && SERVER_FUNCTIONS.some((each) => called.has(each)))
    section.warn(UNCOMPILED, name, `was not checked, as a function is not known here: ${problem}`);
  else section.refuse('expression', name, problem, expected);
}

/** Macros that go through a list or a map. */
const COMPREHENSIONS = ['all', 'exists', 'exists_one', 'existsOne', 'map', 'filter', 'transformList', 'transformMap'];

/** By variable and shape: a file may have thousands of conditions. */
const typedEnvironments = new Map<string, Environment>();

function typedEnvironment(variable: string, shape: Shape | null): Environment {
  const key = JSON.stringify([variable, shape]);
  const known = typedEnvironments.get(key);
  if (known !== undefined) return known;
  const made = new Environment(OPTIONS);
  if (shape === null) made.registerVariable(variable, 'map');
  else made.registerVariable({ name: variable, schema: shape });
  typedEnvironments.set(key, made);
  return made;
}

/** What the types say against an expression that is otherwise right. */
function typeProblem(source: string, variable: string, shape: Shape | null): string | null {
  try {
    const run = typedEnvironment(variable, shape).parse(source);
    const { valid, error, type } = run.check();
    if (!valid) throw error ?? new Error('cannot be checked');
    if (shape === null && goesThrough(run.ast, variable)) return throughUnknown(variable);
    return type === 'bool' ? null : `evaluates to ${type === 'dyn' ? 'a type that is not known' : String(type)}`;
  } catch (error) {
    return reasonOf(error);
  }
}

function throughUnknown(variable: string): string {
  return `goes through a value of ${variable}, whose type is not known`;
}

/** What is wrong with macros of an expression that compiles. */
function macroProblem(source: string, variable: string): string | null {
  return goesThrough(parse(source, variable).run.ast, variable) ? throughUnknown(variable) : null;
}

/** Whether a macro goes through a member of the variable, at any depth. */
function goesThrough(value: unknown, variable: string): boolean {
  if (Array.isArray(value)) return value.some((each) => goesThrough(each, variable));
  if (!isNode(value)) return false;
  const { op, args } = value;
  const isMacro = op === 'rcall' && Array.isArray(args) && COMPREHENSIONS.includes(String(args[0]));
  return (isMacro && isMember(args[1], variable)) || goesThrough(args, variable);
}

function isMember(value: unknown, variable: string): boolean {
  if (!isNode(value) || !Array.isArray(value.args) || !['.', '[]'].includes(value.op)) return false;
  const [of] = value.args as readonly unknown[];
  return isNode(of) && ((of.op === 'id' && of.args === variable) || isMember(of, variable));
}

function problemOf(source: string, variable: string, types: readonly ResultType[]): string | null {
  if (Buffer.byteLength(source) > MAX_BYTES) return `has more than ${MAX_BYTES} bytes`;
  try {
    const { valid, error, type } = parse(source, variable).run.check();
    if (!valid) throw error ?? new Error('cannot be checked');
    const found = String(type);
    if (found === 'dyn' || types.some((each) => each === found)) return null;
    // The entries of such a list are only known when it is evaluated.
    if (/^list(?:<dyn>)?$/.test(found) && types.includes('list<string>')) return null;
    return `evaluates to ${found}`;
  } catch (error) {
    if (error instanceof RegularExpressionsNeeded) throw error;
    return reasonOf(error);
  }
}

/** Further lines show the place, which is the whole of most expressions. */
function reasonOf(error: unknown): string {
  const [reason = ''] = messageOf(error).split('\n', 1);
  return reason;
}

/** An expression that its field's rule has checked. @throws RegularExpressionsNeeded */
export function compile(source: string, variable: string): Expression {
  const { run, patterns } = parse(source, variable);
  return {
    source,
    evaluate: (value) => {
      literals = patterns;
      return run({ [variable]: value }) as unknown;
    },
  };
}

type Parsed = ReturnType<Environment['parse']>;

/** Its calls of `matches` use RE2, and patterns that are literals are compiled. */
function parse(source: string, variable: string): { readonly run: Parsed; readonly patterns: Literals } {
  const run = environmentOf(variable).parse(source);
  const patterns = new Map<string, RegularExpression>();
  visit(run.ast, (name, args) => {
    if (name !== 'matches') return name;
    // Patterns that are not literals need the library, too.
    if (patterns.size === 0) patterns.set('', compileRegularExpression(''));
    const pattern: unknown = args.at(-1);
    if (isNode(pattern) && pattern.op === 'value' && typeof pattern.args === 'string')
      patterns.set(pattern.args, compileRegularExpression(pattern.args));
    return MATCHES;
  });
  return { run, patterns };
}

/** Members of its variable that an expression uses. */
export interface Members {
  /** Their value is certainly used; `has` and `in` only ask whether there is one. */
  readonly read: ReadonlySet<string>;
  /** Their value may be used, as their name is computed. */
  readonly perhapsRead: ReadonlySet<string>;
}

/** The members of the variable that an expression uses; none if it cannot be parsed. */
export function membersOf(source: string, variable: string): Members {
  const found = { read: new Set<string>(), perhapsRead: new Set<string>() };
  try {
    collectMembers(environmentOf(variable).parse(source).ast, variable, found);
  } catch {
    // The rule of the expression reports it.
  }
  return found;
}

const SELECTIONS = ['.', '.?', '[]', '[?]'];

function collectMembers(
  value: unknown,
  variable: string,
  found: { readonly read: Set<string>; readonly perhapsRead: Set<string> },
): void {
  if (Array.isArray(value)) for (const each of value) collectMembers(each, variable, found);
  if (!isNode(value)) return;
  const { op, args } = value;
  if (op === 'call' && Array.isArray(args) && args[0] === 'has') return;
  if (SELECTIONS.includes(op) && Array.isArray(args)) {
    const [of, name] = args as readonly unknown[];
    const isOfVariable = isNode(of) && of.op === 'id' && of.args === variable;
    const names = isNode(name) ? textsIn(name) : [String(name)];
    const isComputed = isNode(name) && name.op !== 'value';
    if (isOfVariable) for (const each of names) (isComputed ? found.perhapsRead : found.read).add(each);
  }
  collectMembers(args, variable, found);
}

/** Literal texts of an expression. */
function textsIn(value: unknown): readonly string[] {
  if (Array.isArray(value)) return value.flatMap(textsIn);
  if (!isNode(value)) return [];
  return value.op === 'value' ? (typeof value.args === 'string' ? [value.args] : []) : textsIn(value.args);
}

interface Node {
  readonly op: string;
  readonly args: unknown;
}

/** Visits calls of functions, `name(…)` and `receiver.name(…)`: each gets the name that is returned. */
function visit(value: unknown, rename: (name: string, args: readonly unknown[]) => string): void {
  if (Array.isArray(value)) for (const each of value) visit(each, rename);
  if (!isNode(value)) return;
  const { op, args } = value;
  if ((op === 'call' || op === 'rcall') && Array.isArray(args)) {
    const list: unknown = args.at(-1);
    args[0] = rename(String(args[0]), Array.isArray(list) ? list : []);
  }
  visit(args, rename);
}

function isNode(value: unknown): value is Node {
  return typeof value === 'object' && value !== null && 'op' in value && 'args' in value;
}

/** A value of JSON as CEL has it: whole numbers are int. */
export function celValue(value: unknown): unknown {
  if (typeof value === 'number') return Number.isSafeInteger(value) ? BigInt(value) : value;
  if (Array.isArray(value)) return value.map(celValue);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, celValue(each)]));
}
