import t from 'tap';
import {
  durationFromNanoseconds,
  durationMilliseconds,
  durationNanoseconds,
  parseDuration,
} from '../../src/config/duration.js';

const HOUR = 3_600_000;

t.test('durations in Go syntax are parsed and printed canonically', (t) => {
  const rows: readonly (readonly [string, string, number])[] = [
    ['0', '0s', 0],
    ['-0', '0s', 0],
    ['0s', '0s', 0],
    ['30s', '30s', 30_000],
    ['+30s', '30s', 30_000],
    ['90s', '1m30s', 90_000],
    ['1h', '1h0m0s', HOUR],
    ['1h2m3s', '1h2m3s', HOUR + 123_000],
    ['24h', '24h0m0s', 24 * HOUR],
    ['500ms', '500ms', 500],
    ['1.5s', '1.5s', 1500],
    ['.5s', '500ms', 500],
    ['5.s', '5s', 5000],
    ['1500us', '1.5ms', 1.5],
    ['3µs', '3µs', 0.003],
    ['3μs', '3µs', 0.003],
    ['7ns', '7ns', 0.000007],
    ['-1m', '-1m0s', -60_000],
    ['2h30m10ms', '2h30m0.01s', 2.5 * HOUR + 10],
    ['1s1s', '2s', 2000],
    ['2562047h', '2562047h0m0s', 2562047 * HOUR],
  ];
  for (const [text, canonical, milliseconds] of rows) {
    const parsed = parseDuration(text)!;
    t.equal(parsed, canonical, text);
    t.equal(durationMilliseconds(parsed), milliseconds, text);
    t.equal(parseDuration(parsed), parsed, `${text}: canonical text reads back`);
    t.equal(durationFromNanoseconds(durationNanoseconds(parsed)), parsed, `${text}: nanoseconds read back`);
  }
  t.end();
});

t.test('wrong durations are refused', (t) => {
  const wrong = [
    '',
    '-',
    '+',
    '1',
    '30',
    's',
    '.s',
    '1d',
    '1 s',
    ' 1s',
    '1s ',
    '--1s',
    '1.2.3s',
    '1e3s',
    '9223372037s1',
    '2562048h',
    '1S',
    `${'9'.repeat(100_000)}h`,
  ];
  for (const text of wrong) t.equal(parseDuration(text), null, text.slice(0, 20));
  t.end();
});
