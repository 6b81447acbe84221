import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate as turn } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { Authority } from '../test/support/certificates.js';

/**
 * Our HTTP transport beside Node's own client and undici's dispatcher: memory after the first answer, and the CPU time of a watch's events, each in a write
 * of its own, and of a list. TLS over loopback, a fresh process each time, the ways in turn. Usage: `node .build/bench/transport.js [rounds] [events]
 * [objects]`. Prints medians, of CPU time also the ratio to ours within each round, and of resident memory all that was seen.
 */

const [rounds = 5, events = 50_000, objects = 50_000] = process.argv.slice(2).map(Number);
const EVENT = Buffer.from(`${JSON.stringify({ type: 'MODIFIED', object: 'x'.repeat(260) })}\n`);
const OBJECT_BYTES = 600;
const LIST_WRITE = Buffer.alloc(64 << 10, 'x');
/** Long enough for one event to be read alone. */
const EVENT_GAP_MS = 0.1;
const WAYS = ['ours', 'node', 'undici'];
const PATHS = ['/watch', '/list'] as const;

async function serveWatch(response: ServerResponse): Promise<void> {
  let next = performance.now();
  for (let sent = 0; sent < events; sent++) {
    while (performance.now() < next) await turn();
    response.write(EVENT);
    next = performance.now() + EVENT_GAP_MS;
  }
  response.end();
}

async function serveList(response: ServerResponse): Promise<void> {
  for (let left = objects * OBJECT_BYTES; left > 0; left -= LIST_WRITE.length) {
    const more = response.write(LIST_WRITE.subarray(0, Math.min(left, LIST_WRITE.length)));
    if (!more) await new Promise((resolve) => response.once('drain', resolve));
  }
  response.end();
}

interface Measured {
  readonly rssMb: number;
  readonly heapMb: number;
  readonly chunks: number;
  readonly cpuMs: number;
}

function sorted(numbers: readonly number[]): readonly number[] {
  return [...numbers].sort((one, other) => one - other);
}

function median(numbers: readonly number[]): number {
  return sorted(numbers)[numbers.length >> 1] ?? Number.NaN;
}

const directory = mkdtempSync(join(tmpdir(), 'pointsman-bench-'));
const authority = new Authority();
const { certificate, key } = authority.issue({ commonName: 'api', alternativeNames: ['IP:127.0.0.1'] });
const server = createServer({ cert: certificate, key }, (request, response) => {
  response.setHeader('Content-Type', 'application/json');
  if (request.url?.startsWith('/watch') === true) void serveWatch(response);
  else if (request.url?.startsWith('/list') === true) void serveList(response);
  else response.end('{}');
});
await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
const kubeconfig = join(directory, 'kubeconfig');
const cluster = {
  server: `https://127.0.0.1:${(server.address() as AddressInfo).port}`,
  'certificate-authority': authority.own.certificateFile,
};
writeFileSync(
  kubeconfig,
  JSON.stringify({
    'current-context': 'bench',
    contexts: [{ name: 'bench', context: { cluster: 'bench' } }],
    clusters: [{ name: 'bench', cluster }],
  }),
);

async function run(way: string, path: string): Promise<Measured> {
  const script = fileURLToPath(new URL('transport-client.js', import.meta.url));
  const args = [script, way, kubeconfig, path];
  const { stdout } = await promisify(execFile)(process.execPath, args);
  return JSON.parse(stdout) as Measured;
}

const results = new Map<string, Measured[]>();
for (let round = 0; round < rounds; round++) {
  for (const path of PATHS) {
    for (const way of WAYS) {
      const key = `${path} ${way}`;
      results.set(key, [...(results.get(key) ?? []), await run(way, path)]);
    }
  }
}
for (const [name, measured] of results) {
  const [path = ''] = name.split(' ');
  const ours = results.get(`${path} ours`) ?? [];
  const of = (field: keyof Measured): string => median(measured.map((one) => one[field])).toFixed(1);
  const ratio = median(measured.map(({ cpuMs }, round) => cpuMs / (ours[round]?.cpuMs ?? Number.NaN)));
  const resident = sorted(measured.map(({ rssMb }) => rssMb)).map((mb) => mb.toFixed(0));
  const parts = [
    name.padEnd(16),
    `CPU ${of('cpuMs')} ms × ${ratio.toFixed(2)}`,
    `chunks ${of('chunks')}`,
    `heap ${of('heapMb')} MB`,
    `resident ${of('rssMb')} MB (${resident.join(' ')})`,
  ];
  process.stdout.write(`${parts.join('  ')}\n`);
}
server.closeAllConnections();
server.close();
authority.remove();
rmSync(directory, { recursive: true, force: true });
