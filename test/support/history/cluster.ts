import type { ApiConnection } from '../../../src/sources/kubernetes/connection.js';
import type { ApiObject } from '../api-objects.js';
import { metadataOf, resourceOfKind } from '../api-server/resources.js';
import { ApiServer } from '../api-server/server.js';
import { SimpleConnection } from '../api-server/connection.js';

/** Versions of the last objects that were written of each resource. */
export type Versions = Readonly<Record<'services' | 'endpointslices' | 'nodes', number>>;

/** An API server whose objects outlive it, and what may happen to it. */
export interface Cluster {
  connect(): Promise<ApiConnection>;
  /** A proxy asks anew when it says nothing for so long. */
  readonly silenceMs: number;
  /** Creates or replaces; what the server refuses is not written. */
  put(object: ApiObject): Promise<void>;
  delete(kind: 'Service' | 'EndpointSlice', name: string): Promise<void>;
  /** Writes something of each kind that proxies follow and that says nothing to them, so that one can tell how far they are. */
  mark(): Promise<Versions>;
  kill(): Promise<void>;
  freeze(): Promise<void>;
  /** Watches cannot go on where they were. */
  compact(): Promise<void>;
  /** Whether it answers. */
  readonly answers: boolean;
  restore(): Promise<void>;
  stop(): Promise<void>;
}

const BOOKMARK_MS = 100;

/** Of the test API server, in this process. */
export class FakeCluster implements Cluster {
  answers = true;
  readonly silenceMs = 400;
  private readonly server = new ApiServer({ bookmarkMs: BOOKMARK_MS });
  private marks = 0;
  private node: ApiObject | null = null;
  private seconds = 0;

  private url = '';

  static async start(): Promise<FakeCluster> {
    const cluster = new FakeCluster();
    await cluster.server.start();
    cluster.url = cluster.server.url;
    return cluster;
  }

  connect(): Promise<ApiConnection> {
    return Promise.resolve(new SimpleConnection(this.url));
  }

  put(object: ApiObject): Promise<void> {
    if (object['kind'] === 'Node') this.node = object;
    // No two objects are of one age.
    const creationTimestamp = new Date(1_700_000_000_000 + this.seconds++ * 1000).toISOString().replace('.000', '');
    this.server.put({ ...object, metadata: { ...metadataOf(object), creationTimestamp } });
    return Promise.resolve();
  }

  delete(kind: 'Service' | 'EndpointSlice', name: string): Promise<void> {
    this.server.store.delete(resourceOfKind(kind), { namespace: 'default', name });
    return Promise.resolve();
  }

  async mark(): Promise<Versions> {
    const [service, slice] = markers(this.marks++);
    const { node } = this;
    const version = async (object: ApiObject): Promise<number> => {
      await this.put(object);
      return this.server.store.version;
    };
    return {
      services: await version(service),
      endpointslices: await version(slice),
      nodes: node === null ? 0 : await version(node),
    };
  }

  async kill(): Promise<void> {
    if (this.answers) await this.server.stop();
    this.answers = false;
  }

  freeze(): Promise<void> {
    if (!this.answers) return Promise.resolve();
    for (const watch of [...this.server.watches]) watch.stall();
    this.server.faults.add({ fault: { type: 'hang' } });
    this.answers = false;
    return Promise.resolve();
  }

  compact(): Promise<void> {
    this.server.store.compact();
    for (const watch of [...this.server.watches]) watch.end();
    return Promise.resolve();
  }

  async restore(): Promise<void> {
    this.server.faults.clear();
    if (!this.server.listening) await this.server.start();
    this.answers = true;
  }

  async stop(): Promise<void> {
    if (this.server.listening) await this.server.stop();
  }
}

/** A Service and a slice of it that no proxy programs. */
export function markers(count: number): readonly [service: ApiObject, slice: ApiObject] {
  const metadata = { name: 'marker', namespace: 'default', annotations: { count: String(count) } };
  const labels = { 'kubernetes.io/service-name': 'marker' };
  return [
    { apiVersion: 'v1', kind: 'Service', metadata, spec: { type: 'ExternalName', externalName: 'example.org' } },
    {
      apiVersion: 'discovery.k8s.io/v1',
      kind: 'EndpointSlice',
      metadata: { ...metadata, labels },
      addressType: 'IPv4',
      ports: [],
      endpoints: [],
    },
  ];
}
