import { spawn } from 'node:child_process';
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { messageOf } from '../../src/base/error-message.js';
import { findPrograms, programsCache } from '../support/programs.js';
import type { Job } from '../vm/guest.js';
import { BEGIN, END, initScript, jobScript } from './guest.js';
import { userModeKernel, type UserModeKernel } from './provision.js';

/** What a process that was stopped at its limit answers, as timeout(1). */
const TIMED_OUT = 124;
/** The machine did not come to the command's end. */
const BROKEN = 125;
/** The kernel starts in a few seconds; all processors may be busy. */
const PROBE_SECONDS = 120;
/** From the first line about its end to the last: a kernel that panics hangs afterwards. */
const PANIC_MS = 500;

export interface UserModeLimits {
  readonly seconds: number;
  readonly memoryMiB: number;
}

/** A command with what it may be told by its environment. */
export function jobOf({ modules }: UserModeKernel, command: readonly string[]): Job {
  const variables = Object.entries(process.env).filter(([name]) => /^(?:POINTSMAN|TAP|NODE)_/.test(name));
  const { path: PATH } = findPrograms(programsCache());
  const env = { ...(Object.fromEntries(variables) as Record<string, string>), PATH, POINTSMAN_PROGRAMS_CACHE: '' };
  return { command, folder: process.cwd(), env: { HOME: '/root', LANG: 'C.UTF-8', ...env }, modules };
}

/** Why no command can be run under such a kernel here; null: one can. */
export async function userModeProblem(): Promise<string | null> {
  const lines: string[] = [];
  try {
    const kernel = userModeKernel();
    const limits = { seconds: PROBE_SECONDS, memoryMiB: 256 };
    const status = await runUserMode(kernel, jobOf(kernel, ['true']), limits, (line) => lines.push(line));
    return status === 0 ? null : lines.join('; ');
  } catch (error) {
    return messageOf(error);
  }
}

/** Runs a job under a kernel of its own, its lines handed to `print`, and answers its exit status. The kernel has one processor and no way to a network. */
export async function runUserMode(
  { program, registers }: UserModeKernel,
  job: Job,
  { seconds, memoryMiB }: UserModeLimits,
  print: (line: string) => void,
): Promise<number> {
  const folder = mkdtempSync(join(tmpdir(), 'pointsman-uml-'));
  writeFileSync(join(folder, 'init'), initScript(job, folder));
  chmodSync(join(folder, 'init'), 0o755);
  writeFileSync(join(folder, 'job'), jobScript(job));
  const args = [
    ...[
      `mem=${memoryMiB}M`,
      'root=/dev/root',
      'rootfstype=hostfs',
      'rootflags=/',
      'ro',
      `init=${join(folder, 'init')}`,
    ],
    ...[
      'con=null',
      'con0=fd:0,fd:1',
      'ssl=null',
      'quiet',
      'loglevel=1',
      'panic=-1',
      `uml_dir=${folder}`,
      'umid=kernel',
    ],
  ];
  // The kernel is many processes of the host: they end with their namespace of processes, and that with this process, however it ends.
  const launcher = ['--pdeathsig', 'KILL', 'unshare', '--pid', '--fork', '--kill-child=KILL'];
  const loaded = ['env', `LD_PRELOAD=${registers}`, program];
  try {
    return await untilEnd(spawn('setpriv', [...launcher, ...loaded, ...args], { stdio: ['ignore', 'pipe', 'pipe'] }), {
      seconds,
      print,
    });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function untilEnd(
  child: ReturnType<typeof spawn>,
  { seconds, print }: { readonly seconds: number; readonly print: (line: string) => void },
): Promise<number> {
  const before: string[] = [];
  const seen: { begun: boolean; status: number | null; timedOut: boolean; panic: string | null } = {
    begun: false,
    status: null,
    timedOut: false,
    panic: null,
  };
  const stop = (): void => {
    child.kill('SIGKILL');
  };
  const limit = setTimeout(() => {
    seen.timedOut = true;
    stop();
  }, seconds * 1000);
  process.on('SIGINT', stop).on('SIGTERM', stop).on('exit', stop);
  const read = (line: string): void => {
    if (seen.status !== null) return;
    if (line.startsWith('Kernel panic')) {
      seen.panic = line;
      setTimeout(stop, PANIC_MS);
    }
    // What the command writes last may have no end of line.
    const end = line.indexOf(END);
    if (line.trimEnd() === BEGIN) seen.begun = true;
    else if (!seen.begun) before.push(line);
    else if (end < 0) print(line);
    else {
      if (end > 0) print(line.slice(0, end));
      seen.status = Number(line.slice(end + END.length));
    }
  };
  const ended = [child.stdout, child.stderr].map(async (stream) => {
    if (stream !== null) for await (const line of createInterface({ input: stream })) read(line);
  });
  const outcome = await new Promise<string>((resolve) => {
    child.once('error', ({ message }) => {
      resolve(message);
    });
    child.once('close', (code, signal) => {
      resolve(signal ?? `status ${String(code)}`);
    });
  });
  await Promise.all(ended);
  clearTimeout(limit);
  if (seen.status !== null) return seen.status;
  if (seen.panic !== null) {
    print(`the kernel ended: ${seen.panic}`);
    return BROKEN;
  }
  for (const line of before.slice(-30)) print(line);
  print(
    seen.timedOut ? `the kernel was stopped after ${seconds} s` : `the kernel ended before the command: ${outcome}`,
  );
  return seen.timedOut ? TIMED_OUT : BROKEN;
}
