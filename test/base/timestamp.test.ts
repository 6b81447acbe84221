import t from 'tap';
import { formatTimestamp, parseTimestamp, systemWallClock } from '../../src/base/timestamp.js';

t.test('RFC 3339 with nanoseconds', (t) => {
  t.equal(formatTimestamp(1_700_000_000_000_000_001n), '2023-11-14T22:13:20.000000001Z');
  t.equal(formatTimestamp(1_700_000_000_999_999_999n), '2023-11-14T22:13:20.999999999Z');
  t.equal(formatTimestamp(0n), '1970-01-01T00:00:00.000000000Z');
  t.equal(formatTimestamp(null), '0001-01-01T00:00:00Z');
  t.end();
});

t.test('RFC 3339 is read, and nothing else', (t) => {
  t.equal(parseTimestamp('2023-11-14T22:13:20Z'), 1_700_000_000_000);
  t.equal(parseTimestamp('2023-11-14t23:13:20.5+01:00'), 1_700_000_000_500);
  for (const text of ['', '2023-11-14', '2023-11-14 22:13:20Z', '2023-11-14T22:13:20', '2023-13-14T22:13:20Z', 'x']) {
    t.equal(parseTimestamp(text), null, text);
  }
  t.end();
});

t.test('the wall clock follows the system and is finer than a millisecond', (t) => {
  const clock = systemWallClock();
  const times = Array.from({ length: 50 }, () => clock());
  t.ok(times.some((time) => time % 1_000_000n !== 0n));
  t.ok(
    times.every((time, index) => index === 0 || time >= times[index - 1]!),
    'not backwards',
  );
  const lead = clock() - BigInt(Date.now()) * 1_000_000n;
  t.ok(lead > -3_000_000n && lead < 3_000_000n, `${lead} ns`);
  t.end();
});

t.test('the wall clock does not step where the process waits between two clocks', (t) => {
  const clock = systemWallClock();
  const { now } = Date;
  t.teardown(() => (Date.now = now));
  const lead = (): bigint => clock() - process.hrtime.bigint();
  const before = lead();
  Date.now = () => {
    const time = now();
    while (now() < time + 20);
    return time;
  };
  const during = lead();
  t.ok(during - before < 3_000_000n && before - during < 3_000_000n, `${during - before} ns`);
  t.end();
});

t.test('the wall clock follows when the time is set', (t) => {
  const clock = systemWallClock();
  const { now } = Date;
  t.teardown(() => (Date.now = now));
  Date.now = () => now() + 3_600_000;
  const lead = clock() - BigInt(now()) * 1_000_000n;
  t.ok(lead > 3_590_000_000_000n, `${lead} ns`);
  t.end();
});
