import t from 'tap';
import { Backoff } from '../../src/base/backoff.js';

t.test('backoff delays grow up to the maximum, and start again after a reset', (t) => {
  const backoff = new Backoff({ initialMs: 100, maxMs: 500, factor: 2 }, () => 0);
  const next = (): number => backoff.next();
  t.same([next(), next(), next(), next(), next()], [100, 200, 400, 500, 500]);
  backoff.reset();
  t.same([backoff.delay(), backoff.delay()], [100, 100], 'asking alone does not lengthen it');
  backoff.grow();
  t.equal(backoff.delay(), 200);
  t.equal(new Backoff({ initialMs: 100, maxMs: 50, factor: 2 }, () => 0).next(), 50);
  t.end();
});

t.test('backoff jitter takes off the configured fraction, a fifth by default', (t) => {
  const options = { initialMs: 100, maxMs: 500, factor: 2 };
  t.equal(new Backoff(options, () => 0.5).next(), 90);
  t.equal(new Backoff({ ...options, jitter: 0.5 }, () => 0.5).next(), 75);
  t.end();
});
