import { getHeapStatistics } from 'node:v8';
import t from 'tap';
import { settleLoad } from '../../src/cli/memory.js';

t.test('garbage is collected after a load, and not after a check that found all right', (t) => {
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
