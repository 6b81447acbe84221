import t from 'tap';
import { fuzzOnce } from './fuzz/fuzzer.js';
import { usually } from './support/extent.js';

t.test('hostile manifests, configurations and kubeconfigs give one error each, within limits', async (t) => {
  for (let round = 0; round < usually(150, 600); round++) {
    const find = await fuzzOnce(1, round);
    if (find !== null) t.fail(`round ${round}: ${find.target}: ${find.problem}`, { text: find.text.slice(0, 1000) });
  }
  t.pass('all were read');
});
