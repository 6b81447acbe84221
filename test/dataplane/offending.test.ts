import t from 'tap';
import { findOffending, type Offending, type Trial } from '../../src/dataplane/offending.js';

const UNITS = Array.from({ length: 1024 }, (_, index) => index);
const SPREAD = [3, 4, 90, 511, 512, 700, 701, 1023];

interface Search extends Offending<number, string> {
  readonly taken: ReadonlySet<number>;
  readonly attempts: number;
  /** In all attempts. */
  readonly units: number;
}

/** A refusal names the first unit that is refused, nobody, or a wrong one. */
async function search(
  refused: readonly number[],
  name: (offending: number) => number | undefined,
  { first = 'larger', ...limits }: Partial<Pick<Trial<number, string>, 'most' | 'attempts' | 'first'>> = {},
): Promise<Search> {
  const taken = new Set<number>();
  let [attempts, units] = [0, 0];
  const found = await findOffending<number, string>(UNITS, {
    attempt: (part) => {
      attempts++;
      units += part.length;
      const first = part.find((unit) => refused.includes(unit));
      if (first === undefined) for (const unit of part) taken.add(unit);
      return Promise.resolve(first === undefined ? null : `not ${first}`);
    },
    named: (part, refusal) => part.filter((unit) => unit === name(Number(refusal.slice(4)))),
    most: limits.most ?? Infinity,
    attempts: limits.attempts ?? Infinity,
    first,
  });
  return { ...found, taken, attempts, units };
}

const RIGHT = (offending: number): number => offending;
const NONE = (): undefined => undefined;
const WRONG = (offending: number): number => offending + 1;

t.test('the search for offending units applies all but those that are refused alone', async (t) => {
  for (const name of [RIGHT, NONE, WRONG])
    for (const refused of [[], [512], SPREAD, UNITS.slice(100, 164)]) {
      const { found, tooMany, taken } = await search(refused, name);
      t.same(
        found.map(([unit]) => unit).sort((a, b) => a - b),
        refused,
      );
      t.same(
        found,
        found.map(([unit]) => [unit, `not ${unit}`]),
        'each with its own refusal',
      );
      t.equal(tooMany, null);
      t.equal(taken.size, UNITS.length - refused.length);
    }
});

t.test('the search for offending units takes few attempts', async (t) => {
  t.equal((await search([], NONE)).attempts, 1);
  t.equal((await search([77], RIGHT)).attempts, 3, 'whole, the one that is named, and the rest');
  t.equal((await search([77], NONE)).attempts, 1 + 2 * 10);
  t.ok((await search([77], WRONG)).attempts <= 3 + 2 * 10, 'a name that is wrong is believed once');
  const { attempts, units } = await search(SPREAD, RIGHT);
  t.ok(attempts <= 4 * SPREAD.length, `${attempts} attempts`);
  t.ok(units <= 12 * UNITS.length, `${units} units in all attempts`);
  const many = await search(
    UNITS.filter((unit) => unit % 2 === 0),
    RIGHT,
  );
  t.ok(many.units <= 12 * UNITS.length, 'however many are refused');
});

t.test('units that all need one refused object are found together, and no other', async (t) => {
  const needing = UNITS.filter((unit) => unit % 4 === 0);
  const taken = new Set<number>();
  let attempts = 0;
  const found = await findOffending<number, string>(UNITS, {
    attempt: (part) => {
      attempts++;
      if (part.some((unit) => needing.includes(unit))) return Promise.resolve('a chain');
      for (const unit of part) taken.add(unit);
      return Promise.resolve(null);
    },
    named: (part) => part.filter((unit) => needing.includes(unit)),
    most: 1,
    attempts: Infinity,
    first: 'larger',
  });
  t.same(
    found.found.map(([unit]) => unit),
    needing,
  );
  t.same([found.tooMany, taken.size, attempts], [null, UNITS.length - needing.length, 3]);
});

t.test('units without a refusal are applied although more are refused than the limit', async (t) => {
  for (const name of [RIGHT, NONE]) {
    const few = await search(SPREAD, name, { most: 4 });
    t.match(few, { tooMany: /^not \d+$/, found: { length: 4 } });
    t.ok(few.taken.size > UNITS.length / 5, `${few.taken.size} are taken`);
    const short = await search(SPREAD, name, { attempts: 12 });
    t.match(short, { tooMany: /^not \d+$/, attempts: 12 });
    t.ok(short.taken.size > UNITS.length / 5, `${short.taken.size} are taken`);
  }
});

t.test('a search with few attempts finds some units if smaller parts go first', async (t) => {
  for (const name of [RIGHT, NONE]) {
    const { found, tooMany } = await search(UNITS, name, { attempts: 12, first: 'smaller' });
    t.ok(found.length > 0, `${found.length} are found`);
    t.match(tooMany, /^not \d+$/);
  }
});
