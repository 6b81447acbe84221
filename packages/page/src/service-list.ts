import { setImmediate as turn } from 'node:timers/promises';
import { firstNames, unpackNames } from '../../../src/base/unpacked-names.js';
import { countEndpoints } from '../../../src/plan/forwarding-table.js';
import type { EndpointSliceRow, ObjectKey, ServicePortRow, ServiceRow } from '../../../src/state/rows.js';
import type { RunningProcess } from '../../../src/serve/running-process.js';
import type { ServiceProblem, ServiceSort, ServicesPage, ServiceSummary, ServiceType } from './api.js';
import type { PageQuery } from './query.js';
import type { ServiceOrder } from './service-order.js';
import { refusedServices, type RefusedService } from './refused-services.js';
import { SERVICE_PROBLEMS, ServiceProblems } from './service-problems.js';
import { readSearch } from './service-search.js';

const MAX_ADDRESSES = 3;
const MAX_PORTS = 4;
const MAX_NAMES = 3;
/** How many Services are looked at before others have their turn: about a millisecond. */
const AT_ONCE = 4096;
/** The same where names of all their endpoints are compared: 50 each take about three milliseconds. */
const RANKED_AT_ONCE = 256;

export const SERVICE_TYPES: readonly ServiceType[] = ['ClusterIP', 'NodePort', 'LoadBalancer', 'ExternalName'];
export const SERVICE_SORTS: readonly ServiceSort[] = [
  'name',
  'type',
  'port',
  'endpoints',
  'most-endpoints',
  'problems',
  'endpoint',
  'node',
  'pod',
];

interface ListQuery extends PageQuery {
  readonly search: string;
  /** Null: all. */
  readonly type: ServiceType | null;
  readonly sort: ServiceSort;
  /** Only Services with a problem, or with this one; null: all. */
  readonly problem: 'only' | ServiceProblem | null;
  /** With pods and nodes of endpoints. */
  readonly places: boolean;
}

/** A page whose rows are made as they are read, once. Services that have gone meanwhile are not among them. */
export type ListedServices = Omit<ServicesPage, 'rows'> & { readonly rows: Iterable<ServiceSummary> };

/** A page of the Services that fit. */
export async function listServices(
  running: RunningProcess,
  order: ServiceOrder,
  { search, problem, type, sort, offset, limit, places }: ListQuery,
): Promise<ListedServices> {
  const { snapshot } = running;
  const problems = new ServiceProblems(running);
  const fits = readSearch(snapshot, search);
  const keys = order.keys();
  const refused = refusedServices(running);
  const isWanted = (key: ObjectKey): boolean => {
    const service = snapshot.service(key);
    return (
      service !== undefined &&
      (type === null || service.type === type) &&
      (fits === null || fits(key, service)) &&
      hasProblem(problems.of(key), problem)
    );
  };
  const isAll = fits === null && problem === null && type === null;
  const matching = isAll ? keys : await filter(keys, isWanted);
  const found = sort === 'name' ? matching : await sorted(matching, rankOf(running, problems, sort));
  // The worst comes first, however the others are sorted.
  const first = refused.filter(
    ({ key, namespace }) =>
      type === null &&
      (fits === null || fits(key, { ...NOTHING_KNOWN, namespace })) &&
      hasProblem(problems.of(key), problem),
  );
  const refusedRows = first.slice(offset, offset + limit).map(refusedSummary);
  const from = Math.max(0, offset - first.length);
  const shown = found.slice(from, from + limit - refusedRows.length);
  return {
    total: keys.length + refused.length,
    matched: first.length + found.length,
    offset,
    rows: rowsOf(running, problems, refusedRows, shown, places),
  };
}

function* rowsOf(
  running: RunningProcess,
  problems: ServiceProblems,
  refused: readonly ServiceSummary[],
  keys: readonly ObjectKey[],
  places: boolean,
): Generator<ServiceSummary, void, void> {
  yield* refused;
  const nodesFound: NamesFound = new Map();
  for (const [number, key] of keys.entries()) {
    const service = running.snapshot.service(key);
    if (service === undefined) continue;
    const slices = running.snapshot.slicesOf(key);
    const row = summary(running, problems, key, service, slices);
    yield places ? { ...row, places: placesOf(slices, nodesFound, number) } : row;
  }
}

/** Of a Service that is refused whole only its name is known. */
const NOTHING_KNOWN = { clusterIPs: [], externalIPs: [], loadBalancerIngress: [], ports: [] } as const;

function refusedSummary({ key, namespace, name }: RefusedService): ServiceSummary {
  const nothing = { addresses: [], moreAddresses: 0, ports: [], morePorts: 0, endpointsUsed: 0, endpoints: 0 };
  return { key, namespace, name, type: null, ...nothing, problems: ['refused'] };
}

/** Names that were found in any Service, with the last one: to count those of a Service leaves no garbage. */
type NamesFound = Map<string, { service: number }>;

/**
 * Costs little however many endpoints there are: a list may have all Services.
 *
 * @param number another one for each Service.
 */
