import { printableLine } from '../../../src/base/printable.js';
import { CHECK } from '../../../src/commands/check.js';
import { refusal } from '../../../src/commands/given.js';
import { printHelp } from '../../../src/commands/help.js';
import { loadRegularExpressions } from '../../../src/config/tables/regular-expression.js';
import { CHECKED_MINOR } from '../../../src/config/version.js';
import { agreementFindings } from './agreement.js';
import { CheckedInput, type ReadText } from './checked-input.js';
import { releaseIn } from './documents.js';
import type { Finding } from './findings.js';
import { Lines } from './lines.js';
import { parseOptions, type Options } from './options.js';
import { printFindings } from './print.js';
import { filesOf, readGiven, readNamed } from './read-file.js';

/** What the command prints, and its exit status: 0, 1 (errors) or 2 (something could not be read). */
export interface Outcome {
  readonly stdout: string;
  readonly stderr: string;
  readonly status: 0 | 1 | 2;
}

type Environment = Readonly<Record<string, string | undefined>>;

/** @param argv arguments after `check`. */
export async function check(
  argv: readonly string[],
  read: ReadText = (path, by) => (by === 'document' ? readNamed(path) : readGiven(path)),
  env: Environment = process.env,
): Promise<Outcome> {
  const options = parseOptions(argv);
  if (typeof options === 'string') return { stdout: '', stderr: refusal(options, CHECK), status: 2 };
  if (options.help) return { stdout: printHelp(CHECK), stderr: '', status: 0 };
  const { output, strict } = options;
  await loadRegularExpressions();
  const { documents, findings: ofFiles, unreadable, texts, notes } = await readAll(options, read, env);
  const findings = locate([...ofFiles, ...agreementFindings(documents, options)], texts);
  const judged = strict ? findings.map((finding) => ({ ...finding, severity: 'error' as const })) : findings;
  const hasErrors = judged.some(({ severity }) => severity === 'error');
  const complaints = [...notes, ...unreadable.map((line) => `could not read ${line}`)];
  return {
    stdout: printFindings(judged, output),
    stderr: complaints.map((line) => `${printableLine(line)}\n`).join(''),
    status: unreadable.length > 0 ? 2 : hasErrors ? 1 : 0,
  };
}

async function readAll(
  { files: named, cluster, kubeconfig, release: given, platform }: Options,
  readText: ReadText,
  env: Environment,
) {
  const files = (await Promise.all(named.map(filesOf))).flat();
  const input = new CheckedInput();
  const read = oncePerArgument(readText);
  const ofFiles = async (): Promise<number> => (await releaseOf(files, read)) ?? CHECKED_MINOR;
  if (!cluster) {
    const target = { release: given ?? (await ofFiles()), platform };
    await input.readFiles(files, target, read);
    return input.all(target);
  }
  // Loaded only where it is used: it is a file of its own.
  const { readCluster } = await import('./cluster.js');
  const answers = await readCluster({
    kubeconfig,
    env,
    take: (page) => {
      input.takeObjects(page);
    },
  });
  const target = { release: given ?? answers.release ?? (await ofFiles()), platform };
  await input.readFiles(files, target, read);
  await input.takeAnswers(answers, target);
  return input.all(target);
}

/** The release that a document of kubeadm names: all files are of one cluster. Null: none does. */
async function releaseOf(files: readonly string[], read: ReadText): Promise<number | null> {
  for (const file of files) {
    // The reader of the file reports why it cannot be read.
    const text = await Promise.resolve(read(file, 'argument')).catch(() => '');
    const release = releaseIn(text);
    if (release !== null) return release;
  }
  return null;
}

/** A pipe can be read only once. */
function oncePerArgument(read: ReadText): ReadText {
  const texts = new Map<string, Promise<string>>();
  return (path, by) => {
    if (by === 'document') return read(path, by);
    // An error is for whoever awaits the text.
    const text = texts.get(path) ?? Promise.resolve().then(() => read(path, by));
    texts.set(path, text);
    return text;
  };
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
