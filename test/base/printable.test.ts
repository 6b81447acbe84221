import t from 'tap';
import { printableLine, printableText } from '../../src/base/printable.js';

t.test('control characters become text, and everything else stays', (t) => {
  const good = 'déjà vu … ✓ 日本語 \u{1f600}\ttab';
  t.equal(printableLine(good), good);
  t.equal(printableText(`${good}\n`), `${good}\n`);
  t.equal(
    printableLine('a\nb\r\u001b[31mred\u0007\u0000\u007f'),
    'a\\u000ab\\u000d\\u001b[31mred\\u0007\\u0000\\u007f',
  );
  t.equal(printableText('\u009b31m\u202eabc\u2066\u200f\u2028'), '\\u009b31m\\u202eabc\\u2066\\u200f\\u2028');
  t.end();
});

t.test('printable JSON still parses to the same value', (t) => {
  const value = { text: 'a\u001b\u009b\u202e\u007f\nb\\u001b', list: ['\t'] };
  for (const space of [0, 1]) {
    const text = printableText(JSON.stringify(value, null, space));
    t.same(JSON.parse(text), value);
    t.notMatch(text, /[\u001b\u009b\u202e\u007f]/);
  }
  t.end();
});

t.test('long texts are made printable in linear time', (t) => {
  t.equal(printableLine('\u001b'.repeat(100_000)).length, 600_000);
  t.end();
});
