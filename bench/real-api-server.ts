import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ApiObject } from '../test/support/api-objects.js';
import { churnedSlice, monotonicMs } from '../test/support/api-server/control.js';
import { clusterObjects } from '../test/support/api-server/cluster.js';
import { Authority } from '../test/support/certificates.js';
import { CONCURRENCY, KubeApiServer, pathsOf } from '../test/support/kube-apiserver.js';
import { kubeconfigText, type BenchApiServer } from './api-server.js';
import { NODE_ADDRESS, NODES, type Cluster } from './cluster.js';

/** What Services have their addresses in, with room before {@link SERVICE_RANGE} for the Service `kubernetes`, which takes the first. */
const ALLOCATED_RANGE = '10.64.0.0/10';

/** kube-apiserver and etcd from a directory, with a generated cluster, alone on loopback. */
export class RealApiServer implements BenchApiServer {
  readonly kubeconfig: string;
  private readonly created = new Set<string>();

  private constructor(
    private readonly server: KubeApiServer,
    private readonly authority: Authority,
    directory: string,
  ) {
    this.kubeconfig = join(directory, 'kubeconfig');
    writeFileSync(this.kubeconfig, kubeconfigText(server.url, authority.own.certificateFile));
  }

  /** @param programs where both programs are. */
  static async start(programs: string, cluster: Cluster, directory: string): Promise<RealApiServer> {
    const authority = new Authority();
    const started = await KubeApiServer.start({
      programs,
      directory,
      authority,
      serviceRange: ALLOCATED_RANGE,
      nodeAddress: NODE_ADDRESS,
    });
    const server = new RealApiServer(started, authority, directory);
    try {
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
    await this.server.stop();
    this.authority.remove();
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
    const { collection, path } = pathsOf(object);
    const isNew = !this.created.has(path);
    this.created.add(path);
    if (!isNew) return this.send('PUT', path, object, 200);
    await this.send('POST', collection, object, 201);
    // A Service is created without a status.
    if (hasBalancer(object)) await this.send('PUT', `${path}/status`, object, 200);
  }

  private async send(method: string, path: string, object: ApiObject, expected: number): Promise<void> {
    const { status, body } = await this.server.ask(method, path, object);
    if (status !== expected) throw new Error(`kube-apiserver: ${method} ${path}: ${status}: ${body}`);
  }
}

function hasBalancer(object: ApiObject): boolean {
  const status = object['status'] as { readonly loadBalancer?: { readonly ingress?: unknown } } | undefined;
  return status?.loadBalancer?.ingress !== undefined;
}
