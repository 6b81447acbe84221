import { constants, PerformanceObserver, type PerformanceEntry } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import t from 'tap';
import { limitMemory, NODE_MAJOR } from '../../src/base/heap-options.js';
import { settleHeap } from '../../src/cli/memory.js';

const OPTIONS = { skip: NODE_MAJOR === '20' ? 'V8 of Node 20 has no option for it' : false };

/** V8 looks whether a process is idle 8 s after a collection. */
const V8_WAITS_MS = 12_000;

t.test('V8 does not collect garbage again in an idle process after a load was settled', OPTIONS, async (t) => {
  limitMemory();
  let major = 0;
  const observer = new PerformanceObserver((list) => {
    const entries = list.getEntries() as (PerformanceEntry & { readonly detail: { readonly kind: number } })[];
    major += entries.filter(({ detail }) => detail.kind === constants.NODE_PERFORMANCE_GC_MAJOR).length;
  });
  observer.observe({ entryTypes: ['gc'] });
  settleHeap();
  // Entries come in a later turn.
  while (major === 0) await sleep(10);
  const settled = major;
  await sleep(V8_WAITS_MS);
  t.equal(major, settled);
  observer.disconnect();
});
