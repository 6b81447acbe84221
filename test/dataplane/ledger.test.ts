import t from 'tap';
import { Ledger, type Claim } from '../../src/dataplane/ledger.js';
import { cpuTime } from '../support/cpu-time.js';
import { SeededRandom } from '../support/random.js';

interface Value {
  readonly text: string;
}

const same = (one: Value, other: Value): boolean => one.text === other.text;
const texts = (map: ReadonlyMap<string, Value>): Record<string, string> =>
  Object.fromEntries([...map].sort().map(([key, { text }]) => [key, text]));

const BACKOFF = { initialMs: 100, maxMs: 1000, factor: 3 };

function newLedger(): { readonly ledger: Ledger<string, Value>; readonly clock: { now: number } } {
  const clock = { now: 0 };
  return { ledger: new Ledger({ same, now: () => clock.now, backoff: BACKOFF }), clock };
}

/** The kernel refuses a transaction for one of its keys, which is quarantined. */
function refused(ledger: Ledger<string, Value>, keys: Iterable<string>, offending: string): void {
  ledger.claim(keys).refuse();
  ledger.quarantine(offending, 'EINVAL');
}

t.test('a desired object is pending until the kernel acknowledges it', (t) => {
  const { ledger } = newLedger();
  ledger.desire('a', { text: '1' });
  t.same([...ledger.pending()], ['a']);
  const claim = ledger.claim(['a']);
  t.same([...ledger.pending()], [], 'what is under way is not sent twice');
  t.equal(ledger.acknowledged.size, 0);
  ledger.desire('a', { text: '2' });
  claim.acknowledge();
  t.same(texts(ledger.acknowledged), { a: '1' });
  t.same([...ledger.pending()], ['a'], 'what changed meanwhile is still pending');
  t.throws(() => {
    claim.acknowledge();
  }, /has ended/);
  ledger.desire('a', { text: '1' });
  t.ok(ledger.isSteady);
  ledger.desire('a', undefined);
  ledger.claim(ledger.pending()).acknowledge();
  t.same([ledger.acknowledged.size, ledger.isSteady], [0, true]);
  ledger.desire('a', { text: '1' });
  ledger.claim(['a']);
  t.throws(() => ledger.claim(['a']), /under way/);
  t.end();
});

t.test('an object that is held as desired is stored once', (t) => {
  const { ledger } = newLedger();
  const [before, after] = [{ text: '1' }, { text: '1' }];
  ledger.desire('a', before);
  ledger.readBackAll(new Map([['a', { text: '1' }]]));
  t.ok(ledger.isSteady);
  t.equal(ledger.acknowledged.get('a'), before, 'desired before it was read back');
  ledger.desire('a', after);
  t.equal(ledger.acknowledged.get('a'), after, 'and after it');
  t.end();
});

t.test('an object whose removal is desired while its batch is in flight is taken back', (t) => {
  const { ledger } = newLedger();
  ledger.desire('a', { text: '1' });
  const claim = ledger.claim(['a']);
  ledger.desire('a', undefined);
  claim.acknowledge();
  t.same([...ledger.pending()], ['a']);
  t.equal(ledger.desired('a'), undefined);
  const second = ledger.claim(['a']);
  ledger.desire('a', { text: '1' });
  second.refuse();
  t.ok(ledger.isSteady, 'a refusal left what is desired again');
  t.end();
});

t.test('after a lost answer an object is unknown until it is read back', (t) => {
  const { ledger } = newLedger();
  ledger.readBackAll(new Map([['a', { text: '1' }]]));
  ledger.desire('a', { text: '2' });
  ledger.claim(['a']).lose();
  ledger.desire('a', { text: '1' });
  t.same([...ledger.pending()], ['a'], 'even what was acknowledged before');
  t.same([...ledger.unknown], ['a']);
  ledger.readBack('a', { text: '2' });
  t.same([ledger.unknown.size, [...ledger.pending()]], [0, ['a']]);
  ledger.claim(['a']).lose();
  ledger.readBack('a', { text: '1' });
  t.ok(ledger.isSteady);
  t.end();
});

