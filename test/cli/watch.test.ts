import t from 'tap';
import { runCommand } from '../../src/cli/run-command.js';
import { serveStatusSocket } from '../support/status-socket.js';

t.test('explain --watch asks again and again, until no process answers', async (t) => {
  const asked: string[] = [];
  const statusSocket = await serveStatusSocket(t, ({ url = '' }, response) => {
    asked.push(url);
    if (asked.length === 3) response.destroy();
    else response.end(`answer ${asked.length}\n`);
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
