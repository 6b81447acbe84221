import { getHeapStatistics, setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { isKnownNode, limitMemory, NODE_MAJOR, v8Options } from '../base/heap-options.js';
import type { Machine } from '../control/mode.js';
import { SUBSYSTEM_PLATFORMS } from '../native/subsystems.js';

/** In Node 20 the argument of `gc` means another collection, and pages that were left are unmapped at once. */
const HAS_LAST_RESORT = NODE_MAJOR !== '20';

/** What a collection needs for its time. */
export const COLLECTION_OPTIONS = ['--expose-gc', HAS_LAST_RESORT ? null : '--compact-on-every-full-gc'].filter(
  (option) => option !== null,
);

/**
 * Prepares for the first load. Not before the program's files are read: V8 accepts cached code only with the options that it
 * was compiled with.
 */
export function prepareLoad({ host, addon }: Machine): void {
  limitMemory();
  // The memory that the start of Node took.
  if (host.platform === SUBSYSTEM_PLATFORMS.memory) void addon.memory.memoryTrim();
}

/**
 * Ends a load: collects garbage, and moves what stays together. The first load leaves several times the memory behind that is needed from then on, and
 * a process that is then idle would keep it for minutes, and the pages on which a little stays for good.
 */
export function settleHeap(): void {
  for (const option of v8Options('changes')) setFlagsFromString(option);
  if (!isKnownNode()) return;
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as (options?: object) => void;
  setFlagsFromString('--no-expose-gc');
  if (HAS_LAST_RESORT) {
    // V8 keeps the pages that it moved objects from, but where memory is its only concern.
    collect({ type: 'major', flavor: 'last-resort' });
    return;
  }
  setFlagsFromString('--compact-on-every-full-gc');
  collect();
  setFlagsFromString('--no-compact-on-every-full-gc');
}

/** A check without a difference leaves less garbage than this. */
const LOAD_BYTES = 4 * 1024 * 1024;

/** The size of the heap after a load. */
let settledBytes = 0;

/** Whether the heap has grown by a load since the last was settled. */
function hasLoad(): boolean {
  return getHeapStatistics().total_heap_size >= settledBytes + LOAD_BYTES;
}

/** {@link settleHeap} if the heap has grown by a load since the last time; whether it has. */
export function settleLoad(): boolean {
  if (!hasLoad()) return false;
  settleHeap();
  settledBytes = getHeapStatistics().total_heap_size;
  return true;
}

const SETTLE_MS = 1000;

let settling: NodeJS.Timeout | null = null;

/**
 * {@link settleLoad} once for the loads of a while: it takes as long as hundreds of changes, and clients that wait for the end of a load are answered first.
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
