import { parseArgs } from 'node:util';
import { readFileWithinSync } from '../base/bounded-file.js';
import { messageOf } from '../base/error-message.js';
import { printableLine } from '../base/printable.js';
import { KUBERNETES_VERSION } from '../config/version.js';
import { agreementFindings } from './agreement.js';
import { readFile, type Document, type FileContent } from './documents.js';
import { namedFiles } from './named-files.js';
import type { Finding } from './findings.js';
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
  -h, --help                      print this text

Exit status: 0, 1 when there are errors, 2 when something could not be read.
`;

/** @param argv arguments after `check`. */
export function check(argv: readonly string[], read: ReadText = readText): Outcome {
  const options = parseOptions(argv);
  if (typeof options === 'string') return { stdout: '', stderr: `${options}\n\n${USAGE}`, status: 2 };
  if (options.help) return { stdout: USAGE, stderr: '', status: 0 };
  const { files, output, strict, release } = options;
  const { documents, findings: ofFiles, unreadable } = readAll(files, release, read);
  const findings = [...ofFiles, ...agreementFindings(documents)];
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
}

/** Reads files, and those that they name. */
function readAll(files: readonly string[], release: number, read: ReadText): Contents {
  const documents: Document[] = [];
  const findings: Finding[] = [];
  const unreadable: string[] = [];
  const queue = new Map<string, Finding | null>(files.map((file) => [file, null]));
  for (const [file, namedBy] of queue) {
    const content = readOne(file, release, read);
    if (typeof content === 'string') {
      // What a file names is on the machine that it is for, which may not be this one.
      if (namedBy === null) unreadable.push(`${file}: ${content}`);
      else findings.push({ ...namedBy, problem: `could not be read: ${content}` });
      continue;
    }
    findings.push(...content.findings);
    documents.push(...content.documents);
    for (const named of content.documents.flatMap(namedFiles))
      if (!queue.has(named.file)) queue.set(named.file, named.finding);
  }
  return { documents, findings, unreadable };
}

/** Why it cannot be read, where it cannot. */
function readOne(file: string, release: number, read: ReadText): FileContent | string {
  try {
    const content = readFile(read(file), file, release);
    return content.unreadable ?? content;
  } catch (error) {
    return messageOf(error);
  }
}

function readText(path: string): string {
  return readFileWithinSync(path, MAX_FILE_BYTES).toString('utf8');
}

interface Options {
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
  if (positionals.length === 0 && !values.help) return 'check needs a file';
  return { files: positionals, output, strict: values.strict, release: Number(minor), help: values.help };
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
      help: { type: 'boolean', short: 'h', default: false },
    },
  });
}
