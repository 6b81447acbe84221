import { spawnSync } from 'node:child_process';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { link, mkdir, mkdtemp, readdir, rm, stat, writeFile } from 'node:fs/promises';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import t from 'tap';
import { ask } from '../../src/cli/ask.js';
import { AskError } from '../../src/cli/ask-error.js';
import { isNamedPipe } from '../../src/serve/claimed-socket.js';
import { StatusSocket, type StatusAnswer } from '../../src/serve/status-socket.js';
import { FakeClock } from '../support/fake-clock.js';
import { eventually, type Scope } from '../support/lab/lab.js';
import { RecordingLog } from '../support/recording-log.js';

interface Rig {
  readonly path: string;
  readonly clock: FakeClock;
  readonly log: RecordingLog;
  /** @param name what its page `/name` answers. */
  readonly socket: (name?: number) => StatusSocket;
}

/** Generous: the machine may be busy. */
async function until(condition: () => boolean): Promise<void> {
  await eventually('it', () => Promise.resolve(condition() || null), 20_000);
}

/** Listens there under a second name, which alone goes when the server closes. */
async function listenToo(path: string): Promise<Server> {
  const own = join(dirname(path), 'own');
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(own, resolve));
  await link(own, path);
  return server;
}

/** Leaves there what a killed process leaves. */
async function abandon(path: string): Promise<void> {
  const server = await listenToo(path);
  await new Promise((resolve) => server.close(resolve));
}

/** The longest path that the configuration takes. */
const MAX_PATH_BYTES = 99;

async function rig(t: Scope): Promise<Rig> {
  const folder = await mkdtemp(join(tmpdir(), 'status-'));
  const open: StatusSocket[] = [];
  t.teardown(async () => {
    await Promise.all(open.map((socket) => socket.close()));
    await rm(folder, { recursive: true });
  });
  const path = join(folder, 'own', 'status.sock').padEnd(MAX_PATH_BYTES, 'x');
  const clock = new FakeClock();
  const log = new RecordingLog();
  const pagesOf = (name: number) =>
    new Map<string, (query: URLSearchParams) => Promise<StatusAnswer>>([
      ['/name', () => Promise.resolve({ status: 200, text: String(name) })],
      ['/echo', (query) => Promise.resolve({ status: 200, text: query.get('text') ?? '' })],
      ['/refuse', () => Promise.resolve({ status: 400, text: 'no such thing' })],
      ['/fail', () => Promise.reject(new Error('out of luck'))],
    ]);
  const page = {
    answerOwner: (request: IncomingMessage, response: ServerResponse): Promise<void> => {
      response.end(`page ${request.url ?? ''}`);
      return Promise.resolve();
    },
  };
  const socket = (name = 0): StatusSocket => {
    const made = new StatusSocket({ path, pages: pagesOf(name), page, clock, log });
    open.push(made);
    return made;
  };
  return { path, clock, log, socket };
}

t.test('each question to a status socket has a connection of its own', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'asked-'));
  const path = join(folder, 'socket');
  let connections = 0;
  // As a process that ends after an answer which it has promised to keep the connection for.
  const server = createServer((connection) => {
    connections++;
    connection.once('data', () => {
      connection.write(
        'HTTP/1.1 200 OK\r\nServer: pointsman\r\nContent-Length: 4\r\nConnection: keep-alive\r\n\r\nwell',
      );
      connection.once('data', () => connection.resetAndDestroy());
    });
  });
  await new Promise<void>((resolve) => server.listen(path, resolve));
  t.teardown(async () => {
    server.close();
    await rm(folder, { recursive: true });
  });
  for (let question = 1; question <= 3; question++) {
    t.equal((await ask(path, '/status')).text, 'well');
    t.equal(connections, question);
  }
});

t.test('the status socket answers questions', async (t) => {
  const { path, log, socket } = await rig(t);
  await t.rejects(ask(path, '/echo'), {
    name: 'AskError',
    message: `no answer on --status-socket ${path}: no pointsman runs there`,
  });
  await socket().start();
  t.equal((await ask(path, '/echo?text=a%26b')).text, 'a&b');
  await t.rejects(ask(path, '/refuse'), new AskError('no such thing'));
  await t.rejects(ask(path, '/nowhere'), new AskError('there is no /nowhere'));
  t.equal((await ask(path, '/ui/x?y')).text, 'page /ui/x?y');
  await t.rejects(ask(path, '/uix'), new AskError('there is no /uix'));
  t.same(log.lines, []);
  await t.rejects(ask(path, '/fail'), new AskError('out of luck'));
  t.match(log.lines, [/cannot answer on the status socket/]);
  await t.rejects(ask(null, '/echo'), { message: /--status-socket: is empty/ });
});

