import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { Worker } from 'node:worker_threads';
import t, { type Test } from 'tap';
import { descriptorOf } from '../../src/base/descriptor.js';
import type { Relay, RelayEnd } from '../../src/native/contract.js';
import { loadAddon } from '../../src/native/load.js';
import { eventually } from '../support/lab/lab.js';

const HOST = '127.0.0.1';
/** More than the sockets and pipes on the way hold. */
const MANY_BYTES = 48 << 20;

/** A client and a server with a relay between them. */
class Scene {
  readonly ends: RelayEnd[] = [];
  readonly relay: Relay = loadAddon().relay.relayOpen((ends) => this.ends.push(...ends));
  private readonly listener: Server = createServer({ allowHalfOpen: true, pauseOnConnect: true });

  constructor(private readonly t: Test) {
    t.teardown(() => {
      this.relay.close();
      this.listener.close();
    });
  }

  /** Both ends of a connection. */
  async link(): Promise<readonly [near: Socket, far: Socket]> {
    if (!this.listener.listening) await once(this.listener.listen(0, HOST), 'listening');
    const accepted = once(this.listener, 'connection') as Promise<[Socket]>;
    const { port } = this.listener.address() as AddressInfo;
    const near = connect({ host: HOST, port, allowHalfOpen: true });
    const [far] = await accepted;
    for (const socket of [near, far]) this.t.teardown(() => socket.on('error', () => undefined).destroy());
    return [near, far];
  }

  async pair(): Promise<{ readonly client: Socket; readonly server: Socket; readonly id: number }> {
    const [client, front] = await this.link();
    const [server, back] = await this.link();
    const id = this.relay.carry(descriptorOf(front) ?? -1, descriptorOf(back) ?? -1);
    for (const socket of [front, back]) socket.destroy();
    if (typeof id === 'string') throw new Error(id);
    return { client, server, id };
  }

  async ended(): Promise<RelayEnd> {
    return await eventually('an end', () => Promise.resolve(this.ends[0] ?? null));
  }
}

/** What comes until the end. */
async function text(socket: Socket): Promise<string> {
  let all = '';
  socket.on('data', (data: Buffer) => (all += data.toString('latin1')));
  await once(socket, 'end');
  return all;
}

/** The error of a socket that is read. */
async function failure(socket: Socket): Promise<string | undefined> {
  socket.resume();
  const [error] = (await once(socket, 'error')) as [NodeJS.ErrnoException];
  return error.code;
}

t.test('a relay carries earlier bytes, and passes on the end of each peer', async (t) => {
  const scene = new Scene(t);
  const [client, front] = await scene.link();
  const [server, back] = await scene.link();
  client.end('a question');
  await once(client, 'finish');
  const id = scene.relay.carry(descriptorOf(front) ?? -1, descriptorOf(back) ?? -1);
  for (const socket of [front, back]) socket.destroy();
  t.equal(await text(server), 'a question');
  t.same(scene.ends, [], 'the other way is open');
  server.end('an answer');
  t.equal(await text(client), 'an answer');
  t.same(await scene.ended(), { id, lack: null });
});

t.test('a peer of a relay that resets has the other reset', async (t) => {
  const scene = new Scene(t);
  const { client, server, id } = await scene.pair();
  client.resetAndDestroy();
  t.equal(await failure(server), 'ECONNRESET');
  t.same(await scene.ended(), { id, lack: null });
});

t.test('a slow reader behind a relay holds the sender back, without memory of the process', async (t) => {
  const scene = new Scene(t);
  const { client, server } = await scene.pair();
  const bytes = Buffer.alloc(MANY_BYTES, 'x');
  const before = process.memoryUsage().rss;
  client.end(bytes);
  server.write('.');
  await once(client, 'data');
  let left = -1;
  await eventually('a sender that stands still', () => {
    const stands = client.bytesWritten - client.writableLength === left;
    left = client.bytesWritten - client.writableLength;
    return Promise.resolve(stands || null);
  });
  t.notOk(client.writableFinished);
  t.ok(process.memoryUsage().rss - before < MANY_BYTES / 2, 'nothing of it is held here');
  let received = 0;
  server.on('data', (data: Buffer) => (received += data.length));
  await once(server, 'end');
  t.equal(received, MANY_BYTES);
});

t.test('JavaScript ends one pair of a relay, and closes it with the others', async (t) => {
  const scene = new Scene(t);
  const [one, other] = [await scene.pair(), await scene.pair()];
  const failures = [failure(one.client), failure(one.server)];
  scene.relay.end(one.id);
  t.same(await Promise.all(failures), ['ECONNRESET', 'ECONNRESET']);
  t.same(await scene.ended(), { id: one.id, lack: null });
  other.client.write('goes on');
  const [data] = (await once(other.server, 'data')) as [Buffer];
  t.equal(data.toString(), 'goes on');
  const rest = [failure(other.client), failure(other.server)];
  scene.relay.close();
  t.same(await Promise.all(rest), ['ECONNRESET', 'ECONNRESET']);
  scene.relay.close();
  scene.relay.end(other.id);
  t.equal(scene.ends.length, 1, 'nothing is reported after that');
});

t.test('a relay ends with its worker thread, and resets what it carries', async (t) => {
  const scene = new Scene(t);
  const [client, front] = await scene.link();
  const [server, back] = await scene.link();
  const load = new URL('../../src/native/load.js', import.meta.url).href;
  const program = `
    import { parentPort } from 'node:worker_threads';
    const { loadAddon } = await import(${JSON.stringify(load)});
    const { carry } = loadAddon().relay.relayOpen(() => undefined);
    parentPort.postMessage(carry(${descriptorOf(front)}, ${descriptorOf(back)}));
    parentPort.once('message', () => process.exit());`;
  const worker = new Worker(new URL(`data:text/javascript,${encodeURIComponent(program)}`));
  t.same(await once(worker, 'message'), [1]);
  for (const socket of [front, back]) socket.destroy();
  client.write('carried');
  const [data] = (await once(server, 'data')) as [Buffer];
  t.equal(data.toString(), 'carried');
  const failures = [failure(client), failure(server)];
  worker.postMessage(null);
  t.same(await Promise.all(failures), ['ECONNRESET', 'ECONNRESET']);
  await once(worker, 'exit');
});

t.test('a relay leaves no descriptor', async (t) => {
  const open = (): number => readdirSync('/proc/self/fd').length;
  const scene = new Scene(t);
  await scene.link();
  const before = open();
  for (let count = 0; count < 20; count++) {
    const { client, server } = await scene.pair();
    client.end('x');
    t.equal(await text(server), 'x');
    server.end();
    await text(client);
  }
  await eventually('as many as before', () => Promise.resolve(open() <= before || null));
});

t.test('a relay with wrong arguments is an error that names them', (t) => {
  const { relay } = loadAddon();
  t.throws(() => relay.relayOpen('x' as never), /onEnd/);
  const open = relay.relayOpen(() => undefined);
  t.throws(() => open.carry(-1, 0), /one/);
  t.throws(() => open.carry(0, 1.5), /other/);
  t.equal(open.carry(0x7fffffff, 0), 'EBADF');
  open.close();
  t.end();
});
