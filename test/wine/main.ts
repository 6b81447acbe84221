// Runs the tests called *.wine.ts, which start the program under Windows' own Node and Wine, with an addon that mingw-w64 builds here and DLLs that stand
// in for the Host Networking Service.
//
//     node .build/test/wine/main.js [PART OF A PATH ...]
//
// Exit status: that of the tests; 77: no Wine, compiler or Node can be had here; 124: they took longer than POINTSMAN_WINE_SECONDS (330).
// POINTSMAN_WINE_CACHE: the folder that these are kept in (~/.cache/pointsman-wine, about 2 GB).
import { spawn, spawnSync } from 'node:child_process';
import { homedir } from 'node:os';
import { delimiter, join } from 'node:path';
import { messageOf } from '../../src/base/error-message.js';
import { projectFile } from '../support/lab/agent.js';
import { buildStandIns } from './build.js';
import { provision, type Provision } from './provision.js';
import { makePrefix, removePrefix, wineEnvironment } from './prefix.js';

/** As automake's tests say that they cannot be run. */
const UNAVAILABLE = 77;
/** As timeout(1). */
const TIMED_OUT = 124;

/** Without it the process ends. */
function provided(): Provision {
  try {
    if (process.arch !== 'x64') throw new Error(`Wine is for x64, and this is ${process.arch}`);
    return provision(process.env['POINTSMAN_WINE_CACHE'] ?? join(homedir(), '.cache/pointsman-wine'));
  } catch (error) {
    process.stderr.write(`no Wine: ${messageOf(error)}\n`);
    process.exit(UNAVAILABLE);
  }
}

/** Runs the tests, and ends them and what they started when their time is up; their exit status. */
async function runTests(env: NodeJS.ProcessEnv, seconds: number): Promise<number> {
  const argv = [projectFile('.build/test/run.js'), 'wine', ...process.argv.slice(2)];
  const child = spawn(process.execPath, argv, { env, stdio: 'inherit', detached: true });
  const end = (): void => {
    if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL');
  };
  const limit = setTimeout(end, seconds * 1000);
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, end);
  const status = await new Promise<number>((resolve) => {
    child.once('close', (code) => {
      resolve(code ?? TIMED_OUT);
    });
  });
  clearTimeout(limit);
  return status;
}

const machine = provided();
const path = [machine.compilers, process.env['PATH']].join(delimiter);
const built = spawnSync(process.execPath, [projectFile('native/build-windows.mjs')], {
  env: { ...process.env, PATH: path },
  stdio: ['ignore', 'inherit', 'inherit'],
});
if (built.status !== 0) process.exit(1);
const prefix = makePrefix(machine, buildStandIns(machine.compilers));
try {
  const env = { ...process.env, ...wineEnvironment(machine, prefix) };
  process.exitCode = await runTests(env, Number(process.env['POINTSMAN_WINE_SECONDS'] ?? 330));
} finally {
  removePrefix(machine, prefix);
}
