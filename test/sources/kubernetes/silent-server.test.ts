// A connection to the API server that dies silently: packets are dropped both ways, and nobody is told.
// needs: namespaces, nft
import '../../support/namespace.js';

import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Readable } from 'node:stream';
import t from 'tap';
import { loadAddon } from '../../../src/native/load.js';
import { Silence } from '../../../src/sources/kubernetes/connect/silence.js';
import { connect } from './connect.js';

const { peer } = loadAddon();
execFileSync('ip', ['link', 'set', 'lo', 'up']);

/** Nothing of the connections from these ports arrives any more. New connections have other ports. */
function cut(ports: readonly number[]): void {
  const of = ports.join(', ');
  const rules = `tcp sport { ${of} } drop; tcp dport { ${of} } drop;`;
  const input = `table inet cut { chain input { type filter hook input priority 0; ${rules} }; }`;
  execFileSync('nft', ['-f', '-'], { input });
}

t.test('a watch on a dead connection ends after eight seconds, and an idle one goes on', async (t) => {
  const answers: ServerResponse[] = [];
  const server = createServer((_request, response) => {
    answers.push(response);
    response.on('error', () => undefined);
    response.write('event');
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const silence = new Silence(peer);
  t.equal(silence.heardMs(), null, 'there is no connection');
  const stopped = new AbortController();
  t.teardown(() => {
    stopped.abort();
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  const connection = await connect(
    t,
    { cluster: { server: `http://127.0.0.1:${port}` } },
    {
      limitSilence: (...options) => {
        silence.limit(...options);
      },
    },
  );
  const watch = async (): Promise<Readable> => {
    const { body } = await connection.get('/watch', { watch: 'true' }, { accept: '*/*', signal: stopped.signal });
    await once(body, 'data');
    return body;
  };
  const [idle, dead, asked] = [await watch(), await watch(), await watch()];
  const clientPort = (answer: ServerResponse | undefined): number => answer?.socket?.remotePort ?? 0;
  const ended = (body: Readable): Promise<number> =>
    new Promise((resolve) => {
      body
        .once('error', () => undefined)
        .once('close', () => {
          resolve(performance.now());
        });
    });
  let isIdleAlive = true;
  void ended(idle).then(() => (isIdleAlive = false));
  const cutAt = performance.now();
  const ends = [ended(dead), ended(asked)];
  cut([clientPort(answers[1]), clientPort(answers[2])]);
  // What the server says is never acknowledged.
  answers[2]?.write('lost');
  for (const end of ends) {
    const took = (await end) - cutAt;
    // 8 s, and 42 s if the kernel counts probes alone.
    t.ok(took > 6000 && took < 20_000, `ended after ${Math.round(took)} ms`);
  }
  // On the idle one nothing was said for so long, and the kernel's probes were answered.
  const heardMs = silence.heardMs() ?? Infinity;
  t.ok(heardMs < 5000, `last heard of ${heardMs} ms ago`);
  const again = await watch();
  t.not(clientPort(answers[3]), clientPort(answers[1]), 'the next watch has a new connection');
  t.equal(isIdleAlive, true, 'a connection whose other end answers stays');
  answers[0]?.write('more');
  const [more] = (await once(idle, 'data')) as [Buffer];
  t.equal(String(more), 'more');
  for (const body of [idle, again]) body.once('error', () => undefined);
});
