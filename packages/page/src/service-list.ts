import { setImmediate as turn } from 'node:timers/promises';
import { countEndpoints } from '../../../src/plan/forwarding-table.js';
import type { ObjectKey, ServicePortRow, ServiceRow } from '../../../src/state/rows.js';
import type { RunningProcess } from '../../../src/serve/running-process.js';
import type { ServicesPage, ServiceSummary } from './api.js';
import type { PageQuery } from './query.js';
import type { ServiceOrder } from './service-order.js';
import { ServiceProblems } from './service-problems.js';
import { readSearch } from './service-search.js';

const MAX_ADDRESSES = 3;
const MAX_PORTS = 4;
/** How many Services are looked at before others have their turn: about a millisecond. */
const AT_ONCE = 4096;

export interface ListQuery extends PageQuery {
  readonly search: string;
  readonly problemsOnly: boolean;
}

/** A page of the Services that fit. */
export async function listServices(
  running: RunningProcess,
  order: ServiceOrder,
  { search, problemsOnly, offset, limit }: ListQuery,
): Promise<ServicesPage> {
  const { snapshot } = running;
  const problems = new ServiceProblems(running);
  const fits = readSearch(snapshot, search);
  const keys = order.keys();
  const total = keys.length;
  const isWanted = (key: ObjectKey): boolean => {
    const service = snapshot.service(key);
    return (
      service !== undefined && (fits === null || fits(key, service)) && (!problemsOnly || problems.of(key).length > 0)
    );
  };
  const found = fits === null && !problemsOnly ? keys : await filter(keys, isWanted);
  const rows = found.slice(offset, offset + limit).flatMap((key) => {
    const service = snapshot.service(key);
    return service === undefined ? [] : [summary(running, problems, key, service)];
  });
  return { total, matched: found.length, offset, rows };
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
  { families, snapshot }: RunningProcess,
  problems: ServiceProblems,
  key: ObjectKey,
  service: ServiceRow,
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
    endpoints: snapshot
      .slicesOf(key)
      .reduce((sum, slice) => sum + slice.count * ports.filter((port) => hasPort(slice.ports, port)).length, 0),
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
