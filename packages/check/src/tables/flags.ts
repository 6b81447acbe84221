import { MAX_INT64 } from '../../../../src/base/yaml.js';
import { printValue } from '../../../../src/config/errors.js';
import { readStruct } from '../../../../src/config/tables/read.js';
import type { Report } from '../../../../src/config/tables/report.js';
import { rule } from '../../../../src/config/tables/rules.js';
import type { Section } from '../../../../src/config/tables/section.js';
import { fieldOf, type Field, type Rule, type StructType, type Type } from '../../../../src/config/tables/types.js';
import { gateProblems } from './feature-gates.js';
import { Mapping } from '../../../../src/config/yaml.js';

/** Flags as kubeadm has them: names and texts, read by a table of the same language as documents. */

export interface Argument {
  readonly name: string;
  readonly text: string;
  /** Within the section. */
  readonly path: string;
}

/** How a flag is written where its type does not say it. */
export interface Syntax {
  /** The value as a document has it; null: it cannot be read. */
  readonly read: (text: string) => unknown;
  readonly should: string;
}

/** The syntaxes of flags that have their own. */
export type Syntaxes = Readonly<Record<string, Syntax>>;

/**
 * Checks the arguments of a program, a map or a list of names and values. A name that the table does not have is a
 * warning. Programs take `_` for `-`.
 */
export function flagsOf(name: string, flags: StructType['fields'], syntaxes: Syntaxes = {}): Rule {
  return rule('flag', (section) => {
    for (const argument of argumentsIn(section, name)) {
      const flag = argument.name.replaceAll('_', '-');
      const of = flags[flag];
      if (argument.name === '') section.refuse('flag', argument.path, 'has no name');
      else if (of === undefined)
        section.warn('flag', argument.path, `${printValue(argument.name)} is a flag that is not known here`);
      else checkFlag(section, argument, fieldOf(of), syntaxes[flag]);
    }
  });
}

export function argumentsIn(section: Section, name: string): readonly Argument[] {
  const map = section.section(name);
  if (map !== null)
    return map
      .names()
      .filter((each) => map.isText(each))
      .map((each) => ({ name: each, text: map.text(each), path: `${name}.${each}` }));
  return section
    .sections(name)
    .flatMap((each, index) =>
      each.has('name') ? [{ name: each.text('name'), text: each.text('value'), path: `${name}[${index}].value` }] : [],
    );
}

function checkFlag(section: Section, { name, text, path }: Argument, field: Field, syntax: Syntax | undefined): void {
  const value = syntax === undefined ? valueOf(field.type, text) : syntax.read(text);
  const report = ({ severity, rule: found, problem, expected }: Report): void => {
    const shown = field.secret === true ? '' : `${printValue(text)} `;
    const message = `--${name}: ${found === 'deprecated' ? '' : shown}${problem}`;
    if (severity === 'error') section.refuse('flag', path, message, expected);
    else section.warn(found, path, message, expected);
  };
  if (value === null && syntax !== undefined) {
    report({
      severity: 'error',
      rule: 'format',
      path,
      value: null,
      problem: 'cannot be read',
      expected: syntax.should,
    });
    return;
  }
  const { version, release } = section;
  const gates = new Map(name === 'feature-gates' ? gatesIn(text) : []);
  for (const { severity, name: gate, problem } of gateProblems(gates, release))
    section[severity === 'error' ? 'refuse' : 'warn']('flag', path, `--${name}: ${printValue(gate)} ${problem}`);
  readStruct({ is: 'struct', fields: { [name]: field }, rules: [], lenient: false }, new Mapping([[name, value]]), '', {
    version,
    release,
    report,
    readEmbedded: () => null,
  });
}

/** Names of gates may have a prefix that names their owner: `kube:` is the default. */
export function gatesIn(text: string): readonly (readonly [name: string, value: boolean])[] {
  return text.split(',').flatMap((entry) => {
    const [, name, value] = /^\s*(?:kube:)?(\w+)\s*=\s*(\w+)\s*$/.exec(entry) ?? [];
    const truth = value === undefined ? null : truthOf(value);
    return name === undefined || truth === null ? [] : [[name, truth] as const];
  });
}

/** What a program reads as true or false; null: neither. */
export function truthOf(text: string): boolean | null {
  if (TRUE.includes(text)) return true;
  return FALSE.includes(text) ? false : null;
}

const NUMBER = /^[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?$/;
/** Integers may be written in another base. */
const INTEGER = /^(?:[-+]?\d{1,20}|0(?:[xX][0-9A-Fa-f]{1,20}|[bB][01]{1,64}|[oO][0-7]{1,25}))$/;

function isInteger(text: string): boolean {
  if (!INTEGER.test(text)) return false;
  const value = BigInt(text.replace('+', ''));
  return value === BigInt.asIntN(64, value);
}

const TRUE = ['1', 't', 'T', 'true', 'TRUE', 'True'];
const FALSE = ['0', 'f', 'F', 'false', 'FALSE', 'False'];

/** What a document would have in place of the text; text that cannot be read stays as it is, which no such type takes. */
export function valueOf(type: Type, text: string): unknown {
  switch (type.is) {
    case 'scalar': {
      const { in: wanted } = type.spelling;
      if (wanted === 'boolean') return truthOf(text) ?? text;
      if (type.format === 'int') return isInteger(text) ? Math.min(Number(text), MAX_INT64) : text;
      return wanted === 'number' && NUMBER.test(text) ? Number(text) : text;
    }
    case 'list':
      return text === '' ? [] : text.split(',').map((entry) => valueOf(type.of, entry));
    case 'map':
      return pairsOf(text, () => type.of);
    case 'struct':
      return pairsOf(text, (name) => {
        const of = type.fields[name];
        return of === undefined ? null : fieldOf(of).type;
      });
    case 'enum':
    case 'any':
    case 'embedded':
      return text;
  }
}

/** `a=1,b=2`; another sign may be in place of `=`. Text that is none stays as it is. */
export function pairsOf(text: string, typeOf: (name: string) => Type | null, sign: '=' | '<' = '='): unknown {
  if (text === '') return new Mapping([]);
  const entries = text.split(',').filter((entry) => entry !== '');
  const pairs = entries.map((entry) => [entry, entry.indexOf(sign)] as const);
  if (pairs.some(([entry, at]) => at < 0 || entry.slice(0, at).trim() === '')) return text;
  return new Mapping(
    pairs.map(([entry, at]): readonly [string, unknown] => {
      const [name, value] = [entry.slice(0, at).trim(), entry.slice(at + 1)];
      const type = typeOf(name);
      return [name, type === null ? value : valueOf(type, value)];
    }),
  );
}
