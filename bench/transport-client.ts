import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { Agent, get as httpsGet } from 'node:https';
import { setTimeout as sleep } from 'node:timers/promises';
import type { SecureContext } from 'node:tls';
import { systemClock } from '../src/base/clock.js';
import type { Log } from '../src/base/log.js';
import { serverIdentity } from '../src/base/server-identity.js';
import { limitMemory } from '../src/base/heap-options.js';
import { settleHeap } from '../src/cli/memory.js';
import { resolveAccess } from '../src/sources/kubernetes/auth/access.js';
import { Credentials, systemDependencies } from '../src/sources/kubernetes/auth/credentials.js';

/**
 * One way to read an API server over TLS, in a process of its own. Arguments: the way, a kubeconfig, the path of a long answer. Prints a line of JSON with
 * the memory after a short answer, and what the long one cost. All ways read the same credentials; the process listens over HTTP as the product does.
 */

const [way = '', kubeconfig = '', path = ''] = process.argv.slice(2);

type Take = (chunk: Buffer) => void;
/** Makes a GET and hands its body over. */
type Get = (path: string, take: Take) => Promise<void>;

interface Way {
  readonly get: Get;
  readonly close: () => unknown;
}

const log: Log = {
  info: () => undefined,
  warn: (message) => process.stderr.write(`${message}\n`),
  error: (error, message) => process.stderr.write(`${message}: ${String(error)}\n`),
};

interface Server {
  readonly origin: string;
  readonly host: string;
  readonly secureContext: SecureContext;
}

/** What any library would have to be given. */
async function server(): Promise<Server> {
  const dependencies = systemDependencies(log, systemClock);
  const access = await resolveAccess({
    kubeconfig,
    master: '',
    env: dependencies.env,
    serviceAccountDirectory: '/none',
  });
  const { tls } = await new Credentials(access, dependencies, null).current();
  if (tls === null) throw new Error('the server must speak TLS');
  return { origin: access.server.origin, host: access.server.hostname, secureContext: tls.context };
}

async function ours(): Promise<Way> {
  const { connectToApi } = await import('../src/sources/kubernetes/connect/transport.js');
  const options = { kubeconfig, master: '', qps: -1, burst: 1, userAgent: 'bench', clock: systemClock, log };
  const connection = await connectToApi(options);
  const { signal } = new AbortController();
  const get: Get = async (path, take) => {
    const { body } = await connection.get(path, { watch: '1' }, { accept: 'application/json', signal });
    await new Promise<void>((resolve, reject) => body.on('data', take).on('end', resolve).on('error', reject));
  };
  return {
    get,
    close: () => {
      connection.close();
    },
  };
}

/** Node's client as it comes. */
async function plainNode(): Promise<Way> {
  const { origin, host, secureContext } = await server();
  const agent = new Agent({ keepAlive: true });
  const trust = { secureContext, ...serverIdentity(host) };
  const get: Get = (path, take) =>
    new Promise<void>((resolve, reject) => {
      const request = httpsGet(`${origin}${path}`, { agent, ...trust }, (response) => {
        response.on('data', take).on('end', resolve).on('error', reject);
      });
      request.on('error', reject);
    });
  return {
    get,
    close: () => {
      agent.destroy();
    },
  };
}

/** undici's dispatcher, chunks straight from its parser: the least that it can cost. */
async function undici(): Promise<Way> {
  const { Pool } = await import('undici');
  const { origin, host, secureContext } = await server();
  const pool = new Pool(origin, { connect: { secureContext, ...serverIdentity(host) }, bodyTimeout: 0 });
  const get: Get = (path, take) =>
    new Promise<void>((resolve, reject) => {
      pool.dispatch(
        { path, method: 'GET', headers: { 'User-Agent': 'bench' } },
        {
          onRequestStart: () => undefined,
          onResponseStart: () => undefined,
          onResponseData: (_, chunk) => {
            take(chunk);
          },
          onResponseEnd: () => {
            resolve();
          },
          onResponseError: (_, error) => {
            reject(error);
          },
        },
      );
    });
  return { get, close: () => pool.close() };
}

function residentMb(): number {
  const line = /VmRSS:\s+(\d+) kB/.exec(readFileSync('/proc/self/status', 'utf8'));
  return Number(line?.[1] ?? 0) / 1024;
}

limitMemory();
const listener = createServer().listen(0, '127.0.0.1');
const ways: Readonly<Record<string, () => Promise<Way>>> = { ours, node: plainNode, undici };
const make = ways[way];
if (make === undefined) throw new Error(`no such way: ${way}`);
const { get, close } = await make();
await get('/short', () => undefined);
settleHeap();
await sleep(300);
const { heapUsed, external } = process.memoryUsage();
const memory = { rssMb: residentMb(), heapMb: (heapUsed + external) / (1 << 20) };

let chunks = 0;
let bytes = 0;
const before = process.cpuUsage();
await get(path, (chunk) => {
  chunks++;
  bytes += chunk.length;
});
const { user, system } = process.cpuUsage(before);
process.stdout.write(`${JSON.stringify({ ...memory, chunks, bytes, cpuMs: (user + system) / 1000 })}\n`);
await close();
listener.close();
