// Judges a proxy by every case of the kit, in private network namespaces.
//
//     npm run conformance -- [--mode nftables | iptables | ipvs] [--flavour nft | legacy] [--only REGEX] [--subject dist | here | PATH]
//                            [--kernel this | vm | uml] [--without REGEX] [--report FILE]
//
// subject  dist: the built program; here: the same in this process; a path: any program with kube-proxy's command line, such as kube-proxy
// kernel   vm: Debian's stock kernel in an emulated machine (test/vm); uml: User Mode Linux (test/uml); both have ip_vs
// without  the program renders no rule that matches, see support/lab/leaving-out-addon.cjs: the kit has to notice
// report   the outcomes as JSON, with kernel and versions, to be attached to an issue
//
// Prints a line for each outcome that is not as expected, then "N passed, N failed". Exit status: 0 if all are as expected.
import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { release } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { HERE_VARIABLE } from '../support/extent.js';
import { inNamespace } from '../support/in-namespace.js';
import type { LabMode } from '../support/lab/mode.js';
import { findPrograms, programsCache } from '../support/programs.js';
import { CASES } from './cases/index.js';
import { Count, type Found } from './count.js';
import { judge } from './judge.js';
import { leavingOut } from './left-out.js';

/** Set in the process that has the node's namespace for its own. */
const ISOLATED = 'POINTSMAN_CONFORMANCE_ISOLATED';

const { values } = parseArgs({
  options: {
    mode: { type: 'string', default: 'nftables' },
    flavour: { type: 'string', default: 'nft' },
    only: { type: 'string', default: '' },
    subject: { type: 'string', default: 'dist' },
    kernel: { type: 'string', default: 'this' },
    without: { type: 'string' },
    report: { type: 'string' },
  },
});

function labModeOf(mode: string, flavour: string): LabMode {
  const named = mode === 'nftables' ? mode : `${mode}-${flavour}`;
  const known = ['nftables', 'iptables-nft', 'iptables-legacy', 'ipvs-nft', 'ipvs-legacy'] as const;
  const found = known.find((each) => each === named);
  if (found === undefined) throw new Error(`--mode ${mode} --flavour ${flavour}: there is no such mode`);
  return found;
}

/** Runs this under another kernel; its exit status. */
function elsewhere(kernel: string): number {
  const starter = join(import.meta.dirname, '..', kernel, 'main.js');
  const own = process.argv
    .slice(1)
    .filter((word, index, words) => word !== '--kernel' && words[index - 1] !== '--kernel');
  const { status } = spawnSync(process.execPath, [starter, 'node', ...own], { stdio: 'inherit' });
  return status ?? 1;
}

/** Runs this in a namespace that is the node's, where the program is to run in this process. */
function isolated(): number {
  const { program, args, env } = inNamespace([process.execPath, ...process.argv.slice(1)]);
  const variables = { ...process.env, ...env, [ISOLATED]: 'yes', [HERE_VARIABLE]: 'yes' };
  return spawnSync(program, args, { stdio: 'inherit', env: variables }).status ?? 1;
}

async function run(): Promise<number> {
  const { mode, flavour, only, subject, kernel, without, report } = values;
  const labMode = labModeOf(mode, flavour);
  if (kernel === 'vm' || kernel === 'uml') return elsewhere(kernel);
  // Programs that the laboratory starts and the machine lacks are fetched.
  process.env['PATH'] = findPrograms(programsCache()).path;
  if (kernel !== 'this') throw new Error(`--kernel ${kernel}: this, vm or uml`);
  if (subject === 'here' && process.env[ISOLATED] === undefined) return isolated();
  const pattern = new RegExp(only);
  const cases = CASES.filter(({ id, title }) => pattern.test(id) || pattern.test(title));
  const outcomes: Found[] = [];
  const isOurs = subject === 'dist' || subject === 'here';
  const count = new Count(outcomes, (text) => process.stdout.write(text));
  try {
    const env = without === undefined ? {} : leavingOut(without);
    // What compares the kernel with the plan renders no such rule either: packets have to show it.
    Object.assign(process.env, env);
    await judge(count, cases, { mode: labMode, ...(isOurs ? { env } : { program: resolve(subject) }) });
  } finally {
    await count.end();
  }
  const failed = outcomes.filter(({ found, expected }) => found !== expected).length;
  if (report !== undefined) {
    const about = { subject, mode, flavour, kernel: release(), node: process.version, date: new Date().toISOString() };
    writeFileSync(report, `${JSON.stringify({ ...about, cases: cases.map(({ id }) => id), outcomes }, null, 1)}\n`);
  }
  process.stdout.write(`${outcomes.length - failed} passed, ${failed} failed\n`);
  return failed > 0 || outcomes.length === 0 ? 1 : 0;
}

process.exitCode = await run();
