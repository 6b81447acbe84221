// The benchmark of the webhook, so small that it only shows that it works: every review is answered, while it is attacked, too.
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import t from 'tap';

const BENCH = fileURLToPath(new URL('../../bench/webhook.js', import.meta.url));

t.test('reviews are answered alone and while the webhook is attacked', async (t) => {
  const flags = ['--services', '20', '--rate', '20', '--seconds', '1'];
  const { stdout } = await promisify(execFile)(process.execPath, [BENCH, ...flags]);
  t.match(JSON.parse(stdout), { alone: { count: 20, failed: 0 }, attacked: { count: 20, failed: 0 } });
});
