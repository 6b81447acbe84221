import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import t from 'tap';

const BENCH = fileURLToPath(new URL('../../bench/loopback.js', import.meta.url));

t.test('the benchmark of node ports on loopback measures CPU time both ways', async (t) => {
  const { stdout } = await promisify(execFile)(process.execPath, [BENCH, '20']);
  const lines = stdout.trim().split('\n');
  t.equal(lines.length, 8);
  for (const line of lines)
    t.match(
      line,
      /^(?:1 Gbit\/s|unthrottled) +(?:1|100) connections +to the (?:endpoint|client) +\d+\.\d\d CPU s for 1 GB +\d+ MB\/s$/,
    );
});
