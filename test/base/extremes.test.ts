import t from 'tap';
import { greatest, least } from '../../src/base/extremes.js';

t.test('least() and greatest() take more numbers than a call takes arguments', (t) => {
  const numbers = Array.from({ length: 500_000 }, (_, index) => (index * 7919) % 500_000);
  t.throws(() => Math.min(...numbers), RangeError);
  t.same([least(numbers), greatest(numbers)], [0, 499_999]);
  t.same([least([]), greatest([])], [Infinity, -Infinity]);
  t.end();
});
