import type { IPPrefix } from '../base/ip.js';
import { observeBridges } from '../observe/bridges.js';
import { observeNode, type Observation } from '../observe/observations.js';
import { observeProcess } from '../observe/process-observations.js';
import type { ForwardingTable } from '../plan/forwarding-table.js';
import { apiProblem } from './api-answer.js';
import { silentEndpoints } from './attempts.js';
import { foreignWalls } from './foreign-rules.js';
import { routesToEndpoints, routesToServices } from './node-routes.js';
import { secondsSince, type RunningProcess } from './running-process.js';

/** Obstacles to packets on this node outside of our rules, read now. */
export async function observedNode(running: RunningProcess): Promise<readonly Observation[]> {
  const { host, snapshot, families } = running;
  const { config } = running.loaded();
  const settings = running.planned();
  const { localDetection, nodeName } = settings;
  const tables = families.map(({ table }) => table);
  const served = families.filter(({ table }) => hasFrontend(table)).map(({ family }) => family);
  const network = await host.networkFacts();
  const podCIDRs = snapshot.node(nodeName)?.podCIDRs ?? null;
  const clusterCIDRs = localDetection.type === 'ClusterCIDR' ? localDetection.prefixes : null;
  const found = observeNode({
    families: served,
    network,
    flows: host.flowTableSize(),
    nodeName: nodeName === '' ? config.nodeName : nodeName,
    ready: snapshot.ready,
    podCIDRs,
    clusterCIDRs,
    nodePorts: families
      .filter(({ table }) => hasNodePort(table))
      .map(({ family, table }) => ({ family, prefixes: table.node.nodePortPrefixes })),
    localAddresses: host.localAddresses(),
    listeners: running.silentListeners(),
    crowding: running.crowding(),
    logs: running.logFaults(),
    sourceErrors: running.sourceErrors(),
  });
  return [
    ...nodeFaults(running),
    ...(await observedProcess(running)),
    ...(await foreignWalls(running, served)),
    ...found,
    ...(network === null ? [] : observeBridges(network.bridges, served, podNetworks(running))),
    ...(await routesToServices(host, tables)),
    ...(await routesToEndpoints(host, tables)),
    ...silentEndpoints(running),
    ...unusedObjects(running),
  ];
}

/** Networks of this node's pods, as far as they are known. */
export function podNetworks({ snapshot, planned }: RunningProcess): readonly IPPrefix[] {
  const { localDetection, nodeName } = planned();
  const podCIDRs = snapshot.node(nodeName)?.podCIDRs ?? [];
  if (podCIDRs.length > 0) return podCIDRs;
  return localDetection.type === 'ClusterCIDR' ? localDetection.prefixes : [];
}

/** One for both families, if they have the same. */
function nodeFaults({ families, progress }: RunningProcess): readonly Observation[] {
  const all = families.flatMap(({ family }) => progress.of(family)?.nodeFaults ?? []);
  const texts = new Map(all.map(({ text, remedy }): [string, string] => [text, remedy]));
  return [...texts].map(([text, remedy]) => ({ kind: 'node-fault', severity: 'warning', text, remedy }));
}

async function observedProcess(running: RunningProcess): Promise<readonly Observation[]> {
  const { sources, kubernetes, waitingFor, refusal, families, progress, now } = running;
  const apiServer = await apiProblem(kubernetes.api(), sources(), now);
  return observeProcess({
    uptimeMs: process.uptime() * 1000,
    sources: sources(),
    apiServer,
    waitingFor: waitingFor(),
    refusedConfiguration: refusal(),
    refusedSeconds: secondsSince(running, 'configuration'),
    failures: families.flatMap(({ family }) => {
      const reason = progress.of(family)?.failure ?? null;
      return reason === null ? [] : [{ family, reason }];
    }),
  });
}

/** How many are named. */
const MOST_UNUSED = 10;

/** Objects without a Service in the state: an object that is not used at all may have none. */
function unusedObjects({ leftOut, sourceErrors, snapshot }: RunningProcess): readonly Observation[] {
  const errors = sourceErrors();
  const unused = leftOut().filter(
    ({ isWhole, service, text }) =>
      isWhole &&
      (service === null || snapshot.service(service) === undefined) &&
      !errors.some((error) => error.includes(text)),
  );
  const more = unused.length - MOST_UNUSED;
  const note = (text: string): Observation => ({
    kind: 'object',
    severity: 'note',
    text,
    remedy: 'correct the object',
  });
  return [
    ...unused
      .slice(0, MOST_UNUSED)
      .map(({ ref: { kind, namespace, name }, text }) =>
        note(`${kind} ${namespace === '' ? '' : `${namespace}/`}${name} is not used: ${text}`),
      ),
    ...(more > 0 ? [note(`${more} more objects are not used`)] : []),
  ];
}

/** Whether Services have an address of the family. */
function hasFrontend(table: ForwardingTable): boolean {
  return table.frontends().next().done !== true;
}

function hasNodePort(table: ForwardingTable): boolean {
  for (const { kind } of table.frontends()) if (kind === 'NodePort') return true;
  return false;
}
