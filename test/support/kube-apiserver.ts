import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { Agent, request } from 'node:https';
import { createServer, type AddressInfo } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ApiObject } from './api-objects.js';
import { metadataOf, resourceOfKind } from './api-server/resources.js';
import type { Authority } from './certificates.js';

/** Whoever shows it may do everything. */
export const TOKEN = 'bench';

/** Requests under way at one time. */
export const CONCURRENCY = 32;
const READY_MS = 120_000;

export interface KubeApiServerOptions {
  /** Where kube-apiserver and etcd are. */
  readonly programs: string;
  /** For what they keep. */
  readonly directory: string;
  readonly authority: Authority;
  readonly serviceRange: string;
  readonly nodeAddress: string;
  /** Who may do what; without it everybody with a token everything. */
  readonly authorization?: 'RBAC';
  readonly flags?: readonly string[];
}

export interface Answer {
  readonly status: number;
  readonly body: string;
}

/** kube-apiserver and etcd from a directory, alone on loopback. Nobody waits for others or is told what is missing. */
export class KubeApiServer {
  readonly url: string;
  private agent: Agent;
  private process: ChildProcess | null = null;

  private constructor(
    private readonly etcd: ChildProcess,
    private readonly etcdUrl: string,
    private readonly port: number,
    private readonly flags: readonly string[],
    private readonly options: KubeApiServerOptions,
  ) {
    this.url = `https://127.0.0.1:${port}`;
    this.agent = this.connections();
  }

  static async start(options: KubeApiServerOptions): Promise<KubeApiServer> {
    const [client, peer, port] = [await freePort(), await freePort(), await freePort()];
    const etcd = start(join(options.programs, 'etcd'), etcdFlags(client, peer, options.directory));
    const flags = apiServerFlags(client, port, options);
    const server = new KubeApiServer(etcd, `http://127.0.0.1:${client}`, port, flags, options);
    try {
      await server.run();
      return server;
    } catch (error) {
      await server.stop();
      throw error;
    }
  }

  /** Starts it, or lets it go on; resolves when it answers. */
  async run(): Promise<void> {
    if (this.process === null || hasEnded(this.process))
      this.process = start(join(this.options.programs, 'kube-apiserver'), this.flags);
    else this.process.kill('SIGCONT');
    const limit = performance.now() + READY_MS;
    while (!(await this.isReady())) {
      if (hasEnded(this.process) || performance.now() > limit) throw new Error('kube-apiserver does not get ready');
      await sleep(100);
    }
  }

  /** Its connections break, and until it runs again nobody listens. */
  async kill(): Promise<void> {
    await end(this.process);
    this.agent.destroy();
    this.agent = this.connections();
  }

  /** Its connections stand, and nothing comes on them until it runs again. */
  freeze(): void {
    this.process?.kill('SIGSTOP');
  }

  /** etcd forgets all versions but the last. */
  async compact(): Promise<void> {
    const { header } = (await this.askEtcd('kv/range', { key: 'AA==' })) as { readonly header: { revision: string } };
    await this.askEtcd('kv/compaction', { revision: header.revision, physical: true });
  }

  async stop(): Promise<void> {
    await this.kill();
    await end(this.etcd);
  }

  ask(method: string, path: string, body?: ApiObject, type = 'application/json'): Promise<Answer> {
    const headers = { authorization: `Bearer ${TOKEN}`, 'content-type': type };
    return new Promise((resolve, reject) => {
      const { port, agent } = this;
      const outgoing = request({ host: '127.0.0.1', port, path, method, headers, agent }, (response) => {
        let text = '';
        response.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
        response.once('error', reject);
        response.once('end', () => {
          resolve({ status: response.statusCode ?? 0, body: text });
        });
      });
      outgoing.once('error', reject);
      outgoing.end(body === undefined ? '' : JSON.stringify(body));
    });
  }

  private connections(): Agent {
    return new Agent({ keepAlive: true, maxSockets: CONCURRENCY, ca: this.options.authority.own.certificate });
  }

