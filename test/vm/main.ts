// Runs a command as root under Debian's stock kernel, which has ip_vs, in an emulated machine that sees this one's files and writes to memory.
//
//     node .build/test/vm/main.js COMMAND [ARGUMENT ...]
//
// Exit status: the command's; 77: no such machine can be had here; 124: it took longer than POINTSMAN_VM_SECONDS (1500); 125: the machine did not come to its
// end.
// POINTSMAN_VM_CACHE: the folder that kernels and QEMU are kept in (~/.cache/pointsman-vm, about 500 MB each).
// POINTSMAN_VM_RELEASE: Debian's release whose kernel it is, such as bullseye, trixie or sid; absent: that of this machine.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { availableParallelism, homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { messageOf } from '../../src/base/error-message.js';
import { findPrograms, programsCache } from '../support/programs.js';
import { extentOf } from '../support/test-files.js';
import { bundleTests } from './bundle.js';
import { runMachine } from './machine.js';
import { provision } from './provision.js';

/** Programs of this machine that its kernel's tests start in the other, besides those of support/programs.ts, and the packages they are in. */
const TOOLS = {
  ipvsadm: 'ipvsadm',
  modprobe: 'kmod',
  setpriv: 'util-linux',
  xz: 'xz-utils',
};
/** As automake's tests say that they cannot be run. */
const UNAVAILABLE = 77;
/** What remains of the machine's time for its start, and for a runner that is stopped to say what is left. */
const LAST_WORDS_SECONDS = 40;
const { path: PATH } = findPrograms(programsCache());

function checkMachine(): void {
  if (process.arch !== 'x64') throw new Error(`the virtual machine is made for x64, and this is ${process.arch}`);
  if (process.getuid?.() !== 0) throw new Error('root is needed, to read all files as the guest sees them');
  const missing = Object.entries(TOOLS)
    .filter(([name]) => spawnSync('sh', ['-c', `command -v ${name}`], { env: { PATH } }).status !== 0)
    .map(([, deb]) => deb);
  if (missing.length > 0) throw new Error(`the tests need what is in these packages: ${missing.join(' ')}`);
}

/** What a test may be told by its environment. */
function testVariables(): Record<string, string> {
  const variables = Object.entries(process.env).filter(([name]) => /^(?:POINTSMAN|TAP|NODE)_/.test(name));
  return {
    HOME: '/root',
    LANG: 'C.UTF-8',
    ...(Object.fromEntries(variables) as Record<string, string>),
    PATH,
    POINTSMAN_PROGRAMS_CACHE: '',
  };
}

/** Where test/run.ts finds the files that it is to run as one, if the command is that. */
async function bundleVariable(folder: string, args: readonly string[]): Promise<Readonly<Record<string, string>>> {
  const [script = '', ...wanted] = args;
  if (!script.endsWith('/test/run.js')) return {};
  const { files, options } = extentOf(wanted);
  await bundleTests(folder, files, options);
  return { POINTSMAN_TEST_BUNDLE: folder };
}

/** A machine to start. Without one the process ends. */
function machine(): ReturnType<typeof provision> {
  try {
    checkMachine();
    const cache = process.env['POINTSMAN_VM_CACHE'] ?? join(homedir(), '.cache/pointsman-vm');
    return provision(cache, process.env['POINTSMAN_VM_RELEASE'] ?? null);
  } catch (error) {
    process.stderr.write(`no virtual machine: ${messageOf(error)}\n`);
    process.exit(UNAVAILABLE);
  }
}

const provided = machine();
const [program = '', ...args] = process.argv.slice(2);
const command = [program === 'node' ? process.execPath : program, ...args];
const seconds = Number(process.env['POINTSMAN_VM_SECONDS'] ?? 1500);
const processors = Math.min(2, availableParallelism());
const folder = mkdtempSync(join(tmpdir(), 'pointsman-tests-'));
try {
  // The runner says which files are left, which nobody could from outside.
  const limit = { POINTSMAN_TEST_SECONDS: String(Math.max(1, seconds - LAST_WORDS_SECONDS)) };
  const bundle = await bundleVariable(folder, args);
  const env = { ...testVariables(), ...limit, ...bundle };
  const job = { command, folder: process.cwd(), env, modules: provided.modules };
  process.exitCode = await runMachine(provided, job, { seconds, memoryMiB: 2048, processors });
} finally {
  rmSync(folder, { recursive: true, force: true });
}
