import { observeNode, type Observation } from '../observe/observations.js';
import type { ForwardingTable } from '../plan/forwarding-table.js';
import { silentEndpoints } from './attempts.js';
import { foreignWalls } from './foreign-rules.js';
import type { RunningProcess } from './running-process.js';

/** What stands in the way of packets on this node beside our rules, as it is now. */
export async function observedNode(running: RunningProcess): Promise<readonly Observation[]> {
  const { host, snapshot, families } = running;
  const { config } = running.loaded();
  const settings = running.planned();
  const { localDetection, nodeName } = settings;
  const found = observeNode({
    families: families.map(({ family }) => family),
    network: await host.networkFacts(),
    flows: host.flowTableSize(),
    nodeName: nodeName === '' ? config.nodeName : nodeName,
    ready: snapshot.ready,
    podCIDRs: snapshot.node(nodeName)?.podCIDRs ?? null,
    clusterCIDRs: localDetection.type === 'ClusterCIDR' ? localDetection.prefixes : null,
    nodePorts: families
      .filter(({ table }) => hasNodePort(table))
      .map(({ family, table }) => ({ family, prefixes: table.node.nodePortPrefixes })),
    localAddresses: host.localAddresses(),
    listeners: running.silentListeners(),
    sourceErrors: running.sourceErrors(),
  });
  return [...(await foreignWalls(running)), ...found, ...silentEndpoints(running)];
}

function hasNodePort(table: ForwardingTable): boolean {
  for (const { kind } of table.frontends()) if (kind === 'NodePort') return true;
  return false;
}
