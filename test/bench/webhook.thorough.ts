// The benchmark of the webhook, so small that it only shows that it works: every review is answered, while it is attacked, too.
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import t from 'tap';

const BENCH = fileURLToPath(new URL('../../bench/webhook.js', import.meta.url));

t.test('reviews are answered alone and while the webhook is attacked', async (t) => {
  const run = (...flags: readonly string[]): Promise<{ readonly stdout: string }> =>
    promisify(execFile)(process.execPath, [BENCH, '--services=20', '--rate=20', '--seconds=1', ...flags]);
  const { stdout } = await run('--p99=60000');
  const answered = { alone: { count: 20, failed: 0 }, attacked: { count: 20, failed: 0 } };
  t.match(JSON.parse(stdout), { ...answered, exceeds: [] });
  // A regression shows.
  await t.rejects(run('--p99=0'), {
    code: 1,
    stdout: /"exceeds": \[\s+"p99 of [\d.]+ ms under attack: more than 0 ms"/,
  });
});
