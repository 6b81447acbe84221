import { spawn, type ChildProcess } from 'node:child_process';
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { projectFile } from '../support/lab/agent.js';

/** What a process under Wine has said, as far as it has got. Ended when `status` is settled. */
export interface WindowsProcess {
  readonly child: ChildProcess;
  readonly stdout: () => string;
  readonly stderr: () => string;
  /** Null: it was killed. */
  readonly status: Promise<number | null>;
}

export interface WindowsResult {
  readonly status: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export const ADDON = projectFile('build-windows/pointsman.node');
/** No single process of a test takes that long, even where every core is busy. */
const LIMIT_MS = 180_000;

/** How Windows spells a path of this machine. */
export function windowsPath(path: string): string {
  return `Z:${path.replaceAll('/', '\\')}`;
}

/** Starts Windows' Node. */
export function startNode(argv: readonly string[], env: Readonly<Record<string, string>> = {}): WindowsProcess {
  const { POINTSMAN_WINE_NODE: node = '' } = process.env;
  return startProgram([node, ...argv], env);
}

/** Starts a program. Its output goes through files: what Node writes to a pipe of this system is lost, and services would keep one open. */
function startProgram(argv: readonly string[], env: Readonly<Record<string, string>>): WindowsProcess {
  const folder = mkdtempSync(join(tmpdir(), 'pointsman-wine-'));
  const [stdout, stderr] = ['stdout', 'stderr'].map((name) => join(folder, name)) as [string, string];
  const files = [stdout, stderr].map((path) => openSync(path, 'w'));
  const { WINELOADER: wine = '' } = process.env;
  const child = spawn(wine, argv, {
    env: { ...process.env, POINTSMAN_ADDON: windowsPath(ADDON), ...env },
    stdio: ['ignore', ...files],
  });
  files.forEach(closeSync);
  let reported = { stdout: '', stderr: '' };
  let ended = false;
  const read = (): typeof reported => {
    if (!ended) reported = { stdout: readFileSync(stdout, 'utf8'), stderr: readFileSync(stderr, 'utf8') };
    return reported;
  };
  const limit = setTimeout(() => child.kill('SIGKILL'), LIMIT_MS);
  const status = new Promise<number | null>((resolve) => {
    child.once('exit', (code) => {
      clearTimeout(limit);
      read();
      ended = true;
      rmSync(folder, { recursive: true });
      resolve(code);
    });
  });
  return { child, stdout: () => read().stdout, stderr: () => read().stderr, status };
}

/** Runs Windows' Node to its end. */
export async function runNode(
  argv: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<WindowsResult> {
  return await ended(startNode(argv, env));
}

/** Runs a program of Windows to its end. */
export async function runProgram(
  argv: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<WindowsResult> {
  return await ended(startProgram(argv, env));
}

async function ended(running: WindowsProcess): Promise<WindowsResult> {
  const status = await running.status;
  return { status, stdout: running.stdout(), stderr: running.stderr() };
}
