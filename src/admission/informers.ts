import { ListWatch } from '@kubernetes/client-node/dist/cache.js';
import { KubeConfig } from '@kubernetes/client-node/dist/config.js';
import { HttpMethod, RequestContext } from '@kubernetes/client-node/dist/gen/http/http.js';
import type { KubernetesListObject, KubernetesObject } from '@kubernetes/client-node/dist/types.js';
import { Watch } from '@kubernetes/client-node/dist/watch.js';
import { fetch } from 'undici';
import type { Clock } from '../base/clock.js';
import { messageOf } from '../base/error-message.js';
import type { Log } from '../base/log.js';
import { cutMessage } from '../base/outside-text.js';
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
const NOT_FOUND = 404;

export interface InformersOptions {
  /** Empty: as a pod. */
  readonly kubeconfig: string;
  readonly cluster: ObservedCluster;
  readonly clock: Clock;
  readonly log: Log;
}

/** The informers of the Kubernetes client: each reads all of a kind and follows it, again and again, and what they hear is told the cluster. */
export class Informers {
  private readonly config = new KubeConfig();
  private readonly informers: readonly Informer[];

  /** @throws Error when the kubeconfig cannot be read, or there is none and this is no pod. */
  constructor(options: InformersOptions) {
    if (options.kubeconfig !== '') this.config.loadFromFile(options.kubeconfig);
    else this.config.loadFromCluster();
    if (this.config.getCurrentCluster() === null)
      throw new Error(`--kubeconfig: ${options.kubeconfig}: its current context names no cluster`);
    this.informers = OBSERVED_KINDS.map((kind) => new Informer(kind, this.config, options));
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
    private readonly config: KubeConfig,
    private readonly options: InformersOptions,
  ) {
    const { cluster } = options;
    const onListed = (): void => {
      this.retryMs = FIRST_RETRY_MS;
      cluster.listed(kind);
    };
    this.informer = new ListWatch(PATHS[kind], new ToldWatch(config, onListed), () => this.list(), false);
    const put = (object: KubernetesObject): void => {
      cluster.put(kind, object);
    };
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
    const server = this.config.getCurrentCluster()?.server ?? '';
    // What the server has in memory will do.
    const url = `${server}${PATHS[this.kind]}?resourceVersion=0`;
    const context = new RequestContext(url, HttpMethod.GET);
    await this.config.applySecurityAuthentication(context);
    const dispatcher = context.getDispatcher();
    const response = await fetch(url, {
      headers: { ...context.getHeaders(), Accept: 'application/json' },
      signal: AbortSignal.timeout(LIST_TIMEOUT_MS),
      ...(dispatcher === undefined ? {} : { dispatcher }),
    });
    if (response.status === NOT_FOUND && this.kind === 'ServiceCIDR') {
      await response.body?.cancel();
      throw new AbsentError('the API server has no ServiceCIDRs');
    }
    if (!response.ok) throw new Error(`status ${response.status}: ${await response.text()}`);
    return (await response.json()) as KubernetesListObject<KubernetesObject>;
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

/** There is no such kind. */
class AbsentError extends Error {}

/** A watch begins when everything has been listed, and asks for bookmarks, so that one that was broken off can go on where it was. */
class ToldWatch extends Watch {
  constructor(
    config: KubeConfig,
    private readonly onListed: () => void,
  ) {
    super(config);
  }

  override async watch(...[path, query, ...callbacks]: Parameters<Watch['watch']>): Promise<AbortController> {
    this.onListed();
    return super.watch(path, { ...query, allowWatchBookmarks: true }, ...callbacks);
  }
}
