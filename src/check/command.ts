import { parseArgs } from 'node:util';
import { readFileWithinSync } from '../base/bounded-file.js';
import { messageOf } from '../base/error-message.js';
import { printableLine } from '../base/printable.js';
import { durationMilliseconds, parseDuration } from '../config/duration.js';
import { KUBERNETES_VERSION } from '../config/version.js';
import { agreementFindings, type Demands } from './agreement.js';
import { parseKernel } from './agreement/kernel.js';
import { readFile, type Document, type FileContent } from './documents.js';
import type { Finding } from './findings.js';
import { Lines } from './lines.js';
import { namedFiles } from './named-files.js';
import { OUTPUTS, printFindings, type OutputFormat } from './print.js';

/** What the command prints, and its exit status: 0, 1 (errors) or 2 (something could not be read). */
export interface Outcome {
  readonly stdout: string;
  readonly stderr: string;
  readonly status: 0 | 1 | 2;
}

/** Reads a file's text. */
export type ReadText = (path: string) => string;

/** Larger than what anybody writes; a list of all Services of a cluster fits. */
const MAX_FILE_BYTES = 16 << 20;

const USAGE = `Usage: pointsman check [flags] FILE…

Reads configuration files of a cluster, YAML or JSON, strictly, and says whether each is right and all agree.

  -o, --output text|json|sarif    how to print (default text)
      --strict                    warnings count as errors
      --kubernetes-version v1.N   release that the files are for (default ${KUBERNETES_VERSION})
      --kernel VERSION            Linux of the nodes, such as 5.10: modes that need a later one are refused
      --slo DURATION              how long a change of endpoints may take until all nodes have it, such as 5s:
                                  periods of batches and syncs that add up to more are refused
  -h, --help                      print this text

Exit status: 0, 1 when there are errors, 2 when something could not be read.
`;

/** @param argv arguments after `check`. */
export function check(argv: readonly string[], read: ReadText = readText): Outcome {
  const options = parseOptions(argv);
  if (typeof options === 'string') return { stdout: '', stderr: `${options}\n\n${USAGE}`, status: 2 };
  if (options.help) return { stdout: USAGE, stderr: '', status: 0 };
  const { files, output, strict, release } = options;
  const { documents, findings: ofFiles, unreadable, texts } = readAll(files, release, read);
  const findings = locate([...ofFiles, ...agreementFindings(documents, options)], texts);
  const judged = strict ? findings.map((finding) => ({ ...finding, severity: 'error' as const })) : findings;
  const hasErrors = judged.some(({ severity }) => severity === 'error');
  return {
    stdout: printFindings(judged, output),
    stderr: unreadable.map((line) => `${printableLine(`could not read ${line}`)}\n`).join(''),
    status: unreadable.length > 0 ? 2 : hasErrors ? 1 : 0,
  };
}

interface Contents {
  readonly documents: readonly Document[];
  readonly findings: readonly Finding[];
  readonly unreadable: readonly string[];
  /** By file. */
  readonly texts: ReadonlyMap<string, string>;
}

/** Reads files, and those that they name. */
function readAll(files: readonly string[], release: number, read: ReadText): Contents {
  const documents: Document[] = [];
  const findings: Finding[] = [];
  const unreadable: string[] = [];
  const texts = new Map<string, string>();
  const queue = new Map<string, Finding | null>(files.map((file) => [file, null]));
  for (const [file, namedBy] of queue) {
    const content = readOne(file, release, read);
    if (typeof content === 'string') {
      // What a file names is on the machine that it is for, which may not be this one.
      if (namedBy === null) unreadable.push(`${file}: ${content}`);
      else findings.push({ ...namedBy, problem: `could not be read: ${content}` });
      continue;
    }
    texts.set(file, content.text);
    findings.push(...content.findings);
    documents.push(...content.documents);
    for (const named of content.documents.flatMap(namedFiles))
      if (!queue.has(named.file)) queue.set(named.file, named.finding);
  }
  return { documents, findings, unreadable, texts };
}

/** Why it cannot be read, where it cannot. */
function readOne(file: string, release: number, read: ReadText): (FileContent & { readonly text: string }) | string {
  try {
    const text = read(file);
    const content = readFile(text, file, release);
    return content.unreadable ?? { ...content, text };
  } catch (error) {
    return messageOf(error);
  }
}

/** The same with the lines that they are about. */
function locate(findings: readonly Finding[], texts: ReadonlyMap<string, string>): readonly Finding[] {
  const known = new Map<string, Lines>();
  return findings.map((finding) => {
    const { file, document, path } = finding;
    const text = texts.get(file);
    if (document === null || text === undefined) return finding;
    const lines = known.get(file) ?? new Lines(text);
    known.set(file, lines);
    return { ...finding, line: lines.lineOf(document, path) };
  });
}

function readText(path: string): string {
  return readFileWithinSync(path, MAX_FILE_BYTES).toString('utf8');
}

interface Options extends Demands {
  readonly files: readonly string[];
  readonly output: OutputFormat;
  readonly strict: boolean;
  /** Minor release of Kubernetes. */
  readonly release: number;
  readonly help: boolean;
}

/** What is wrong with the arguments, where something is. */
function parseOptions(argv: readonly string[]): Options | string {
  const parsed = parseArguments(argv);
  if (typeof parsed === 'string') return parsed;
  const { values, positionals } = parsed;
  const version = values['kubernetes-version'];
  const [, minor] = /^v?1\.(\d{1,3})(?:\.\d{1,4})?$/.exec(version) ?? [];
  if (minor === undefined) return `--kubernetes-version: ${JSON.stringify(version)}: must be a release such as v1.31`;
  const output = OUTPUTS.find((format) => format === values.output);
  if (output === undefined) return `--output: ${JSON.stringify(values.output)}: must be ${OUTPUTS.join(', ')}`;
  const kernel = values.kernel === undefined ? null : parseKernel(values.kernel);
  if (values.kernel !== undefined && kernel === null)
    return `--kernel: ${JSON.stringify(values.kernel)}: must be a version such as 5.10`;
  const slo = values.slo === undefined ? null : parseDuration(values.slo);
  if (values.slo !== undefined && slo === null)
    return `--slo: ${JSON.stringify(values.slo)}: must be a duration such as 5s`;
  if (positionals.length === 0 && !values.help) return 'check needs a file';
  const demands = { kernel, objective: slo === null ? null : durationMilliseconds(slo) };
  return { files: positionals, output, strict: values.strict, release: Number(minor), help: values.help, ...demands };
}

type Arguments = ReturnType<typeof parseAll>;

function parseArguments(argv: readonly string[]): Arguments | string {
  try {
    return parseAll(argv);
  } catch (error) {
    return messageOf(error);
  }
}

function parseAll(argv: readonly string[]) {
  return parseArgs({
    args: [...argv],
    allowPositionals: true,
    options: {
      output: { type: 'string', short: 'o', default: 'text' },
      strict: { type: 'boolean', default: false },
      'kubernetes-version': { type: 'string', default: KUBERNETES_VERSION },
      kernel: { type: 'string' },
      slo: { type: 'string' },
      help: { type: 'boolean', short: 'h', default: false },
    },
  });
}