t.test('the socket of Windows is a named pipe, not a file', (t) => {
  for (const path of ['\\\\.\\pipe\\pointsman', '\\\\.\\PIPE\\pointsman']) t.equal(isNamedPipe(path), true, path);
  for (const path of ['/run/pointsman.sock', 'C:\\pipe\\pointsman', '\\\\host\\pipe\\pointsman', ''])
    t.equal(isNamedPipe(path), false, path);
  t.end();
});

t.test('only its own user may connect to the status socket', async (t) => {
  const { path, socket } = await rig(t);
  const mask = process.umask(0);
  t.teardown(() => process.umask(mask));
  await socket().start();
  t.equal((await stat(path)).mode & 0o777, 0o600);
  t.equal((await stat(join(path, '..'))).mode & 0o777, 0o700);
  t.equal(process.umask(0), 0, 'the mask is put back');
});

t.test('the status socket replaces one that a dead process left', async (t) => {
  const { path, clock, log, socket } = await rig(t);
  const first = socket();
  await first.start();
  const second = socket();
  await second.start();
  t.match(log.lines, [/cannot open the status socket, will be retried.*another process listens on it/]);
  await clock.advance(5000);
  await until(() => clock.waiting === 1);
  t.equal(log.lines.length, 1, 'said once');
  await first.close();
  await clock.advance(5000);
  await until(() => log.lines.length === 2);
  t.match(log.lines[1], /status socket is open now/);
  t.equal((await ask(path, '/echo?text=second')).text, 'second');
  await second.close();
  await t.rejects(stat(path), { code: 'ENOENT' }, 'it goes with its process');

  const killed = spawnSync(process.execPath, [
    '-e',
    `require('node:net').createServer().listen(${JSON.stringify(path)}, () => process.kill(process.pid, 'SIGKILL'))`,
  ]);
  t.equal(killed.signal, 'SIGKILL');
  t.ok((await stat(path)).isSocket(), 'abandoned');
  await t.rejects(ask(path, '/echo'), { message: /no pointsman runs there/ });
  await socket().start();
  t.equal((await ask(path, '/echo?text=third')).text, 'third');
});

t.test('of many processes that start at once, one gets the status socket and keeps it', async (t) => {
  for (let round = 0; round < 10; round++) {
    const { path, log, socket } = await rig(t);
    await mkdir(dirname(path));
    await abandon(path);
    if (round === 0) await abandon(`${path}.0123abcd`);
    const sockets = Array.from({ length: 8 }, (_, name) => socket(name));
    await Promise.all(sockets.map((one) => one.start()));
    t.equal(log.lines.length, 7, 'all others know that they do not have it');
    t.match(log.lines, Array(7).fill(/another process (?:listens|is about to listen) on it/));
    const { ino } = await stat(path);
    const owner = Number((await ask(path, '/name')).text);
    t.same(await readdir(dirname(path)), [basename(path)], 'nothing else stays');
    await Promise.all(sockets.filter((_, name) => name !== owner).map((one) => one.close()));
    t.equal((await stat(path)).ino, ino, 'those who do not have it do not remove it');
    t.equal((await ask(path, '/name')).text, String(owner));
    await Promise.all(sockets.map((one) => one.close()));
    await t.rejects(stat(path), { code: 'ENOENT' });
  }
});

t.test('a process that stops listening during the check is not waited for', async (t) => {
  const { path, log, socket } = await rig(t);
  await mkdir(dirname(path));
  const server = await listenToo(path);
  const close = (): void => {
    // After the connection has been asked for, and before anybody takes it.
    if (server.listening) queueMicrotask(() => server.close());
  };
  subscribe('net.client.socket', close);
  t.teardown(() => unsubscribe('net.client.socket', close));
  await socket().start();
  t.same(log.lines, []);
  t.equal((await ask(path, '/echo?text=here')).text, 'here');
});

t.test('the status socket of a newer process is not removed', async (t) => {
  const { path, socket } = await rig(t);
  const first = socket();
  await first.start();
  await rm(path);
  await socket().start();
  await first.close();
  t.equal((await ask(path, '/echo?text=second')).text, 'second');
});

t.test('a file in the place of the status socket stays', async (t) => {
  const { path, log, socket } = await rig(t);
  const opened = socket();
  await opened.start();
  await opened.close();
  await writeFile(path, 'precious');
  await socket().start();
  t.match(log.lines, [/a file of this name exists and is no socket/]);
  t.ok((await stat(path)).isFile());
});

t.test('a status socket without an HTTP answer is an error', async (t) => {
  const { path, socket } = await rig(t);
  await socket().start();
  const other = `${path}-other`;
  const server = createServer((connection) => connection.end('what?\n'));
  await new Promise<void>((resolve) => server.listen(other, resolve));
  t.teardown(() => server.close());
  await t.rejects(ask(other, '/status'), { name: 'AskError', message: /no answer on --status-socket/ });
});
