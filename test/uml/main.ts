// Runs a command as root under Debian's kernel for user mode, which has ip_vs, sets, links and namespaces, but of nf_tables no tables of IP. It sees this machine's
// files and writes to memory. It is a program of this machine's: it needs no KVM, starts in a few seconds and computes as fast as this machine does.
//
//     node .build/test/uml/main.js COMMAND [ARGUMENT ...]
//
// Exit status: the command's; 77: no such kernel can be had here; 124: it took longer than POINTSMAN_UML_SECONDS (1800); 125: the kernel did not come to its end.
// POINTSMAN_UML_CACHE: the folder that the kernel is kept in (~/.cache/pointsman-uml, about 250 MB).
import { messageOf } from '../../src/base/error-message.js';
import { jobOf, runUserMode } from './machine.js';
import { userModeKernel, type UserModeKernel } from './provision.js';

/** As automake's tests say that they cannot be run. */
const UNAVAILABLE = 77;

function kernel(): UserModeKernel {
  try {
    return userModeKernel();
  } catch (error) {
    process.stderr.write(`no kernel for user mode: ${messageOf(error)}\n`);
    process.exit(UNAVAILABLE);
  }
}

const provided = kernel();
const [program = '', ...args] = process.argv.slice(2);
const command = [program === 'node' ? process.execPath : program, ...args];
const seconds = Number(process.env['POINTSMAN_UML_SECONDS'] ?? 1800);
process.exitCode = await runUserMode(provided, jobOf(provided, command), { seconds, memoryMiB: 1536 }, (line) =>
  process.stdout.write(`${line}\n`),
);
