import { systemClock } from '../base/clock.js';
import { NO_EVENTS, type EventRecorder } from '../base/events.js';
import type { Log } from '../base/log.js';
import type { SourceTracing } from '../base/tracing.js';
import type { ClientCertificateConfig } from '../config/client-certificate.js';
import type { Config, KubernetesConfig } from '../config/config.js';
import { OWN_VERSION } from '../config/version.js';
import type { SourceState } from '../observe/metrics.js';
import type { Egress } from '../sources/kubernetes/auth/access.js';
import { KubeconfigError } from '../sources/kubernetes/auth/errors.js';
import type { CertificateObserver } from '../sources/kubernetes/certificate/keeper.js';
import type { ConnectionOptions, RequestObserver } from '../sources/kubernetes/connect/transport.js';
import type { ApiConnection } from '../sources/kubernetes/connection.js';
import type { EventSender } from '../sources/kubernetes/events/event-sender.js';
import type { KubernetesOptions, RunningKubernetes } from '../sources/kubernetes/source.js';
import type { LeftOut } from '../sources/left-out.js';
import type { LocationStatus, RunningManifests } from '../sources/manifests/start.js';
import type { ObjectKey, RowKind } from '../state/rows.js';
import type { Store } from '../state/store.js';
import { manifestsTiming } from './settings.js';

interface SourcesParts {
  readonly version: string;
  readonly store: Store;
  readonly log: Log;
  /** Null: requests are not counted. */
  readonly observer: RequestObserver | null;
  /** Null: changes and requests are not observed. */
  readonly tracing: SourceTracing | null;
  /** Null: nothing is reported. */
  readonly events: EventSender | null;
  /** Null: no client certificate is asked for, whatever the configuration says. */
  readonly certificates: CertificateObserver | null;
  /** As of {@link ConnectionOptions}; null: the platform has no words for it. */
  readonly limitSilence: NonNullable<ConnectionOptions['limitSilence']> | null;
  /** The Node of this configuration's name has been read, or there is none. */
  readonly onNodeRead: (config: Config) => void;
}

/** An observer that ignores the way to the API server. */
const UNOBSERVED = { observer: null, tracing: null, certificates: null, limitSilence: null };

/** The way to the API server that another configuration asks for, found and checked, and not used yet. */
export interface NextApi {
  readonly config: Config;
  /** Null: none is asked for. */
  readonly source: KubernetesSource | null;
}

/** What the configuration names: manifests, the API server, or both. The API server follows the configuration. */
export class Sources {
  private manifests: RunningManifests | null = null;
  private connection: ApiConnection | null = null;
  private running: RunningKubernetes | null = null;
  private stopped = false;

  constructor(private readonly parts: SourcesParts) {}

  /** @throws KubeconfigError when the way to the API server is not usable as configured. */
  async start(config: Config): Promise<void> {
    const { store, log } = this.parts;
    const next = await this.connect(config);
    const manifests = config.manifests.length === 0 ? null : await import('../sources/manifests/start.js');
    // All sources register in one go: readiness must not be judged before the last of them has.
    if (this.stopped) {
      next.source?.connection.close();
      return;
    }
    this.manifests = manifests && manifests.startManifests(config.manifests, store, log, manifestsTiming(config));
    this.read(next);
  }

  /** @throws KubeconfigError when the way to the API server is not usable as configured. */
  async connect(config: Config): Promise<NextApi> {
    const { version, log } = this.parts;
    // Loaded only where it is used: it takes several megabytes.
    return {
      config,
      source: config.kubernetes && (await connectKubernetes(config, version, log, this.parts)),
    };
  }

  /** Reads from there in place of where it does. What was read stays until it has been read anew. */
  async follow(next: NextApi): Promise<void> {
    const { connection, running } = this;
    await running?.stop();
    connection?.close();
    if (this.stopped) {
      next.source?.connection.close();
      return;
    }
    if (next.source === null) running?.withdraw();
    this.read(next);
  }

  /** Resolves when nothing more will be applied. */
  async stop(): Promise<void> {
    this.stopped = true;
    await Promise.all([this.manifests?.stop(), this.running?.stop()]);
    this.connection?.close();
  }

  /** The way to the API server; null: there is none. */
  api(): ApiConnection | null {
    return this.connection;
  }

