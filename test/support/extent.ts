/** How much of the tests runs; see test/run.ts. A file that is started by itself runs all that is in it. */
export const EXTENT_VARIABLE = 'POINTSMAN_TESTS';

/** Set where a laboratory's node is to be the namespace of the test process, which has one of its own, and the program is to run in that process. */
export const HERE_VARIABLE = 'POINTSMAN_LAB_HERE';

/** What `npm test` runs of a longer list of cases: one of each kind. */
export function usually<Some, All>(some: Some, all: All): Some | All {
  return process.env[EXTENT_VARIABLE] === 'usual' ? some : all;
}

/** Options of a test whose behaviour another one shows in `npm test` too: it runs in `npm run test:all`. */
export const inFull = usually({ skip: 'npm run test:all has it' }, {});

/** Whether it is the nightly run, or a file that is started by itself. */
export const IS_NIGHTLY = [undefined, 'nightly'].includes(process.env[EXTENT_VARIABLE]);

/** How many rounds of made-up input run: a fifth of them in `npm test`. They are the first ones, as seeds are fixed. */
export function rounds(all: number): number {
  return usually(Math.ceil(all / 5), all);
}

/** What runs of a longer list under emulation, where everything takes ten times as long: one of each kind. `vm-thorough` has the rest. */
export function underEmulation<Some, All>(some: Some, all: All): Some | All {
  return process.env[EXTENT_VARIABLE] === 'vm' ? some : all;
}
