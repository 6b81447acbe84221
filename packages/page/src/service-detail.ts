import type { Family } from '../../../src/base/ip.js';
import { selectionFacts } from '../../../src/plan/balance.js';
import { explainedEndpoint } from '../../../src/plan/explain.js';
import { endpointReason } from '../../../src/plan/explain-text.js';
import { nodeFacts, type NodeFacts } from '../../../src/plan/facts.js';
import type { ForwardingTable } from '../../../src/plan/forwarding-table.js';
import { examineEndpoints, type EndpointVerdict } from '../../../src/plan/examine.js';
import { localPolicies } from '../../../src/plan/service-plan.js';
import { KIND_NAMES, printHolder, printLimitation } from '../../../src/plan/text.js';
import type { Conflict as PlannedConflict, FrontendPlan } from '../../../src/plan/types.js';
import type { EndpointSliceRow, ObjectKey, ServicePortRow, ServiceRow } from '../../../src/state/rows.js';
import type { RunningProcess } from '../../../src/serve/running-process.js';
import type {
  Conflict,
  Endpoint,
  EndpointGroup,
  EndpointsPage,
  Frontend,
  FrontendsPage,
  ServiceDetail,
  Slice,
} from './api.js';
import { printSilence } from '../../../src/serve/attempts.js';
import { describeEndpoint } from './explained.js';
import { wallTime } from './overview.js';
import { AskedWrongly, type PageQuery } from './query.js';
import { refusedServices } from './refused-services.js';
import { portNameOf, serviceOf } from '../../../src/plan/frontend-key.js';

/** How many endpoints of a group, frontends and slices come with the Service. */
const ROWS = 100;
/** The most ports whose endpoints are listed: each port's are all looked at. */
const GROUPED_PORTS = 20;
const PORTS = 500;
const LEFT_OUT = 50;
/** The most other Services that are listed for a claimed frontend. */
const CLAIMS = 10;

/** @throws AskedWrongly */
function requireService(running: RunningProcess, key: ObjectKey): ServiceRow {
  const service = running.snapshot.service(key);
  if (service !== undefined) return service;
  const refused = refusedServices(running).find((each) => each.key === key);
  if (refused === undefined) throw new AskedWrongly(404, `there is no Service ${key}`);
  throw new AskedWrongly(404, `Service ${key} cannot be used, correct the object: ${refused.reason}`);
}

/**
 * One Service whole.
 *
 * @throws AskedWrongly
 */
export function serviceDetail(running: RunningProcess, key: ObjectKey): ServiceDetail {
  const service = requireService(running, key);
  // The next request gets what came since.
  void running.attempts?.ask();
  const { namespace, name, type, creationTime, ports } = service;
  const { clusterIPs, externalIPs, loadBalancerIngress, loadBalancerSourceRanges, affinitySeconds } = service;
  const slices = running.snapshot.slicesOf(key);
  const { internal, external } = localPolicies(service);
  const tables = running.families.map(({ table }) => table);
  const checks = tables.flatMap((table) => table.plan(key)?.healthCheck ?? []);
  const [check] = checks;
  return {
    key,
    namespace,
    name,
    type,
    clusterIPs,
    externalIPs,
    affinitySeconds,
    createdAt: creationTime === null ? null : new Date(creationTime).toISOString(),
    nothing: whyNothing(tables, key, service),
    loadBalancer: loadBalancerIngress.map(({ address, ipMode }) => ({ address, mode: ipMode })),
    sourceRanges: loadBalancerSourceRanges,
    policies: { internal: internal ? 'Local' : 'Cluster', external: external ? 'Local' : 'Cluster' },
    healthCheck:
      check === undefined
        ? null
        : { port: check.port, localEndpoints: checks.reduce((sum, { localEndpoints }) => sum + localEndpoints, 0) },
    ports: ports.slice(0, PORTS),
    portCount: ports.length,
    ...frontendRows(running, key, 0, ROWS),
    endpoints: tables.flatMap(({ family }) => groupsOf(running, family, key, service)),
    slices: slices.slice(0, ROWS).map(describeSlice),
    sliceCount: slices.length,
    limitations: tables.flatMap((table) => (table.plan(key)?.limitations ?? []).map(printLimitation)),
    leftOut: leftOutOf(running, key),
    unplanned: tables.flatMap(({ family, unplanned }) => {
      const reason = unplanned.get(key);
      return reason === undefined ? [] : [{ family, reason }];
    }),
    traffic: running.trafficOf?.(key) ?? null,
  };
}

function leftOutOf({ leftOut }: RunningProcess, key: ObjectKey): readonly string[] {
  return leftOut()
    .filter(({ service }) => service === key)
    .slice(0, LEFT_OUT)
    .map(({ ref, isWhole, text }) => `${ref.kind} ${ref.name}: ${isWhole ? 'not used: ' : ''}${text}`);
}

