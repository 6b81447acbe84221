import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { monotonicMs } from '../test/support/api-server/control.js';
import { MortalService, SERVICE_PORT } from './cluster.js';
import type { BenchApiServer } from './api-server.js';
import { greatest } from '../src/base/extremes.js';
import type { Traffic } from './traffic.js';

/** What clients notice of an endpoint that dies. */
export interface DyingMeasures {
  /** The share of concurrent attempts to three endpoints, one of which is silent, that is connected within 1, 3 and 10 s, in per cent. */
  readonly connectedPercent: { readonly within1s: number; readonly within3s: number; readonly within10s: number };
  /** From the endpoint's removal on the watch until the last of its idle clients learns of it; 0: none does within {@link IDLE_LIMIT_MS}. */
  readonly idleLearnMs: number;
}

const ATTEMPTS = 300;
const ATTEMPT_LIMIT_MS = 10_000;
/** That none of so many is at one of three endpoints happens once in 10¹⁰ runs. */
const IDLE = 60;
export const IDLE_LIMIT_MS = 5000;

/** A link whose other end takes no notice: what is sent there is neither answered nor refused. */
const NOWHERE = 'nowhere0';

/** Lets one of a Service's three endpoints die silently, and removes it. */
export async function die(server: BenchApiServer, traffic: Traffic, number: number): Promise<DyingMeasures> {
  const mortal = new MortalService(number);
  await server.put(mortal.service(), mortal.slice(3));
  await traffic.answered(mortal.address);
  const idle = await Promise.all(Array.from({ length: IDLE }, () => open(mortal.address)));
  const affected = idle.filter(({ endpoint }) => endpoint === mortal.mortal);
  silence(mortal.mortal);
  try {
    const times = await Promise.all(Array.from({ length: ATTEMPTS }, () => attemptMs(mortal.address)));
    const within = (ms: number): number => (100 * times.filter((time) => time <= ms).length) / times.length;
    const learnt = affected.map(({ socket }) => endedAt(socket));
    const removedAt = await server.put(mortal.slice(2));
    const limit = new Promise<null>((resolve) => setTimeout(resolve, IDLE_LIMIT_MS, null));
    const all = await Promise.race([Promise.all(learnt), limit]);
    return {
      connectedPercent: { within1s: within(1000), within3s: within(3000), within10s: within(ATTEMPT_LIMIT_MS) },
      idleLearnMs: all === null || all.length === 0 ? 0 : greatest(all) - removedAt,
    };
  } finally {
    for (const { socket } of idle) socket.resetAndDestroy();
    revive();
  }
}

function endedAt(socket: Socket): Promise<number> {
  return new Promise((resolve) => {
    socket.once('close', () => {
      resolve(monotonicMs());
    });
  });
}

function silence(address: string): void {
  const ip = (...args: readonly string[]): void => {
    execFileSync('ip', args);
  };
  ip('link', 'add', NOWHERE, 'type', 'veth', 'peer', 'name', 'nowhere1');
  for (const link of [NOWHERE, 'nowhere1']) ip('link', 'set', link, 'arp', 'off', 'up');
  // More exact than the route by which all endpoints are here.
  ip('route', 'add', 'unicast', `${address}/32`, 'dev', NOWHERE, 'table', 'local');
}

function revive(): void {
  execFileSync('ip', ['link', 'delete', NOWHERE]);
}

/** Its end is waited for, and no error is one of the benchmark's. */
async function open(address: string): Promise<{ readonly socket: Socket; readonly endpoint: string }> {
  const socket = connect({ host: address, port: SERVICE_PORT }).on('error', () => undefined);
  socket.setEncoding('latin1').write('?');
  const [endpoint] = (await once(socket, 'data')) as [string];
  return { socket: socket.resume(), endpoint };
}

/** Infinity: it was not connected in time. */
function attemptMs(address: string): Promise<number> {
  return new Promise((resolve) => {
    const startedAt = monotonicMs();
    const socket = connect({ host: address, port: SERVICE_PORT });
    const done = (ms: number): void => {
      clearTimeout(timer);
      socket.destroy();
      resolve(ms);
    };
    const timer = setTimeout(done, ATTEMPT_LIMIT_MS, Infinity);
    socket.once('connect', () => {
      done(monotonicMs() - startedAt);
    });
    socket.once('error', () => {
      done(Infinity);
    });
  });
}
