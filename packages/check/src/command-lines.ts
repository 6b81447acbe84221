import { readStruct } from '../../../src/config/tables/read.js';
import type { Report } from '../../../src/config/tables/report.js';
import type { Section } from '../../../src/config/tables/section.js';
import { fieldOf, list, struct, text, type StructType } from '../../../src/config/tables/types.js';
import { Mapping } from '../../../src/config/yaml.js';
import type { Finding } from './findings.js';
import { API_SERVER_FLAGS, CONTROLLER_MANAGER_FLAGS, SCHEDULER_FLAGS } from './tables/control-plane-flags.js';
import { flagsOf, type Syntaxes } from './tables/flags.js';
import { KUBELET_FLAGS } from './tables/kubelet-flags.js';
import { KUBELET_SYNTAXES } from './tables/kubelet-syntax.js';

/** Command lines of Kubernetes' programs, in environment files, units of systemd and the containers of pods. */

interface Program {
  readonly flags: StructType['fields'];
  readonly syntaxes?: Syntaxes;
}

export const KUBELET = 'kubelet';
/** The section's name for its flags. */
export const FLAGS = 'flags';

const PROGRAMS: Readonly<Record<string, Program>> = {
  [KUBELET]: { flags: KUBELET_FLAGS, syntaxes: KUBELET_SYNTAXES },
  'kube-apiserver': { flags: API_SERVER_FLAGS },
  'kube-controller-manager': { flags: CONTROLLER_MANAGER_FLAGS },
  'kube-scheduler': { flags: SCHEDULER_FLAGS },
};

/** A word of a command line, and where it is. */
interface Word {
  readonly text: string;
  /** In a document. */
  readonly path: string;
  /** In a text that is no document. */
  readonly line: number | null;
}

/** The file of a command line, and its document; null: the file is no document. */
type Source = Pick<Finding, 'file' | 'document'>;

/** The flags that a program is started with, and where they stand. */
export interface CommandLine {
  readonly program: string;
  readonly source: Source;
  /** Its flags, as names and values. */
  readonly section: Section;
  /** Where each flag is, in the order of the section. */
  readonly places: readonly Word[];
  readonly findings: readonly Finding[];
}

/** The program that a word names; null: none that is known here. */
function programOf(word: string): string | null {
  const name = word.split('/').at(-1) ?? '';
  return Object.hasOwn(PROGRAMS, name) ? name : null;
}

