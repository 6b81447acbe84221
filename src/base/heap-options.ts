import { setFlagsFromString } from 'node:v8';

/** Options of V8. It writes to standard error what it does not know, so that each is named for the versions that have it. */
interface V8Options {
  /** From the process's first seconds on; not to be set later. */
  readonly start: readonly string[];
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
 */
const HEAP: readonly string[] = ['--semi-space-growth-factor=1', '--heap-growing-percent=60'];

/**
 * The first load is collected in one step, which takes 10 ms. In small steps it took until 31 MB more had been allocated at 5,000 × 50, and V8 kept the
 * emptied pages: the process's peak was 155 to 165 MB in place of 125, and its CPU time 1.85 s in place of 1.5. Between changes small steps are right.
 *
 * The compiler does not inline a lot into one function. Most of our code runs hot for a second, during the first load, in which compiling took a quarter
 * of the CPU time; what optimised code of this size gains over a smaller one never makes up for that.
 */
const ALL: V8Options = {
  start: [],
  load: [...HEAP, '--max-inlined-bytecode-size-cumulative=200', '--no-incremental-marking'],
  changes: ['--heap-growing-percent=20', '--incremental-marking'],
};

/**
 * Code has to be ten times as hot as without it until it is optimised, and there is no middle compiler.
 *
 * Functions that ran before these options were set keep their smaller budget. So a function also needs 10,000 calls: at 200 × 10 one is optimised in
 * place of 23, and a first start takes 6 % less CPU time; at 5,000 × 50 it takes the same. After the load that is V8's default again, as a plan of a large
 * Service has functions that are called a few times and take long.
 *
 * V8 would collect garbage twice more when the process has been idle for 8 s after a collection. What a load leaves is collected when it ends
 * (`settleHeap`), so these two would free 0.2 MB in 0.1 s of CPU time. Once it has begun to, V8 ends the process if it finds fewer allowed than it has
 * counted (a CHECK of its memory-reducer.cc). So this is set before it can have begun.
 */
const SINCE_NODE_22: V8Options = {
  start: ['--memory-reducer-gc-count=0'],
  load: ['--no-maglev', '--invocation-count-for-turbofan=30000', '--minimum-invocations-before-optimization=10000'],
  changes: ['--minimum-invocations-before-optimization=2'],
};

/**
 * By Node's major version, whose V8 is one: V8 waits longer until code is hot enough to be optimised, as compiling took a quarter of a load's CPU time on
 * threads that others need as well. Then there is a change of a millisecond now and then, and compiling was a tenth of its CPU time, for code that hardly
 * ever runs often enough to make up for it.
 */
const BY_NODE: ReadonlyMap<string, V8Options> = new Map([
  ['20', { start: [], load: ['--interrupt-budget=400000'], changes: ['--interrupt-budget=1200000'] }],
  ['22', SINCE_NODE_22],
  ['24', SINCE_NODE_22],
]);

/** Node's major version. */
export const [NODE_MAJOR = ''] = process.versions.node.split('.');

/** What is set for this Node; of one that this version does not know, nothing. */
export function v8Options(during: keyof V8Options): readonly string[] {
  const own = BY_NODE.get(NODE_MAJOR);
  return own === undefined ? [] : [...ALL[during], ...own[during]];
}

/** Whether memory is taken care of with this Node: those that {@link v8Options} knows. */
export function isKnownNode(): boolean {
  return BY_NODE.has(NODE_MAJOR);
}

/** Half of how long V8 waits before it begins to collect what an idle process leaves (kLongDelayMs of its memory-reducer.cc). */
const START_MS = 4000;

/** Those to set before the first load, in a process that is so many milliseconds old. */
export function optionsOfLoad(ageMs: number): readonly string[] {
  return [...(ageMs < START_MS ? v8Options('start') : []), ...v8Options('load')];
}

/** Sets V8's options for the first load. */
export function limitMemory(): void {
  for (const option of optionsOfLoad(performance.now())) setFlagsFromString(option);
}

/**
 * The same for a process that answers from its first moment on. Answers would wait for a collection in one step, and code that every request runs is worth
 * compiling: with V8's own thresholds a review takes a quarter less CPU time.
 */
export function limitMemoryOfServer(): void {
  if (isKnownNode()) for (const option of HEAP) setFlagsFromString(option);
}
