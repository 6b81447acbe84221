import { setTimeout as delay } from 'node:timers/promises';
import { systemClock } from '../../src/base/clock.js';
import { NO_EVENTS } from '../../src/base/events.js';
import { startKubernetes, type RunningKubernetes } from '../../src/sources/kubernetes/source.js';
import { DEFAULT_TIMING } from '../../src/sources/kubernetes/timing.js';
import type { Store } from '../../src/state/store.js';
import type { ApiObject } from './api-objects.js';
import { SimpleConnection } from './api-server/connection.js';
import { resourceOfKind } from './api-server/resources.js';
import { ApiServer } from './api-server/server.js';
import { RecordingLog } from './recording-log.js';
import type { Story, StoryWrite } from './scenario-file.js';

export const QUICK_TIMING = { ...DEFAULT_TIMING, backoffInitialMs: 1, backoffMaxMs: 10, healthyMs: 1 };
const TIMEOUT_MS = 20_000;

/** A story's objects in an API server, and the source that reads them there. */
export class StorySource {
  private readonly server = new ApiServer();
  private readonly log = new RecordingLog();
  private connection: SimpleConnection | null = null;
  private running: RunningKubernetes | null = null;

  static async start(story: Pick<Story, 'settings'>, store: Store, contentType: string): Promise<StorySource> {
    const source = new StorySource();
    await source.server.start();
    const connection = new SimpleConnection(source.server.url);
    source.connection = connection;
    source.running = startKubernetes(
      {
        connection,
        nodeName: story.settings.nodeName,
        contentType,
        acceptContentTypes: '',
        // ServiceCIDRs are asked for whenever the watch of the Node ends.
        configSyncPeriodMs: 1,
        nodeRequired: false,
        events: NO_EVENTS,
      },
      store,
      source.log,
      { clock: systemClock, random: Math.random, timing: QUICK_TIMING },
    );
    await source.until(() => source.watching());
    return source;
  }

  /** Writes one after the other; resolves when the state stands where the server does. */
  async write(writes: readonly StoryWrite[]): Promise<void> {
    for (const write of writes) {
      if (write.type === 'put') this.server.put(inNamespace(write.object));
      else this.server.store.delete(resourceOfKind(write.ref.kind), write.ref);
    }
    const version = String(this.server.store.version);
    const kinds = writes.map((write) => (write.type === 'put' ? write.object['kind'] : write.ref.kind));
    if (kinds.includes('ServiceCIDR')) {
      for (const watch of [...this.server.watches]) if (watch.resource === 'nodes') watch.end();
      await this.until(() => this.version('servicecidrs') === version);
      await this.until(() => this.watching());
    }
    for (const watch of this.server.watches) watch.bookmark(false);
    await this.until(() =>
      ['services', 'endpointslices', 'nodes'].every((resource) => this.version(resource) === version),
    );
  }

  async stop(): Promise<void> {
    await this.running?.stop();
    this.connection?.close();
    await this.server.stop();
  }

  private watching(): boolean {
    return this.server.watches.size === 3;
  }

  private version(resource: string): string | undefined {
    return this.running?.status().find((status) => status.resource === resource)?.version;
  }

  private async until(condition: () => boolean): Promise<void> {
    const end = performance.now() + TIMEOUT_MS;
    while (!condition()) {
      if (performance.now() > end) throw new Error(`the source does not follow: ${this.log.lines.join('; ')}`);
      await delay(1);
    }
  }
}

/** The namespace that a manifest may leave out. */
function inNamespace(object: ApiObject): ApiObject {
  const metadata = object['metadata'];
  const isNamespaced = resourceOfKind(object['kind']).namespaced;
  return isNamespaced && typeof metadata === 'object'
    ? { ...object, metadata: { namespace: 'default', ...metadata } }
    : object;
}
