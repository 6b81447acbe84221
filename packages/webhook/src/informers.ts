import { ListWatch } from '@kubernetes/client-node/dist/cache.js';
import type { KubernetesListObject, KubernetesObject } from '@kubernetes/client-node/dist/types.js';
import type { Watch } from '@kubernetes/client-node/dist/watch.js';
import type { Clock } from '../../../src/base/clock.js';
import { isMapping } from '../../../src/base/mapping.js';
import { messageOf } from '../../../src/base/error-message.js';
import type { Log } from '../../../src/base/log.js';
import { cutMessage } from '../../../src/base/outside-text.js';
import { readTextWithin } from '../../../src/base/read-text.js';
import type { ApiConnection } from '../../../src/sources/kubernetes/connection.js';
import { OBSERVED_KINDS, type ObservedCluster, type ObservedKind } from './observed-cluster.js';

const PATHS: Readonly<Record<ObservedKind, string>> = {
  Service: '/api/v1/services',
  Node: '/api/v1/nodes',
  ServiceCIDR: '/apis/networking.k8s.io/v1/servicecidrs',
};
const FIRST_RETRY_MS = 1000;
const LAST_RETRY_MS = 30_000;
/** API servers before 1.33 have no ServiceCIDRs; one that is changed for a later one has. */
const ABSENT_RETRY_MS = 300_000;
const LIST_TIMEOUT_MS = 60_000;
/** A watch that brings nothing for so long, not even a bookmark, which come every minute, may be dead: it is begun anew. */
const SILENCE_MS = 150_000;
const MAX_LIST_BYTES = 256 << 20;
const MAX_EVENT_CHARACTERS = 16 << 20;
const OK = 200;
const NOT_FOUND = 404;

interface InformersOptions {
  /** The one that events go over: there is one set of rules for TLS, credentials and proxies. */
  readonly connection: Pick<ApiConnection, 'get'>;
  readonly cluster: ObservedCluster;
  readonly clock: Clock;
  readonly log: Log;
}

/** The informers of the Kubernetes client, over our own connection: each reads all of a kind and follows it, again and again, and notifies the cluster. */
export class Informers {
  private readonly informers: readonly Informer[];

  constructor(options: InformersOptions) {
    this.informers = OBSERVED_KINDS.map((kind) => new Informer(kind, options));
  }

  start(): void {
    for (const informer of this.informers) informer.start();
  }

  async stop(): Promise<void> {
    await Promise.all(this.informers.map((informer) => informer.stop()));
  }
}

/** One kind. */
class Informer {
  private readonly informer: ListWatch<KubernetesObject>;
  private retryMs = FIRST_RETRY_MS;
  private cancelRetry: () => void = () => undefined;
  private stopped = false;

  constructor(
    private readonly kind: ObservedKind,
    private readonly options: InformersOptions,
  ) {
    const { cluster, connection } = options;
    const onListed = (): void => {
      this.retryMs = FIRST_RETRY_MS;
      cluster.listed(kind);
    };
    const put = (object: unknown): void => {
      cluster.put(kind, object);
    };
    // The informer calls only this function of a Watch.
    const watch = new EventStream(connection, onListed, put) as Pick<Watch, 'watch'> as Watch;
    this.informer = new ListWatch(PATHS[kind], watch, () => this.list(), false);
    this.informer.on('add', put);
    this.informer.on('update', put);
    this.informer.on('delete', (object) => {
      cluster.remove(kind, object);
    });
    this.informer.on('error', (error: unknown) => {
      this.failed(error);
    });
  }

  start(): void {
    if (this.stopped) return;
    this.informer.start().catch((error: unknown) => {
      this.failed(error);
    });
  }

  async stop(): Promise<void> {
    this.stopped = true;
    this.cancelRetry();
    await this.informer.stop();
  }

