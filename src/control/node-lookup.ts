import { setTimeout as sleep } from 'node:timers/promises';
import { systemClock } from '../base/clock.js';
import { NO_EVENTS } from '../base/events.js';
import type { Log } from '../base/log.js';
import type { Config } from '../config/config.js';
import { loadManifests } from '../sources/manifests/load.js';
import { printProblem } from '../sources/manifests/problems.js';
import type { NodeRow } from '../state/rows.js';
import { Store } from '../state/store.js';
import { connectKubernetes } from './sources.js';

/** In milliseconds; kube-proxy's (behaviour ST-13, ST-15). */
interface LookupLimits {
  /** For a Node with an address. */
  readonly nodeMs: number;
  /** For its pod CIDRs, where pods are recognized by them. */
  readonly podCIDRsMs: number;
}

const LIMITS: LookupLimits = { nodeMs: 30_000, podCIDRsMs: 300_000 };
const POLL_MS = 50;

export interface FoundNode {
  /** As it was in the end; undefined when there is none. */
  readonly node: NodeRow | undefined;
  /** What a start can live with. */
  readonly warnings: readonly string[];
  readonly errors: readonly string[];
}

/**
 * Looks for this node's object where the configuration says, and waits for it as a start of kube-proxy does: a Node that does not come, or has no address,
 * is a warning; an API server that cannot be read is an error, and so are pod CIDRs that are needed and do not come.
 *
 * @throws KubeconfigError when the way to the API server is not usable as configured.
 */
export async function lookUpNode(
  config: Config,
  version: string,
  log: Log,
  limits: LookupLimits = LIMITS,
): Promise<FoundNode> {
  return config.kubernetes === null ? await inManifests(config) : await inCluster(config, version, log, limits);
}

async function inManifests(config: Config): Promise<FoundNode> {
  const { rows, problems, complete } = await loadManifests(config.manifests);
  const node = rows.find((row) => row.kind === 'Node' && row.name === config.nodeName);
  const texts = problems.filter(({ severity }) => severity === 'error').map(printProblem);
  const found = judge(config, node?.kind === 'Node' ? node : undefined);
  return complete
    ? { ...found, warnings: [...texts, ...found.warnings] }
    : { ...found, errors: [...texts, ...found.errors] };
}

async function inCluster(config: Config, version: string, log: Log, limits: LookupLimits): Promise<FoundNode> {
  const source = await connectKubernetes(config, version, log);
  const store = new Store();
  const running = source.watchNode(store, NO_EVENTS);
  const node = (): NodeRow | undefined => store.snapshot.node(config.nodeName);
  try {
    await until(() => (node()?.addresses.length ?? 0) > 0, limits.nodeMs);
    const [status] = running.status();
    if (status?.synced !== true) {
      const why = status?.trouble ?? 'no answer';
      const seconds = limits.nodeMs / 1000;
      return {
        node: undefined,
        warnings: [],
        errors: [`Node ${config.nodeName} could not be read in ${seconds} s: ${why}`],
      };
    }
    const isNodeCIDR = config.localDetection.type === 'NodeCIDR';
    if (isNodeCIDR) await until(() => (node()?.podCIDRs.length ?? 0) > 0, limits.podCIDRsMs);
    return judge(config, node());
  } finally {
    await running.stop();
    source.connection.close();
  }
}

function judge({ nodeName, localDetection }: Config, node: NodeRow | undefined): FoundNode {
  const lack = (what: string): string =>
    node === undefined ? `there is no Node ${nodeName}` : `Node ${nodeName} has no ${what}`;
  const needed = localDetection.type === 'NodeCIDR' && (node?.podCIDRs.length ?? 0) === 0;
  return {
    node,
    warnings: (node?.addresses.length ?? 0) === 0 ? [lack('address')] : [],
    errors: needed ? [`${lack('podCIDRs')}, and detectLocalMode is NodeCIDR`] : [],
  };
}

async function until(condition: () => boolean, ms: number): Promise<void> {
  const end = systemClock.now() + ms;
  while (!condition() && systemClock.now() < end) await sleep(POLL_MS);
}
