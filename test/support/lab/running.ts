import type { ChildProcess, ChildProcessWithoutNullStreams } from 'node:child_process';
import { once } from 'node:events';
import { openEvents } from '../../../src/cli/events.js';
import { NodeProxy } from '../../../src/cli/node-proxy.js';
import { systemFiles } from '../../../src/config/files.js';
import { loadConfig, type Loaded } from '../../../src/config/load.js';
import { logTransactions, prepareMode } from '../../../src/control/mode.js';
import { LINUX_HOST } from '../../../src/host/linux/host.js';
import { loadAddon } from '../../../src/native/load.js';
import { createLogger } from '../../../src/observe/log.js';

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

/** The program in this process, where starting another takes most of a test's time. */
export class RunningHere implements Running {
  readonly pid = null;
  end: string | null = null;
  readonly #started: Promise<NodeProxy | null>;

  constructor(argv: readonly string[], receive: (text: string) => void) {
    this.#started = this.#start(argv, receive).catch((error: unknown) => {
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
    await (await this.#started)?.reconfiguration.apply(loadedRun(argv));
  }

  async #start(argv: readonly string[], receive: (text: string) => void): Promise<NodeProxy> {
    const loaded = loadedRun(argv);
    const { config } = loaded;
    const now = (): number => performance.timeOrigin + performance.now();
    const log = await createLogger(config.logging, () => ({ write: receive, now, flush: () => undefined }));
    const machine = { host: LINUX_HOST, addon: loadAddon() };
    const mode = await prepareMode(config, machine, LINUX_HOST.families(), log, logTransactions(log));
    const proxy = new NodeProxy({
      loaded,
      machine,
      mode,
      log,
      tracing: null,
      events: await openEvents(config, log),
      onFatal: (error) => {
        receive(`cannot go on: ${error.message}\n`);
        this.end = '1';
      },
    });
    await proxy.start();
    return proxy;
  }
}

function loadedRun(argv: readonly string[]): Loaded {
  const loaded = loadConfig(argv, systemFiles);
  if (loaded.command !== 'run') throw new Error(`not a run: ${argv.join(' ')}`);
  return loaded;
}
