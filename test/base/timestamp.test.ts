import t from 'tap';
import { formatTimestamp, parseTimestamp, systemWallClock } from '../../src/base/timestamp.js';

t.test('timestamps are printed as RFC 3339 with nanoseconds', (t) => {
  t.equal(formatTimestamp(1_700_000_000_000_000_001n), '2023-11-14T22:13:20.000000001Z');
  t.equal(formatTimestamp(1_700_000_000_999_999_999n), '2023-11-14T22:13:20.999999999Z');
  t.equal(formatTimestamp(0n), '1970-01-01T00:00:00.000000000Z');
  t.equal(formatTimestamp(null), '0001-01-01T00:00:00Z');
  t.end();
});

t.test('only RFC 3339 is read as a timestamp', (t) => {
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
  // The process may have to wait between two looks: what it saw is between the system's time before and after.
  const system = (): bigint => BigInt(Date.now()) * 1_000_000n;
  const [before, time, after] = [system(), clock(), system()];
  t.ok(time > before - 3_000_000n && time < after + 3_000_000n, `${time - before} to ${time - after} ns`);
  t.end();
});

t.test('the wall clock does not step where the process waits between two clocks', (t) => {
  const { now } = Date;
  const bigint = process.hrtime.bigint.bind(process.hrtime);
  t.teardown(() => {
    Date.now = now;
    process.hrtime.bigint = bigint;
  });
  // Both clocks are the test's, so that the process waits here and nowhere else.
  let time = 5_000_000_000_000n;
  let waits = 0n;
  process.hrtime.bigint = () => time;
  Date.now = () => {
    const milliseconds = 1_700_000_000_000 + Number(time / 1_000_000n);
    time += waits;
    return milliseconds;
  };
  const clock = systemWallClock();
  const lead = (): bigint => clock() - time;
  const before = lead();
  waits = 20_000_000n;
  const during = lead();
  waits = 0n;
  const after = lead();
  Date.now = now;
  process.hrtime.bigint = bigint;
  t.same([during - before, after - before], [0n, 0n]);
  t.end();
});

t.test('the wall clock follows when the system time is set', (t) => {
  const clock = systemWallClock();
  const { now } = Date;
  t.teardown(() => (Date.now = now));
  Date.now = () => now() + 3_600_000;
  const lead = clock() - BigInt(now()) * 1_000_000n;
  t.ok(lead > 3_590_000_000_000n, `${lead} ns`);
  t.end();
});
