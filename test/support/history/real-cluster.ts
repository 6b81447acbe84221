import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { systemClock } from '../../../src/base/clock.js';
import { connectToApi } from '../../../src/sources/kubernetes/connect/transport.js';
import type { ApiConnection } from '../../../src/sources/kubernetes/connection.js';
import { kubeconfigText } from '../../sources/kubernetes/connect.js';
import type { ApiObject } from '../api-objects.js';
import { metadataOf } from '../api-server/resources.js';
import { Authority } from '../certificates.js';
import { KubeApiServer, pathsOf, TOKEN, type Answer } from '../kube-apiserver.js';
import { RecordingLog } from '../recording-log.js';
import { markers, type Cluster, type Versions } from './cluster.js';

const NODE_ADDRESS = '192.168.0.2';
/** The addresses that objects.ts gives to Services, and the first of each family for the Service `kubernetes`. */
const SERVICE_RANGE = '172.30.0.0/16,fd00:10:96::/112';
/** Bookmarks come once a minute; who asks anew more often than that costs the server little. */
const SILENCE_MS = 5000;

/** The API server's own. */
const OWN_SERVICE = 'kubernetes';
const FIXED_FIELDS = new Set(['clusterIP', 'clusterIPs', 'ipFamilies', 'ipFamilyPolicy', 'healthCheckNodePort']);

/** Of kube-apiserver and etcd; one after the other, many histories happen to it. */
export class RealCluster implements Cluster {
  answers = true;
  readonly silenceMs = SILENCE_MS;
  private marks = 0;
  private node: ApiObject | null = null;
  /** What is to be written once it is back. */
  private readonly waiting: (() => Promise<unknown>)[] = [];

  private constructor(
    private readonly server: KubeApiServer,
    private readonly authority: Authority,
    private readonly directory: string,
  ) {}

  /** @param programs where both programs are. */
  static async start(programs: string): Promise<RealCluster> {
    const directory = mkdtempSync(join(tmpdir(), 'pointsman-history-'));
    const authority = new Authority();
    const options = { programs, directory, authority, serviceRange: SERVICE_RANGE, nodeAddress: NODE_ADDRESS };
    const cluster = new RealCluster(await KubeApiServer.start(options), authority, directory);
    await cluster.untilItServesItself();
    return cluster;
  }

  /** By the program's own transport. */
  async connect(): Promise<ApiConnection> {
    const kubeconfig = join(this.directory, 'kubeconfig');
    const ca = Buffer.from(this.authority.own.certificate).toString('base64');
    const cluster = { server: this.server.url, 'certificate-authority-data': ca };
    writeFileSync(kubeconfig, kubeconfigText({ cluster, user: { token: TOKEN } }));
    return connectToApi({
      kubeconfig,
      master: '',
      qps: -1,
      burst: 10,
      userAgent: 'history',
      clock: systemClock,
      log: new RecordingLog(),
    });
  }

  async put(object: ApiObject): Promise<void> {
    if (object['kind'] === 'Node') this.node = object;
    await this.whenItAnswers(() => this.write(object));
  }

  async delete(kind: 'Service' | 'EndpointSlice', name: string): Promise<void> {
    const { path } = pathsOf({ kind, metadata: { namespace: 'default', name } });
    await this.whenItAnswers(() => this.ask('DELETE', path));
  }

  async mark(): Promise<Versions> {
    const [service, slice] = markers(this.marks++);
    return {
      services: await this.write(service),
      endpointslices: await this.write(slice),
      nodes: this.node === null ? 0 : await this.write(this.node),
    };
  }

  async kill(): Promise<void> {
    await this.server.kill();
    this.answers = false;
  }

  freeze(): Promise<void> {
    this.server.freeze();
    this.answers = false;
    return Promise.resolve();
  }

  /** Its cache of watches would go on where etcd cannot, so it starts anew. */
  async compact(): Promise<void> {
    await this.server.compact();
    if (!this.answers) return;
    await this.server.kill();
    await this.server.run();
  }

  async restore(): Promise<void> {
    if (this.answers) return;
    await this.server.run();
    this.answers = true;
    for (const write of this.waiting.splice(0)) await write();
  }

  /** It makes a Service for itself in its own time, which would be seen by one process and not by another. */
  private async untilItServesItself(): Promise<void> {
    const { path } = pathsOf({ kind: 'Service', metadata: { namespace: 'default', name: OWN_SERVICE } });
    while ((await this.ask('GET', path)).status !== 200) await delay(10);
  }

  /** Without what a history left. */
  async clear(): Promise<void> {
    await this.restore();
    for (const kind of ['Service', 'EndpointSlice', 'Node']) {
      const namespaced = kind === 'Node' ? {} : { namespace: 'default' };
      const { collection } = pathsOf({ kind, metadata: namespaced });
      const { items } = JSON.parse((await this.ask('GET', collection)).body) as { readonly items: ApiObject[] };
      const made = items.filter((item) => metadataOf(item)['name'] !== OWN_SERVICE);
      for (const item of made) await this.ask('DELETE', pathsOf({ ...item, kind }).path);
    }
    this.node = null;
  }

  async stop(): Promise<void> {
    await this.server.stop();
    this.authority.remove();
    rmSync(this.directory, { recursive: true, force: true });
  }

  private async whenItAnswers(write: () => Promise<unknown>): Promise<void> {
    if (this.answers) await write();
    else this.waiting.push(write);
  }

  /** The version of what was written; 0: it is refused. */
  private async write(object: ApiObject): Promise<number> {
    const { collection, path } = pathsOf(object);
    let written = await this.ask('PUT', path, object);
    if (written.status === 422) written = await this.ask('PUT', path, await this.withFixedFields(path, object));
    // A name that comes back as something else.
    if (written.status === 422) await this.ask('DELETE', path);
    if (written.status === 404 || written.status === 422) written = await this.ask('POST', collection, object);
    if (written.status >= 300) return 0;
    if (object['status'] === undefined) return versionOf(written);
    return versionOf(await this.ask('PUT', `${path}/status`, object));
  }

  /** With what may not change in a Service's life as it is. */
  private async withFixedFields(path: string, object: ApiObject): Promise<ApiObject> {
    const { spec = {} } = JSON.parse((await this.ask('GET', path)).body) as { readonly spec?: ApiObject };
    const fixed = Object.entries(spec).filter(([field]) => FIXED_FIELDS.has(field));
    return { ...object, spec: { ...(object['spec'] as ApiObject | undefined), ...Object.fromEntries(fixed) } };
  }

  private ask(method: string, path: string, body?: ApiObject): Promise<Answer> {
    return this.server.ask(method, path, body);
  }
}

function versionOf({ body }: Answer): number {
  return Number(metadataOf(JSON.parse(body) as ApiObject)['resourceVersion'] ?? 0);
}
