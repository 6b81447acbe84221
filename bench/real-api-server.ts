import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { Agent, request } from 'node:https';
import { createServer, type AddressInfo } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ApiObject } from '../test/support/api-objects.js';
import { churnedSlice, monotonicMs } from '../test/support/api-server/control.js';
import { clusterObjects } from '../test/support/api-server/cluster.js';
import { metadataOf, resourceOfKind } from '../test/support/api-server/resources.js';
import { Authority } from '../test/support/certificates.js';
import { kubeconfigText, TOKEN, type BenchApiServer } from './api-server.js';
import { NODE_ADDRESS, NODES, type Cluster } from './cluster.js';

/** Requests under way at one time. */
const CONCURRENCY = 32;
const READY_MS = 120_000;
/** What Services have their addresses in, with room before {@link SERVICE_RANGE} for the Service `kubernetes`, which takes the first. */
const ALLOCATED_RANGE = '10.64.0.0/10';

/** kube-apiserver and etcd from a directory, with a generated cluster, alone on loopback. */
export class RealApiServer implements BenchApiServer {
  readonly kubeconfig: string;
  private readonly agent: Agent;
  private readonly created = new Set<string>();

  private constructor(
    private readonly children: readonly ChildProcess[],
    private readonly authority: Authority,
    private readonly port: number,
    directory: string,
  ) {
    this.agent = new Agent({ keepAlive: true, maxSockets: CONCURRENCY, ca: authority.own.certificate });
    this.kubeconfig = join(directory, 'kubeconfig');
    writeFileSync(this.kubeconfig, kubeconfigText(`https://127.0.0.1:${port}`, authority.own.certificateFile));
  }

  /** @param programs where both programs are. */
  static async start(programs: string, cluster: Cluster, directory: string): Promise<RealApiServer> {
    const authority = new Authority();
    const [client, peer, port] = [await freePort(), await freePort(), await freePort()];
    const etcd = start(join(programs, 'etcd'), etcdFlags(client, peer, directory));
    const apiServer = start(join(programs, 'kube-apiserver'), apiServerFlags(client, port, authority, directory));
    const server = new RealApiServer([apiServer, etcd], authority, port, directory);
    try {
      await server.ready(apiServer);
      await server.putAll(clusterObjects({ ...cluster, nodes: NODES }));
      return server;
    } catch (error) {
      await server.stop();
      throw error;
    }
  }

  async put(...objects: readonly ApiObject[]): Promise<number> {
    const at = monotonicMs();
    await this.putAll(objects);
    return at;
  }

  /** As evenly as the server takes them. */
  async churn({ services, endpoints }: Cluster, perSecond: number, seconds: number): Promise<void> {
    const startedAt = performance.now();
    const underWay = new Set<Promise<void>>();
    for (let change = 0; change < perSecond * seconds; change++) {
      const due = startedAt + (change * 1000) / perSecond;
      if (due > performance.now()) await sleep(due - performance.now());
      if (underWay.size === CONCURRENCY) await Promise.race(underWay);
      const sent = this.putOne(churnedSlice(change, services, endpoints)).finally(() => underWay.delete(sent));
      underWay.add(sent);
    }
    await Promise.all(underWay);
  }

  async stop(): Promise<void> {
    this.agent.destroy();
    for (const child of this.children) {
      if (child.exitCode !== null || child.signalCode !== null) continue;
      const ended = once(child, 'exit');
      child.kill('SIGTERM');
      await ended;
    }
    this.authority.remove();
  }

  private async ready(apiServer: ChildProcess): Promise<void> {
    const limit = monotonicMs() + READY_MS;
    while ((await this.ask('GET', '/readyz').catch(() => 0)) !== 200) {
      if (apiServer.exitCode !== null || monotonicMs() > limit) throw new Error('kube-apiserver does not get ready');
      await sleep(200);
    }
  }

  private async putAll(objects: Iterable<ApiObject>): Promise<void> {
    const left = objects[Symbol.iterator]();
    const worker = async (): Promise<void> => {
      for (let next = left.next(); next.done !== true; next = left.next()) await this.putOne(next.value);
    };
    await Promise.all(Array.from({ length: CONCURRENCY }, worker));
  }

  /** Creates what is not there, and replaces what is. */
  private async putOne(object: ApiObject): Promise<void> {
    const { name: plural, apiVersion } = resourceOfKind(object['kind']);
    const { name, namespace } = metadataOf(object);
    const group = apiVersion.includes('/') ? `/apis/${apiVersion}` : `/api/${apiVersion}`;
    const collection = `${group}${typeof namespace === 'string' ? `/namespaces/${namespace}` : ''}/${plural}`;
    const path = `${collection}/${String(name)}`;
    const isNew = !this.created.has(path);
    this.created.add(path);
    const [method, where, expected] = isNew ? (['POST', collection, 201] as const) : (['PUT', path, 200] as const);
    const status = await this.ask(method, where, JSON.stringify(object));
    if (status !== expected) throw new Error(`kube-apiserver: ${method} ${path}: ${status}`);
  }

  private ask(method: string, path: string, body = ''): Promise<number> {
    const headers = { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' };
    return new Promise((resolve, reject) => {
      const { port, agent } = this;
      const outgoing = request({ host: '127.0.0.1', port, path, method, headers, agent }, (response) => {
        response.resume();
        response.once('error', reject);
        response.once('end', () => {
          resolve(response.statusCode ?? 0);
        });
      });
      outgoing.once('error', reject);
      outgoing.end(body);
    });
  }
}

/** The kernel ends it with the thread that starts it (prctl(2), PR_SET_PDEATHSIG): a benchmark that is killed leaves nothing behind. */
export function start(program: string, flags: readonly string[]): ChildProcess {
  const argv = ['--pdeathsig', 'KILL', '--', program, ...flags];
  const child = spawn('setpriv', argv, { stdio: ['pipe', 'ignore', 'ignore'] });
  // Whoever waits for it to get ready finds out.
  child.on('error', () => undefined);
  return child;
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

/** Everybody with the token may do everything, and nobody waits for others or is told what is missing. */
function apiServerFlags(etcd: number, port: number, authority: Authority, directory: string): readonly string[] {
  const { certificateFile, keyFile } = authority.issue({
    commonName: 'kube-apiserver',
    alternativeNames: ['IP:127.0.0.1'],
  });
  const tokens = join(directory, 'tokens.csv');
  writeFileSync(tokens, `${TOKEN},bench,bench\n`);
  return [
    `--etcd-servers=http://127.0.0.1:${etcd}`,
    ...[`--bind-address=127.0.0.1`, `--advertise-address=${NODE_ADDRESS}`, `--secure-port=${port}`],
    ...[`--tls-cert-file=${certificateFile}`, `--tls-private-key-file=${keyFile}`],
    ...[`--token-auth-file=${tokens}`, '--authorization-mode=AlwaysAllow'],
    ...[`--service-account-issuer=https://bench`, `--service-account-key-file=${certificateFile}`],
    `--service-account-signing-key-file=${keyFile}`,
    `--service-cluster-ip-range=${ALLOCATED_RANGE}`,
    ...['--disable-admission-plugins=NamespaceLifecycle,ServiceAccount', '--endpoint-reconciler-type=none'],
    ...['--enable-priority-and-fairness=false', '--max-requests-inflight=0', '--max-mutating-requests-inflight=0'],
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
