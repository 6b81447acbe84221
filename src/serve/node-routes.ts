import { endpointSize, packedKey } from '../base/endpoint-list.js';
import { familyOf, parsePrefix, type Family, type IPAddress } from '../base/ip.js';
import type { Host } from '../host/host.js';
import type { Observation } from '../observe/observations.js';
import type { ForwardingTable } from '../plan/forwarding-table.js';

type Routes = Pick<Host, 'localAddresses' | 'routeProblem'>;
type Table = Pick<ForwardingTable, 'family' | 'frontends'>;

/** Whether the node itself has a route to Services: the kernel looks it up before rules translate the address. */
export async function routesToServices(host: Routes, tables: readonly Table[]): Promise<readonly Observation[]> {
  const own = host.localAddresses();
  const found: Observation[] = [];
  for (const table of tables) {
    const address = oneClusterIP(table);
    if (address !== null && !own.includes(address))
      found.push(...(await routeTo(host, address, 'the Service address')));
  }
  return found;
}

function oneClusterIP(table: Table): IPAddress | null {
  for (const { kind, address } of table.frontends()) if (kind === 'ClusterIP') return address;
  return null;
}

/** Of so many networks of endpoints the route is looked up, of all families together. */
const MOST_NETWORKS = 32;
/** Bytes of an address that name a network: a node's pods are hardly ever of a larger one, and rarely of several. */
const NETWORK_BYTES = { IPv4: 3, IPv6: 8 } as const;

interface EndpointNetwork {
  /** Of one of the endpoints in it. */
  readonly address: IPAddress;
  readonly servicePort: string;
}

/** Whether the node has routes to the networks of the endpoints that it selects: for one endpoint of each. */
export async function routesToEndpoints(
  host: Pick<Host, 'routeProblem'>,
  tables: readonly Table[],
): Promise<readonly Observation[]> {
  const found = tables.map(networksOf);
  // Of each family in turn.
  const all = Array.from({ length: MOST_NETWORKS }, (_, index) => found.flatMap((networks) => networks[index] ?? []));
  const asked = all.flat().slice(0, MOST_NETWORKS);
  const problems = await Promise.all(asked.map(({ address }) => host.routeProblem(address)));
  const lost = asked.flatMap((network, index) => {
    const problem = problems[index] ?? null;
    return problem === null ? [] : [{ ...network, problem }];
  });
  const [first] = lost;
  if (first === undefined) return [];
  const { address, servicePort, problem } = first;
  const network = parsePrefix(`${address}/${NETWORK_BYTES[familyOf(address)] * 8}`);
  const known = asked.length < MOST_NETWORKS ? '' : 'the first ';
  const counts = `${lost.length} of ${known}${asked.length} endpoint networks`;
  return [noRoute(`${counts}, as ${network} of ${servicePort}: ${problem}`, seeRoute(address))];
}

/** The first networks of the endpoints that connections may go to. */
function networksOf(table: Table): readonly EndpointNetwork[] {
  const found = new Map<number | string, EndpointNetwork>();
  const size = endpointSize(table.family);
  for (const { endpoints, localEndpoints, servicePort } of table.frontends())
    for (const list of localEndpoints === null ? [endpoints] : [endpoints, localEndpoints])
      for (let index = 0; index < list.count; index++) {
        const key = networkKey(list.packed, index * size, table.family);
        if (found.has(key)) continue;
        found.set(key, { address: list.address(index), servicePort });
        if (found.size === MOST_NETWORKS) return [...found.values()];
      }
  return [...found.values()];
}

/** A number where it can be one: a large cluster has hundreds of thousands of endpoints. */
function networkKey(packed: Uint8Array, start: number, family: Family): number | string {
  if (family === 'IPv6') return packedKey(packed, start, NETWORK_BYTES.IPv6);
  return ((packed[start] ?? 0) << 16) | ((packed[start + 1] ?? 0) << 8) | (packed[start + 2] ?? 0);
}

/** Whether there is a route to one address. */
export async function routeTo(
  host: Pick<Host, 'routeProblem'>,
  address: IPAddress,
  what: 'endpoint' | 'the Service address',
): Promise<readonly Observation[]> {
  const problem = await host.routeProblem(address);
  const remedy = what === 'endpoint' ? seeRoute(address) : 'give the node a default route, or one to the Service CIDRs';
  return problem === null ? [] : [noRoute(`${what} ${address}: ${problem}`, remedy)];
}

function noRoute(where: string, remedy: string): Observation {
  return { kind: 'route', severity: 'warning', text: `there is no route to ${where}`, remedy };
}

function seeRoute(address: IPAddress): string {
  return `see that the network plugin has written the route (ip route get ${address})`;
}
