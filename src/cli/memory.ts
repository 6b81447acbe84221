import { getHeapStatistics, setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import type { Machine } from '../control/mode.js';
import { SUBSYSTEM_PLATFORMS } from '../native/subsystems.js';

/** Options of V8. It writes to standard error what it does not know, so that each is named for the versions that have it. */
interface V8Options {
  /** From before the first load on. */
  readonly load: readonly string[];
  /** From the end of the first load on. */
  readonly changes: readonly string[];
}

/**
 * The young generation stays as it begins, 1 MB: after a start the process only sees changes, and what a large one saves in time it keeps in memory.
 *
 * The heap grows by a little between collections rather than doubles: by 60 % during the first load, when collecting costs most and nearly all that is
 * there stays, and by a fifth afterwards. Then collecting the garbage of small changes sooner costs little, and a node has better uses for the memory.
 *
 * The first load is collected in one step, which takes 10 ms. In small steps it took until 31 MB more had been allocated at 5,000 × 50, and V8 kept the
 * emptied pages: the process's peak was 155 to 165 MB in place of 125, and its CPU time 1.85 s in place of 1.5. Between changes small steps are right.
 *
 * The compiler does not inline a lot into one function. Most of our code runs hot for a second, during the first load, in which compiling took a quarter
 * of the CPU time; what optimised code of this size gains over a smaller one never makes up for that.
 */
const ALL: V8Options = {
  load: [
    '--semi-space-growth-factor=1',
    '--heap-growing-percent=60',
    '--max-inlined-bytecode-size-cumulative=200',
    '--no-incremental-marking',
  ],
  changes: ['--heap-growing-percent=20', '--incremental-marking'],
};

/** Code has to be ten times as hot as without it until it is optimised, and there is no middle compiler. */
const SINCE_NODE_22: V8Options = { load: ['--no-maglev', '--invocation-count-for-turbofan=30000'], changes: [] };

/**
 * By Node's major version, whose V8 is one: V8 waits longer until code is hot enough to be optimised, as compiling took a quarter of a load's CPU time on
 * threads that others need as well. Then there is a change of a millisecond now and then, and compiling was a tenth of its CPU time, for code that hardly
 * ever runs often enough to make up for it.
 */
const BY_NODE: ReadonlyMap<string, V8Options> = new Map([
  ['20', { load: ['--interrupt-budget=400000'], changes: ['--interrupt-budget=1200000'] }],
  ['22', SINCE_NODE_22],
  ['24', SINCE_NODE_22],
]);

const [NODE = ''] = process.versions.node.split('.');
/** In Node 20 the argument of `gc` means another collection, and pages that were left are unmapped at once. */
const HAS_LAST_RESORT = NODE !== '20';

/** What is set for this Node; of one that this version does not know, nothing. */
export function v8Options(during: keyof V8Options): readonly string[] {
  const own = BY_NODE.get(NODE);
  return own === undefined ? [] : [...ALL[during], ...own[during]];
}

/** What a collection needs for its time. */
export const COLLECTION_OPTIONS = ['--expose-gc', HAS_LAST_RESORT ? null : '--compact-on-every-full-gc'].filter(
  (option) => option !== null,
);

/** Whether memory is taken care of with this Node: those that {@link v8Options} knows. */
export function isKnownNode(): boolean {
  return BY_NODE.has(NODE);
}

/** Sets V8's options for the first load. */
export function limitMemory(): void {
  for (const option of v8Options('load')) setFlagsFromString(option);
}

/** The same for a process that answers from its first moment on: answers would wait for a collection in one step. */
export function limitMemoryOfServer(): void {
  limitMemory();
  if (isKnownNode()) setFlagsFromString('--incremental-marking');
}

/** Makes ready for the first load. Not before the program's files are read: V8 takes what was compiled with the options only that it had then. */
export function prepareLoad({ host, addon }: Machine): void {
  limitMemory();
  // What starting Node took.
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

/** What a check of rules that are right leaves behind is less. */
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
