import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, readdirSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { monotonicMs } from '../test/support/api-server/control.js';
import { mainThreadTime } from '../test/support/cpu-time.js';

/** One `synced` or `audited` line of our own log. */
export interface Sync {
  readonly family: string;
  readonly full: boolean;
  readonly transactions: number;
  readonly operations: number;
  readonly bytes: number;
  /** From the start of the sync to the kernel's acknowledgement. */
  readonly syncMs: number;
  /** When this process read the line, in milliseconds of the clock that all processes share. */
  readonly seenAt: number;
}

/** In MB. */
export interface Memory {
  readonly resident: number;
  readonly anonymous: number;
  readonly peak: number;
}

interface Waiting {
  readonly test: (sync: Sync) => boolean;
  readonly resolve: (sync: Sync) => void;
  readonly reject: (error: Error) => void;
}

const HEALTHZ = 'http://127.0.0.1:10256/healthz';
const METRICS = 'http://127.0.0.1:10249/metrics';
/** `USER_HZ`, which Linux fixes for all values that it reports to user space. */
const TICKS_PER_SECOND = 100;
const TAIL_LINES = 20;

/** A proxy's process, ours or another, in the network namespace of this one. */
export class Proxy {
  readonly startedAt = monotonicMs();
  private readonly startedAtWall = Date.now();
  private readonly child: ChildProcess;
  private readonly waiting: Waiting[] = [];
  private readonly tail: string[] = [];
  private ended = false;

  /** @param command a line for the shell. */
  constructor(command: string) {
    this.child = spawn('sh', ['-c', `exec ${command}`], { stdio: ['ignore', 'ignore', 'pipe'] });
    if (this.child.stderr === null) throw new Error('the log must be piped');
    createInterface({ input: this.child.stderr }).on('line', (line) => {
      this.read(line);
    });
    this.child.once('exit', () => {
      this.ended = true;
      for (const { reject } of this.waiting) reject(this.failure());
    });
  }

  /** Resolves with when `/healthz` first reported that all is well. */
  async healthy(): Promise<number> {
    while (!(await isHealthy())) {
      if (this.ended) throw this.failure();
      await sleep(2);
    }
    return monotonicMs();
  }

  /** Resolves with how long the first sync took from the start of the process, as the metrics have it. */
  async syncedMs(): Promise<number> {
    for (;;) {
      const seconds = await lastSyncSeconds();
      if (seconds > 0) return seconds * 1000 - this.startedAtWall;
      if (this.ended) throw this.failure();
      await sleep(2);
    }
  }

  /** The next sync of IPv4 that the test accepts. */
  sync(test: (sync: Sync) => boolean): Promise<Sync> {
    return new Promise((resolve, reject) => {
      this.waiting.push({ test: (sync) => sync.family === 'IPv4' && test(sync), resolve, reject });
    });
  }

  memory(): Memory {
    const status = readFileSync(`/proc/${this.pid}/status`, 'utf8');
    const value = (name: string): number => Number(new RegExp(`${name}:\\s+(\\d+)`).exec(status)?.[1] ?? 0) / 1024;
    return { resident: value('VmRSS'), anonymous: value('RssAnon'), peak: value('VmHWM') };
  }

  /** CPU time so far, all threads, user and system, with that of programs it started: a proxy may have them do the work. */
  cpuSeconds(): number {
    return this.ticks().reduce((sum, ticks) => sum + ticks, 0) / TICKS_PER_SECOND;
  }

  /** CPU time of its main thread so far, in milliseconds. */
  mainThreadMs(): number {
    return mainThreadTime(this.pid);
  }

  /** How often one of its threads went to sleep so far. */
  wakeups(): number {
    const threads = `/proc/${this.pid}/task`;
    const count = (thread: string): number =>
      Number(/^voluntary_ctxt_switches:\s+(\d+)/m.exec(readFileSync(`${threads}/${thread}/status`, 'utf8'))?.[1]);
    return readdirSync(threads).reduce((sum, thread) => sum + count(thread), 0);
  }

  /** The kernel's share of it, with that of programs it started. */
  kernelSeconds(): number {
    const [, system, , ofChildren] = this.ticks();
    return (system + ofChildren) / TICKS_PER_SECOND;
  }

  /** User and system, and the same of children that have ended (proc_pid_stat(5)). */
  private ticks(): readonly [number, number, number, number] {
    const fields = readFileSync(`/proc/${this.pid}/stat`, 'utf8')
      .replace(/^.*\) /, '')
      .split(' ');
    return [Number(fields[11]), Number(fields[12]), Number(fields[13]), Number(fields[14])];
  }

  async stop(): Promise<void> {
    if (this.ended) return;
    const exit = once(this.child, 'exit');
    // What ended the measurement is the error to report, not that its syncs never came.
    this.waiting.length = 0;
    this.child.kill('SIGTERM');
    await exit;
  }

  private get pid(): number {
    return this.child.pid ?? 0;
  }

  private failure(): Error {
    return new Error(`the proxy has ended:\n${this.tail.join('\n')}`);
  }

  private read(line: string): void {
    this.tail.push(line);
    if (this.tail.length > TAIL_LINES) this.tail.shift();
    const what = /\] "(synced|audited)" /.exec(line)?.[1];
    if (what === undefined) return;
    const seenAt = monotonicMs();
    const fields = new Map([...line.matchAll(/(\w+)="?([\w.]+)"?/g)].map((found) => [found[1] ?? '', found[2] ?? '']));
    const number = (name: string): number => Number(fields.get(name));
    const sync: Sync = {
      family: fields.get('family') ?? '',
      // In nftables mode the periodic check is an audit beside the syncs.
      full: what === 'audited' || fields.get('full') === 'true',
      transactions: number('transactions'),
      operations: number('elementOperations') + number('ruleOperations'),
      bytes: number('bytes'),
      syncMs: number(what === 'audited' ? 'auditMs' : 'syncMs'),
      seenAt,
    };
    const index = this.waiting.findIndex(({ test }) => test(sync));
    if (index >= 0) this.waiting.splice(index, 1)[0]?.resolve(sync);
  }
}

/** When the last sync of the family whose was first ended, since the epoch; 0: there was none. */
async function lastSyncSeconds(): Promise<number> {
  try {
    const text = await (await fetch(METRICS)).text();
    const times = [...text.matchAll(/^kubeproxy_sync_proxy_rules_last_timestamp_seconds(?:{[^}]*})? (\S+)$/gm)];
    const known = times.map(([, value]) => Number(value)).filter((value) => value > 0);
    return known.length === 0 ? 0 : Math.min(...known);
  } catch {
    return 0;
  }
}

async function isHealthy(): Promise<boolean> {
  try {
    const response = await fetch(HEALTHZ);
    await response.text();
    return response.ok;
  } catch {
    return false;
  }
}
