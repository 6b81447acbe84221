import t from 'tap';
import { cutText } from '../../src/base/outside-text.js';

t.test('text is cut to bytes, at a character, with an ellipsis', (t) => {
  for (const [text, maxBytes, expected] of [
    ['', 3, ''],
    ['abc', 3, 'abc'],
    ['abcd', 3, '…'],
    ['abcdef', 5, 'ab…'],
    ['äöü', 6, 'äöü'],
    ['äöüß', 6, 'ä…'],
    ['äöüß', 7, 'äö…'],
    ['a😀😀', 9, 'a😀😀'],
    ['a😀😀', 8, 'a😀…'],
    ['a😀😀', 7, 'a…'],
    ['\ud83d', 3, '\ufffd'],
    ['abc\ud83d', 5, 'ab…'],
  ] as const) {
    const cut = cutText(text, maxBytes);
    t.equal(cut, expected, `${text} to ${maxBytes} bytes`);
    t.ok(Buffer.byteLength(cut) <= maxBytes);
  }
  t.equal(cutText('x'.repeat(50_000_000), 1000).length, 998);
  t.end();
});
