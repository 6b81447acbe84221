import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { inNamespace } from './in-namespace.js';
import { projectFile } from './lab/agent.js';
import { PROGRAM_NAMES, type ProgramName } from './programs.js';
import { sourceOf } from './test-files.js';

export type Need = ProgramName | 'namespaces' | 'root' | 'image' | 'ip_vs';

const NEEDS: ReadonlySet<string> = new Set([...PROGRAM_NAMES, 'namespaces', 'root', 'image', 'ip_vs']);
/**
 * What a test file needs of its machine it says in a line of its own, as does a module of the tests for all that import it:
 *
 *     // needs: nft, conntrack, namespaces
 *
 * A word is the name of a program (programs.ts), or one of these:
 * namespaces  of the network and of mounts may be made, by an ordinary user in a user namespace
 * root        of the machine, not of a user namespace
 * ip_vs       Debian's kernel for user mode can be had and started (test/uml): of files *.uml, which the runner starts there
 * image       what deploy/image-root.sh takes from the machine: Debian's packages iptables and kmod, installed, not only unpacked
 */
const LINE = /^\/\/ needs: (.+)$/gm;
const ROOT = projectFile('.');
/** What is not of the tests needs nothing. */
const IN_TESTS = /^(?:packages\/[^/]+\/)?test\//;
const IMPORT = /^(?:(?:import|export)\s+(?!type\b)(?:[^'";]*\sfrom\s+)?|.*\bimport\()'(\.[^']+)\.js'/gm;

/** Set for test processes by test/run.ts: what is missing, and why, as JSON. */
export const MISSING_VARIABLE = 'POINTSMAN_TEST_MISSING';

/** Options of a test that needs more than its file does: it is skipped where that is missing. */
export function needs(...words: readonly Need[]): { readonly skip?: string } {
  const missing = JSON.parse(process.env[MISSING_VARIABLE] ?? '{}') as Readonly<Record<string, string>>;
  const skip = reasons(words, new Map(Object.entries(missing)));
  return skip === '' ? {} : { skip };
}

/** Why something cannot run; empty: it can. */
export function reasons(words: Iterable<string>, missing: ReadonlyMap<string, string>): string {
  return [...words]
    .filter((word) => missing.has(word))
    .map((word) => `no ${word}: ${missing.get(word) ?? ''}`)
    .join('; ');
}

/** What compiled test files need: by their sources, and those of the modules they import. */
export class Needs {
  readonly #known = new Map<string, ReadonlySet<string>>();

  /** @param file a compiled test file. */
  of(file: string): ReadonlySet<string> {
    return this.#ofSource(projectFile(sourceOf(file)));
  }

  #ofSource(path: string): ReadonlySet<string> {
    const known = this.#known.get(path);
    if (known !== undefined) return known;
    const needs = new Set<string>();
    this.#known.set(path, needs);
    if (!IN_TESTS.test(relative(ROOT, path)) || !existsSync(path)) return needs;
    const text = readFileSync(path, 'utf8');
    for (const [, words = ''] of text.matchAll(LINE))
      for (const word of words.split(', ')) needs.add(checked(word, path));
    for (const [, to = ''] of text.matchAll(IMPORT))
      for (const word of this.#ofSource(join(dirname(path), `${to}.ts`))) needs.add(word);
    return needs;
  }
}

function checked(word: string, path: string): string {
  if (NEEDS.has(word)) return word;
  throw new Error(`${path}: needs ${word}, which nobody can tell`);
}

/** Of what is no program, what the machine does not have or does not give to this process, and why. */
export function missingElse(): ReadonlyMap<string, string> {
  const missing = new Map<string, string>();
  const wholeMachine = readFileSync('/proc/self/uid_map', 'utf8').trim().split(/\s+/).join(' ') === '0 0 4294967295';
  if (process.getuid?.() !== 0 || !wholeMachine) missing.set('root', 'this is an ordinary user');
  if (!['iptables', 'kmod'].every((name) => existsSync(`/var/lib/dpkg/info/${name}.list`)))
    missing.set('image', "Debian's packages iptables and kmod are not installed");
  const { program, args } = inNamespace(['--mount', 'true']);
  const { status, stderr, error } = spawnSync(program, args, { encoding: 'utf8' });
  if (status !== 0) missing.set('namespaces', error?.message ?? stderr.trim());
  return missing;
}
