import { fork } from 'node:child_process';
import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';
import { setImmediate as turn, setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

/**
 * The CPU time that the process spends on bytes of node ports on loopback (mode nftables), both ways, at 1 Gbit/s and unthrottled. Clients and server are in
 * this process, the listener in one of its own. Usage: `node .build/bench/loopback.js [megabytes] [rounds]`. Prints a line for each round.
 */

const [megabytes = 1000, rounds = 1] = process.argv.slice(2).map(Number);
const MEGABYTE = 1_000_000;
/** 1 Gbit/s; null: as fast as it goes. */
const RATES = [125 * MEGABYTE, null];
const COUNTS = [1, 100];
const CHUNK = Buffer.alloc(64 << 10, 'x');
const READ = Buffer.alloc(256 << 10);
const HOST = '127.0.0.1';

const child = fork(fileURLToPath(new URL('loopback-listener.js', import.meta.url)));

/** CPU seconds of the listener's process up to now. */
async function cpuSeconds(): Promise<number> {
  child.send('cpu');
  const [microseconds] = (await once(child, 'message')) as [number];
  return microseconds / 1e6;
}

/** Sends that many bytes over all sockets together. */
async function send(sockets: readonly Socket[], bytes: number, rate: number | null): Promise<void> {
  const start = performance.now();
  let next = 0;
  for (let sent = 0; sent < bytes;) {
    const due = rate === null ? bytes : Math.min(bytes, ((performance.now() - start) / 1000) * rate);
    for (let asked = 0; asked < sockets.length && sent < due; asked++) {
      const socket = sockets[next++ % sockets.length];
      if (socket?.writableNeedDrain !== false) continue;
      socket.write(CHUNK);
      sent += CHUNK.length;
    }
    if (sent >= due) await sleep(1);
    else await turn();
  }
}

let received = 0;
const onread = {
  buffer: READ,
  callback: (count: number): boolean => {
    received += count;
    return true;
  },
};

/** Pairs of a client and the endpoint's end of its connection. */
async function pairs(
  count: number,
  nodePort: number,
): Promise<readonly (readonly [client: Socket, endpoint: Socket])[]> {
  const made: (readonly [Socket, Socket])[] = [];
  while (made.length < count) {
    const accepted = once(server, 'connection') as Promise<[Socket]>;
    const client = connect({ host: HOST, port: nodePort, onread });
    const [endpoint] = await accepted;
    endpoint.on('data', (data: Buffer) => (received += data.length));
    for (const socket of [client, endpoint]) socket.on('error', () => undefined);
    made.push([client, endpoint]);
  }
  return made;
}

const server = createServer().listen(0, HOST);
await once(server, 'listening');
child.send((server.address() as AddressInfo).port);
const [nodePort] = (await once(child, 'message')) as [number];
for (let round = 0; round < rounds; round++)
  for (const rate of RATES)
    for (const count of COUNTS)
      for (const way of ['to the endpoint', 'to the client']) {
        const made = await pairs(count, nodePort);
        received = 0;
        const before = await cpuSeconds();
        const start = performance.now();
        const senders = made.map(([client, endpoint]) => (way === 'to the client' ? endpoint : client));
        await send(senders, megabytes * MEGABYTE, rate);
        while (received < megabytes * MEGABYTE) await turn();
        const seconds = (performance.now() - start) / 1000;
        const perGigabyte = ((await cpuSeconds()) - before) / (megabytes / 1000);
        const parts = [
          (rate === null ? 'unthrottled' : '1 Gbit/s').padEnd(12),
          `${count} connections`.padEnd(16),
          way.padEnd(16),
          `${perGigabyte.toFixed(2)} CPU s for 1 GB`,
          `${(megabytes / seconds).toFixed(0)} MB/s`,
        ];
        process.stdout.write(`${parts.join('  ')}\n`);
        for (const socket of made.flat()) socket.destroy();
      }
child.disconnect();
server.close();