t.test('before the first listing everything is pending, removals too', (t) => {
  const { ledger } = newLedger();
  ledger.markAllUnknown();
  ledger.desire('gone', undefined);
  ledger.desire('never', undefined);
  ledger.desire('there', { text: '1' });
  t.same([...ledger.pending()], ['gone', 'never', 'there']);
  ledger.readBackAll(
    new Map([
      ['gone', { text: '1' }],
      ['there', { text: '1' }],
    ]),
  );
  t.same([ledger.allUnknown, [...ledger.pending()]], [false, ['gone']]);
  t.end();
});

t.test('an object that is not pending can be sent again, and is pending once the answer is lost', (t) => {
  const { ledger } = newLedger();
  ledger.desire('a', { text: '1' });
  ledger.readBackAll(new Map([['a', { text: '1' }]]));
  ledger.claim(['a']).refuse();
  t.ok(ledger.isSteady);
  ledger.claim(['a']).lose();
  t.same([[...ledger.pending()], [...ledger.unknown]], [['a'], ['a']]);
  t.same(ledger.desired('a'), { text: '1' });
  t.end();
});

t.test('after a listing, lost and foreign objects are pending', (t) => {
  const { ledger } = newLedger();
  ledger.desire('kept', { text: '1' });
  ledger.desire('lost', { text: '1' });
  ledger.claim(ledger.pending()).acknowledge();
  ledger.readBackAll(
    new Map([
      ['kept', { text: '1' }],
      ['foreign', { text: '1' }],
    ]),
  );
  t.same([...ledger.pending()].sort(), ['foreign', 'lost']);
  t.equal(ledger.desired('foreign'), undefined);
  t.same(ledger.desired('lost'), { text: '1' });
  const claim = ledger.claim(['lost']);
  t.throws(() => {
    ledger.readBackAll(new Map());
  }, /under way/);
  t.throws(() => {
    ledger.readBack('lost', undefined);
  }, /under way/);
  claim.refuse();
  t.end();
});

t.test('a quarantined object is retried with growing delays, or when its desired state changes', (t) => {
  const { ledger, clock } = newLedger();
  ledger.desire('a', { text: '1' });
  ledger.desire('b', { text: '1' });
  const waits: number[] = [];
  refused(ledger, ledger.pending(), 'a');
  t.same([...ledger.pending()], ['b'], 'the other does not wait');
  for (let round = 0; round < 4; round++) {
    const { reason, since, retryAt } = ledger.quarantined.get('a') ?? { reason: '', since: NaN, retryAt: NaN };
    t.same([reason, since], ['EINVAL', 0]);
    waits.push(retryAt - clock.now);
    clock.now = retryAt - 1;
    t.same([...ledger.due()], []);
    clock.now = retryAt;
    t.same([...ledger.due()], ['a']);
    refused(ledger, ledger.due(), 'a');
  }
  t.same(waits, [100, 300, 900, 1000]);
  ledger.desire('a', { text: '1' });
  t.same([...ledger.due()], [], 'the same again');
  ledger.desire('a', { text: '2' });
  t.same([...ledger.due()], ['a']);
  t.same([...ledger.pending()], ['b'], 'still by itself');
  refused(ledger, ['a'], 'a');
  t.equal(ledger.quarantined.get('a')?.since, 0);
  ledger.retry('a');
  ledger.claim(ledger.due()).acknowledge();
  t.equal(ledger.quarantined.size, 0);
  ledger.desire('b', undefined);
  ledger.quarantine('b', 'not pending any more');
  t.same([ledger.quarantined.size, ledger.isSteady], [0, true]);
  t.end();
});

t.test('an externally changed quarantined object is due, and its old state is kept until restored', (t) => {
  const { ledger } = newLedger();
  ledger.readBackAll(new Map([['a', { text: '1' }]]));
  ledger.desire('a', { text: '2' });
  ledger.damage('a');
  t.equal(ledger.damaged.size, 0, 'it is not quarantined');
  for (const end of ['restored', 'abandoned', 'as desired'] as const) {
    ledger.quarantine('a', 'EINVAL');
    t.same(ledger.due(), []);
    ledger.damage('a');
    ledger.readBackAll(new Map([['a', { text: '0' }]]));
    t.same([ledger.due(), [...ledger.damaged]], [['a'], [['a', { text: '1' }]]]);
    ledger.damage('a');
    ledger.readBackAll(new Map([['a', { text: '00' }]]));
    t.same([...ledger.damaged], [['a', { text: '1' }]], 'altered once more before it is back');
    if (end === 'abandoned') ledger.abandonDamaged('a');
    else if (end === 'as desired') ledger.readBack('a', { text: '2' });
    ledger.readBack('a', { text: '1' });
    t.equal(ledger.damaged.size, 0, end);
    ledger.desire('a', { text: '2' });
  }
  t.end();
});

