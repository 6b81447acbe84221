import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { cpio } from './cpio.js';
import { jobScript, type Job } from './guest.js';
import type { Provision } from './provision.js';

export interface MachineLimits {
  readonly seconds: number;
  readonly memoryMiB: number;
  readonly processors: number;
}

/** What a process that was stopped at its limit answers, as timeout(1). */
const TIMED_OUT = 124;
/** The machine did not come to the command's end. */
const BROKEN = 125;

/** The kernel doubts a TSC that is emulated, and without it each look at a clock leaves the machine; and memory is not emptied twice. */
const KERNEL_ARGUMENTS =
  'console=ttyS0 quiet panic=-1 panic_on_oops=1 mitigations=off nokaslr nowatchdog no_timer_check rcupdate.rcu_expedited=1 random.trust_cpu=on audit=0 apparmor=0 selinux=0 tsc=reliable init_on_alloc=0 transparent_hugepage=madvise';

/** Runs a job in a machine of its own, its output on ours, and answers its exit status. Emulated throughout: nothing is asked of the processor. */
export async function runMachine(
  { qemu, kernel, initramfs }: Provision,
  job: Job,
  { seconds, memoryMiB, processors }: MachineLimits,
): Promise<number> {
  const folder = mkdtempSync(join(tmpdir(), 'pointsman-vm-'));
  const [memory, status, console] = ['initramfs', 'status', 'console'].map((name) => join(folder, name)) as [
    string,
    string,
    string,
  ];
  // The kernel unpacks one archive after the other.
  const archives = [readFileSync(initramfs), cpio([{ path: 'job', content: Buffer.from(jobScript(job)) }])];
  writeFileSync(memory, Buffer.concat(archives));
  const args = [
    ...['-machine', 'q35,accel=tcg', '-cpu', 'max,la57=off', '-smp', String(processors), '-m', String(memoryMiB)],
    ...['-nodefaults', '-no-user-config', '-no-reboot', '-display', 'none', '-nic', 'none'],
    ...['-kernel', kernel, '-initrd', memory, '-append', KERNEL_ARGUMENTS, '-serial', `file:${console}`],
    ...['-fsdev', 'local,id=host,path=/,security_model=none,readonly=on,multidevs=remap'],
    ...['-device', 'virtio-9p-pci,fsdev=host,mount_tag=host', '-device', 'virtio-serial-pci'],
    ...['-chardev', 'stdio,id=output,signal=off', '-device', 'virtserialport,nr=1,chardev=output'],
    ...['-chardev', `file,id=status,path=${status}`, '-device', 'virtserialport,nr=2,chardev=status'],
  ];
  try {
    const outcome = await runToEnd(qemu, args, seconds);
    const answered = existsSync(status) ? readFileSync(status, 'utf8').trim() : '';
    if (/^\d+$/.test(answered)) return Number(answered);
    process.stderr.write(`${existsSync(console) ? lastLines(readFileSync(console, 'utf8')) : ''}${outcome.text}\n`);
    return outcome.timedOut ? TIMED_OUT : BROKEN;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Runs the machine until it ends, its time is up, or this process is told to end. It does not outlive this process, however that ends. */
async function runToEnd(
  { program, args, env }: Provision['qemu'],
  more: readonly string[],
  seconds: number,
): Promise<{ readonly text: string; readonly timedOut: boolean }> {
  const child = spawn('setpriv', ['--pdeathsig', 'KILL', program, ...args, ...more], {
    env,
    // Its input stays open and silent: at its end the port that takes the output would close.
    stdio: ['pipe', 'inherit', 'inherit'],
  });
  const limited = { timedOut: false };
  const stop = (): void => {
    child.kill('SIGKILL');
  };
  const limit = setTimeout(() => {
    limited.timedOut = true;
    stop();
  }, seconds * 1000);
  process.on('SIGINT', stop).on('SIGTERM', stop).on('exit', stop);
  const text = await new Promise<string>((resolve) => {
    child.once('error', (error) => {
      resolve(`cannot start the virtual machine: ${error.message}`);
    });
    child.once('close', (code, signal) => {
      resolve(`the virtual machine ended before the command (${signal ?? `status ${code}`})`);
    });
  });
  clearTimeout(limit);
  return { text: limited.timedOut ? `the virtual machine was stopped after ${seconds} s` : text, ...limited };
}

function lastLines(text: string): string {
  return text.split('\n').slice(-30).join('\n');
}
