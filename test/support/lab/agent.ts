import { spawn, type ChildProcessWithoutNullStreams } from 'node:child_process';
import { existsSync } from 'node:fs';
import type { Socket } from 'node:net';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Protocol } from '../../../src/base/protocol.js';
import { python } from '../python.js';
import type { NetworkDescription } from './topology.js';

/** One end of traffic as agent.py wants it. */
export interface AgentTraffic {
  readonly from: string;
  readonly protocol: Protocol;
  readonly address: string;
  readonly port: number;
  readonly source?: string;
  readonly sourcePort?: number;
  readonly bytes: number;
  /** Seconds. */
  readonly timeout: number;
}

export type AgentAnswer =
  | {
      readonly name: string;
      readonly at: string;
      readonly seen: string;
      readonly source: string;
      readonly bytes: number;
    }
  | { readonly error: Failure; readonly source: string | null };

/** `denied`: the sender itself was told that its packet was dropped, as happens in output hooks. */
export type Failure = 'refused' | 'timeout' | 'reset' | 'unreachable' | 'denied';

/** Outcome of repeated requests, counted. */
export type Outcome = { readonly count: number } & (
  { readonly name: string; readonly at: string; readonly masqueraded: boolean } | { readonly error: Failure }
);

/** When requests with this outcome were sent, in milliseconds since the epoch. */
export type TimedOutcome = Outcome & { readonly first: number; readonly last: number };

export type HttpAnswer =
  | { readonly status: number; readonly headers: Readonly<Record<string, string>>; readonly body: string }
  | { readonly error: string };

/** How a connection ended, and when, in milliseconds since the epoch; error null: it had not. */
export interface Fate {
  readonly error: Failure | null;
  readonly at: number;
}

interface Operations {
  /** `adopted`: namespaces that a process has already, by its id; what is in them goes first. */
  build: [
    { network: NetworkDescription; adopted: Readonly<Record<string, number>> },
    { pid: number; namespaces: Record<string, number> },
  ];
  /** Everything goes that was built and opened. */
  reset: [object, null];
  address: [{ in: string; link: string; address: string; add: boolean }, null];
  route: [{ in: string; to: string; via?: string; link?: string; source?: string; add: boolean }, null];
  link: [{ in: string; link: string; state: 'up' | 'down' | 'deleted' }, null];
  sysctl: [{ in: string; key: string; value?: string }, string];
  serve: [{ in: string; protocol: Protocol; address: string; port: number; name: string }, number];
  request: [AgentTraffic, AgentAnswer];
  burst: [AgentTraffic & { count: number; workers: number }, readonly Outcome[]];
  open: [AgentTraffic, number];
  exchange: [{ handle: number; bytes: number; timeout: number }, AgentAnswer];
  fate: [{ handle: number; timeout: number }, Fate];
  repeats: [{ handle: number }, number];
  send: [{ handle: number; bytes: number }, null];
  watch: [AgentTraffic & { workers: number; pause: number }, number];
  turn: [{ handle: number }, null];
  unwatch: [{ handle: number }, readonly TimedOutcome[]];
  close: [{ handle: number }, null];
  http: [{ from: string; address: string; port: number; path: string; timeout: number }, HttpAnswer];
}

interface Reply {
  readonly id: number;
  readonly result?: unknown;
  readonly error?: string;
}

interface Waiting {
  readonly operation: string;
  readonly resolve: (result: unknown) => void;
  readonly reject: (error: Error) => void;
}

/** The agent.py process: it holds the namespaces and everything in them, and takes them along when it ends. */
export class Agent {
  readonly #process: ChildProcessWithoutNullStreams;
  readonly #exited: Promise<void>;
  readonly #waiting = new Map<number, Waiting>();
  #errors = '';
  #lastId = 0;
  #closed = false;

  constructor() {
    // It needs nothing but the standard library: -S leaves out what a machine has installed besides, which costs as much as the rest of its start.
    this.#process = spawn(python(), ['-BS', projectFile('test/support/lab/agent.py')]);
    this.#process.stderr.setEncoding('utf8').on('data', (text: string) => (this.#errors += text));
    this.#process.stdin.on('error', () => undefined);
    createInterface({ input: this.#process.stdout }).on('line', (line) => {
      this.#settle(JSON.parse(line) as Reply);
    });
    this.#exited = new Promise((resolve) => {
      this.#process.once('error', (error) => {
        this.#errors += `python3: ${error.message}`;
      });
      this.#process.once('close', () => {
        this.#closed = true;
        for (const { operation, reject } of this.#waiting.values()) reject(this.#gone(operation));
        this.#waiting.clear();
        resolve();
      });
    });
  }

  /** Operations start in the order of the calls; those that wait for packets run side by side. */
  call<Name extends keyof Operations>(operation: Name, parameters: Operations[Name][0]): Promise<Operations[Name][1]> {
    if (this.#closed) return Promise.reject(this.#gone(operation));
    const id = ++this.#lastId;
    return new Promise<Operations[Name][1]>((resolve, reject) => {
      // The agent's results are what the table above says; a test that meets another shape fails anyway.
      this.#waiting.set(id, { operation, resolve: resolve as (result: unknown) => void, reject });
      this.#process.stdin.write(`${JSON.stringify({ id, op: operation, ...parameters })}\n`);
    });
  }

  /** Everything goes but the process, for who builds again. This process need not wait for it any more. */
  async reset(): Promise<void> {
    await this.call('reset', {});
    this.#hold(false);
  }

  /** Waits for answers again. */
  resume(): void {
    this.#hold(true);
  }

  #hold(held: boolean): void {
    const { stdin, stdout, stderr } = this.#process;
    // Streams of a process are sockets, whatever their types say.
    for (const each of [this.#process, ...([stdin, stdout, stderr] as unknown as readonly Socket[])])
      if (held) each.ref();
      else each.unref();
  }

  async close(): Promise<void> {
    this.#process.stdin.end();
    this.#process.kill('SIGKILL');
    await this.#exited;
  }

  #settle(reply: Reply): void {
    const waiting = this.#waiting.get(reply.id);
    if (waiting === undefined) return;
    this.#waiting.delete(reply.id);
    if (reply.error === undefined) waiting.resolve(reply.result);
    else waiting.reject(new Error(`laboratory: ${waiting.operation}: ${reply.error}`));
  }

  #gone(operation: string): Error {
    return new Error(
      `laboratory: ${operation}: its process has ended${this.#errors === '' ? '' : `: ${this.#errors.trim()}`}`,
    );
  }
}

/** Absolute path of a file of the repository, wherever the tests were compiled to. */
export function projectFile(path: string): string {
  for (const start of [import.meta.dirname, process.cwd()]) {
    for (let folder = start; ; folder = dirname(folder)) {
      if (existsSync(join(folder, 'test/support/lab/agent.py'))) return join(folder, path);
      if (folder === dirname(folder)) break;
    }
  }
  throw new Error('run the tests inside the repository: test/support/lab/agent.py was not found');
}
