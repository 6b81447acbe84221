import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import t from 'tap';
import { loadAddon } from '../../src/native/load.js';

const { peer } = loadAddon();

function descriptorOf(socket: Socket): number {
  return (Reflect.get(socket, '_handle') as { readonly fd: number }).fd;
}

t.test('peerUser() is the user at the other end of a Unix socket', async (t) => {
  const path = `\0pointsman-peer-${process.pid}`;
  const server = createServer((socket) => socket.on('error', () => undefined));
  server.listen(path);
  await once(server, 'listening');
  const socket = connect(path);
  await once(socket, 'connect');
  t.equal(peer.peerUser(descriptorOf(socket)), process.getuid?.());
  socket.destroy();
  server.close();
});

t.test('peerUser() of a missing descriptor is null, and no number is an error', (t) => {
  t.equal(peer.peerUser(0x7fffffff), null);
  for (const wrong of [-1, 1.5, 'x', null, 2 ** 31]) t.throws(() => peer.peerUser(wrong as number), TypeError);
  t.end();
});

t.test('a limit on silence is set on TCP connections only', async (t) => {
  const path = `\0pointsman-silence-${process.pid}`;
  for (const [at, isTcp] of [
    [path, false],
    [0, true],
  ] as const) {
    const server = createServer((socket) => socket.on('error', () => undefined));
    if (typeof at === 'string') server.listen(at);
    else server.listen(at, '127.0.0.1');
    await once(server, 'listening');
    const address = server.address();
    const socket = typeof address === 'object' && address !== null ? connect(address.port, '127.0.0.1') : connect(path);
    await once(socket, 'connect');
    t.equal(peer.limitSilence(descriptorOf(socket), 3, 8000), isTcp);
    const silentMs = peer.silentMs(descriptorOf(socket));
    t.ok(isTcp ? silentMs !== null && silentMs < 60_000 : silentMs === null, String(silentMs));
    t.throws(() => peer.limitSilence(descriptorOf(socket), 0, 8000), TypeError);
    t.throws(() => peer.limitSilence(descriptorOf(socket), 3, 0), TypeError);
    socket.destroy();
    server.close();
  }
  t.equal(peer.limitSilence(0x7fffffff, 3, 8000), false);
});
