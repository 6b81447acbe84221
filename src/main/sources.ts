import type { Config, KubernetesConfig } from '../config/config.js';
import { systemClock } from '../loop/clock.js';
import { NO_EVENTS } from '../net/events.js';
import type { Log } from '../net/log.js';
import type { SourceState } from '../observe/metrics.js';
import type { ApiConnection } from '../sources/kubernetes/connection.js';
import type { EventSender } from '../sources/kubernetes/event-sender.js';
import type { RunningKubernetes } from '../sources/kubernetes/source.js';
import type { RequestObserver } from '../sources/kubernetes/transport.js';
import { startManifests } from '../sources/manifests/start.js';
import type { Store } from '../state/store.js';
import { manifestsOptions } from './settings.js';

export interface RunningSources {
  /** Resolves when nothing more will be applied. */
  stop(): Promise<void>;
  states(): readonly SourceState[];
}

/**
 * Starts what the configuration names: manifests, the API server, or both.
 *
 * @param events sent from now on; null: there is nobody to send them to.
 * @throws KubeconfigError when the way to the API server is not usable as configured.
 */
export async function startSources(
  config: Config,
  version: string,
  store: Store,
  log: Log,
  observer: RequestObserver,
  events: EventSender | null,
): Promise<RunningSources> {
  const { kubernetes } = config;
  // Loaded only where it is used: it takes several megabytes.
  const connect = kubernetes && (await prepareKubernetes(kubernetes, version, log, observer, events));
  // All sources register in one go: readiness must not be judged before the last of them has.
  const manifests = startManifests(manifestsOptions(config), store, log);
  const api = connect && connect(config, store);
  return {
    stop: async () => {
      await Promise.all([manifests.stop(), api?.running.stop()]);
      api?.connection.close();
    },
    states: () => [...manifestStates(config, store), ...(api?.running.status() ?? []).map(apiState)],
  };
}

interface KubernetesSource {
  readonly connection: ApiConnection;
  readonly running: RunningKubernetes;
}

/** Finds and checks the way to the API server; what it answers starts the source. */
async function prepareKubernetes(
  kubernetes: KubernetesConfig,
  version: string,
  log: Log,
  observer: RequestObserver,
  events: EventSender | null,
): Promise<(config: Config, store: Store) => KubernetesSource> {
  const { connectToApi, userAgent } = await import('../sources/kubernetes/transport.js');
  const { startKubernetes } = await import('../sources/kubernetes/source.js');
  const { DEFAULT_TIMING } = await import('../sources/kubernetes/timing.js');
  const connection = await connectToApi({ ...kubernetes, userAgent: userAgent(version, OWN_VERSION), log, observer });
  events?.start(connection);
  return (config, store) => {
    const options = {
      connection,
      nodeName: config.nodeName,
      contentType: kubernetes.contentType,
      acceptContentTypes: kubernetes.acceptContentTypes,
      configSyncPeriodMs: kubernetes.configSyncPeriod,
      nodeRequired: config.localDetection.type === 'NodeCIDR',
      events: events ?? NO_EVENTS,
    };
    const surroundings = { clock: systemClock, random: Math.random, timing: DEFAULT_TIMING };
    return { connection, running: startKubernetes(options, store, log, surroundings) };
  };
}

/** Our own release, behind the Kubernetes version whose place we take. */
const OWN_VERSION = '0.1.0';

function apiState(status: ReturnType<RunningKubernetes['status']>[number]): SourceState {
  const { resource, synced, sinceLastEventMs, failures } = status;
  return { source: resource, synced, sinceLastEventMs, failures };
}

function manifestStates(config: Config, store: Store): readonly SourceState[] {
  const waiting = new Set(store.waitingFor());
  return config.manifests.map((source) => ({
    source,
    synced: !waiting.has(source),
    sinceLastEventMs: null,
    failures: {},
  }));
}