  /** How many objects of each resource of the API server have come so far. */
  received(): Readonly<Record<string, number>> {
    return Object.fromEntries(
      [...(this.running?.holdings ?? [])].map(([name, { inventory }]) => [name, inventory.received]),
    );
  }

  /** Objects that are not used, or not whole. */
  leftOut(): readonly LeftOut[] {
    const holdings = [...(this.running?.holdings.values() ?? [])];
    return [...(this.manifests?.leftOut() ?? []), ...holdings.flatMap(({ inventory }) => inventory.leftOut())];
  }

  /** In which version an object of the API server was read last; null: in none. @param key `namespace/name`. */
  versionOf(kind: RowKind, key: ObjectKey): string | null {
    const holdings = [...(this.running?.holdings.values() ?? [])];
    return holdings.find(({ inventory }) => inventory.kind === kind)?.inventory.versionOf(key) ?? null;
  }

  /** In which versions the objects of a resource of the API server were read last, by `namespace/name`; null: none are read. */
  versionsOf(resource: string): ReadonlyMap<ObjectKey, string> | null {
    return this.running?.holdings.get(resource)?.inventory.held ?? null;
  }

  /**
   * The way to a webhook, by a kubeconfig of its own. As from the API server itself it is the one of the control plane, if an egress selection names that.
   *
   * @throws KubeconfigError
   */
  async connectWebhook(kubeconfig: string, { kubernetes }: Pick<Config, 'kubernetes'>): Promise<ApiConnection> {
    const { version, log, tracing } = this.parts;
    const { connectToApi, userAgent } = await import('../sources/kubernetes/connect/transport.js');
    const agent = userAgent(version, OWN_VERSION);
    // Only with the API server as a source the file's oddities are reported.
    const egress = await egressOf(kubernetes?.egressFile ?? null, { warn: () => undefined });
    return connectToApi({
      kubeconfig,
      egress,
      master: '',
      qps: -1,
      burst: 1,
      userAgent: agent,
      clock: systemClock,
      log,
      ...(tracing === null ? {} : { tracing }),
    });
  }

  /** Milliseconds since any source was last heard of; null: none ever was. */
  unheardMs(): number | null {
    const received = this.states().flatMap(({ sinceLastEventMs }) => sinceLastEventMs ?? []);
    return received.length === 0 ? null : Math.min(...received);
  }

  /** What of the manifests is not used, of each file the first. */
  errors(): readonly string[] {
    return this.manifests?.errors() ?? [];
  }

  states(): readonly SourceState[] {
    const manifests = this.manifests?.status() ?? [];
    const { running } = this;
    const read = (running?.status() ?? []).map((status) =>
      apiState(status, running?.holdings.get(status.resource)?.inventory.received ?? 0),
    );
    return [...manifests.map(manifestState), ...read];
  }

  private read({ config, source }: NextApi): void {
    const { store, events, onNodeRead } = this.parts;
    const former = this.running;
    this.connection = source && source.connection;
    events?.start(this.connection);
    const nodeRead = (): void => {
      onNodeRead(config);
    };
    this.running =
      source && source.start(store, events ?? NO_EVENTS, { nodeRead, ...(former === null ? {} : { former }) });
  }
}

/** How long {@link readOnce} waits for the last source. */
const READ_ONCE_MS = 60_000;

/**
 * Reads into the store what all sources hold now.
 *
 * @param withinMs how long the last of them is waited for.
 * @throws KubeconfigError as {@link Sources.start}; Error with what each source lacks when they do not come to an end.
 */
export async function readOnce(
  config: Config,
  version: string,
  store: Store,
  log: Log,
  withinMs = READ_ONCE_MS,
): Promise<void> {
  let done: () => void = () => undefined;
  const complete = new Promise<void>((resolve) => {
    done = resolve;
  });
  store.onChange(() => {
    if (store.snapshot.ready) done();
  });
  const sources = new Sources({ version, store, log, ...UNOBSERVED, events: null, onNodeRead: () => undefined });
  await sources.start(config);
  const cancel = systemClock.callAt(systemClock.now() + withinMs, done);
  await complete;
  cancel();
  const missing = sources.states().flatMap(({ source, synced }) => (synced ? [] : [source]));
  await sources.stop();
  if (!store.snapshot.ready) throw new Error(`not read within ${withinMs / 1000} s: ${missing.join(', ')}`);
}

