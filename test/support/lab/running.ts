import type { ChildProcess, ChildProcessWithoutNullStreams } from 'node:child_process';
import { once } from 'node:events';
import type { NodeProxy } from '../../../src/cli/node-proxy.js';

/** The program under test, started. */
export interface Running {
  /** Null when it is no process of its own. */
  readonly pid: number | null;
  /** How it ended by itself, or was ended; null while it runs. */
  readonly end: string | null;
  readonly exitCode: number | null;
  /** Ends it and waits for that. */
  stop(signal: NodeJS.Signals): Promise<void>;
  /** Has it run as by another command line, if it does not find out by itself. */
  reconfigure(argv: readonly string[]): Promise<void>;
}

/** A process of its own, whose output is heard. */
export class RunningProcess implements Running {
  readonly #process: ChildProcess;

  constructor(child: ChildProcessWithoutNullStreams, receive: (text: string) => void) {
    for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', receive);
    this.#process = child;
  }

  get pid(): number | null {
    return this.#process.pid ?? null;
  }

  get end(): string | null {
    const { signalCode, exitCode } = this.#process;
    return signalCode ?? (exitCode === null ? null : String(exitCode));
  }

  get exitCode(): number | null {
    return this.#process.exitCode;
  }

  async stop(signal: NodeJS.Signals): Promise<void> {
    const closed = once(this.#process, 'close');
    this.#process.kill(signal);
    await closed;
  }

  reconfigure(): Promise<void> {
    return Promise.resolve();
  }
}

/** The program in this process, where starting another takes most of a test's time. Only then is it loaded: elsewhere each test file would wait for that. */
export class RunningHere implements Running {
  readonly pid = null;
  end: string | null = null;
  readonly #started: Promise<NodeProxy | null>;

  constructor(argv: readonly string[], receive: (text: string) => void) {
    const onFatal = (error: Error): void => {
      receive(`cannot go on: ${error.message}\n`);
      this.end = '1';
    };
    this.#started = import('./start-here.js')
      .then(({ startHere }) => startHere(argv, receive, onFatal))
      .catch((error: unknown) => {
        receive(`${String(error)}\n`);
        this.end = '1';
        return null;
      });
  }

  get exitCode(): number | null {
    return this.end === null ? null : Number(this.end);
  }

  async stop(): Promise<void> {
    await (await this.#started)?.stop();
    this.end ??= '0';
  }

  async reconfigure(argv: readonly string[]): Promise<void> {
    const { loadedRun } = await import('./start-here.js');
    await (await this.#started)?.reconfiguration.apply(loadedRun(argv));
  }
}
