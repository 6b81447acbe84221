import t from 'tap';
import { commandOf, parseCommand } from '../../src/commands/command-line.js';
import type { CommandParts, ProxyCommand } from '../../src/commands/definition.js';
import { Given } from '../../src/commands/given.js';
import type { Loaded } from '../../src/config/load.js';
import { serveStatusSocket } from '../support/status-socket.js';

t.test('explain --watch asks again and again, until no process answers', async (t) => {
  const asked: string[] = [];
  const statusSocket = await serveStatusSocket(t, ({ url = '' }, response) => {
    asked.push(url);
    if (asked.length === 3) response.destroy();
    else response.end(`answer ${asked.length}\n`);
  });
  let text = '';
  const argv = ['explain', '--watch', '--from=node', 'web'];
  const command = commandOf(argv) as ProxyCommand;
  const loaded = { config: { statusSocket, manifests: [] } } as unknown as Loaded;
  const run = command.prepare(new Given(command.flags, parseCommand(command, argv)), loaded);
  const parts = {
    host: () => Promise.resolve(null),
    isTerminal: false,
    write: (part: string) => {
      text += part;
      return Promise.resolve();
    },
  };
  await t.rejects(run(parts as unknown as CommandParts), /^Error: no answer|no answer on --status/);
  t.equal(text.replaceAll(/\u001b\[./g, '').replaceAll('\n\n', '\n'), 'answer 1\nanswer 2\n');
  t.match(asked[0], /from=node&to=web/);
});