t.test('of many due objects some are retried: new ones first, then those that wait longest', (t) => {
  const { ledger, clock } = newLedger();
  for (const key of ['a', 'b', 'c', 'd']) {
    ledger.desire(key, { text: '1' });
    clock.now++;
    ledger.quarantine(key, 'EINVAL');
  }
  clock.now = 200;
  ledger.quarantine('a', 'EINVAL');
  clock.now = 1000;
  t.same(ledger.due(2), ['b', 'c']);
  t.same(ledger.due(9), ['a', 'b', 'c', 'd']);
  ledger.retry('d');
  t.same(ledger.due(2), ['d', 'b']);
  ledger.quarantine('d', 'EINVAL');
  t.equal(ledger.quarantined.get('d')?.retryAt, 1100, 'and waits as at first');
  t.end();
});

/** The same in whole maps, beside a kernel that answers as chance has it. */
class Model {
  readonly kernel = new Map<string, Value>();
  readonly desired = new Map<string, Value>();
  readonly held = new Map<string, Value>();
  readonly unknown = new Set<string>();
  readonly quarantined = new Set<string>();
  readonly claims: { readonly claim: Claim; readonly sent: ReadonlyMap<string, Value | undefined> }[] = [];

  isClaimed(key: string): boolean {
    return this.claims.some(({ sent }) => sent.has(key));
  }

  pending(key: string): boolean {
    return this.unknown.has(key) || this.isClaimed(key) || this.desired.get(key)?.text !== this.held.get(key)?.text;
  }

  /** Nothing is quarantined that is not pending. */
  settle(): void {
    for (const key of this.quarantined) if (!this.pending(key)) this.quarantined.delete(key);
  }
}

function put(map: Map<string, Value>, key: string, value: Value | undefined): void {
  if (value === undefined) map.delete(key);
  else map.set(key, value);
}

const KEYS = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'];

function answer(random: SeededRandom, ledger: Ledger<string, Value>, model: Model): void {
  const [{ claim, sent } = { claim: null, sent: new Map<string, Value>() }] = model.claims.splice(
    random.below(model.claims.length),
    1,
  );
  const [fate, offending] = [random.pick(['acknowledge', 'refuse', 'blame', 'lose']), random.pick([...sent.keys()])];
  const done = fate === 'acknowledge' || (fate === 'lose' && random.chance(0.5));
  for (const [key, value] of sent) {
    if (done) put(model.kernel, key, value);
    if (fate === 'acknowledge') {
      put(model.held, key, value);
      model.unknown.delete(key);
      model.quarantined.delete(key);
    }
    if (fate === 'lose') model.unknown.add(key);
  }
  if (fate === 'acknowledge') claim?.acknowledge();
  else if (fate === 'lose') claim?.lose();
  else claim?.refuse();
  if (fate === 'blame') {
    ledger.quarantine(offending, 'EINVAL');
    model.quarantined.add(offending);
  }
  model.settle();
}

