import { parseAddress, type Family, type IPAddress } from '../base/ip.js';
import { packAddress } from '../base/pack-address.js';
import { READY, SERVING, type EndpointSliceRow, type Row, type ServiceRow } from '../state/rows.js';

/** How many tests may go on at once without having an address in common. */
export const SELFTEST_BLOCKS = 4096;
/** No name of Kubernetes has a dot, so no Service of the cluster is called so. */
export const SELFTEST_NAMESPACE = 'pointsman.selftest';
export const SELFTEST_PORT = 80;
export const SELFTEST_TARGET_PORT = 8080;
/** A test that hangs does not keep its Service, or its addresses of a bridge, longer. */
export const SELFTEST_LONGEST_MS = 300_000;

/** Two ends of a wire, the one here and the other. */
interface SelftestWire {
  readonly inside: IPAddress;
  readonly outside: IPAddress;
  readonly prefix: number;
}

/** Of one family. */
export interface SelftestAddresses {
  readonly family: Family;
  readonly client: SelftestWire;
  readonly server: SelftestWire;
  readonly clusterIP: IPAddress;
  readonly loadBalancer: IPAddress;
  /** At a bridge of pods: both ends are its ports, and the bridge is their gateway. */
  readonly bridged: {
    readonly client: SelftestWire;
    readonly server: SelftestWire;
    readonly clusterIP: IPAddress;
    readonly loadBalancer: IPAddress;
  };
}

/** Who answers for the Service of a test. */
export interface SelftestEndpoint {
  readonly family: Family;
  readonly address: IPAddress;
  readonly ports: { readonly TCP: number; readonly UDP: number };
}

/** What a process is asked to serve for a test. */
export interface SelftestScene {
  /** `namespace/name`. */
  readonly service: string;
  readonly nodePort: number;
  /** One that carries pods, with the families of which it does; null: there is none. */
  readonly bridge: { readonly name: string; readonly families: readonly Family[] } | null;
  readonly families: readonly {
    readonly family: Family;
    /** Where the node port answers; null: nowhere. */
    readonly nodeAddress: IPAddress | null;
  }[];
}

/** From what is set apart for tests of networks: 198.18.0.0/15 (RFC 2544) and 2001:2::/48 (RFC 5180), which are not routed. */
export function selftestAddresses(block: number, family: Family): SelftestAddresses {
  const at = family === 'IPv4' ? addressesOfIPv4(block) : addressesOfIPv6(block);
  const [prefix, bridgePrefix] = family === 'IPv4' ? [30, 29] : [112, 112];
  return {
    family,
    client: { outside: at(1), inside: at(2), prefix },
    server: { outside: at(5), inside: at(6), prefix },
    clusterIP: at(9),
    loadBalancer: at(10),
    bridged: {
      client: { outside: at(17), inside: at(18), prefix: bridgePrefix },
      server: { outside: at(17), inside: at(19), prefix: bridgePrefix },
      clusterIP: at(11),
      loadBalancer: at(12),
    },
  };
}

function addressesOfIPv4(block: number): (host: number) => IPAddress {
  const first = block * 32;
  return (host) => canonical(`198.${18 + (first >> 16)}.${(first >> 8) & 255}.${(first & 255) + host}`);
}

function addressesOfIPv6(block: number): (host: number) => IPAddress {
  // Every four are a prefix of their own, as in the other family.
  return (host) => canonical(`2001:2:0:${block.toString(16)}::${host >> 2}:${host & 3}`);
}

function canonical(text: string): IPAddress {
  const address = parseAddress(text);
  if (address === null) throw new TypeError(`no address: ${text}`);
  return address;
}

/** The test's own server, behind a wire of its own. */
export function selftestEndpoint({ family, server }: Pick<SelftestAddresses, 'family' | 'server'>): SelftestEndpoint {
  return { family, address: server.inside, ports: { TCP: SELFTEST_TARGET_PORT, UDP: SELFTEST_TARGET_PORT } };
}

/** A Service with every kind of address, whose only endpoint of each family is the test's own server. */
export function selftestRows(
  name: string,
  addresses: readonly SelftestAddresses[],
  endpoints: readonly SelftestEndpoint[],
  nodePort: number,
  nodeName: string,
): readonly Row[] {
  return rowsOf({ name, addresses, endpoints, nodePort, nodeName, policy: 'Cluster' });
}

/** A Service at a bridge. It keeps the sources of clients, as cluster IPs do for pods: a masqueraded answer always comes back by the node. */
export function bridgedRows(name: string, addresses: readonly SelftestAddresses[], nodeName: string): readonly Row[] {
  const endpoints = addresses.map(({ family, bridged: { server } }) => selftestEndpoint({ family, server }));
  return rowsOf({
    name: `${name}-bridged`,
    addresses: addresses.map(({ family, bridged }) => ({ family, ...bridged })),
    endpoints,
    nodePort: 0,
    nodeName,
    policy: 'Local',
  });
}

function rowsOf({
  name,
  addresses,
  endpoints,
  nodePort,
  nodeName,
  policy,
}: {
  readonly name: string;
  readonly addresses: readonly Pick<SelftestAddresses, 'family' | 'clusterIP' | 'loadBalancer'>[];
  readonly endpoints: readonly SelftestEndpoint[];
  readonly nodePort: number;
  readonly nodeName: string;
  readonly policy: ServiceRow['externalTrafficPolicy'];
}): readonly Row[] {
  const service: ServiceRow = {
    kind: 'Service',
    namespace: SELFTEST_NAMESPACE,
    name,
    // A change by others has an address before it.
    creationTime: null,
    type: 'LoadBalancer',
    clusterIPs: addresses.map(({ clusterIP }) => clusterIP),
    ipFamilies: addresses.map(({ family }) => family),
    externalIPs: [],
    loadBalancerIngress: addresses.map(({ loadBalancer }) => ({ address: loadBalancer, ipMode: 'VIP' })),
    loadBalancerSourceRanges: [],
    externalTrafficPolicy: policy,
    internalTrafficPolicy: 'Cluster',
    affinitySeconds: null,
    healthCheckNodePort: 0,
    connectRetry: null,
    udpRetry: null,
    loadBalancerFlags: 0,
    endingConnections: null,
    ports: PORTS.map(([port, protocol]) => ({ name: port, protocol, port: SELFTEST_PORT, nodePort })),
  };
  return [service, ...endpoints.map((each) => sliceOf(name, each, nodeName))];
}

const PORTS = [
  ['tcp', 'TCP'],
  ['udp', 'UDP'],
] as const;

function sliceOf(name: string, { family, address, ports }: SelftestEndpoint, nodeName: string): EndpointSliceRow {
  return {
    kind: 'EndpointSlice',
    namespace: SELFTEST_NAMESPACE,
    name: `${name}-${family.toLowerCase()}`,
    serviceName: name,
    family,
    lastChangeTriggerTime: null,
    ports: PORTS.map(([port, protocol]) => ({ name: port, protocol, port: ports[protocol] })),
    count: 1,
    addresses: String.fromCharCode(...packed(address, family)),
    conditions: Uint8Array.of(READY | SERVING),
    nodeNames: [nodeName],
    zoneHints: null,
    nodeHints: null,
  };
}

export function packed(address: IPAddress, family: Family): Uint8Array {
  const bytes = new Uint8Array(family === 'IPv4' ? 4 : 16);
  packAddress(address, family, bytes, 0);
  return bytes;
}
