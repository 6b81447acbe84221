import { printValue } from '../../config/errors.js';
import { readStruct } from '../../config/tables/read.js';
import type { Report } from '../../config/tables/report.js';
import { rule } from '../../config/tables/rules.js';
import type { Section } from '../../config/tables/section.js';
import { fieldOf, type Field, type Rule, type StructType, type Type } from '../../config/tables/types.js';
import { FORMATS } from '../../config/tables/formats.js';
import { Mapping } from '../../config/yaml.js';

/** Flags as kubeadm has them: names and texts, read by a table of the same language as documents. */

interface Argument {
  readonly name: string;
  readonly text: string;
  /** Within the section. */
  readonly path: string;
}

/** Checks the arguments of a program, a map or a list of names and values. A name that the table does not have is a warning. */
export function flagsOf(name: string, flags: StructType['fields']): Rule {
  return rule('flag', (section) => {
    for (const argument of argumentsIn(section, name)) {
      const of = flags[argument.name];
      if (of === undefined)
        section.warn('flag', argument.path, `${printValue(argument.name)} is a flag that is not known here`);
      else checkFlag(section, argument, fieldOf(of));
    }
  });
}

function argumentsIn(section: Section, name: string): readonly Argument[] {
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

function checkFlag(section: Section, { name, text, path }: Argument, field: Field): void {
  const value = valueOf(field.type, text);
  const report = ({ severity, rule: found, problem, expected }: Report): void => {
    const shown = field.secret === true ? '' : `${printValue(text)} `;
    const said = `--${name}: ${found === 'deprecated' ? '' : shown}${problem}`;
    if (severity === 'error') section.refuse('flag', path, said, expected);
    else section.warn(found, path, said, expected);
  };
  const { version, release } = section;
  readStruct({ is: 'struct', fields: { [name]: field }, rules: [], lenient: false }, new Mapping([[name, value]]), '', {
    version,
    release,
    report,
    readEmbedded: () => null,
  });
}

const TRUE = ['1', 't', 'T', 'true', 'TRUE', 'True'];
const FALSE = ['0', 'f', 'F', 'false', 'FALSE', 'False'];

/** What a document would have in place of the text; text that cannot be read stays as it is, which no such type takes. */
function valueOf(type: Type, text: string): unknown {
  switch (type.is) {
    case 'scalar': {
      const { in: wanted } = FORMATS[type.format];
      if (wanted === 'boolean') return TRUE.includes(text) ? true : FALSE.includes(text) ? false : text;
      return wanted === 'number' && /^[-+]?\d+(?:\.\d+)?$/.test(text) ? Number(text) : text;
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

/** `a=1,b=2`; thresholds of eviction have `<` in place of `=`. */
function pairsOf(text: string, typeOf: (name: string) => Type | null): unknown {
  if (text === '') return new Mapping([]);
  const pairs = text.split(',').map((entry) => [entry, entry.search(/[=<]/)] as const);
  if (pairs.some(([entry, at]) => at < 0 || entry.slice(0, at).trim() === '')) return text;
  return new Mapping(
    pairs.map(([entry, at]): readonly [string, unknown] => {
      const [name, value] = [entry.slice(0, at).trim(), entry.slice(at + 1)];
      const type = typeOf(name);
      return [name, type === null ? value : valueOf(type, value)];
    }),
  );
}
