import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import t from 'tap';
import { loadAddon } from '../../src/native/load.js';

const { memory } = loadAddon();
/** Small enough to be in the heap, and large enough to have pages of their own. */
const BYTES = 40_000;
const COUNT = 1000;
/** Of so many one stays, so that what is free is amid what is used. */
const KEPT = 10;

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;

function anonymous(): number {
  const [, kilobytes] = /^RssAnon:\s+(\d+) kB$/m.exec(readFileSync('/proc/self/status', 'utf8')) ?? [];
  return Number(kilobytes) * 1024;
}

t.test('free memory inside the heap returns to the system on demand', async (t) => {
  let buffers = Array.from({ length: COUNT }, () => Buffer.allocUnsafeSlow(BYTES).fill(1));
  const { arrayBuffers } = process.memoryUsage();
  const freed = (COUNT - COUNT / KEPT) * BYTES;
  buffers = buffers.filter((_, index) => index % KEPT === 0);
  // V8 frees them on a thread of its own.
  while (process.memoryUsage().arrayBuffers > arrayBuffers - freed * 0.99) {
    collect();
    await sleep(1);
  }
  const before = anonymous();
  t.equal(await memory.memoryTrim(), true);
  const given = before - anonymous();
  t.ok(given > freed * 0.8, `${given} of ${freed} bytes`);
  t.equal(buffers.length, COUNT / KEPT);
  t.end();
});
