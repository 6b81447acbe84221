// needs: namespaces, ip
import { spawn, type ChildProcessWithoutNullStreams } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';

const PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

/** A command that runs, or has run. */
export class Running {
  #text = '';
  readonly #closed: Promise<unknown>;

  constructor(private readonly child: ChildProcessWithoutNullStreams) {
    this.#closed = once(child, 'close');
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (text: string) => (this.#text += text));
    }
  }

  /** Of the command, after the line with its number. */
  output(): string {
    return this.#text.slice(this.#text.indexOf('\n') + 1);
  }

  async reported(what: RegExp): Promise<void> {
    while (!what.test(this.output())) {
      if (this.child.exitCode !== null) throw new Error(`it has ended: ${this.output()}`);
      await delay(20);
    }
  }

  /** Children that have ended and that it has not waited for. */
  zombies(): string[] {
    return readdirSync('/proc').filter((name) => {
      const stat = /^\d+$/.test(name) ? readStat(name) : '';
      return new RegExp(`\\) Z ${this.#pid} `).test(stat);
    });
  }

  /** Sends the signal, if any, and waits for the end; the exit status. */
  async end(signal: 'SIGTERM' | 'SIGINT' | null): Promise<number> {
    if (signal !== null) process.kill(this.#pid, signal);
    await this.#closed;
    return this.child.exitCode ?? -1;
  }

  get #pid(): number {
    return Number(this.#text.slice(0, this.#text.indexOf('\n')));
  }
}

/** What is written, and how it ends, of a command that is the first process of a container: an image's root, read-only but for /run/pointsman. */
export function start(root: string, command: readonly string[]): Running {
  const user = process.getuid?.() === 0 ? [] : ['--user', '--map-root-user'];
  const script = `
    read -r pid rest < /proc/self/stat; echo "$pid"
    mount --bind "$0" "$0"; mount --rbind /dev "$0/dev"; mount -t proc proc "$0/proc"; mount -t tmpfs tmpfs "$0/run"; mkdir "$0/run/pointsman"
    mount -o remount,bind,ro "$0"; ip link set lo up
    exec env -i PATH=/usr/local/bin:/usr/sbin:/usr/bin chroot "$0" "$@"`;
  const flags = [...user, '--mount', '--net', '--pid', '--fork', '--kill-child'];
  return new Running(spawn('unshare', [...flags, 'sh', '-ec', script, root, ...command], { env: { PATH } }));
}

/** Runs such a command to its end. */
export async function run(
  root: string,
  command: readonly string[],
): Promise<{ readonly status: number; readonly output: string }> {
  const running = start(root, command);
  const status = await running.end(null);
  return { status, output: running.output() };
}

function readStat(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/stat`, 'utf8');
  } catch {
    return '';
  }
}
