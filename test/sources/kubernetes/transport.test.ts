import { execFileSync } from 'node:child_process';
import type { ServerResponse } from 'node:http';
import { createServer, type AddressInfo, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import t, { type Test } from 'tap';
import { RateLimit } from '../../../src/sources/kubernetes/connect/rate-limit.js';
import { userAgent } from '../../../src/sources/kubernetes/connect/transport.js';
import {
  ApiError,
  type ApiConnection,
  type ApiResponse,
  type GetOptions,
} from '../../../src/sources/kubernetes/connection.js';
import { AuthServer } from '../../support/auth-server.js';
import { Authority } from '../../support/certificates.js';
import { RecordingObserver } from '../../support/recording-observer.js';
import { clockOf, connect, connectBy, fetchText, tcpTimer, type ConnectOptions } from './connect.js';

const authority = new Authority();
const pair = authority.issue({ commonName: 'server', alternativeNames: ['IP:127.0.0.1'] });

t.teardown(() => {
  authority.remove();
});

interface Pair {
  readonly server: AuthServer;
  readonly connection: ApiConnection;
}

async function open(t: Test, options: ConnectOptions = {}, prefix = ''): Promise<Pair> {
  const server = await AuthServer.start({ cert: pair.certificate, key: pair.key });
  t.teardown(() => server.stop());
  const cluster = { server: `${server.url()}${prefix}`, 'certificate-authority': authority.own.certificateFile };
  return { server, connection: await connect(t, { cluster, user: { token: 'a' } }, options) };
}

function get(connection: ApiConnection, options: Partial<GetOptions> = {}): Promise<ApiResponse> {
  const { signal } = new AbortController();
  return connection.get('/watch', { watch: 'true' }, { accept: 'application/json', signal, ...options });
}

/** A server on loopback of bare sockets. */
async function openBare(t: Test, serve: (socket: Socket) => void): Promise<string> {
  const sockets: Socket[] = [];
  const server = createServer((socket) => {
    sockets.push(socket);
    socket.on('error', () => undefined);
    serve(socket);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(async () => {
    for (const socket of sockets) socket.destroy();
    await new Promise((resolve) => server.close(resolve));
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

t.test('the transport sends paths and queries, and reads response heads', async (t) => {
  const { server, connection } = await open(t, {}, '/k8s/cluster/');
  server.handler = (_, response) => {
    response.writeHead(429, { 'Content-Type': 'Application/JSON; charset=utf-8;stream=watch', 'Retry-After': '7' });
    response.end('later');
  };
  const query = { labelSelector: '!a,b in (c)', watch: 'true' };
  const { signal } = new AbortController();
  const response = await connection.get('/api/v1/services', query, { accept: 'a/b;q=1, */*', signal });
  t.equal(server.last.url, '/k8s/cluster/api/v1/services?labelSelector=%21a%2Cb+in+%28c%29&watch=true');
  t.equal(server.last.headers.accept, 'a/b;q=1, */*');
  t.match(response, {
    status: 429,
    contentType: 'application/json',
    retryAfterMs: 7000,
  });
  response.body.destroy();
  for (const [header, expected] of [
    [new Date(Date.now() + 60_000).toUTCString(), 'about a minute'],
    ['Thu, 01 Jan 1970 00:00:00 GMT', 0],
    ['soon', null],
  ] as const) {
    server.handler = (_, answer) => answer.writeHead(503, { 'Retry-After': header }).end();
    const { retryAfterMs, body, contentType } = await get(connection);
    body.destroy();
    if (expected === 'about a minute') t.ok(retryAfterMs !== null && retryAfterMs > 50_000 && retryAfterMs <= 60_000);
    else t.equal(retryAfterMs, expected);
    t.equal(contentType, '');
  }
  for (const status of [301, 403, 404, 410, 500]) {
    server.handler = (_, answer) => answer.writeHead(status, { Location: '/elsewhere' }).end('told');
    t.equal(await fetchText(connection), `${status} told`, "every status is the caller's");
  }
});

t.test('the transport sends POST', async (t) => {
  const { server, connection } = await open(t);
  server.handler = (request, response) => {
    request.setEncoding('utf8');
    request.on('data', (text: string) => response.writeHead(201).end(text.toUpperCase()));
  };
  const { signal } = new AbortController();
  t.match(await connection.post('/events', '{"a":"ü"}', { signal }), { status: 201, body: '{"A":"Ü"}' });
  t.match(server.last.headers, { 'content-type': 'application/json', 'content-length': '10' });
  server.handler = (_, response) => response.end('x'.repeat((1 << 20) + 1));
  await t.rejects(connection.post('/events', '{}', { signal }), { code: 'broken', message: /longer than/ });
});

t.test('each POST has a connection of its own, whatever the server does with it afterwards', async (t) => {
  // As servers do that neither report nor delay the end of a connection.
  const requests = new Map<Socket, number>();
  const url = await openBare(t, (socket) => {
    socket.on('data', () => {
      const count = (requests.get(socket) ?? 0) + 1;
      requests.set(socket, count);
      if (count > 1) socket.destroy();
      else socket.write('HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\n{}');
    });
  });
  const connection = await connectBy(t, { master: url });
  const { signal } = new AbortController();
  await fetchText(connection);
  for (let each = 0; each < 3; each++)
    t.match(await connection.post('/reviews', '{}', { signal }), { status: 201, body: '{}' });
  t.same([...requests.values()], [1, 1, 1, 1]);
});

t.test('connections are reused, one for each concurrent request', async (t) => {
  const { server, connection } = await open(t);
  for (let round = 0; round < 4; round++) await fetchText(connection);
  t.same([...new Set(server.seen.map((seen) => seen.connection))], [1]);
  const watches: ServerResponse[] = [];
  server.handler = (_, response) => {
    response.write('begun');
    watches.push(response);
  };
  const bodies = await Promise.all([get(connection), get(connection), get(connection)]);
  t.equal(server.sockets.size, 3);
  for (const watch of watches) watch.end();
  for (const { body } of bodies) await body.toArray();
  server.handler = (_, response) => response.end('ok');
  await fetchText(connection);
  t.equal(new Set(server.seen.map((seen) => seen.connection)).size, 3);
});

t.test('TCP keepalive starts after 30 seconds', async (t) => {
  const { server, connection } = await open(t);
  server.handler = (_, response) => response.write('begun');
  const { body } = await get(connection);
  while (tcpTimer(server.port).kind === '01') await sleep(5);
  const { kind, left } = tcpTimer(server.port);
  t.equal(kind, '02');
  t.ok(parseInt(left, 16) > 2_000 && parseInt(left, 16) <= 3_000, left);
  body.destroy();
});

t.test('an unexpected content encoding is an error', async (t) => {
  const { server, connection } = await open(t);
  server.handler = (_, response) => response.writeHead(200, { 'Content-Encoding': 'gzip' }).end('x');
  await t.rejects(get(connection), { code: 'broken', message: /content coding gzip/ });
});

t.test('an unexpected protocol upgrade is an error', async (t) => {
  const { server, connection } = await open(t);
  server.handler = (_, response) => response.writeHead(101, { Connection: 'Upgrade', Upgrade: 'other' }).end();
  await t.rejects(get(connection), { code: 'broken', message: /answered 101/ });
});

t.test('a connection that the server closed while idle is replaced', async (t) => {
  const { server, connection } = await open(t);
  let answers = 0;
  server.handler = (request, response) => {
    // What a server does that closes an idle connection just when the next request comes.
    if (answers++ === 1) request.socket.destroy();
    else response.end('ok');
  };
  t.equal(await fetchText(connection), '200 ok');
  t.equal(await fetchText(connection), '200 ok', 'asked again on a new one');
  t.equal(answers, 3);

  // Several idle ones: the second attempt is on a new connection, not on the next that is as good as gone.
  server.handler = (_, response) => setTimeout(() => response.end('ok'), 50);
  await Promise.all([fetchText(connection), fetchText(connection)]);
  const known = new Set(server.seen.map((seen) => seen.connection));
  server.handler = (request, response, { connection: number }) => {
    if (known.has(number)) request.socket.destroy();
    else response.end('new');
  };
  t.equal(await fetchText(connection), '200 new');

  server.handler = (request, response) => {
    if (answers++ === 1) request.socket.destroy();
    else response.end('ok');
  };
  answers = 1;
  const { signal } = new AbortController();
  await t.rejects(connection.post('/events', '{}', { signal }), { code: 'broken' }, 'an event is never sent twice');
});

t.test('an abort closes the socket in every state', async (t) => {
  const { server, connection } = await open(t);
  const reason = new Error('enough');
  const settled = async (): Promise<void> => {
    while (server.sockets.size > 0) await sleep(5);
  };
  const begun = new AbortController();
  server.handler = (_, response) => response.write('begun');
  const { body } = await get(connection, { signal: begun.signal });
  const read = (async () => {
    for await (const chunk of body) t.equal(String(chunk), 'begun');
  })();
  await sleep(20);
  begun.abort(reason);
  await t.rejects(read, { message: 'enough' });
  await settled();

  const silent = new AbortController();
  server.handler = () => undefined;
  const request = get(connection, { signal: silent.signal });
  const seen = server.seen.length;
  while (server.seen.length === seen) await sleep(5);
  silent.abort(reason);
  await t.rejects(request, { message: 'enough' });
  await settled();

  const early = new AbortController();
  early.abort(reason);
  await t.rejects(get(connection, { signal: early.signal }), { message: 'enough' });

  const unread = new AbortController();
  server.handler = (_, response) => response.write('begun');
  await get(connection, { signal: unread.signal });
  unread.abort(reason);
  await settled();
});

t.test('an abort while connecting closes the socket', async (t) => {
  const master = (await openBare(t, () => undefined)).replace('http', 'https');
  const connection = await connectBy(t, { master });
  const controller = new AbortController();
  const request = get(connection, { signal: controller.signal });
  await sleep(50);
  controller.abort(new Error('enough'));
  await t.rejects(request, { message: 'enough' });
});

t.test('silence before the response head is a timeout', async (t) => {
  const { server, connection } = await open(t);
  server.handler = () => undefined;
  await t.rejects(get(connection, { headerTimeoutMs: 50 }), { code: 'timeout', message: /no answer within 0\.05 s/ });
  // Where every core is busy the headers may be late as well: then again, with longer times.
  const late = async (headerTimeoutMs: number): Promise<readonly string[]> => {
    server.handler = (_, response) => {
      response.flushHeaders();
      setTimeout(() => response.end('late'), 1.5 * headerTimeoutMs);
    };
    const response = await get(connection, { headerTimeoutMs }).catch(() => null);
    return response === null ? late(2 * headerTimeoutMs) : (await response.body.toArray()).map(String);
  };
  t.same(await late(100), ['late'], 'a body may take its time');
});

t.test('broken connections are errors', async (t) => {
  const { server, connection } = await open(t);
  server.handler = (request, response) => {
    response.write('begun');
    setTimeout(() => request.socket.destroy(), 20);
  };
  const { body } = await get(connection);
  await t.rejects(body.toArray(), { code: 'broken' }, 'never a silent end');
  server.handler = (request) => request.socket.destroy();
  await t.rejects(get(connection), { code: 'broken', message: /^127\.0\.0\.1:\d+: / });
  await server.stop();
  const refused = { code: 'connect', message: /cannot connect to 127\.0\.0\.1:\d+: TCP: .*ECONNREFUSED/ };
  await t.rejects(get(connection), refused);
  const babble = await connectBy(t, { master: await openBare(t, (socket) => socket.end('220 hello\r\n')) });
  await t.rejects(get(babble), { code: 'broken' });
  const noTls = (await openBare(t, (socket) => socket.end('HTTP/1.1 400 Bad\r\n\r\n'))).replace('http', 'https');
  await t.rejects(get(await connectBy(t, { master: noTls })), { code: 'tls' });
  const truncated = 'HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort';
  const short = await connectBy(t, { master: await openBare(t, (socket) => socket.end(truncated)) });
  await t.rejects((await get(short)).body.toArray(), { code: 'broken' });
  const unknown = await connectBy(t, { master: 'https://name.invalid' });
  await t.rejects(get(unknown), { code: 'connect', message: /name\.invalid/ });
});

t.test('an unread body gets the error of its broken connection', async (t) => {
  const { server, connection } = await open(t);
  server.handler = (request, response) => {
    response.write('begun');
    setTimeout(() => request.socket.destroy(), 20);
  };
  const { body } = await get(connection);
  await new Promise((resolve) => body.once('close', resolve));
  t.ok(body.errored instanceof ApiError);
});

t.test('back pressure reaches the server', async (t) => {
  const { server, connection } = await open(t);
  const total = 64 << 20;
  let written = 0;
  server.handler = (_, response) => {
    const chunk = Buffer.alloc(1 << 20);
    const more = (): void => {
      while (written < total) {
        written += chunk.length;
        if (!response.write(chunk)) {
          response.once('drain', more);
          return;
        }
      }
      response.end();
    };
    more();
  };
  const { body } = await get(connection);
  await sleep(200);
  t.ok(written < total / 2, `${written} bytes written`);
  let received = 0;
  for await (const chunk of body as AsyncIterable<Buffer>) received += chunk.length;
  t.equal(received, total);
});

t.test('close() ends all connections', async (t) => {
  const { server, connection } = await open(t);
  server.handler = (_, response) => response.write('begun');
  const { body } = await get(connection);
  connection.close();
  await t.rejects(body.toArray(), { code: 'closed' });
  await t.rejects(get(connection), { code: 'closed' });
  while (server.sockets.size > 0) await sleep(5);
});

t.test('the observer is notified of requests and connections', async (t) => {
  const observer = new RecordingObserver();
  // A clock that stands still: no request comes so late that it need not wait.
  const { server, connection } = await open(t, {
    observer,
    dependencies: { clock: clockOf(() => 0) },
    qps: 100,
    burst: 1,
  });
  const host = `127.0.0.1:${server.port}`;
  const { length } = (await fetchText(connection)).slice('200 '.length);
  const { signal } = new AbortController();
  await (await connection.get('/watched', { watch: '1' }, { accept: '*/*', signal })).body.toArray();
  await connection.post('/posted', '{"é":1}', { signal });
  await server.stop();
  await t.rejects(get(connection));
  const delayed = `GET ${host} delayed true`;
  t.same(observer.received, [
    'transport',
    ...[`GET ${host} sends 0`, `GET ${host} 200`, `GET ${host} gets ${length}`],
    ...[delayed, `GET ${host} sends 0`, `GET ${host} 200`],
    ...[`POST ${host} delayed true`, `POST ${host} sends 8`, `POST ${host} 200`, `POST ${host} gets ${length}`],
    ...[delayed, `GET ${host} sends 0`, `GET ${host} none`],
  ]);
});

t.test('the rate limit delays requests', async (t) => {
  let now = 0;
  const { signal } = new AbortController();
  const limit = new RateLimit(100, 3, () => now);
  const waits = [];
  for (let i = 0; i < 3; i++) waits.push(await limit.take(signal));
  t.same(waits, [0, 0, 0], 'a burst at once');
  const held = await Promise.all([limit.take(signal), limit.take(signal)]);
  t.same(held.map(Math.round), [10, 20], 'then one by one');
  now = 10_000;
  t.same(
    [await limit.take(signal), await limit.take(signal), await limit.take(signal)],
    [0, 0, 0],
    'filled again, to the burst',
  );
  const controller = new AbortController();
  const slow = new RateLimit(0.001, 1, () => now);
  await slow.take(signal);
  const waiting = slow.take(controller.signal);
  controller.abort(new Error('enough'));
  await t.rejects(waiting, { message: 'enough' });
  now += 1_000_000;
  t.equal(await slow.take(signal), 0, 'who gave up took nothing');
  const unlimited = new RateLimit(-1, 1, () => now);
  for (let i = 0; i < 100; i++) t.equal(await unlimited.take(signal), 0);
});

t.test('the user agent is sent', (t) => {
  t.match(
    userAgent('v1.37.2', '0.1.0'),
    /^kube-proxy\/v1\.37\.2 \((linux|windows|darwin)\/(amd64|arm64|\w+)\) pointsman\/0\.1\.0$/,
  );
  t.end();
});

t.test('importing the transport is cheap', (t) => {
  const module = new URL('../../../src/sources/kubernetes/connect/transport.js', import.meta.url).href;
  const script = `
    await Promise.all(['http', 'https', 'tls', 'child_process', 'fs/promises'].map((name) => import('node:' + name)));
    const before = process.memoryUsage().rss;
    await import(${JSON.stringify(module)});
    console.log(process.memoryUsage().rss - before);`;
  const bytes = Number(execFileSync(process.execPath, ['--input-type=module', '-e', script], { encoding: 'utf8' }));
  t.ok(bytes < 12 << 20, `${bytes} bytes`);
  t.comment(`${(bytes / (1 << 20)).toFixed(1)} MiB`);
  t.end();
});

t.test('a request that is due in months waits', async (t) => {
  const limit = new RateLimit(1e-9, 1, () => 0);
  const controller = new AbortController();
  await limit.take(controller.signal);
  let isServed = false;
  const second = limit.take(controller.signal).then(() => {
    isServed = true;
  });
  await sleep(20);
  t.notOk(isServed);
  controller.abort();
  await t.rejects(second);
});