  private async list(): Promise<KubernetesListObject<KubernetesObject>> {
    const path = PATHS[this.kind];
    const options = { accept: 'application/json', signal: AbortSignal.timeout(LIST_TIMEOUT_MS) };
    // What the server has in memory will do.
    const { status, body } = await this.options.connection.get(path, { resourceVersion: '0' }, options);
    const tooLong = (): Error => new Error(`${path}: answer longer than ${MAX_LIST_BYTES} bytes`);
    const text = await readTextWithin(body, MAX_LIST_BYTES, tooLong);
    if (status === NOT_FOUND && this.kind === 'ServiceCIDR')
      throw new AbsentError('the API server has no ServiceCIDRs');
    if (status !== OK) throw new Error(`status ${status}: ${text}`);
    const list = JSON.parse(text) as Omit<KubernetesListObject<KubernetesObject>, 'items'> & {
      readonly items?: readonly unknown[] | null;
    };
    const items = list.items ?? [];
    for (const item of items) if (!isIdentified(item)) this.options.cluster.put(this.kind, item);
    return { ...list, items: items.filter(isIdentified) };
  }

  private failed(error: unknown): void {
    if (this.stopped) return;
    const { cluster, clock, log } = this.options;
    const isAbsent = error instanceof AbsentError;
    if (isAbsent) cluster.listed(this.kind);
    else
      log.warn('cannot be read for now', { kind: this.kind, why: cutMessage(messageOf(error)), retryMs: this.retryMs });
    const wait = isAbsent ? ABSENT_RETRY_MS : this.retryMs;
    this.retryMs = Math.min(this.retryMs * 2, LAST_RETRY_MS);
    this.cancelRetry();
    this.cancelRetry = clock.callAt(clock.now() + wait, () => {
      this.start();
    });
  }
}

/** Whether an informer can read an object. It fails a whole list, and ends the process in a watch, if one has no metadata. */
function isIdentified(object: unknown): object is KubernetesObject {
  return isMapping(object) && isMapping(object['metadata']);
}

/** There is no such kind. */
class AbsentError extends Error {}

type WatchArguments = Parameters<Watch['watch']>;

/** Watches. One begins when everything has been listed, and asks for bookmarks, so that one that was broken off can go on where it was. */
class EventStream {
  constructor(
    private readonly connection: Pick<ApiConnection, 'get'>,
    private readonly onListed: () => void,
    /** Reports an object that the informer cannot read. */
    private readonly report: (object: unknown) => void,
  ) {}

  watch(...[path, query, callback, done]: WatchArguments): Promise<AbortController> {
    this.onListed();
    const controller = new AbortController();
    const ended = (error: unknown): void => {
      // The caller that ended it knows.
      if (!controller.signal.aborted) done(error);
    };
    this.follow(path, String(query['resourceVersion'] ?? ''), callback, controller.signal).then(() => {
      ended(null);
    }, ended);
    return Promise.resolve(controller);
  }

  private async follow(
    path: string,
    resourceVersion: string,
    callback: WatchArguments[2],
    signal: AbortSignal,
  ): Promise<void> {
    const silence = new AbortController();
    const silent = (): void => {
      silence.abort(new DOMException('the watch brought nothing', 'TimeoutError'));
    };
    const timer = setTimeout(silent, SILENCE_MS).unref();
    try {
      const query = { watch: 'true', allowWatchBookmarks: 'true', resourceVersion };
      const options = { accept: 'application/json', signal: AbortSignal.any([signal, silence.signal]) };
      const { status, body } = await this.connection.get(path, query, options);
      if (status !== OK) {
        body.destroy();
        throw Object.assign(new Error(`status ${status}`), { statusCode: status });
      }
      for await (const line of linesOf(body)) {
        timer.refresh();
        const { type, object } = JSON.parse(line) as { readonly type: string; readonly object: unknown };
        if (type === 'ERROR' ? isMapping(object) : isIdentified(object)) callback(type, object);
        else this.report(object);
      }
    } finally {
      clearTimeout(timer);
    }
  }
}

async function* linesOf(body: AsyncIterable<Buffer>): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let rest = '';
  for await (const chunk of body) {
    rest += decoder.decode(chunk, { stream: true });
    const lines = rest.split('\n');
    rest = lines.pop() ?? '';
    if (rest.length > MAX_EVENT_CHARACTERS) throw new Error(`an event longer than ${MAX_EVENT_CHARACTERS} characters`);
    yield* lines.filter((line) => line !== '');
  }
}
