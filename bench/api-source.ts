import { spawn, type ChildProcess } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { Authority } from '../test/support/certificates.js';

/**
 * Measures the API source and the state, run as the product runs: what an event costs from its bytes to the state; over TLS an initial sync of Services and
 * their EndpointSlices, connections, and a churn of slices. Usage: `node .build/bench/api-source.js [services] [endpoints] [seconds of churn]`, with
 * `--only protobuf` or `--only json` for one encoding, and `--idle SECONDS` for a time without changes before the churn.
 */

const { values: options, positionals } = parseArgs({
  allowPositionals: true,
  options: { only: { type: 'string', default: '' }, idle: { type: 'string', default: '0' } },
});
const [services = 10_000, endpoints = 10, seconds = 10] = positionals.map(Number);
const idleSeconds = Number(options.idle);
const EVENTS_PER_SECOND = 500;
const PIECE_SECONDS = 60;
const NODES = 1000;
const ENCODINGS = { protobuf: 'application/vnd.kubernetes.protobuf', json: 'application/json' };

/** A child that speaks in lines of JSON. */
class Child {
  private readonly process: ChildProcess;
  private readonly lines: AsyncIterator<string>;

  constructor(script: string, nodeArguments: readonly string[], args: readonly string[]) {
    const path = fileURLToPath(new URL(script, import.meta.url));
    this.process = spawn(process.execPath, [...nodeArguments, path, ...args], { stdio: ['pipe', 'pipe', 'inherit'] });
    if (this.process.stdout === null) throw new Error('no output to read');
    this.lines = createInterface({ input: this.process.stdout })[Symbol.asyncIterator]();
  }

  async line(): Promise<Record<string, unknown>> {
    const next = await this.lines.next();
    if (next.done === true) throw new Error('a child ended early');
    return JSON.parse(next.value) as Record<string, unknown>;
  }

  ask(text: string): Promise<Record<string, unknown>> {
    this.process.stdin?.write(`${text}\n`);
    return this.line();
  }

  end(): void {
    this.process.stdin?.end('end\n');
  }
}

function print(title: string, values: Record<string, unknown>): void {
  const parts = Object.entries(values).map(([name, value]) => `${name} ${Number(value).toFixed(1)}`);
  process.stdout.write(`${title.padEnd(44)} ${parts.join('  ')}\n`);
}

async function measureEvents(title: string, type: string): Promise<void> {
  const client = new Child('api-source-events.js', [], [type, String(services), String(endpoints)]);
  print(`${title} event, bytes to state`, await client.line());
}

async function measure(kubeconfig: string, control: string, title: string, type: string): Promise<void> {
  const before = await serverState(control);
  const client = new Child('api-source-client.js', ['--expose-gc'], [kubeconfig, type]);
  print(`${title} sync`, await client.line());
  if (idleSeconds > 0) {
    await client.ask('before the idle time');
    const start = await serverState(control);
    await sleep(idleSeconds * 1000);
    const end = await serverState(control);
    const { cpuMs, residentMb } = await client.ask('after the idle time');
    const values = { connections: end.connections - start.connections, watches: end.watches - start.watches };
    print(`${title} idle ${idleSeconds} s, new`, { ...values, cpuMs, residentMb });
  }
  const first = await client.ask('before the churn');
  // In pieces: an answer that takes minutes would be given up.
  for (let left = seconds; left > 0; left -= PIECE_SECONDS) {
    const piece = { perSecond: EVENTS_PER_SECOND, seconds: Math.min(left, PIECE_SECONDS), services, endpoints };
    await post(control, 'churn', piece);
  }
  await sleep(300);
  const churn = await client.ask('after the churn');
  const after = await serverState(control);
  print(`${title} churn`, {
    'heapMb before': first['heapMb'],
    'residentMb before': first['residentMb'],
    ...churn,
    'µs/event': (Number(churn['cpuMs']) * 1000) / Number(churn['events']),
    'CPU %': Number(churn['cpuMs']) / seconds / 10,
  });
  print(`${title} altogether`, {
    connections: after.connections - before.connections,
    watches: after.watches - before.watches,
  });
  client.end();
  // What clients of before might have asked for again only costs the server memory.
  await post(control, 'compact', null);
}

async function post(control: string, command: string, value: unknown): Promise<unknown> {
  return (await fetch(`${control}/${command}`, { method: 'POST', body: JSON.stringify(value) })).json();
}

/** How many connections were made and watches were asked for since the server started. */
async function serverState(control: string): Promise<{ readonly connections: number; readonly watches: number }> {
  const { connections, requests } = (await post(control, 'state', null)) as {
    readonly connections: number;
    readonly requests: Readonly<Record<string, number>>;
  };
  const watches = Object.entries(requests).filter(([name]) => name.startsWith('watch'));
  return { connections, watches: watches.reduce((sum, [, count]) => sum + count, 0) };
}

const directory = mkdtempSync(join(tmpdir(), 'pointsman-bench-'));
const authority = new Authority();
const { certificateFile, keyFile } = authority.issue({ commonName: 'api', alternativeNames: ['IP:127.0.0.1'] });
const server = new Child(
  '../test/support/api-server/main.js',
  [],
  ['--tls-cert-file', certificateFile, '--tls-key-file', keyFile, '--cluster', `${services},${endpoints},${NODES}`],
);
const { url, control } = await server.line();
const kubeconfig = join(directory, 'kubeconfig');
writeFileSync(
  kubeconfig,
  JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 'bench',
    contexts: [{ name: 'bench', context: { cluster: 'bench', user: 'bench' } }],
    clusters: [{ name: 'bench', cluster: { server: url, 'certificate-authority': authority.own.certificateFile } }],
    users: [{ name: 'bench', user: { token: 'bench' } }],
  }),
);
for (const [title, type] of Object.entries(ENCODINGS)) {
  if (options.only !== '' && options.only !== title) continue;
  await measureEvents(title, type);
  await measure(kubeconfig, String(control), title, type);
}
server.end();
authority.remove();
rmSync(directory, { recursive: true, force: true });
