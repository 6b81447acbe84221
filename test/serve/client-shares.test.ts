import t from 'tap';
import { ClientShares, type Client } from '../../src/serve/client-shares.js';
import { sharedAnswer } from '../../src/serve/shared-answer.js';
import { FakeClock } from '../support/fake-clock.js';
import { RecordingLog } from '../support/recording-log.js';

function client(address: string, isNear = false): Client {
  return { key: `address ${address}`, address, isNear };
}

t.test('one client gets a tenth of the main thread, and others do not wait for it', (t) => {
  const clock = new FakeClock();
  const shares = new ClientShares(clock, new RecordingLog());
  const [attacker, other] = [client('198.51.100.1'), client('192.0.2.1')];
  let [spent, waited] = [0, 0];
  for (const end = clock.now() + 60_000; clock.now() < end; clock.elapse(2)) {
    if (shares.wait(attacker) > 0) continue;
    shares.spend(attacker, 2);
    spent += 2;
    waited = Math.max(waited, shares.wait(other));
  }
  t.equal(waited, 0);
  t.ok(spent <= 6000 + 200 + 2, `${spent} ms of a minute`);
  t.end();
});

t.test('many clients get a third of the main thread, and those that use little do not wait', (t) => {
  const clock = new FakeClock();
  const shares = new ClientShares(clock, new RecordingLog());
  const many = Array.from({ length: 20 }, (_, index) => client(`198.51.100.${index}`));
  const [probe, kubelet] = [client('192.0.2.1'), client('192.0.2.254', true)];
  let [spent, waited] = [0, 0];
  for (let now = 0; now < 60_000; now += 2, clock.elapse(2)) {
    for (const attacker of many) {
      if (shares.wait(attacker) > 0) continue;
      shares.spend(attacker, 2);
      spent += 2;
    }
    if (now % 100 !== 0) continue;
    waited = Math.max(waited, shares.wait(probe), shares.wait(kubelet));
    shares.spend(probe, 0.4);
    shares.spend(kubelet, 0.4);
  }
  t.equal(waited, 0);
  // Each has the little that is sure, too.
  t.ok(spent < 60 * (300 + 20 * 5) + 1000, `${spent} ms of a minute`);
  t.end();
});

t.test(
  'a client that takes too much is reported once, then with the number of times, and forgotten when it is calm',
  (t) => {
    const clock = new FakeClock();
    const log = new RecordingLog();
    const shares = new ClientShares(clock, log);
    for (let times = 0; times < 999; times++) shares.refused(client('198.51.100.1'));
    t.equal(log.lines.length, 2, 'the first, and the hundredth');
    for (let index = 0; index < 50; index++) shares.refused(client(`203.0.113.${index}`));
    t.equal(log.lines.length, 2 + 10, 'nine by address, and one line for the others');
    t.match(shares.crowded[0], { client: '198.51.100.1', times: 999 });
    t.same(shares.crowded.at(-1), { client: null, times: 41 });
    clock.elapse(600_001);
    t.same(shares.crowded, []);
    t.end();
  },
);

t.test('a costly answer is made for a tenth of the time, and for all who ask meanwhile', async (t) => {
  const clock = new FakeClock();
  let made = 0;
  const answer = sharedAnswer(() => {
    const end = performance.now() + 5;
    while (performance.now() < end);
    return Promise.resolve(++made);
  }, clock);
  t.same(await Promise.all([answer(), answer(), answer()]), [1, 1, 1]);
  await new Promise((resolve) => setImmediate(resolve));
  const later = [answer(), answer()];
  while (clock.waiting === 0) await new Promise((resolve) => setImmediate(resolve));
  t.equal(made, 1, 'it rests');
  await clock.advance(60_000);
  t.same(await Promise.all(later), [2, 2]);
  await t.rejects(sharedAnswer(() => Promise.reject(new Error('no')), clock)(), { message: 'no' });
});
