import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import t from 'tap';
import { loadAddon } from '../../src/native/load.js';

const { peer } = loadAddon();

function descriptorOf(socket: Socket): number {
  return (Reflect.get(socket, '_handle') as { readonly fd: number }).fd;
}

t.test('the user at the other end of a Unix socket', async (t) => {
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

t.test('no socket, and no descriptor', (t) => {
  t.equal(peer.peerUser(0x7fffffff), null);
  for (const wrong of [-1, 1.5, 'x', null, 2 ** 31]) t.throws(() => peer.peerUser(wrong as number), TypeError);
  t.end();
});
