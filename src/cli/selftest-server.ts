import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { createServer } from 'node:net';
import type { Family, IPAddress } from '../base/ip.js';
import { packed, SELFTEST_TARGET_PORT, type SelftestEndpoint } from '../control/selftest-scene.js';
import type { ProbeAddon } from '../native/contract.js';

/** Tells each client by which address it is seen. @param space null: this node's own network, on any port. */
export async function serveSources(
  probe: ProbeAddon,
  space: number | null,
  address: IPAddress,
  family: Family,
): Promise<{ readonly ports: SelftestEndpoint['ports']; readonly close: () => void }> {
  const server = createServer((socket) => {
    socket.on('error', () => undefined).end(socket.remoteAddress ?? '');
  });
  const datagrams = createSocket(family === 'IPv4' ? 'udp4' : 'udp6');
  datagrams.on('message', (_, { address: seen, port }) => {
    datagrams.send(seen, port, seen);
  });
  const listening = Promise.all([once(server, 'listening'), once(datagrams, 'listening')]);
  const at = { address: packed(address, family), port: SELFTEST_TARGET_PORT };
  const open = async (protocol: 'TCP' | 'UDP'): Promise<{ readonly fd: number } | null> =>
    space === null ? null : { fd: await probe.probeListen(space, { protocol, ...at }) };
  server.unref().listen((await open('TCP')) ?? { host: address, port: 0 });
  datagrams.unref().bind((await open('UDP')) ?? { address });
  await listening;
  const bound = server.address();
  if (bound === null || typeof bound === 'string') throw new TypeError('no port');
  return {
    ports: { TCP: bound.port, UDP: datagrams.address().port },
    close: () => {
      server.close();
      datagrams.close();
    },
  };
}
