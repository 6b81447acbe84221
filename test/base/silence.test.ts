import t from 'tap';
import { FakeClock } from '../support/fake-clock.js';
import { Silence } from '../support/silence.js';

t.test('the silence limit runs from the last sign of life', async (t) => {
  const clock = new FakeClock();
  let stopped = 0;
  const silence = new Silence(300, () => stopped++, clock);
  for (let step = 0; step < 10; step++) {
    await clock.advance(299);
    silence.broken();
  }
  t.equal(stopped, 0, 'ten times the limit, and never silent for it');
  await clock.advance(300);
  t.equal(stopped, 1);
  silence.end();
  t.equal(clock.waiting, 0);
});

t.test('the silence limit does nothing after its end', async (t) => {
  const clock = new FakeClock();
  const silence = new Silence(300, () => t.fail('stopped'), clock);
  silence.end();
  await clock.advance(1000);
  t.equal(clock.waiting, 0);
});
