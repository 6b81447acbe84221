// Runs the compiled test files, several processes at a time, and says how many assertions passed and failed.
//
//     node .build/test/run.js [usual | all | nightly | wine | vm | vm-thorough | arm64] [PART OF A PATH ...]
//
// usual    every *.test file, those with many cases shortened (support/extent.ts)
// all      these in full, and every *.thorough and *.uml file
// nightly  every *.nightly and *.uml-nightly file, ten minutes of test/kernel/endurance, and more rounds of test/history and test/heap
// vm       what npm run test:vm runs in its machine: every *.vm file
// wine     what npm run test:windows runs: every *.wine file
// vm-thorough  what takes that machine longer than the eight minutes it has: every *.vm-thorough file, and the addon's nftables
// arm64    what the addon computes and no kernel is asked for; test/arm64.sh runs it
//
// Files *.uml and *.uml-nightly run each under a kernel of its own (test/uml). With POINTSMAN_TEST_SECONDS it stops after so long,
// and says which files are left. Programs that tests start and the machine lacks are fetched (support/programs.ts).
// Files that need what cannot be had here (support/needs.ts) are skipped.
// Small files share a process. A file that prints nothing for SILENCE_MS is killed, however long it ran before.
import { spawn } from 'node:child_process';
import { lookup } from 'node:dns/promises';
import { readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { systemClock } from '../src/base/clock.js';
import { EXTENT_VARIABLE, HERE_VARIABLE } from './support/extent.js';
import { inNamespace } from './support/in-namespace.js';
import { missingElse, MISSING_VARIABLE, Needs, reasons } from './support/needs.js';
import { findPrograms, programsCache } from './support/programs.js';
import { findPython, PYTHON_VARIABLE } from './support/python.js';
import { ProcessorTime } from './support/processor-time.js';
import { Silence } from './support/silence.js';
import { extentOf, testName, TESTS, USER_MODE, type Extent } from './support/test-files.js';
import { userModeProblem } from './uml/machine.js';

/** What runs a file in place of this Node, in words. */
const LAUNCHER = process.env['POINTSMAN_TEST_NODE']?.split(' ') ?? [process.execPath];

/** What vm/bundle.ts made of the files, where it has; bundled.js runs them from there. */
const BUNDLE = process.env['POINTSMAN_TEST_BUNDLE'];

/** What V8 compiled of files that several processes load, which Node keeps from its version 22 on. */
const COMPILED = join(TESTS, '..', 'compiled');

/** No single step of a test takes that long, even where every core is busy with something else. */
const SILENCE_MS = 300_000;
/** How long a stopped process may take to say what it was waiting for. */
const LAST_WORDS_MS = 10_000;

/** Folders whose files start processes and wait for them. */
const SLOW_FOLDERS = ['bench', 'conformance', 'deploy', 'kernel', 'native', 'packages/page'];
/** Files that repeat others, several at once: what takes longest begins first, or it would end alone. */
const LONGEST = /^(?:conformance\/|kernel\/modes\/|scenarios\.)/;
/** What belongs to one process and must not be another file's too. */
const NEEDS_PROCESS =
  /^t\.(?:teardown|jobs|before|beforeEach|afterEach)\b|support\/namespace\.js|createRequire\(|cpuUsage|memoryUsage|getHeapStatistics|PerformanceObserver/m;

/** Files that parse all sources: in one process each is parsed once (support/parsed-source.ts). */
const PARSE_SOURCES = ['layers', 'regular-expressions', 'words'].map((name) => `${name}.test.js`);

/** What runs in a network namespace of its own, by support/namespace.ts: started there it need not start itself again. */
const NEEDS_NAMESPACE = /support\/namespace\.js/;

/**
 * What sends packets and asks nothing of the process that routes them: in `npm test` the program runs in the test's own process there, as in an emulated
 * machine, at half the processor time. Other files, and all with test:all, start the program that ships.
 */
const ROUTED_HERE = new Set(
  [
    'conformance/iptables-nft',
    'conformance/nftables',
    'kernel/affinity',
    'kernel/balance',
    'kernel/changes-under-traffic',
    'kernel/connect-retry',
    'kernel/dead-endpoints',
    'kernel/fragments-and-errors',
    'kernel/removed-endpoints',
    'kernel/service-fields',
    'kernel/udp-flows',
  ].map((name) => `${name}.test.js`),
);

/** Test files that run in one process. */
interface Group {
  readonly name: string;
  readonly files: readonly string[];
  readonly isolated: boolean;
  /** Whether it needs a kernel of its own (test/uml). */
  readonly ownKernel: boolean;
}

interface Result {
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
}

/** The folder of a stage, or the package; empty: it is in none. */
function folderOf(name: string): string {
  return /^(?:packages\/)?[^/]+(?=\/)/.exec(name)?.[0] ?? '';
}

/** An ordinary user's laboratory has a user namespace of its own, to which the test's process would not belong. */
function isRoutedHere(name: string): boolean {
  return extent.name === 'usual' && process.getuid?.() === 0 && ROUTED_HERE.has(name);
}

function groups(files: readonly string[]): readonly Group[] {
  const alone: Group[] = [];
  const together = new Map<string, string[]>();
  for (const file of files) {
    const name = testName(file);
    const folder = folderOf(name);
    const text = readFileSync(file, 'utf8');
    const ownKernel = USER_MODE.test(name);
    if (PARSE_SOURCES.includes(name)) together.set('', [...(together.get('') ?? []), file]);
    else if (ownKernel || folder === '' || SLOW_FOLDERS.includes(folder) || NEEDS_PROCESS.test(text)) {
      const isolated = !ownKernel && (NEEDS_NAMESPACE.test(text) || isRoutedHere(name));
      alone.push({ name, files: [file], isolated, ownKernel });
    } else together.set(folder, [...(together.get(folder) ?? []), file]);
  }
  const small = [...together].map(([folder, files]): Group => ({
    name: folder === '' ? files.map(testName).join(', ') : `${folder}/*`,
    files,
    isolated: false,
    ownKernel: false,
  }));
  const isLong = ({ name }: Group): boolean => LONGEST.test(name);
  return [...alone.filter(isLong), ...alone.filter((group) => !isLong(group)), ...small];
}

function command(words: readonly string[], { isolated, ownKernel }: Group): ReturnType<typeof inNamespace> {
  if (isolated) return inNamespace(words);
  if (ownKernel) return { program: process.execPath, args: [join(TESTS, 'uml', 'main.js'), ...words], env: {} };
  const [program = '', ...args] = words;
  return { program, args, env: {} };
}

/** What Node runs, with its arguments. */
function scriptOf(files: readonly string[]): readonly string[] {
  if (files.length > 1) return [join(TESTS, 'support', 'together.js'), ...files];
  return BUNDLE === undefined ? files : [join(TESTS, 'support', 'bundled.js'), BUNDLE, ...files];
}

/** Runs one process to its end, and prints its name and what failed. */
async function run(group: Group, extent: Extent): Promise<Result> {
  const { name, files } = group;
  const started = Date.now();
  // Limits of tap's own count from a test's start.
  const own = { [EXTENT_VARIABLE]: extent.name, TAP_TIMEOUT: '0' };
  const compiled: NodeJS.ProcessEnv = BUNDLE === undefined ? { NODE_COMPILE_CACHE: COMPILED } : {};
  const here = isRoutedHere(name) ? { [HERE_VARIABLE]: 'yes' } : {};
  const variables = { ...process.env, ...extent.env, ...own, ...compiled, ...here };
  const { program, args, env } = command([...LAUNCHER, ...extent.options, ...scriptOf(files)], group);
  const child = spawn(program, args, { env: { ...variables, ...env }, stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  let lastWords: NodeJS.Timeout | undefined;
  const stop = (): void => {
    output += `not ok - ${name}: printed nothing for ${SILENCE_MS / 1000} s\n`;
    // tap says on this signal which test it is in and what keeps it.
    child.kill('SIGALRM');
    lastWords = setTimeout(() => child.kill('SIGKILL'), LAST_WORDS_MS);
  };
  const silence = new Silence(SILENCE_MS, stop, systemClock);
  const received = (text: string): void => {
    output += text;
    silence.broken();
  };
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', received);
  let cpu = 0;
  child.once('exit', () => (cpu = processorTime.ofEnded()));
  const status = await new Promise<number | null>((resolve) => child.once('close', resolve));
  silence.end();
  clearTimeout(lastWords);

  const result = resultOf(output, status);
  const seconds = ((Date.now() - started) / 1000).toFixed(1);
  const { passed, failed, skipped } = result;
  const verdict = failed === 0 ? 'ok' : 'not ok';
  const counts = `${passed} passed, ${failed} failed, ${skipped} skipped`;
  process.stdout.write(`${verdict} - ${name}: ${counts}, ${seconds} s, processor ${cpu.toFixed(1)} s\n`);
  if (failed > 0) process.stdout.write(`${withoutPassed(output)}exit status ${String(status)}\n`);
  return result;
}

/** By tap's last line, which leaves out what is 0. A process that ended badly or early without one has failed once. */
function resultOf(output: string, status: number | null): Result {
  const summary = [...output.matchAll(/^# \{ (total: .*) \}$/gm)].at(-1)?.[1] ?? '';
  const count = (what: string): number => Number(new RegExp(`\\b${what}: (\\d+)`).exec(summary)?.[1] ?? 0);
  const failed = count('fail');
  const wrong = status !== 0 || summary === '';
  return {
    passed: count('pass'),
    failed: wrong ? Math.max(failed, 1) : failed,
    skipped: count('skip') + count('todo'),
  };
}

function withoutPassed(output: string): string {
  return output.replaceAll(/^ *ok .*\n/gm, '');
}

/** Says what is skipped, and answers the rest. */
function runnable({ files }: Extent, missing: ReadonlyMap<string, string>): readonly string[] {
  const needs = new Needs();
  return files.filter((file) => {
    const why = reasons(needs.of(file), missing);
    if (why !== '') process.stdout.write(`skipped - ${testName(file)}: ${why}\n`);
    return why === '';
  });
}

/** Whether something here says what localhost is; where nothing does, all that is started is told. */
async function knowsLocalhost(): Promise<boolean> {
  return await lookup('localhost').then(
    () => true,
    () => false,
  );
}

const extent = extentOf(process.argv.slice(2));
const { path, missing: missingPrograms, note } = findPrograms(programsCache());
if (note !== null) process.stdout.write(`# ${note}\n`);
const missing = new Map([...missingPrograms, ...missingElse()]);
if (!(await knowsLocalhost())) {
  process.stdout.write('# nothing here says what localhost is: the tests take it for this machine\n');
  process.env['NODE_OPTIONS'] = `${process.env['NODE_OPTIONS'] ?? ''} --import=${join(TESTS, 'support/localhost.js')}`;
}
process.env['PATH'] = path;
process.env[PYTHON_VARIABLE] ??= findPython();
process.env[MISSING_VARIABLE] = JSON.stringify(Object.fromEntries(missing));
if (extent.files.some((file) => USER_MODE.test(file))) {
  const problem = await userModeProblem();
  if (problem !== null) missing.set('ip_vs', problem);
}
const files = runnable(extent, missing);
const processorTime = new ProcessorTime();
const waiting = [...groups(files)];
const results: Result[] = [{ passed: 0, failed: 0, skipped: extent.files.length - files.length }];
const sum = (of: keyof Result): number => results.reduce((total, result) => total + result[of], 0);
const underWay = new Set<string>();
const seconds = Number(process.env['POINTSMAN_TEST_SECONDS'] ?? 0);
/** Whoever stops this process from outside cannot say what was left. */
const stopEarly = (): void => {
  for (const name of underWay) process.stdout.write(`not ok - ${name}: under way when ${seconds} s were over\n`);
  for (const { name } of waiting) process.stdout.write(`not ok - ${name}: not begun when ${seconds} s were over\n`);
  const left = underWay.size + waiting.length;
  process.stdout.write(`${sum('skipped')} skipped\n${sum('passed')} passed, ${sum('failed') + left} failed\n`);
  process.exit(1);
};
if (seconds > 0) setTimeout(stopEarly, seconds * 1000).unref();
const work = async (): Promise<void> => {
  for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
    underWay.add(next.name);
    results.push(await run(next, extent));
    underWay.delete(next.name);
  }
};
// Most of a packet test is waiting.
await Promise.all(Array.from({ length: availableParallelism() + 1 }, work));
process.stdout.write(`processor time: ${processorTime.total().toFixed(0)} s\n`);
process.stdout.write(`${sum('skipped')} skipped\n${sum('passed')} passed, ${sum('failed')} failed\n`);
process.exitCode = sum('failed') > 0 || extent.files.length === 0 ? 1 : 0;