function whyNothing(tables: readonly ForwardingTable[], key: ObjectKey, service: ServiceRow): string | null {
  if (tables.some((table) => table.plan(key) !== undefined || table.unplanned.has(key))) return null;
  if (service.type === 'ExternalName') return 'the type ExternalName is a name in DNS, to which nothing is forwarded';
  if (service.clusterIPs.length === 0)
    return 'it is headless: its endpoints are found by DNS, and nothing is forwarded';
  return 'it has no cluster IP of a family that this node serves, or has not been planned yet';
}

interface FrontendQuery extends PageQuery {
  readonly key: ObjectKey;
}

/**
 * More frontends of one Service.
 *
 * @throws AskedWrongly
 */
export function frontendsPage(running: RunningProcess, { key, offset, limit }: FrontendQuery): FrontendsPage {
  requireService(running, key);
  const { frontends: rows, frontendCount: total } = frontendRows(running, key, offset, limit);
  return { total, offset, rows };
}

/** Some of a Service's frontends; takes as long as these. */
function frontendRows(
  running: RunningProcess,
  key: ObjectKey,
  offset: number,
  limit: number,
): Pick<ServiceDetail, 'frontends' | 'frontendCount'> {
  const rows: Frontend[] = [];
  let before = 0;
  for (const { table } of running.families) {
    const { frontends = [] } = table.plan(key) ?? {};
    const first = Math.max(0, offset - before);
    const shown = frontends.slice(first, first + limit - rows.length);
    rows.push(...describeFrontends(running, table, key, shown));
    before += frontends.length;
  }
  return { frontends: rows, frontendCount: before };
}

function describeFrontends(
  running: RunningProcess,
  table: ForwardingTable,
  key: ObjectKey,
  frontends: readonly FrontendPlan[],
): readonly Frontend[] {
  const quarantined = new Map(
    (running.progress.of(table.family)?.quarantined ?? []).map((each) => [each.frontend, each]),
  );
  const { addresses } = factsOf(running);
  return frontends.map((frontend) => {
    const conflicts = table.conflictsAt(frontend.key);
    const refused = quarantined.get(frontend.key);
    const lost = conflicts.find(({ loser }) => serviceOf(loser) === key);
    const holds = conflicts.filter(({ winner }) => serviceOf(winner) === key);
    return {
      key: frontend.key,
      family: table.family,
      kind: KIND_NAMES[frontend.kind],
      port: portNameOf(frontend.servicePort),
      explain: destinationOf(frontend, addresses[table.family]),
      endpoints: frontend.endpoints.count,
      localEndpoints: frontend.localEndpoints?.count ?? null,
      masquerade: MASQUERADE[frontend.masquerade],
      whenEmpty: frontend.whenEmpty,
      lostTo: lost === undefined ? null : conflictWith(lost.winner, lost),
      claimedBy: holds.slice(0, CLAIMS).map((conflict) => conflictWith(conflict.loser, conflict)),
      quarantined: refused === undefined ? null : { reason: refused.reason, since: wallTime(running, refused.since) },
    };
  });
}

const MASQUERADE: Readonly<Record<FrontendPlan['masquerade'], string>> = {
  always: 'all clients',
  node: 'this node only; outside clients keep their address',
  'off-cluster': 'non-pod clients',
};

function conflictWith(servicePort: string, conflict: PlannedConflict): Conflict {
  return { servicePort, service: serviceOf(servicePort), reason: printHolder(conflict) };
}

function destinationOf({ key, address, port, protocol, family }: FrontendPlan, own: string | null): string | null {
  if (address !== null) return key;
  if (own === null) return null;
  return `${family === 'IPv6' ? `[${own}]` : own}:${port}/${protocol}`;
}

function factsOf({ planned, snapshot }: RunningProcess): NodeFacts {
  const settings = planned();
  return nodeFacts(settings, snapshot.node(settings.nodeName));
}

type Policy = EndpointGroup['policy'];

function groupsOf(
  running: RunningProcess,
  family: Family,
  key: ObjectKey,
  service: ServiceRow,
): readonly EndpointGroup[] {
  return service.ports
    .slice(0, GROUPED_PORTS)
    .flatMap((port) =>
      (['Cluster', 'Local'] as const).flatMap((policy) => {
        const applies = appliesTo(service, port, policy);
        return applies === null ? [] : [groupOf(running, family, key, port, policy, applies)];
      }),
    )
    .filter(({ total }) => total > 0 || service.ipFamilies.includes(family));
}

