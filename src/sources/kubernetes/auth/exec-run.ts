import { spawn, type ChildProcess } from 'node:child_process';
import { printableLine } from '../../../base/printable.js';
import { CredentialsError } from './errors.js';

/** One run of a command. */
interface Run {
  readonly command: string;
  readonly args: readonly string[];
  readonly env: NodeJS.ProcessEnv;
  /** Whether it may use our terminal: standard input for answers, standard error for prompts. */
  readonly interactive: boolean;
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

/** A command that could not be started, or did not end well. */
export class CommandError extends CredentialsError {
  /**
   * @param exitCode null: it could not be started; -1: it ended without one.
   * @param stderr the end of what it wrote, in one line.
   */
  constructor(
    readonly exitCode: number | null,
    message: string,
    readonly stderr: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}

const MAX_STDOUT_BYTES = 1 << 20;
const MAX_STDERR_CHARS = 1024;
/** For the rest of what it printed, once it has ended while something that it started holds its outputs open. */
const DRAIN_MS = 500;
const NOT_EXECUTABLE: readonly unknown[] = ['ENOENT', 'EACCES', 'ENOTDIR'];

/**
 * Answers what the command printed.
 *
 * @throws CredentialsError saying how it ended, with the end of its standard error; `installHint` is appended where it could not even be started.
 */
export function runCommand(run: Run, installHint: string): Promise<string> {
  const { timeoutMs, signal } = run;
  return new Promise((resolve, reject) => {
    // A group of its own, so that what it started itself can be ended with it; a terminal can only be read by the group that has it.
    const detached = !run.interactive && process.platform !== 'win32';
    const child = start(run, detached);
    const stdout: Buffer[] = [];
    let length = 0;
    let stderr = '';
    let closed = false;
    let exitCode: number | null = -1;
    const end = (problem: string | null, cause?: unknown): void => {
      clearTimeout(timer);
      signal.removeEventListener('abort', abort);
      if (!closed) kill(child.pid, detached);
      child.stdout?.destroy();
      child.stderr?.destroy();
      if (problem === null) {
        resolve(Buffer.concat(stdout).toString('utf8'));
        return;
      }
      const output = printable(stderr);
      reject(new CommandError(exitCode, `${problem}${output === '' ? '' : `: ${output}`}`, output, { cause }));
    };
    const abort = (): void => {
      end('was ended, as its result is no longer needed');
    };
    const timer = setTimeout(() => {
      end(`did not end within ${timeoutMs / 1000} s`);
    }, timeoutMs);
    signal.addEventListener('abort', abort, { once: true });
    child.stdout?.on('data', (chunk: Buffer) => {
      length += chunk.length;
      if (length > MAX_STDOUT_BYTES) end(`printed more than ${MAX_STDOUT_BYTES} bytes`);
      else stdout.push(chunk);
    });
    child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      stderr = (stderr + text).slice(-MAX_STDERR_CHARS - 1);
    });
    child.on('error', (error: NodeJS.ErrnoException) => {
      exitCode = null;
      const hint = NOT_EXECUTABLE.includes(error.code) && installHint !== '' ? `; ${installHint.trim()}` : '';
      end(`cannot be run: ${error.message}${hint}`, error);
    });
    child.on('exit', (code, by) => {
      clearTimeout(timer);
      whenDrained(child, () => {
        closed = true;
        exitCode = code ?? exitCode;
        end(code === 0 ? null : code === null ? `was ended by ${by ?? 'a signal'}` : `failed with exit code ${code}`);
      });
    });
  });
}

function start({ command, args, env, interactive }: Run, detached: boolean): ChildProcess {
  const terminal = interactive ? 'inherit' : null;
  const stdio = [terminal ?? 'ignore', 'pipe', terminal ?? 'pipe'] as const;
  return spawn(command, args, { env, detached, windowsHide: true, stdio: [...stdio] });
}

/** For a command that has just ended: calls back when all that it printed was read, or {@link DRAIN_MS} later. */
function whenDrained(child: ChildProcess, finish: () => void): void {
  const drain = setTimeout(finish, DRAIN_MS);
  child.on('close', () => {
    clearTimeout(drain);
    finish();
  });
}

/** As one line, its start left out where it is long. */
function printable(text: string): string {
  const tail =
    text.length > MAX_STDERR_CHARS ? `…${text.slice(-MAX_STDERR_CHARS).replace(/^[\udc00-\udfff]/, '')}` : text;
  return printableLine(tail.trim());
}

function kill(pid: number | undefined, group: boolean): void {
  if (pid === undefined) return;
  try {
    process.kill(group ? -pid : pid, 'SIGKILL');
  } catch {
    // It has ended by itself.
  }
}
