import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import t from 'tap';
import { runCommand } from '../../src/cli/run-command.js';
import { shut } from '../../src/serve/listener.js';

t.test('explain --watch asks again and again, until no process answers', async (t) => {
  // A path of a socket is short.
  const folder = mkdtempSync(join(tmpdir(), 'pointsman-watch-'));
  const statusSocket = join(folder, 'sock');
  const asked: string[] = [];
  const server = createServer(({ url = '' }, response) => {
    asked.push(url);
    if (asked.length === 3) response.destroy();
    else response.end(`answer ${asked.length}\n`);
  });
  await new Promise<void>((resolve) => server.listen(statusSocket, resolve));
  t.teardown(async () => {
    await shut(server);
    rmSync(folder, { recursive: true });
  });
  let text = '';
  const loaded = {
    command: 'explain',
    config: { statusSocket, manifests: [] },
    from: 'node',
    to: 'web',
    output: 'text',
  };
  const parts = {
    host: () => Promise.resolve(null),
    write: (part: string) => {
      text += part;
      return Promise.resolve();
    },
  };
  const run = runCommand as (...words: readonly unknown[]) => Promise<number>;
  await t.rejects(run({ ...loaded, node: '', watch: true }, null, parts), /^Error: no answer|no answer on --status/);
  t.equal(text.replaceAll(/\u001b\[./g, '').replaceAll('\n\n', '\n'), 'answer 1\nanswer 2\n');
  t.match(asked[0], /from=node&to=web/);
});
