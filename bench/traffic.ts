import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { monotonicMs } from '../test/support/api-server/control.js';
import { ENDPOINT_PORT, NODE_ADDRESS, POD_RANGE, SERVICE_PORT, SERVICE_RANGE } from './cluster.js';

/** Between attempts at what is not there yet: who is not answered by then has met no rule. */
const PATIENCE_MS = 50;
const ANSWER_MS = 10_000;
const LIMIT_MS = 600_000;
const CONCURRENCY = 16;

/** Makes every endpoint's address one of this namespace, and every Service's one that packets leave for. */
export function prepareNetwork(): void {
  const ip = (...args: readonly string[]): void => {
    execFileSync('ip', args);
  };
  ip('link', 'set', 'lo', 'up');
  ip('address', 'add', `${NODE_ADDRESS}/32`, 'dev', 'lo');
  ip('route', 'add', 'local', POD_RANGE, 'dev', 'lo');
  ip('route', 'add', SERVICE_RANGE, 'dev', 'lo', 'src', NODE_ADDRESS);
}

/** Answers for every endpoint, and connects to Services as a process on the node does. */
export class Traffic {
  private readonly server: Server;
  /** The endpoint that the last connection reached. */
  private reached = '';

  private readonly open = new Set<Socket>();

  private constructor() {
    this.server = createServer((socket) => {
      this.reached = socket.localAddress ?? '';
      this.open.add(socket);
      socket.on('close', () => this.open.delete(socket));
      socket.on('error', () => undefined);
      // The client receives the endpoint that it has reached.
      socket.on('data', () => socket.write(socket.localAddress ?? ''));
    });
  }

  static async start(): Promise<Traffic> {
    const traffic = new Traffic();
    traffic.server.listen(ENDPOINT_PORT, '0.0.0.0', 4096);
    await once(traffic.server, 'listening');
    return traffic;
  }

  stop(): void {
    this.server.close();
    // Their clients could not report that they are gone.
    for (const socket of this.open) socket.destroy();
  }

  /** Resolves with when a connection to the Service was first answered. */
  async answered(service: string): Promise<number> {
    return this.repeat(service, () => true);
  }

  /** Resolves with when a connection to the Service first reached the endpoint. */
  async reaches(service: string, endpoint: string): Promise<number> {
    return this.repeat(service, () => this.reached === endpoint);
  }

  /** How long one connection takes, in milliseconds: from the first packet to the answer. */
  async connectMs(address: string, port = SERVICE_PORT): Promise<number> {
    const startedAt = monotonicMs();
    if (!(await attempt(address, port, ANSWER_MS))) throw new Error(`${address}:${port} does not answer`);
    return monotonicMs() - startedAt;
  }

  /** Connections per second, several at a time, in turn to each of the addresses. */
  async rate(addresses: readonly string[], port: number, count: number): Promise<number> {
    let begun = 0;
    const startedAt = monotonicMs();
    const worker = async (): Promise<void> => {
      while (begun < count) await this.connectMs(addresses[begun++ % addresses.length] ?? '', port);
    };
    await Promise.all(Array.from({ length: CONCURRENCY }, worker));
    return (count * 1000) / (monotonicMs() - startedAt);
  }

  private async repeat(service: string, test: () => boolean): Promise<number> {
    const limit = monotonicMs() + LIMIT_MS;
    while (monotonicMs() < limit) {
      const connected = await attempt(service, SERVICE_PORT, PATIENCE_MS);
      // The server receives a connection in a turn of its own.
      await sleep(0);
      if (connected && test()) return monotonicMs();
    }
    throw new Error(`${service}:${SERVICE_PORT} did not lead where it should within ${LIMIT_MS / 1000} s`);
  }
}

/** Whether a connection is answered in time. It is reset afterwards, so that no port is kept waiting. */
function attempt(host: string, port: number, patienceMs: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket: Socket = connect({ host, port });
    const done = (connected: boolean): void => {
      clearTimeout(timer);
      if (connected) socket.resetAndDestroy();
      else socket.destroy();
      resolve(connected);
    };
    const timer = setTimeout(done, patienceMs, false);
    socket.once('connect', () => {
      done(true);
    });
    socket.once('error', () => {
      done(false);
    });
  });
}
