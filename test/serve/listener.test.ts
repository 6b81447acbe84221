import { once } from 'node:events';
import { connect, type AddressInfo, type Socket } from 'node:net';
import t, { type Test } from 'tap';
import { parseAddress } from '../../src/base/ip.js';
import { ConnectionLimit } from '../../src/serve/connection-limit.js';
import { listen, openBindAddress, shut, type ListenSocket } from '../../src/serve/listener.js';
import { ask } from '../support/http.js';

/** Opens as a host without IPv6 would, and writes down what it was asked. */
function attempts(code: string): { asked: string[]; open: (socket: ListenSocket) => Promise<string> } {
  const asked: string[] = [];
  const open = ({ address, port, dualStack }: ListenSocket): Promise<string> => {
    asked.push(`${address} ${port}${dualStack ? ' dual' : ''}`);
    if (address.includes(':')) return Promise.reject(Object.assign(new Error(`listen ${code}`), { code }));
    return Promise.resolve(address);
  };
  return { asked, open };
}

t.test('without IPv6 a wildcard listener uses IPv4', async (t) => {
  for (const code of ['EAFNOSUPPORT', 'EADDRNOTAVAIL']) {
    for (const wildcard of ['::', '0.0.0.0']) {
      const { asked, open } = attempts(code);
      t.equal(await openBindAddress(parseAddress(wildcard)!, 10256, open), '0.0.0.0');
      t.same(asked, [':: 10256 dual', '0.0.0.0 10256']);
    }
  }
});

t.test('a port in use does not make a wildcard listener use IPv4', async (t) => {
  const { asked, open } = attempts('EADDRINUSE');
  await t.rejects(openBindAddress(parseAddress('0.0.0.0')!, 1, open), { code: 'EADDRINUSE' });
  t.same(asked, [':: 1 dual']);
});

t.test('a single address is opened without fallback', async (t) => {
  const { asked, open } = attempts('EAFNOSUPPORT');
  await t.rejects(openBindAddress(parseAddress('2001:db8::1')!, 1, open), { code: 'EAFNOSUPPORT' });
  t.equal(await openBindAddress(parseAddress('192.0.2.1')!, 2, open), '192.0.2.1');
  t.same(asked, ['2001:db8::1 1', '192.0.2.1 2']);
});

/** A server that takes three connections, and how to open one that sends this. */
async function crowded(
  t: Test,
  body: Buffer | null,
): Promise<{ port: number; open: (text: string) => Promise<Socket> }> {
  const socket = { address: parseAddress('127.0.0.1')!, port: 0, dualStack: false };
  let requests = 0;
  const server = await listen(
    socket,
    (request, response) => {
      requests++;
      if (request.url === '/now') response.end('ok');
      else if (body !== null) response.end(body);
    },
    (error) => t.error(error),
    new ConnectionLimit(3),
  );
  t.teardown(() => shut(server));
  t.ok(server.headersTimeout <= 20_000 && server.requestTimeout <= 30_000, 'no client is waited for much longer');
  const { port } = server.address() as AddressInfo;
  const open = async (text: string): Promise<Socket> => {
    const seen = text.endsWith('\r\n\r\n') ? requests + 1 : requests;
    const accepted = once(server, 'connection');
    const client = connect(port, '127.0.0.1').on('error', () => undefined);
    t.teardown(() => client.destroy());
    client.write(text);
    await accepted;
    while (requests < seen && !client.destroyed) await new Promise((resolve) => setImmediate(resolve));
    return client;
  };
  return { port, open };
}

t.test('idle and slow clients are closed first when connections run out, the longest idle first', async (t) => {
  const { port, open } = await crowded(t, null);
  const clients = [await open(''), await open('GET / HT'), await open('GET /now HTTP/1.1\r\nHost: a\r\n\r\n')];
  const gone = clients.map((client) => once(client.resume(), 'close'));
  t.match(await ask('127.0.0.1', port, '/now'), { status: 200, body: 'ok' });
  await gone[0];
  t.match(await ask('127.0.0.1', port, '/now'), { status: 200, body: 'ok' });
  t.match(clients, [{ destroyed: true }, { destroyed: false }, { destroyed: false }], 'no more than needed');
});

t.test('a client with many connections loses its own first, not those of another address', async (t) => {
  const { port, open } = await crowded(t, null);
  const kept = connect({ port, host: '127.0.0.1', localAddress: '127.0.0.2' }).on('error', () => undefined);
  t.teardown(() => kept.destroy());
  await once(kept, 'connect');
  const many = [await open(''), await open('')];
  const gone = once(many[0]!.resume(), 'close');
  await open('');
  await gone;
  t.equal(kept.resume().destroyed, false);
  t.equal(many[1]!.destroyed, false);
});

t.test('a client that does not read its answer is closed, one that waits for it is not', async (t) => {
  const large = await crowded(t, Buffer.alloc(32 << 20));
  for (let index = 0; index < 3; index++) (await large.open('GET / HTTP/1.1\r\nHost: a\r\n\r\n')).pause();
  t.match(await ask('127.0.0.1', large.port, '/now'), { status: 200, body: 'ok' });
  const waiting = await crowded(t, null);
  for (let index = 0; index < 3; index++) await waiting.open('GET / HTTP/1.1\r\nHost: a\r\n\r\n');
  await t.rejects(ask('127.0.0.1', waiting.port, '/now'), { code: 'ECONNRESET' });
});

t.test('a client that does not send its request body is closed', async (t) => {
  const { port, open } = await crowded(t, null);
  for (let index = 0; index < 3; index++) await open('PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n');
  t.match(await ask('127.0.0.1', port, '/now'), { status: 200, body: 'ok' });
});

t.test('pipelined requests are answered in order, and too many end the connection', async (t) => {
  const requests: string[] = [];
  const server = await listen(
    { address: parseAddress('127.0.0.1')!, port: 0, dualStack: false },
    ({ url = '' }, response) => {
      requests.push(url);
      response.end(`${url}:x\n`);
    },
    (error) => t.error(error),
  );
  t.teardown(() => shut(server));
  const { port } = server.address() as AddressInfo;
  const open = (count: number): Socket => {
    const client = connect(port, '127.0.0.1').on('error', () => undefined);
    t.teardown(() => client.destroy());
    const paths = Array.from({ length: count }, (_, index) => `/${count}-${index}`);
    client.write(paths.map((path) => `GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`).join(''));
    return client;
  };
  let text = '';
  const few = open(3);
  while ((text.match(/x$/gm) ?? []).length < 3) text += String((await once(few, 'data'))[0]);
  t.same(text.match(/^\/.*(?=:x)/gm), ['/3-0', '/3-1', '/3-2']);
  requests.length = 0;
  await once(open(100).resume(), 'close');
  t.same(requests, ['/100-0', '/100-1', '/100-2', '/100-3']);
});
