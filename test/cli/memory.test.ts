import { getHeapStatistics } from 'node:v8';
import t from 'tap';
import { settleLoad, settleLoadSoon } from '../../src/cli/memory.js';
import { LINUX_HOST } from '../../src/host/linux/host.js';
import { loadCompiler } from '../support/fake-kernel/compiler.js';
import { FakeKernel } from '../support/fake-kernel/fake-kernel.js';

t.test('garbage is collected after a load, and not after a check that found no difference', (t) => {
  t.ok(settleLoad());
  t.notOk(settleLoad());
  const used = getHeapStatistics().used_heap_size;
  let load: unknown[] = Array.from({ length: 200_000 }, (_, number) => ({ number, text: `${number}` }));
  t.equal(load.length, 200_000);
  load = [];
  t.ok(settleLoad());
  t.equal(load.length, 0);
  const left = getHeapStatistics().used_heap_size - used;
  t.ok(left < 4 * 1024 * 1024, `${left} bytes`);
  t.end();
});

t.test('after a load the C library returns free memory to the system, once', async (t) => {
  const load = Array.from({ length: 200_000 }, (_, number) => ({ number, text: `${number}` }));
  const addon = new FakeKernel(loadCompiler());
  let calls = 0;
  const given = new Promise<void>((resolve) => {
    addon.memory.memoryTrim = () => {
      calls++;
      resolve();
      return Promise.resolve(true);
    };
  });
  for (let count = 0; count < 3; count++) settleLoadSoon({ host: LINUX_HOST, addon });
  // Nothing of it keeps a process alive.
  const alive = setInterval(() => undefined, 1000);
  await given;
  clearInterval(alive);
  t.equal(calls, 1);
  t.equal(load.length, 200_000);
});