/** A way to the API server, found and checked. */
interface KubernetesSource {
  readonly connection: ApiConnection;
  /** Reads everything. */
  start(store: Store, events: EventRecorder, more?: Pick<KubernetesOptions, 'former' | 'nodeRead'>): RunningKubernetes;
  /** Reads this node's object alone. */
  watchNode(store: Store, events: EventRecorder): RunningKubernetes;
}

/** @throws KubeconfigError when the way to the API server is not usable as configured, or none is. */
export async function connectKubernetes(
  config: Config,
  version: string,
  log: Log,
  { observer, tracing, certificates, limitSilence }: Pick<SourcesParts, keyof typeof UNOBSERVED> = UNOBSERVED,
): Promise<KubernetesSource> {
  const { kubernetes } = config;
  if (kubernetes === null) throw new TypeError('no API server is configured');
  const { connectToApi, userAgent } = await import('../sources/kubernetes/connect/transport.js');
  const { startKubernetes, watchNode } = await import('../sources/kubernetes/source.js');
  const { DEFAULT_TIMING } = await import('../sources/kubernetes/timing.js');
  const { clientCertificate, egressFile } = kubernetes;
  const egress = await egressOf(egressFile, log);
  const connect = (kubeconfig: string): Promise<ApiConnection> =>
    connectToApi({
      ...kubernetes,
      kubeconfig,
      egress,
      userAgent: userAgent(version, OWN_VERSION),
      clock: systemClock,
      log,
      limitSilence,
      ...(observer === null ? {} : { observer }),
      ...(tracing === null ? {} : { tracing }),
    });
  const connection =
    certificates === null || clientCertificate === null
      ? await connect(kubernetes.kubeconfig)
      : await connectCertified(clientCertificate, kubernetes, config.nodeName, connect, log, certificates);
  const options = (events: EventRecorder): KubernetesOptions => ({
    connection,
    nodeName: config.nodeName,
    contentType: kubernetes.contentType,
    acceptContentTypes: kubernetes.acceptContentTypes,
    configSyncPeriodMs: kubernetes.configSyncPeriod,
    nodeRequired: config.localDetection.type === 'NodeCIDR',
    events,
    ...(tracing === null ? {} : { tracing }),
  });
  const dependencies = { clock: systemClock, random: Math.random, timing: DEFAULT_TIMING };
  return {
    connection,
    start: (store, events, more) => startKubernetes({ ...options(events), ...more }, store, log, dependencies),
    watchNode: (store, events) => watchNode(options(events), store, log, dependencies),
  };
}

/** @throws KubeconfigError when the file cannot be used. */
async function egressOf(file: string | null, log: Pick<Log, 'warn'>): Promise<Egress | null> {
  if (file === null) return null;
  // Loaded only where it is used: it is a file of its own.
  const { readEgress } = await import('./egress.js');
  const origin = `--egress-selector-config-file: ${file}`;
  const read = readEgress(file, origin, log);
  if ('problem' in read) throw new KubeconfigError(origin, [read.problem]);
  return read.egress;
}

/** As the flags about the client certificate say. */
async function connectCertified(
  config: ClientCertificateConfig,
  { kubeconfig, master }: KubernetesConfig,
  nodeName: string,
  connect: (kubeconfig: string) => Promise<ApiConnection>,
  log: Log,
  observer: CertificateObserver,
): Promise<ApiConnection> {
  const { readSelection } = await import('../sources/kubernetes/auth/access.js');
  const { connectCertified } = await import('../sources/kubernetes/certificate/connect.js');
  return connectCertified({
    config,
    kubeconfig,
    nodeName,
    connect,
    log,
    observer,
    select: (path) => readSelection(path, master !== ''),
    clock: systemClock,
    random: Math.random,
    now: Date.now,
  });
}

function apiState(status: ReturnType<RunningKubernetes['status']>[number], received: number): SourceState {
  const { resource, synced, sinceLastEventMs, failures, trouble, watching } = status;
  return { source: resource, synced, sinceLastEventMs, failures, trouble, isWatched: watching, received };
}

function manifestState(status: LocationStatus): SourceState {
  return { ...status, sinceLastEventMs: null, failures: {} };
}
