import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';

/** One `synced` line of the process's log. */
export interface Sync {
  readonly family: string;
  readonly full: boolean;
  readonly transactions: number;
  readonly elementOperations: number;
  readonly bytes: number;
  /** Kernel and rendering: from the start of the sync to the acknowledgement. */
  readonly syncMs: number;
  /** From the change in the state to the acknowledgement. */
  readonly sinceChangeMs: number;
  /** When this process read the line, on its performance.now clock. */
  readonly seenAt: number;
}

interface Waiting {
  readonly test: (sync: Sync) => boolean;
  readonly resolve: (sync: Sync) => void;
  readonly reject: (error: Error) => void;
}

/** A proxy process in a network namespace of its own, watched through its log. */
export class Proxy {
  private readonly waiting: Waiting[] = [];
  private readonly lines: string[] = [];

  private constructor(
    private readonly child: ChildProcess,
    readonly startedAt: number,
  ) {
    if (child.stderr === null) throw new Error('the log must be piped');
    createInterface({ input: child.stderr }).on('line', (line) => {
      this.read(line);
    });
    child.once('exit', (code) => {
      const error = new Error(`the process ended with ${code ?? 'a signal'}:\n${this.lines.slice(-20).join('\n')}`);
      for (const { reject } of this.waiting) reject(error);
    });
  }

  /** Starts it; benchmarks run in a network namespace already, so the process shares it. */
  static start(main: string, parameters: readonly string[]): Proxy {
    const startedAt = performance.now();
    return new Proxy(
      spawn(process.execPath, [main, ...parameters], { stdio: ['ignore', 'ignore', 'pipe'] }),
      startedAt,
    );
  }

  /** The next sync that the test accepts. */
  sync(test: (sync: Sync) => boolean): Promise<Sync> {
    return new Promise((resolve, reject) => {
      this.waiting.push({ test, resolve, reject });
    });
  }

  /** Resident memory now and at its peak, in MB. */
  memory(): { readonly resident: number; readonly peak: number } {
    const status = readFileSync(`/proc/${this.child.pid ?? 0}/status`, 'utf8');
    const value = (name: string): number => Number(new RegExp(`${name}:\\s+(\\d+)`).exec(status)?.[1] ?? 0) / 1024;
    return { resident: value('VmRSS'), peak: value('VmHWM') };
  }

  async stop(): Promise<void> {
    this.child.kill('SIGTERM');
    await once(this.child, 'exit');
  }

  private read(line: string): void {
    this.lines.push(line);
    if (!line.includes('] "synced" ')) return;
    const fields = new Map([...line.matchAll(/(\w+)="?([\w.]+)"?/g)].map((found) => [found[1] ?? '', found[2] ?? '']));
    const number = (name: string): number => Number(fields.get(name));
    const sync: Sync = {
      family: fields.get('family') ?? '',
      full: fields.get('full') === 'true',
      transactions: number('transactions'),
      elementOperations: number('elementOperations'),
      bytes: number('bytes'),
      syncMs: number('syncMs'),
      sinceChangeMs: number('sinceChangeMs'),
      seenAt: performance.now(),
    };
    const index = this.waiting.findIndex(({ test }) => test(sync));
    if (index >= 0) this.waiting.splice(index, 1)[0]?.resolve(sync);
  }
}
