import { EventEmitter, once } from 'node:events';
import { createServer } from 'node:http';
import { connect, Socket, type AddressInfo } from 'node:net';
import t, { type Test } from 'tap';
import { parseAddress } from '../../src/base/ip.js';
import { ClientShares } from '../../src/serve/client-shares.js';
import { ConnectionLimit } from '../../src/serve/connection-limit.js';
import { listen, openBindAddress, shut, type ListenSocket } from '../../src/serve/listener.js';
import { FakeClock } from '../support/fake-clock.js';
import { ask } from '../support/http.js';
import { RecordingLog } from '../support/recording-log.js';

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

/** A limit of sixteen connections, and how to open one from an address, by which so many bytes have come. */
function limited(): {
  open: (remoteAddress: string, bytesRead?: number, localAddress?: string) => Socket;
  answer: (socket: Socket, statusCode: number) => void;
} {
  const server = createServer().removeAllListeners('connection');
  new ConnectionLimit(16).serve(server, () => undefined);
  return {
    open: (remoteAddress, bytesRead = 1, localAddress = '192.0.2.254') => {
      const socket = Object.defineProperties(new Socket(), {
        remoteAddress: { value: remoteAddress },
        localAddress: { value: localAddress },
        bytesRead: { value: bytesRead },
      });
      // As the system does: the address of a closed connection is unknown.
      socket.destroy = () => Object.defineProperty(socket, 'destroyed', { value: true });
      server.emit('connection', socket);
      return socket;
    },
    answer: (socket, statusCode) => {
      const response = Object.assign(new EventEmitter(), { statusCode });
      server.emit('request', { socket, headers: {} }, response);
      response.emit('close');
    },
  };
}

t.test('many addresses evict neither loopback nor connections that were served', (t) => {
  const { open, answer } = limited();
  const [served, refused, near] = [open('192.0.2.1'), open('192.0.2.2'), open('127.0.0.1')];
  answer(served, 200);
  answer(refused, 401);
  for (let index = 0; index < 100; index++) open(`198.18.0.${index}`);
  t.same([served.destroyed, refused.destroyed, near.destroyed], [false, true, false]);
  t.end();
});

t.test('connections that were served make room when one client has more than its share', (t) => {
  for (const address of [() => '127.0.0.1', (index: number) => `2001:db8::${index + 1}`]) {
    const { open, answer } = limited();
    const other = open('192.0.2.1');
    const many = Array.from({ length: 15 }, (_, index) => open(address(index)));
    for (const socket of many) answer(socket, 200);
    open('192.0.2.2');
    t.same([other.destroyed, many.filter(({ destroyed }) => destroyed).length], [false, 1], address(0));
  }
  t.end();
});

t.test('a new connection is kept until its request is read, although others take all places', (t) => {
  const { open, answer } = limited();
  // Each below its share, and served.
  for (let index = 0; index < 16; index++) answer(open(`198.18.0.${index >> 1}`), 200);
  const probe = open('192.0.2.1', 0);
  // As a kubelet's: the node's own address at both ends.
  const near = open('192.0.2.254');
  for (let index = 0; index < 3; index++) answer(open(`198.18.0.${index}`), 200);
  t.same([probe.destroyed, near.destroyed], [false, false]);
  t.end();
});

t.test('connections that never send take a quarter of the places from those that were served', (t) => {
  const { open, answer } = limited();
  const served = Array.from({ length: 16 }, (_, index) => open(`192.0.2.${index >> 1}`));
  for (const socket of served) answer(socket, 200);
  for (let index = 0; index < 100; index++) open(`198.18.0.${index}`, 0);
  t.ok(served.filter(({ destroyed }) => destroyed).length <= 5, 'one more is there until the next comes');
  t.end();
});

t.test('a client on the node loses its own connections when it has more than its share', (t) => {
  const { open } = limited();
  const others = Array.from({ length: 8 }, (_, index) => open(`192.0.2.${index}`));
  for (let index = 0; index < 100; index++) open('192.0.2.254');
  t.same(others.filter(({ destroyed }) => destroyed).length, 0);
  t.end();
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

/** Text that a connection sends again and again, up to the size of one read. */
const PIPELINED: Readonly<Record<string, string>> = {
  'with a host': 'GET / HTTP/1.1\r\nHost:\r\n\r\n',
  'without a host': 'GET / HTTP/1.1\r\n\r\n',
  'of HTTP/1.0': 'GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n',
  'that expect to go on': 'GET / HTTP/1.1\r\nHost:\r\nExpect: 100-continue\r\n\r\n',
  'with an unknown expectation': 'GET / HTTP/1.1\r\nHost:\r\nExpect: x\r\n\r\n',
};

for (const [kind, text] of Object.entries(PIPELINED))
  t.test(`pipelined requests ${kind}: nothing is parsed after the fifth, which ends the connection`, async (t) => {
    const { server, client, log } = await attacked(t);
    let parsed = 0;
    const count = (): void => {
      parsed++;
    };
    server.prependListener('request', count).prependListener('checkExpectation', count);
    client.write(text.repeat(65_000 / text.length));
    await once(client.resume(), 'close');
    t.equal(parsed, 5);
    t.same(log.lines, [TOO_MUCH]);
  });

const TOO_MUCH = 'warn a client takes more than its share of the listeners: its connections wait or are closed';

/** A server that answers, and a client of it whose share is that of a clock that stands still. */
async function attacked(t: Test) {
  const log = new RecordingLog();
  const clock = new FakeClock();
  const shares = new ClientShares(clock, log);
  const server = await listen(
    { address: parseAddress('127.0.0.1')!, port: 0, dualStack: false },
    (_request, response) => response.end('ok'),
    (error) => t.error(error),
    new ConnectionLimit(256, shares, clock),
  );
  t.teardown(() => shut(server));
  const { port } = server.address() as AddressInfo;
  const client = connect(port, '127.0.0.1').on('error', () => undefined);
  t.teardown(() => client.destroy());
  return { server, port, client, clock, shares, log };
}

const ATTACKER = { key: 'address 127.0.0.1', address: '127.0.0.1', isNear: true };

t.test('a client that has used its share waits, also if it has ended its side, and others are answered', async (t) => {
  const { port, client, clock, shares, log } = await attacked(t);
  await once(client, 'connect');
  shares.spend(ATTACKER, 250);
  let answer = '';
  client.on('data', (text: Buffer) => (answer += String(text)));
  client.end('GET / HTTP/1.1\r\nHost: a\r\n\r\n');
  while (log.lines.length === 0) await new Promise((resolve) => setImmediate(resolve));
  const other = connect({ port, host: '127.0.0.1', localAddress: '127.0.0.2' });
  other.end('GET / HTTP/1.1\r\nHost: a\r\n\r\n');
  t.match(String((await once(other, 'data'))[0]), /^HTTP\/1\.1 200 /);
  t.equal(answer, '');
  const closed = once(client, 'close');
  await clock.advance(1000);
  await closed;
  t.match(answer, /^HTTP\/1\.1 200 /);
});

t.test('a client that has used its share is closed if it has sent much, and gets no more connections', async (t) => {
  const { port, client, shares } = await attacked(t);
  await once(client, 'connect');
  shares.spend(ATTACKER, 250);
  client.write(`GET / HTTP/1.1\r\nHost: a\r\na: ${'x'.repeat(20_000)}\r\n\r\n`);
  await once(client.resume(), 'close');
  shares.spend(ATTACKER, 250);
  await t.rejects(ask('127.0.0.1', port), { code: 'ECONNRESET' });
  t.match(shares.crowded, [{ client: '127.0.0.1', times: 2 }]);
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
