// Whether the API server answers: it is asked after a silence, briefly and seldom.
import { once } from 'node:events';
import { createServer, type AddressInfo, type Socket } from 'node:net';
import t, { type Test } from 'tap';
import type { SourceState } from '../../src/observe/metrics.js';
import { apiProblem } from '../../src/serve/api-answer.js';
import type { ApiConnection } from '../../src/sources/kubernetes/connection.js';
import { connect } from '../sources/kubernetes/connect.js';

const heard = (sinceLastEventMs: number | null): SourceState => ({
  source: 'services',
  synced: true,
  sinceLastEventMs,
  failures: {},
  trouble: null,
  isWatched: true,
  received: 1,
});
const MANIFESTS: SourceState = { source: '/etc/manifests', synced: true, sinceLastEventMs: null, failures: {} };

interface Server {
  readonly api: ApiConnection;
  /** First lines of the requests that came. */
  readonly requests: readonly string[];
  answer: string | null;
}

/** A server that accepts connections, and answers each request with these bytes, or nothing. */
async function serve(t: Test, answer: string | null, connections: 'refuses' | 'accepts' = 'accepts'): Promise<Server> {
  const open = new Set<Socket>();
  const requests: string[] = [];
  const listener = createServer((socket) => {
    open.add(socket);
    socket.on('error', () => undefined);
    socket.on('data', (bytes) => {
      requests.push(bytes.toString().split('\r\n', 1)[0] ?? '');
      if (server.answer !== null) socket.write(server.answer);
    });
  });
  listener.listen(0, '127.0.0.1');
  await once(listener, 'listening');
  t.teardown(() => {
    for (const socket of open) socket.destroy();
    listener.close();
  });
  const { port } = listener.address() as AddressInfo;
  if (connections === 'refuses') listener.close();
  const api = await connect(t, { cluster: { server: `http://127.0.0.1:${port}` } });
  const server: Server = { api, requests, answer };
  return server;
}

t.test('a server that accepts connections and answers nothing is named, and not asked again at once', async (t) => {
  const server = await serve(t, null);
  let now = 0;
  const ask = (): Promise<string | null> => apiProblem(server.api, [heard(6000), MANIFESTS], () => now);
  const first = ask();
  t.equal(await ask(), await first);
  t.equal(await first, 'unavailable: no answer within 3 s');
  now = 4999;
  t.equal(await ask(), await first);
  t.same(server.requests, ['GET /version HTTP/1.1']);
  now = 5000;
  server.answer = 'HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno';
  t.equal(await ask(), null, 'a refusal is an answer');
  t.equal(server.requests.length, 2);
});

t.test('an API server that takes no connection is named', async (t) => {
  const { api, requests } = await serve(t, null, 'refuses');
  t.match(
    await apiProblem(api, [heard(6000)], () => 0),
    /^unavailable: cannot connect to 127\.0\.0\.1:\d+: .*ECONNREFUSED/,
  );
  t.same(requests, []);
});

t.test('an API server that was heard of just now is not asked', async (t) => {
  const server = await serve(t, null);
  const problem = (...sources: readonly SourceState[]): Promise<string | null> =>
    apiProblem(server.api, [...sources, MANIFESTS], () => 0);
  t.equal(await problem(heard(60_000), heard(4999)), null);
  t.equal(await problem(heard(null)), null, 'nor before its first answer');
  t.equal(await problem(), null);
  t.equal(await apiProblem(null, [heard(60_000)], () => 0), null);
  t.same(server.requests, []);
});