/** One step of a history; what it was. */
function step(random: SeededRandom, ledger: Ledger<string, Value>, model: Model, clock: { now: number }): string {
  const key = random.pick(KEYS);
  const value = random.chance(0.3) ? undefined : { text: String(random.below(3)) };
  const kind = random.pick(['desire', 'desire', 'desire', 'claim', 'claim', 'answer', 'answer', 'see', 'list', 'wait']);
  if (kind === 'desire') {
    put(model.desired, key, value);
    ledger.desire(key, value);
  } else if (kind === 'claim') {
    const keys = random.some([...ledger.pending(), ...ledger.due()], 0.7);
    if (keys.length === 0) return kind;
    const sent = new Map(keys.map((each) => [each, model.desired.get(each)]));
    model.claims.push({ claim: ledger.claim(keys), sent });
  } else if (kind === 'answer') {
    if (model.claims.length > 0) answer(random, ledger, model);
  } else if (kind === 'see' && !model.isClaimed(key)) {
    if (random.chance(0.3)) put(model.kernel, key, value);
    put(model.held, key, model.kernel.get(key));
    model.unknown.delete(key);
    ledger.readBack(key, model.kernel.get(key));
  } else if (kind === 'list' && model.claims.length === 0) {
    if (random.chance(0.3)) put(model.kernel, key, value);
    model.held.clear();
    for (const [each, held] of model.kernel) model.held.set(each, held);
    model.unknown.clear();
    ledger.readBackAll(new Map(model.kernel));
  } else if (kind === 'wait') {
    if (random.chance(0.5)) ledger.retry(key);
    else clock.now += random.below(400);
  }
  model.settle();
  return `${kind} ${key}`;
}

/** The ledger as text. */
function state(ledger: Ledger<string, Value>): unknown {
  const text = (key: string): string => ledger.desired(key)?.text ?? '';
  const now = new Set(ledger.pending());
  return {
    desired: KEYS.map(text),
    held: texts(ledger.acknowledged),
    pending: KEYS.filter((key) => ledger.isPending(key)),
    now: [...now].sort(),
    unknown: [...ledger.unknown].sort(),
    quarantined: [...ledger.quarantined.keys()].sort(),
    settled: ledger.isSteady,
  };
}

function expected(model: Model): unknown {
  const pending = KEYS.filter((key) => model.pending(key));
  const now = pending.filter((key) => !model.quarantined.has(key) && !model.isClaimed(key));
  return {
    desired: KEYS.map((key) => model.desired.get(key)?.text ?? ''),
    held: texts(model.held),
    pending,
    now,
    unknown: [...model.unknown].sort(),
    quarantined: [...model.quarantined].sort(),
    settled: now.length === 0,
  };
}

/** Where a history first differs from the model's; null: nowhere. */
function failure(seed: number): unknown {
  const random = new SeededRandom(seed);
  const { ledger, clock } = newLedger();
  const model = new Model();
  const history: string[] = [];
  const compare = (found: unknown, wanted: unknown): unknown =>
    JSON.stringify(found) === JSON.stringify(wanted) ? null : { seed, history, found, wanted };
  for (let round = 0; round < 60; round++) {
    history.push(step(random, ledger, model, clock));
    const different = compare(state(ledger), expected(model));
    if (different !== null) return different;
  }
  while (model.claims.length > 0) answer(random, ledger, model);
  ledger.readBackAll(new Map(model.kernel));
  clock.now += BACKOFF.maxMs;
  ledger.claim([...ledger.pending(), ...ledger.due()]).acknowledge();
  const ends = [ledger.isSteady, ledger.quarantined.size, ledger.unknown.size, texts(ledger.acknowledged)];
  return compare(ends, [true, 0, 0, texts(model.desired)]);
}

t.test('random histories with faults agree with a simple model, and end as desired', (t) => {
  for (let seed = 1; seed <= 150; seed++) {
    const found = failure(seed);
    if (found !== null) t.fail('unlike the model', { found });
  }
  t.pass('compared');
  t.end();
});

t.test('a change costs the same in a ledger of any size', async (t) => {
  const { ledger } = newLedger();
  const size = 50_000;
  for (let index = 0; index < size; index++) ledger.desire(`${index}`, { text: '0' });
  ledger.claim(ledger.pending()).acknowledge();
  // A walk through the table for each would take minutes.
  const ms = await cpuTime(() => {
    for (let index = 0; index < size; index++) {
      ledger.desire(`${index}`, { text: '1' });
      if (index % 2 === 0) refused(ledger, ledger.pending(), `${index}`);
      else ledger.claim(ledger.pending()).acknowledge();
      ledger.retry(`${index}`);
      if (index % 2 === 0) ledger.claim([`${index}`]).acknowledge();
    }
  });
  t.ok(ledger.isSteady);
  t.equal(ledger.acknowledged.size, size);
  t.ok(ms < 5000, `${ms} ms`);
});
