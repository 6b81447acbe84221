// Connection attempts that the kernel counts while somebody asks.
import t from 'tap';
import { EndpointAttempts, NOT_IN_THIS_MODE } from '../../src/control/endpoint-attempts.js';
import type { AttemptCounter, EndpointAttempts as Row } from '../../src/dataplane/contract.js';
import { FakeClock } from '../support/fake-clock.js';
import { RecordingLog } from '../support/recording-log.js';

const A = '10.0.0.1:80';
const B = '10.0.0.2:80';

/** A kernel that counts. */
class FakeCounter implements AttemptCounter {
  opened = 0;
  isOpen = false;
  failure: Error | null = null;
  rows = new Map<string, Row>();

  open(): Promise<void> {
    // Of the first family it has succeeded when it fails of the second.
    this.isOpen = true;
    if (this.failure !== null) return Promise.reject(this.failure);
    this.opened++;
    this.rows.clear();
    return Promise.resolve();
  }

  close(): Promise<void> {
    this.isOpen = false;
    return Promise.resolve();
  }

  read(): Promise<readonly Row[] | null> {
    return Promise.resolve(this.isOpen ? [...this.rows.values()] : null);
  }

  count(endpoint: string, attempts: number, answers: number, refusals = 0): void {
    const row = this.rows.get(endpoint) ?? { family: 'IPv4', endpoint, attempts: 0, answers: 0, refusals: 0 };
    this.rows.set(endpoint, {
      ...row,
      attempts: row.attempts + attempts,
      answers: row.answers + answers,
      refusals: row.refusals + refusals,
    });
  }
}

class Scene {
  readonly clock = new FakeClock();
  readonly log = new RecordingLog();
  readonly counter = new FakeCounter();
  readonly attempts = new EndpointAttempts({
    open: () => Promise.resolve(this.counter),
    log: this.log,
    clock: this.clock,
  });

  async silent(): Promise<readonly string[]> {
    return (await this.attempts.ask()).silent.map(({ endpoint }) => endpoint);
  }
}

t.test('connection attempts are counted from the first question until a minute after the last', async (t) => {
  const { attempts, counter, clock } = new Scene();
  t.same(attempts.seen().countedMs, null);
  t.same((await attempts.ask()).countedMs, 0);
  await clock.advance(50_000);
  t.ok(counter.isOpen);
  t.equal((await attempts.ask()).countedMs, 50_000);
  await clock.advance(50_000);
  t.ok(counter.isOpen);
  await clock.advance(20_000);
  t.notOk(counter.isOpen);
  t.equal(clock.waiting, 0, 'nothing is done any more');
  await attempts.ask();
  t.equal(counter.opened, 2);
  await attempts.stop();
  t.same([counter.isOpen, clock.waiting], [false, 0]);
  await attempts.ask();
  t.notOk(counter.isOpen, 'not once the process ends');
});

t.test('attempts to an endpoint that does not answer are reported, to others not', async (t) => {
  const scene = new Scene();
  const { counter, clock } = scene;
  await scene.silent();
  counter.count(A, 5, 0);
  counter.count(B, 50, 49);
  await clock.advance(600);
  t.same(await scene.silent(), [], 'answers may be under way');
  await clock.advance(600);
  t.same(await scene.silent(), [], 'for a second');
  await clock.advance(600);
  t.same(await scene.silent(), [A]);
  t.match(scene.attempts.seen().tallies.get(A), { attempts: 5, unanswered: 5, refused: 0 });
  counter.count(A, 3, 1);
  await clock.advance(2000);
  t.same(await scene.silent(), [], 'it answers again');
  counter.count(A, 2, 0);
  await clock.advance(2000);
  await scene.silent();
  await clock.advance(2000);
  t.same(await scene.silent(), [], 'two attempts prove nothing');
  counter.count(A, 1, 0, 1);
  await clock.advance(2000);
  t.same(await scene.silent(), [A]);
  t.match(scene.attempts.seen().tallies.get(A), { attempts: 11, answers: 1, unanswered: 3, refused: 1 });
});

t.test('attempts count once though the kernel forgets them or restarts its counters', async (t) => {
  const { attempts, counter, clock } = new Scene();
  await attempts.ask();
  counter.count(A, 4, 4);
  counter.count(B, 2, 2);
  await clock.advance(1000);
  await attempts.ask();
  counter.rows.delete(B);
  counter.rows.delete(A);
  counter.count(A, 3, 3);
  await clock.advance(1000);
  const { tallies } = await attempts.ask();
  t.match(tallies.get(A), { attempts: 7, answers: 7 });
  t.notOk(tallies.has(B));
  counter.isOpen = false;
  await clock.advance(1000);
  await attempts.ask();
  t.ok(counter.isOpen, 'rules that an external change removed are there again');
  counter.count(A, 1, 1);
  await clock.advance(1000);
  t.match((await attempts.ask()).tallies.get(A), { attempts: 8, answers: 8 });
});

t.test('a mode or kernel that cannot count attempts is reported', async (t) => {
  const { attempts, counter, clock, log } = new Scene();
  counter.failure = new Error('no nf_tables');
  t.match(await attempts.ask(), { countedMs: null, problem: 'no nf_tables' });
  t.notOk(counter.isOpen, 'nothing is left that counts');
  await attempts.ask();
  t.same(log.lines, ['error cannot count connection attempts: no nf_tables']);
  counter.failure = null;
  t.match(await attempts.ask(), { countedMs: 0, problem: null });
  const other = new FakeCounter();
  await attempts.follow(() => Promise.resolve(other));
  t.same([counter.isOpen, other.isOpen], [false, true], 'another mode');
  await attempts.follow(null);
  t.notOk(other.isOpen);
  t.match(await attempts.ask(), { countedMs: null, problem: NOT_IN_THIS_MODE });
  t.equal(clock.waiting, 0);
});