/** Which connections to a port are under a policy; null: none. */
function appliesTo(service: ServiceRow, { nodePort }: ServicePortRow, policy: Policy): string | null {
  const { internal, external } = localPolicies(service);
  const isReached = nodePort !== 0 || service.externalIPs.length + service.loadBalancerIngress.length > 0;
  const isLocal = policy === 'Local';
  const parts = [
    ...(internal === isLocal ? ['to the cluster IP'] : []),
    ...(!isReached ? [] : external ? [isLocal ? 'from outside' : 'from pods and this node to other addresses'] : []),
    ...(isReached && !external && !isLocal ? ['to other addresses'] : []),
  ];
  return parts.length === 0 ? null : parts.join(', and ');
}

function groupOf(
  running: RunningProcess,
  family: Family,
  key: ObjectKey,
  port: ServicePortRow,
  policy: Policy,
  applies: string,
): EndpointGroup {
  const { endpoints: verdicts, skipped } = examine(running, family, key, port, policy);
  const reasons = new Map<string, number>();
  if (verdicts.length === 0)
    for (const { slice, endpoints, because } of skipped) {
      if (because !== 'no-such-port' || endpoints === 0) continue;
      const reason = otherPorts(port, running.snapshot.slicesOf(key).find(({ name }) => name === slice)?.ports ?? []);
      reasons.set(reason, (reasons.get(reason) ?? 0) + endpoints);
    }
  for (const verdict of verdicts) {
    if (verdict.excluded === null) continue;
    const reason = endpointReason(explainedEndpoint(verdict)) ?? '';
    reasons.set(reason, (reasons.get(reason) ?? 0) + 1);
  }
  return {
    family,
    port: port.name,
    protocol: port.protocol,
    policy,
    applies,
    used: verdicts.filter(({ excluded }) => excluded === null).length,
    total: verdicts.length,
    reasons: [...reasons].map(([reason, count]) => ({ reason, count })).sort((one, other) => other.count - one.count),
    rows: verdicts.slice(0, ROWS).map(describing(running)),
  };
}

/** Why endpoints do not count for a Service port: their slice has none of its name. */
function otherPorts({ name, protocol }: ServicePortRow, ports: EndpointSliceRow['ports']): string {
  const wanted = name === '' ? `unnamed port of ${protocol}` : `port named ${JSON.stringify(name)} of ${protocol}`;
  const others = ports.slice(0, 3).map(printSlicePort).join(', ');
  return `not used: the EndpointSlice has no ${wanted}, but ${others === '' ? 'no port at all' : others}`;
}

function examine(
  running: RunningProcess,
  family: Family,
  key: ObjectKey,
  port: ServicePortRow,
  policy: Policy,
): ReturnType<typeof examineEndpoints> {
  const onePort = running.planned().traits.balancesOnly;
  const slices = running.snapshot.slicesOf(key);
  const service = running.snapshot.service(key) ?? {};
  const facts = selectionFacts(factsOf(running), service, running.planned());
  return examineEndpoints(family, port, slices, facts, { policy, onePort });
}

/** An endpoint that is used and answered none of its last connection attempts has that for a reason. */
function describing({ attempts }: RunningProcess): (verdict: EndpointVerdict) => Endpoint {
  const silent = new Map((attempts?.seen()?.silent ?? []).map((tally) => [tally.endpoint, printSilence(tally)]));
  return (verdict) => {
    const described = describeEndpoint(explainedEndpoint(verdict));
    return { ...described, reason: described.reason ?? silent.get(described.endpoint) ?? null };
  };
}

function describeSlice({ name, family, count, ports }: EndpointSliceRow): Slice {
  return { name, family, endpoints: count, ports: ports.map(printSlicePort) };
}

function printSlicePort({ name, port, protocol }: EndpointSliceRow['ports'][number]): string {
  return `${name === '' ? '' : `${name} `}${port}/${protocol}`;
}

interface GroupQuery extends PageQuery {
  readonly key: ObjectKey;
  readonly family: Family;
  readonly port: string;
  readonly protocol: string;
  readonly policy: Policy;
}

/**
 * More endpoints of one group.
 *
 * @throws AskedWrongly
 */
export function endpointsPage(running: RunningProcess, query: GroupQuery): EndpointsPage {
  const { key, family, port: name, protocol, policy, offset, limit } = query;
  const service = requireService(running, key);
  const port = service.ports.find((row) => row.name === name && row.protocol === protocol);
  if (port === undefined)
    throw new AskedWrongly(404, `Service ${key} has no port ${JSON.stringify(name)} of ${protocol}`);
  const { endpoints: verdicts } = examine(running, family, key, port, policy);
  return { total: verdicts.length, offset, rows: verdicts.slice(offset, offset + limit).map(describing(running)) };
}