/** Variables are set elsewhere, so that their values are not known. */
const VARIABLE = /\$(?:[A-Za-z_{]|\()/;

function commandLine(program: string, words: readonly Word[], source: Source, release: number): CommandLine {
  const { flags = {}, syntaxes = {} } = PROGRAMS[program] ?? {};
  const given: { readonly name: string; readonly value: string; readonly place: Word }[] = [];
  const findings: Finding[] = [];
  const say = (severity: Finding['severity'], place: Word, problem: string, expected = ''): void => {
    findings.push(findingAt(source, { severity, rule: 'flag', value: null, problem, expected }, place));
  };
  for (let index = 0; index < words.length; index++) {
    const word = words[index];
    if (word === undefined || (word.text.startsWith('$') && VARIABLE.test(word.text))) continue;
    const [, name = '', sign, value = ''] = /^--?([A-Za-z][\w-]*)(?:(=)(.*))?$/s.exec(word.text) ?? [];
    if (name === '') {
      say('error', word, 'a word that is no flag of the program');
      continue;
    }
    const of = flags[name.replaceAll('_', '-')];
    const isSwitch = isBool(of);
    const next = words[index + 1];
    if (sign !== undefined || isSwitch || name === 'version' || name === 'help' || name === 'h')
      given.push({ name, value: sign === undefined ? 'true' : value, place: word });
    else if (next === undefined || (of === undefined && next.text.startsWith('-'))) {
      if (of === undefined) given.push({ name, value: '', place: word });
      else say('error', word, `--${name}: has no value`);
    } else {
      given.push({ name, value: next.text, place: word });
      index++;
    }
  }
  const isOfAll = (name: string): boolean => ['help', 'h', 'version'].includes(name) && flags[name] === undefined;
  const known = given.filter(({ name, value }) => !isOfAll(name) && !VARIABLE.test(value));
  const reports: Report[] = [];
  const table = struct({ [FLAGS]: list(struct({ name: text, value: text })) }, flagsOf(FLAGS, flags, syntaxes));
  const mappings = known.map(({ name, value }) => new Mapping(Object.entries({ name, value })));
  const section = readStruct(table, new Mapping([[FLAGS, mappings]]), '', {
    version: '',
    release,
    report: (report) => reports.push(report),
    readEmbedded: () => null,
  });
  const places = known.map(({ place }) => place);
  for (const report of reports) {
    const place = places[Number(/\[(\d+)\]/.exec(report.path)?.[1])];
    if (place !== undefined) findings.push(findingAt(source, { ...report, value: null }, place));
  }
  return { program, source, section, places, findings };
}

function isBool(of: StructType['fields'][string] | undefined): boolean {
  const type = of === undefined ? null : fieldOf(of).type;
  return type?.is === 'scalar' && type.spelling.in === 'boolean';
}

/** A finding at a word of a command line. */
function findingAt(
  { file, document }: Source,
  report: Omit<Report, 'path'>,
  { path, line }: Pick<Word, 'path' | 'line'>,
): Finding {
  return { ...report, file, document, line, path };
}

const ASSIGNMENT = /^(?:export\s+)?([A-Za-z_]\w*)=(.*)$/s;
const SECTION = /^\[[A-Za-z][\w-]*\]$/;

interface Line {
  readonly text: string;
  readonly line: number;
}

/** Lines with those that continue them; comments and empty ones are left out. */
function linesOf(content: string): readonly Line[] {
  const lines: Line[] = [];
  let [open, first] = ['', 0];
  for (const [index, text] of content.split(/\r?\n/).entries()) {
    if (open === '') first = index + 1;
    if (text.endsWith('\\')) open += `${text.slice(0, -1)} `;
    else {
      const whole = `${open}${text}`.trim();
      if (whole !== '' && !/^[#;]/.test(whole)) lines.push({ text: whole, line: first });
      open = '';
    }
  }
  return lines;
}

/** Whether a text is an environment file or a unit of systemd, which no document of YAML looks like. */
export function isEnvironmentOrUnit(content: string): boolean {
  const lines = linesOf(content);
  return lines.length > 0 && lines.every(({ text: each }) => ASSIGNMENT.test(each) || SECTION.test(each));
}

/** The words of a text, without their quotes; of one with a quote that is not closed, up to its end. */
function wordsOf(content: string): readonly string[] {
  const words = content.match(/(?:"(?:[^"\\]|\\.)*"?|'[^']*'?|\\.|[^\s"'\\])+/gs) ?? [];
  return words.map((word) =>
    word.replace(/"((?:[^"\\]|\\.)*)"?|'([^']*)'?|\\(.)/gs, (_, double?: string, single?: string, one?: string) =>
      double === undefined ? (single ?? one ?? '') : double.replace(/\\(.)/gs, '$1'),
    ),
  );
}

/** Flags of the kubelet by kubeadm's convention: variables that begin so. */
const KUBELET_VARIABLE = /^KUBELET_\w+$/;

/** Words of each program that a text of assignments starts; a unit has its variables and its command in lines of their own. */
function assignedWords(content: string): ReadonlyMap<string, readonly Word[]> {
  const found = new Map<string, Word[]>();
  const add = (program: string, words: readonly string[], path: string, line: number): void => {
    const own = found.get(program) ?? [];
    found.set(program, [...own, ...words.map((each) => ({ text: each, path, line }))]);
  };
  for (const { text: whole, line } of linesOf(content)) {
    const [, name = '', value = ''] = ASSIGNMENT.exec(whole) ?? [];
    if (name === 'Environment') {
      for (const word of wordsOf(value)) {
        const [, variable = '', flags = ''] = ASSIGNMENT.exec(word) ?? [];
        if (KUBELET_VARIABLE.test(variable)) add(KUBELET, wordsOf(flags), variable, line);
      }
    } else if (name === 'ExecStart') {
      const [command = '', ...words] = wordsOf(value.replace(/^[-@:+!]+/, ''));
      const program = programOf(command);
      if (program !== null) add(program, words, name, line);
    } else if (KUBELET_VARIABLE.test(name)) add(KUBELET, wordsOf(wordsOf(value).join(' ')), name, line);
  }
  return found;
}

/** Command lines in an environment file or a unit. */
export function linesOfText(content: string, file: string, release: number): readonly CommandLine[] {
  const source = { file, document: null };
  return [...assignedWords(content)].map(([program, words]) => commandLine(program, words, source, release));
}

/** Where objects have the specification of a pod. */
const POD_SPECS = ['spec', 'spec.template.spec', 'spec.jobTemplate.spec.template.spec'];

/** Command lines of the containers of an object. */
export function linesOfObject(value: unknown, file: string, document: number, release: number): readonly CommandLine[] {
  if (!(value instanceof Mapping)) return [];
  const kind = value.entries.get('kind');
  const at = typeof kind === 'string' ? kind : '';
  return POD_SPECS.flatMap((path) =>
    ['initContainers', 'containers'].flatMap((name) => {
      const containers = value.at([...path.split('.'), name]);
      return (Array.isArray(containers) ? (containers as readonly unknown[]) : []).flatMap((container, index) =>
        container instanceof Mapping
          ? containerLine(container, `${at}.${path}.${name}[${index}]`, { file, document }, release)
          : [],
      );
    }),
  );
}

function containerLine(container: Mapping, path: string, source: Source, release: number): readonly CommandLine[] {
  const words = ['command', 'args'].flatMap((name) => {
    const given = container.entries.get(name);
    return (Array.isArray(given) ? (given as readonly unknown[]) : []).map((word, index): Word => ({
      text: String(word),
      path: `${path}.${name}[${index}]`,
      line: null,
    }));
  });
  // A program may start another one.
  const start = words.slice(0, 2).findIndex(({ text: word }) => programOf(word) !== null);
  const program = programOf(words[start]?.text ?? '');
  return program === null ? [] : [commandLine(program, words.slice(start + 1), source, release)];
}
