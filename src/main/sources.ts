import type { Config } from '../config/config.js';
import { systemClock } from '../loop/clock.js';
import { NO_EVENTS, type EventRecorder } from '../net/events.js';
import type { Log } from '../net/log.js';
import type { SourceState } from '../observe/metrics.js';
import type { ApiConnection } from '../sources/kubernetes/connection.js';
import type { EventSender } from '../sources/kubernetes/event-sender.js';
import type { KubernetesOptions, RunningKubernetes } from '../sources/kubernetes/source.js';
import type { RequestObserver } from '../sources/kubernetes/transport.js';
import { startManifests, type LocationStatus } from '../sources/manifests/start.js';
import type { Store } from '../state/store.js';
import { manifestsTiming } from './settings.js';

export interface RunningSources {
  /** Resolves when nothing more will be applied. */
  stop(): Promise<void>;
  states(): readonly SourceState[];
}

/**
 * Starts what the configuration names: manifests, the API server, or both.
 *
 * @param observer null: nobody counts requests.
 * @param events sent from now on; null: there is nobody to send them to.
 * @throws KubeconfigError when the way to the API server is not usable as configured.
 */
export async function startSources(
  config: Config,
  version: string,
  store: Store,
  log: Log,
  observer: RequestObserver | null,
  events: EventSender | null,
): Promise<RunningSources> {
  // Loaded only where it is used: it takes several megabytes.
  const source = config.kubernetes && (await connectKubernetes(config, version, log, observer));
  if (source !== null) events?.start(source.connection);
  // All sources register in one go: readiness must not be judged before the last of them has.
  const manifests = startManifests(config.manifests, store, log, manifestsTiming(config));
  const running = source && source.start(store, events ?? NO_EVENTS);
  return {
    stop: async () => {
      await Promise.all([manifests.stop(), running?.stop()]);
      source?.connection.close();
    },
    states: () => [...manifests.status().map(manifestState), ...(running?.status() ?? []).map(apiState)],
  };
}

/** How long {@link readOnce} waits for the last source. */
const READ_ONCE_MS = 60_000;

/**
 * Reads into the store what all sources hold now.
 *
 * @throws KubeconfigError as {@link startSources}; Error with what each source lacks when they do not come to an end.
 */
export async function readOnce(config: Config, version: string, store: Store, log: Log): Promise<void> {
  let done: () => void = () => undefined;
  const complete = new Promise<void>((resolve) => {
    done = resolve;
  });
  store.onChange(() => {
    if (store.snapshot.ready) done();
  });
  const sources = await startSources(config, version, store, log, null, null);
  const cancel = systemClock.callAt(systemClock.now() + READ_ONCE_MS, done);
  await complete;
  cancel();
  const missing = sources.states().flatMap(({ source, synced }) => (synced ? [] : [source]));
  await sources.stop();
  if (!store.snapshot.ready) throw new Error(`not read within ${READ_ONCE_MS / 1000} s: ${missing.join(', ')}`);
}

/** A way to the API server, found and checked. */
export interface KubernetesSource {
  readonly connection: ApiConnection;
  /** Reads everything. */
  start(store: Store, events: EventRecorder): RunningKubernetes;
  /** Reads this node's object alone. */
  watchNode(store: Store, events: EventRecorder): RunningKubernetes;
}

/** @throws KubeconfigError when the way to the API server is not usable as configured, or none is. */
export async function connectKubernetes(
  config: Config,
  version: string,
  log: Log,
  observer: RequestObserver | null = null,
): Promise<KubernetesSource> {
  const { kubernetes } = config;
  if (kubernetes === null) throw new TypeError('no API server is configured');
  const { connectToApi, userAgent } = await import('../sources/kubernetes/transport.js');
  const { startKubernetes, watchNode } = await import('../sources/kubernetes/source.js');
  const { DEFAULT_TIMING } = await import('../sources/kubernetes/timing.js');
  const connection = await connectToApi({
    ...kubernetes,
    userAgent: userAgent(version, OWN_VERSION),
    clock: systemClock,
    log,
    ...(observer === null ? {} : { observer }),
  });
  const options = (events: EventRecorder): KubernetesOptions => ({
    connection,
    nodeName: config.nodeName,
    contentType: kubernetes.contentType,
    acceptContentTypes: kubernetes.acceptContentTypes,
    configSyncPeriodMs: kubernetes.configSyncPeriod,
    nodeRequired: config.localDetection.type === 'NodeCIDR',
    events,
  });
  const surroundings = { clock: systemClock, random: Math.random, timing: DEFAULT_TIMING };
  return {
    connection,
    start: (store, events) => startKubernetes(options(events), store, log, surroundings),
    watchNode: (store, events) => watchNode(options(events), store, log, surroundings),
  };
}

/** Our own release, behind the Kubernetes version whose place we take. */
export const OWN_VERSION = '0.1.0';

function apiState(status: ReturnType<RunningKubernetes['status']>[number]): SourceState {
  const { resource, synced, sinceLastEventMs, failures } = status;
  return { source: resource, synced, sinceLastEventMs, failures };
}

function manifestState(status: LocationStatus): SourceState {
  return { ...status, sinceLastEventMs: null, failures: {} };
}
