import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { setTimeout } from 'node:timers/promises';
import t from 'tap';

/** Whether it runs, which what has ended and nobody has waited for does not. */
function runs(pid: number): boolean {
  try {
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
  } catch {
    return false;
  }
}

t.test('processes of a benchmark end with it, even when it is killed', async (t) => {
  const module = new URL('../support/kube-apiserver.js', import.meta.url).href;
  const program = `
    import { start } from '${module}';
    const child = start('sleep', ['600']);
    child.once('spawn', () => console.log(child.pid));`;
  const bench = spawn(process.execPath, ['--input-type=module', '-e', program], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  t.teardown(() => bench.kill('SIGKILL'));
  const [printed] = (await once(bench.stdout.setEncoding('utf8'), 'data')) as readonly unknown[];
  const pid = Number(printed);
  // Until then it is the program that asks the kernel for it.
  while (readFileSync(`/proc/${pid}/comm`, 'utf8') !== 'sleep\n') await setTimeout(5);
  t.ok(runs(pid));
  bench.kill('SIGKILL');
  await once(bench, 'exit');
  for (let attempt = 0; attempt < 2000 && runs(pid); attempt++) await setTimeout(10);
  t.notOk(runs(pid));
  if (runs(pid)) process.kill(pid, 'SIGKILL');
});
