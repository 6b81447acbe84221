import { getHeapStatistics, setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import type { Machine } from '../control/mode.js';
import { SUBSYSTEM_PLATFORMS } from '../native/subsystems.js';

/**
 * Lets the heap grow by a little between collections rather than double: by 60 % during the first load, when collecting costs most and nearly all that is
 * there stays, and by a fifth from {@link settleHeap} on. Then the process only sees small changes: collecting their garbage sooner costs little, and a
 * node has better uses for the memory.
 */
export function limitHeapGrowth(): void {
  setFlagsFromString('--heap-growing-percent=60');
}

/**
 * Keeps the compiler from inlining a lot into one function. Most of our code runs hot for a second, during the first load, in which compiling took a
 * quarter of the CPU time; what optimised code of this size gains over a smaller one never makes up for that.
 */
export function limitInlining(): void {
  setFlagsFromString('--max-inlined-bytecode-size-cumulative=200');
}

/**
 * Has V8 wait longer until code is hot enough to be optimised: six times what it is without during the first load, of which compiling took a quarter of the
 * CPU time on threads that others need as well, and eighteen times from {@link settleHeap} on. Then there is a change of a millisecond now and then, and
 * compiling was a tenth of its CPU time, for code that hardly ever runs often enough to make up for it.
 */
export function limitOptimizing(during: 'load' | 'changes'): void {
  setFlagsFromString(`--interrupt-budget=${during === 'load' ? 400_000 : 1_200_000}`);
}

/**
 * Ends a load: collects garbage once, and moves what stays together. The first load leaves several times the memory behind that is needed from then on, and
 * a process that is then idle would keep it for minutes, and the pages on which a little stays for good.
 */
export function settleHeap(): void {
  limitOptimizing('changes');
  setFlagsFromString('--heap-growing-percent=20');
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  setFlagsFromString('--no-expose-gc');
  setFlagsFromString('--compact-on-every-full-gc');
  collect();
  setFlagsFromString('--no-compact-on-every-full-gc');
}

/** What a check of rules that are right leaves behind is less. */
const LOAD_BYTES = 4 * 1024 * 1024;

/** The size of the heap when a load had been settled. */
let settledBytes = 0;

/** {@link settleHeap} if the heap has grown by a load since the last time; whether it has. */
export function settleLoad(): boolean {
  if (getHeapStatistics().total_heap_size < settledBytes + LOAD_BYTES) return false;
  settleHeap();
  settledBytes = getHeapStatistics().total_heap_size;
  return true;
}

const SETTLE_MS = 1000;

let settling: NodeJS.Timeout | null = null;

/**
 * {@link settleLoad} once for the loads of a while: it takes as long as hundreds of changes, and whoever waits for the end of a load is answered first.
 *
 * As long after, when V8's own threads have freed what was collected, the C library gives back what is free in its heap.
 */
export function settleLoadSoon({ host, addon }: Machine): void {
  settling ??= setTimeout(() => {
    settling = null;
    if (!settleLoad() || host.platform !== SUBSYSTEM_PLATFORMS.memory) return;
    setTimeout(() => void addon.memory.memoryTrim(), SETTLE_MS).unref();
  }, SETTLE_MS).unref();
}
