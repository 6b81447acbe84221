import { EndpointList } from '../../base/endpoint-list.js';
import type { IPAddress } from '../../base/ip.js';
import { HCN_PORT_MAPPING_FLAGS } from '../../native/contract.js';
import { parseFrontendKey } from '../../plan/frontend-key.js';
import { clusterAddressLine, hairpinLine, printFrontend, printNode } from '../../plan/text.js';
import type { FamilyTable, FrontendKind } from '../../plan/types.js';
import { everything } from '../table-view.js';
import { sameLoadBalancer, type LoadBalancer } from './load-balancers.js';
import { Desired, type KernelspaceSettings } from './desired.js';
import type { LoadBalancerKey, LoadBalancers, Endpoints } from './listing.js';
import { remainder, resolve, type Resolution } from './resolution.js';

interface Dumped {
  readonly plan: FamilyTable;
  readonly loadBalancers: LoadBalancers;
  readonly endpoints: Endpoints;
  readonly resolution: Resolution;
  readonly settings: KernelspaceSettings;
}

/** Whose a load balancer is HNS does not know. */
const UNKNOWN_SERVICE = '?';

/**
 * HNS's content in the plan's terms. A load balancer has no room for a Service's name, nor for anything of a frontend
 * without endpoints. If HNS holds exactly what a frontend's plan results in, the plan's lines are printed, otherwise what can
 * be read from HNS.
 */
export function dumpHns({ plan, loadBalancers, endpoints, resolution, settings }: Dumped): readonly string[] {
  const { family } = plan;
  const lines = printNode(plan.node);
  for (const address of plan.clusterAddresses) lines.push(clusterAddressLine(family, address));
  for (const address of plan.hairpinAddresses) lines.push(hairpinLine(family, address));
  const desired = new Desired(() => plan, settings);
  desired.update({ ...everything(plan), ownEndpoints: new Set() });
  const checks = new Set<LoadBalancerKey>();
  for (const [key, { endpoints: list }] of desired.entries()) if (list === null) checks.add(key);
  for (const frontend of plan.frontends()) {
    const wanted = desired.get(frontend.key);
    const held = loadBalancers.made.get(frontend.key);
    const right = wanted === undefined ? remainder(held, frontend, resolution.idOf) : resolve(wanted, resolution);
    const isComplete =
      wanted === undefined || wanted.endpoints?.every((address) => isThere(address, resolution)) === true;
    if (isComplete && (right === null ? held === undefined : held !== undefined && sameLoadBalancer(right, held)))
      for (const line of printFrontend(frontend)) lines.push(line);
    else if (held !== undefined) lines.push(...printHeld(plan, frontend.key, held, addressesById(endpoints)));
  }
  for (const [key, held] of loadBalancers.made)
    if (plan.frontend(key) === undefined && !checks.has(key))
      lines.push(...printHeld(plan, key, held, addressesById(endpoints)));
  return lines.sort();
}

/** Those of pods in the node's own network are nowhere. */
function isThere(address: IPAddress, { idOf, nodeAddress }: Resolution): boolean {
  return idOf(address) !== null || address === nodeAddress;
}

function addressesById({ found, ids }: Endpoints): ReadonlyMap<string, IPAddress> {
  const all = new Map<string, IPAddress>();
  for (const [address, id] of found) all.set(id, address);
  for (const [key, id] of ids) if (!key.startsWith('unexpected ')) all.set(id, key as IPAddress);
  return all;
}

function printHeld(
  { family }: FamilyTable,
  key: LoadBalancerKey,
  { endpoints, internalPort: port, portFlags, distribution }: LoadBalancer,
  addresses: ReadonlyMap<string, IPAddress>,
): readonly string[] {
  if (key.startsWith('unexpected ')) return [`${family} load-balancer ${key}`];
  const head = `${family} frontend ${key}`;
  const there = endpoints.flatMap((id) => {
    const address = addresses.get(id);
    return address === undefined ? [] : [{ address, port }];
  });
  const gone = endpoints.filter((id) => !addresses.has(id));
  return [
    `${head} service ${UNKNOWN_SERVICE} ${kindOf(key, portFlags)}`,
    ...EndpointList.of(family, there)
      .toStrings()
      .map((endpoint) => `${head} endpoint ${endpoint}`),
    ...gone.map((id) => `${head} endpoint ${id}, which HNS has not`),
    ...(distribution === 0 ? [] : [`${head} affinity by source`]),
  ];
}

function kindOf(key: LoadBalancerKey, portFlags: number): FrontendKind {
  if (parseFrontendKey(key).address === null) return 'NodePort';
  return (portFlags & HCN_PORT_MAPPING_FLAGS.vipExternalIp) === 0 ? 'ClusterIP' : 'ExternalIP';
}
