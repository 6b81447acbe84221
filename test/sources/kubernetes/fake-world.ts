import { setImmediate as nextTurn } from 'node:timers/promises';
import { NO_EVENTS } from '../../../src/base/events.js';
import {
  startKubernetes,
  type KubernetesOptions,
  type RunningKubernetes,
} from '../../../src/sources/kubernetes/source.js';
import { DEFAULT_TIMING } from '../../../src/sources/kubernetes/timing.js';
import type { ResourceStatus } from '../../../src/sources/kubernetes/watch/status.js';
import type { ApiObject } from '../../support/api-objects.js';
import { serviceObject } from '../../support/api-objects.js';
import { FakeConnection, type FakeRequest } from '../../support/api-server/fake-connection.js';
import { RecordingWriter, type RecordedSource } from '../../support/api-server/recording-writer.js';
import { FakeClock } from '../../support/fake-clock.js';
import { RecordingLog } from '../../support/recording-log.js';

export const SERVICE_TYPE = { kind: 'Service', apiVersion: 'v1' };

/** A Service as the API server gives it, in a version. */
export function serviceAt(name: string, version: number, spec: ApiObject = {}): ApiObject {
  return serviceObject(name, spec, { metadata: { name, namespace: 'default', resourceVersion: String(version) } });
}

/** The source with a test at the other end of its connection, a clock that the test moves, and no chance in anything. */
export class FakeWorld {
  readonly clock = new FakeClock();
  readonly connection = new FakeConnection();
  readonly writer = new RecordingWriter();
  readonly log = new RecordingLog();
  readonly running: RunningKubernetes;

  constructor(options: Partial<KubernetesOptions> = {}) {
    this.running = startKubernetes(
      {
        connection: this.connection,
        nodeName: 'node-1',
        contentType: 'application/json',
        acceptContentTypes: '',
        configSyncPeriodMs: 900_000,
        nodeRequired: false,
        events: NO_EVENTS,
        ...options,
      },
      this.writer,
      this.log,
      { clock: this.clock, random: () => 0, timing: DEFAULT_TIMING },
    );
  }

  get services(): RecordedSource {
    return this.writer.source('kubernetes services');
  }

  status(resource: string): ResourceStatus {
    const status = this.running.status().find((entry) => entry.resource === resource);
    if (status === undefined) throw new Error(`no resource ${resource}`);
    return status;
  }

  /** Requests of a resource so far. */
  requests(resource: string): readonly FakeRequest[] {
    return this.connection.requests.filter(({ path }) => path.endsWith(`/${resource}`));
  }

  /** The last request of a resource, which must be the `count`-th. */
  async request(resource: string, count: number): Promise<FakeRequest> {
    await settle();
    const requests = this.requests(resource);
    const request = requests.at(-1);
    if (request === undefined || requests.length !== count) {
      throw new Error(`${requests.length} requests for ${resource}, not ${count}`);
    }
    return request;
  }

  async advance(ms: number): Promise<void> {
    await settle();
    await this.clock.advance(ms);
    await settle();
  }

  /** The Services' initial events: these objects, then the end at a version. Returns the open watch. */
  async syncServices(version: number, objects: readonly ApiObject[]): Promise<FakeRequest> {
    const watch = (await this.request('services', 1)).open();
    for (const object of objects) watch.event('ADDED', object);
    watch.bookmark(SERVICE_TYPE, String(version), true);
    await settle();
    this.services.takeCommits();
    return watch;
  }
}

/** Lets streams and promises come to rest. */
export async function settle(): Promise<void> {
  for (let turn = 0; turn < 10; turn++) await nextTurn();
}