  private async isReady(): Promise<boolean> {
    const answer = await this.ask('GET', '/readyz').catch(() => null);
    return answer?.status === 200;
  }

  private async askEtcd(what: string, body: unknown): Promise<unknown> {
    const response = await fetch(`${this.etcdUrl}/v3/${what}`, { method: 'POST', body: JSON.stringify(body) });
    if (!response.ok) throw new Error(`etcd: ${what}: ${await response.text()}`);
    return response.json();
  }
}

/** Where objects of its kind are, and where it is itself. */
export function pathsOf(object: ApiObject): { readonly collection: string; readonly path: string } {
  const { name: plural, apiVersion } = resourceOfKind(object['kind']);
  const { name, namespace } = metadataOf(object);
  const group = apiVersion.includes('/') ? `/apis/${apiVersion}` : `/api/${apiVersion}`;
  const collection = `${group}${typeof namespace === 'string' ? `/namespaces/${namespace}` : ''}/${plural}`;
  return { collection, path: `${collection}/${String(name)}` };
}

/** The kernel ends it with the thread that starts it (prctl(2), PR_SET_PDEATHSIG): who is killed leaves nothing behind. */
export function start(program: string, flags: readonly string[]): ChildProcess {
  const argv = ['--pdeathsig', 'KILL', '--', program, ...flags];
  const child = spawn('setpriv', argv, { stdio: ['pipe', 'ignore', 'ignore'] });
  // Whoever waits for it to get ready finds out.
  child.on('error', () => undefined);
  return child;
}

function hasEnded({ pid, exitCode, signalCode }: ChildProcess): boolean {
  return pid === undefined || exitCode !== null || signalCode !== null;
}

async function end(child: ChildProcess | null): Promise<void> {
  if (child === null || hasEnded(child)) return;
  const ended = once(child, 'exit');
  child.kill('SIGKILL');
  await ended;
}

function etcdFlags(client: number, peer: number, directory: string): readonly string[] {
  const [clients, peers] = [`http://127.0.0.1:${client}`, `http://127.0.0.1:${peer}`];
  return [
    `--data-dir=${join(directory, 'etcd')}`,
    ...[`--listen-client-urls=${clients}`, `--advertise-client-urls=${clients}`],
    ...[`--listen-peer-urls=${peers}`, `--initial-advertise-peer-urls=${peers}`, `--initial-cluster=default=${peers}`],
    '--unsafe-no-fsync',
  ];
}

function apiServerFlags(
  etcd: number,
  port: number,
  { directory, authority, serviceRange, nodeAddress, authorization, flags = [] }: KubeApiServerOptions,
): readonly string[] {
  const { certificateFile, keyFile } = authority.issue({
    commonName: 'kube-apiserver',
    alternativeNames: ['IP:127.0.0.1'],
  });
  const tokens = join(directory, 'tokens.csv');
  writeFileSync(tokens, `${TOKEN},bench,bench,system:masters\n`);
  return [
    `--etcd-servers=http://127.0.0.1:${etcd}`,
    ...[`--bind-address=127.0.0.1`, `--advertise-address=${nodeAddress}`, `--secure-port=${port}`],
    ...[`--tls-cert-file=${certificateFile}`, `--tls-private-key-file=${keyFile}`],
    ...[`--token-auth-file=${tokens}`, `--authorization-mode=${authorization ?? 'AlwaysAllow'}`],
    ...[`--service-account-issuer=https://bench`, `--service-account-key-file=${certificateFile}`],
    `--service-account-signing-key-file=${keyFile}`,
    `--service-cluster-ip-range=${serviceRange}`,
    ...['--disable-admission-plugins=NamespaceLifecycle,ServiceAccount', '--endpoint-reconciler-type=none'],
    ...['--enable-priority-and-fairness=false', '--max-requests-inflight=0', '--max-mutating-requests-inflight=0'],
    ...flags,
  ];
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}