function placesOf(
  slices: readonly EndpointSliceRow[],
  found: NamesFound,
  number: number,
): NonNullable<ServiceSummary['places']> {
  // A pod of two families is one.
  const family = slices.find(({ count }) => count > 0)?.family;
  const pods: string[] = [];
  const nodes: string[] = [];
  let [podCount, nodeCount] = [0, 0];
  for (const slice of slices) {
    if (slice.family !== family) continue;
    if (slice.pods !== undefined && slice.pods !== '') {
      podCount += slice.count;
      for (const name of pods.length < MAX_NAMES ? firstNames(slice.pods, MAX_NAMES) : [])
        if (name !== null && pods.length < MAX_NAMES && !pods.includes(name)) pods.push(name);
    }
    const { nodeNames } = slice;
    // An iterator leaves an object for each of them, until the code is optimised.
    for (let index = 0; index < nodeNames.length; index++) {
      const name = nodeNames[index] ?? null;
      if (name === null) continue;
      const last = found.get(name);
      if (last?.service === number) continue;
      if (last === undefined) found.set(name, { service: number });
      else last.service = number;
      nodeCount++;
      if (nodes.length < MAX_NAMES) nodes.push(name);
    }
  }
  return {
    pods: { names: pods, more: podCount - pods.length },
    nodes: { names: nodes, more: nodeCount - nodes.length },
  };
}

function hasProblem(problems: readonly ServiceProblem[], wanted: ListQuery['problem']): boolean {
  if (wanted === null) return true;
  return wanted === 'only' ? problems.length > 0 : problems.includes(wanted);
}

/** The ranks of one sort are all numbers, or all texts. */
type Rank = (key: ObjectKey) => number | string;

/** The smallest first. */
function rankOf({ snapshot, families }: RunningProcess, problems: ServiceProblems, sort: ServiceSort): Rank {
  const used = (key: ObjectKey): number =>
    families.reduce((sum, { table }) => sum + countEndpoints(table.plan(key)), 0);
  const ofSlices = (namesOf: (slice: EndpointSliceRow) => readonly (string | null)[]): Rank => {
    return (key) => first(snapshot.slicesOf(key).flatMap(namesOf));
  };
  switch (sort) {
    case 'name':
      return () => 0;
    case 'type':
      return (key) => SERVICE_TYPES.indexOf(snapshot.service(key)?.type ?? 'ClusterIP');
    case 'port':
      return (key) => snapshot.service(key)?.ports[0]?.port ?? Infinity;
    case 'endpoints':
      return used;
    case 'most-endpoints':
      return (key) => -used(key);
    case 'problems':
      return (key) => {
        const [worst] = problems.of(key);
        return worst === undefined ? Infinity : SERVICE_PROBLEMS.indexOf(worst);
      };
    case 'endpoint':
      return ofSlices(packedAddresses);
    case 'node':
      return ofSlices(({ nodeNames }) => nodeNames);
    case 'pod':
      return ofSlices(({ pods = '' }) => unpackNames(pods));
  }
}

/** After every name. */
const LAST = '\u{ffff}';

function first(names: readonly (string | null)[]): string {
  let found = LAST;
  for (const name of names) if (name !== null && name < found) found = name;
  return found;
}

/** As texts in the order of addresses, those of IPv4 first. */
function packedAddresses({ addresses, count, family }: EndpointSliceRow): readonly string[] {
  const size = addresses.length / Math.max(count, 1);
  const order = family === 'IPv4' ? '4' : '6';
  return Array.from({ length: count }, (_, index) => order + addresses.slice(index * size, (index + 1) * size));
}

/** Keys of one rank stay in their order. */
async function sorted(keys: readonly ObjectKey[], rank: Rank): Promise<readonly ObjectKey[]> {
  const ranked: { readonly key: ObjectKey; readonly rank: ReturnType<Rank> }[] = [];
  const all = keys.slice();
  for (let start = 0; start < all.length; start += RANKED_AT_ONCE) {
    if (start > 0) await turn();
    for (const key of all.slice(start, start + RANKED_AT_ONCE)) ranked.push({ key, rank: rank(key) });
  }
  // Two that are infinite have no difference.
  return ranked
    .sort((one, other) => (one.rank < other.rank ? -1 : one.rank > other.rank ? 1 : 0))
    .map(({ key }) => key);
}

/** The list may change between turns. */
async function filter(keys: readonly ObjectKey[], fits: (key: ObjectKey) => boolean): Promise<readonly ObjectKey[]> {
  const all = keys.slice();
  const found: ObjectKey[] = [];
  for (let start = 0; start < all.length; start += AT_ONCE) {
    if (start > 0) await turn();
    for (const key of all.slice(start, start + AT_ONCE)) if (fits(key)) found.push(key);
  }
  return found;
}

function summary(
  { families }: RunningProcess,
  problems: ServiceProblems,
  key: ObjectKey,
  service: ServiceRow,
  slices: readonly EndpointSliceRow[],
): ServiceSummary {
  const { namespace, name, type, clusterIPs, externalIPs, loadBalancerIngress, ports } = service;
  const addresses = [...clusterIPs, ...loadBalancerIngress.map(({ address }) => address), ...externalIPs];
  return {
    key,
    namespace,
    name,
    type,
    addresses: addresses.slice(0, MAX_ADDRESSES),
    moreAddresses: Math.max(0, addresses.length - MAX_ADDRESSES),
    ports: ports.slice(0, MAX_PORTS).map(printPort),
    morePorts: Math.max(0, ports.length - MAX_PORTS),
    endpointsUsed: families.reduce((sum, { table }) => sum + countEndpoints(table.plan(key)), 0),
    endpoints: slices.reduce(
      (sum, slice) => sum + slice.count * ports.filter((port) => hasPort(slice.ports, port)).length,
      0,
    ),
    problems: problems.of(key),
  };
}

function hasPort(
  ports: readonly { readonly name: string; readonly protocol: string }[],
  port: ServicePortRow,
): boolean {
  return ports.some(({ name, protocol }) => name === port.name && protocol === port.protocol);
}

function printPort({ port, nodePort, protocol }: ServicePortRow): string {
  return `${port}${nodePort === 0 ? '' : `:${nodePort}`}/${protocol}`;
}
