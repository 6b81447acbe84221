import { readFileSync } from 'node:fs';

/** CPU milliseconds that this process spends on some work; other processes of a busy machine do not count. */
export async function cpuTime(work: () => unknown): Promise<number> {
  const before = process.cpuUsage();
  await work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000;
}

/** CPU milliseconds of a process's first thread so far, without those of its other threads: workers, compilers, collectors of garbage. */
export function mainThreadTime(pid = process.pid): number {
  const [nanoseconds = ''] = readFileSync(`/proc/${pid}/task/${pid}/schedstat`, 'utf8').split(' ');
  return Number(nanoseconds) / 1e6;
}
