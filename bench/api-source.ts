import { spawn, type ChildProcess } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { Authority } from '../test/support/certificates.js';

/**
 * Measures the API source over TLS: initial sync of 10,000 Services and 10,000 EndpointSlices of 10 endpoints, then a churn of slices.
 * Usage: `node .build/bench/api-source.js [services] [endpoints] [seconds of churn]`.
 */

const [services = 10_000, endpoints = 10, seconds = 10] = process.argv.slice(2).map((text) => Number(text));
const EVENTS_PER_SECOND = 500;

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

async function measure(
  kubeconfig: string,
  control: string,
  type: string,
  nodeArguments: readonly string[],
): Promise<void> {
  const client = new Child('api-source-client.js', ['--expose-gc', ...nodeArguments], [kubeconfig, type]);
  const title = `${type.includes('json') ? 'JSON' : 'protobuf'} ${nodeArguments.join(' ')}`;
  print(`${title} sync`, await client.line());
  await client.ask('idle');
  const body = JSON.stringify({ perSecond: EVENTS_PER_SECOND, seconds, services, endpoints });
  await fetch(`${control}/churn`, { method: 'POST', body });
  await sleep(300);
  const churn = await client.ask('churn');
  const events = Number(churn['events']);
  print(`${title} churn`, {
    ...churn,
    'µs/event': (Number(churn['cpuMs']) * 1000) / events,
    'CPU %': Number(churn['cpuMs']) / seconds / 10,
  });
  client.end();
}

const directory = mkdtempSync(join(tmpdir(), 'pointsman-bench-'));
const authority = new Authority();
const { certificateFile, keyFile } = authority.issue({ commonName: 'api', alternativeNames: ['IP:127.0.0.1'] });
const server = new Child(
  '../test/support/api-server/main.js',
  [],
  ['--tls-cert-file', certificateFile, '--tls-key-file', keyFile, '--cluster', `${services},${endpoints},1000`],
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
for (const nodeArguments of [[], ['--max-semi-space-size=2']]) {
  for (const type of ['application/vnd.kubernetes.protobuf', 'application/json']) {
    await measure(kubeconfig, String(control), type, nodeArguments);
  }
}
server.end();
authority.remove();
rmSync(directory, { recursive: true, force: true });
