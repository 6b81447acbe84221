import type { ApiObject } from '../api-objects.js';
import type { SeededRandom } from '../random.js';

/** Random Services and EndpointSlices of every kind, as an API server takes them. */

/** Names come back as something else. */
export const NAMES = ['a', 'b', 'c', 'd', 'e', 'f'] as const;
export type Name = (typeof NAMES)[number];

export const NODE = 'test-node';
export const ZONES = ['zone-a', 'zone-b'] as const;

const FAMILIES = [
  ['IPv4'],
  ['IPv4'],
  ['IPv6'],
  ['IPv4', 'IPv6'],
  ['IPv6', 'IPv4'],
] as const satisfies readonly (readonly ('IPv4' | 'IPv6')[])[];

/** Addresses that are not the node's, and that several Services may ask for. */
const EXTERNAL = ['192.0.2.1', '192.0.2.2', '2001:db8:e::1'] as const;
const BALANCERS = ['1.2.3.1', '1.2.3.2', '2001:db8:b::1'] as const;
const RANGES = ['203.0.113.0/24', '203.0.113.0/25', '10.0.0.0/8', '192.168.0.0/16', '2001:db8:ffff::/48'] as const;
const TIMEOUTS = [1, 10, 60, 10_800] as const;

/** What Services are asked for by annotations, some of it only where the mode or the ports take it. */
const ANNOTATIONS = [
  { 'pointsman.dev/balance': 'hash=address' },
  { 'pointsman.dev/balance': 'hash=address,port' },
  { 'pointsman.dev/zone': 'spill' },
  { 'pointsman.dev/zone': 'spill', 'pointsman.dev/zone-clients': 'zone-a=70,zone-b=30' },
  { 'pointsman.dev/slow-start': '10s' },
  { 'pointsman.dev/connect-retry': '3s' },
  { 'pointsman.dev/connect-retry': 'off', 'pointsman.dev/udp-retry': 'off' },
  { 'pointsman.dev/udp-retry': '2s' },
  { 'pointsman.dev/reset-removed-endpoints': 'service', 'pointsman.dev/drain': '2s' },
  { 'pointsman.dev/reset-removed-endpoints': 'off' },
] as const;
const WEIGHTS = ['0', '3', '5'] as const;

/**
 * A Service by a name, of its own addresses and node ports: an API server gives none of these to two Services. `variant` tells addresses and ports of one life of
 * a name from those of another.
 */
export function someService(random: SeededRandom, name: Name, variant: number): ApiObject {
  const number = NAMES.indexOf(name) * 4 + (variant % 4);
  const type = random.pick([
    'ClusterIP',
    'ClusterIP',
    'NodePort',
    'NodePort',
    'LoadBalancer',
    'LoadBalancer',
    'none',
    'ExternalName',
  ]);
  const metadata = {
    name,
    namespace: 'default',
    ...(random.chance(0.05) ? { labels: { 'service.kubernetes.io/service-proxy-name': 'another' } } : {}),
    ...(random.chance(0.4) ? { annotations: random.pick(ANNOTATIONS) } : {}),
  };
  if (type === 'ExternalName')
    return { apiVersion: 'v1', kind: 'Service', metadata, spec: { type, externalName: 'example.org' } };
  const families = random.pick(FAMILIES);
  const isHeadless = type === 'none';
  const isExternal = type === 'NodePort' || type === 'LoadBalancer';
  const isLocal = isExternal && random.chance(0.4);
  const ingress = type === 'LoadBalancer' ? random.some(BALANCERS, 0.5) : [];
  const clusterIPs = isHeadless
    ? ['None']
    : families.map((family) => (family === 'IPv4' ? `172.30.0.${number + 10}` : `fd00:10:96::${number + 10}`));
  const ports = random.some(PORTS, 0.5);
  const spec = {
    type: isHeadless ? 'ClusterIP' : type,
    clusterIP: clusterIPs[0],
    clusterIPs,
    ipFamilies: families,
    ipFamilyPolicy: families.length > 1 ? 'RequireDualStack' : 'SingleStack',
    ports: (ports.length === 0 ? PORTS.slice(0, 1) : ports).map((port, index) => ({
      ...port,
      ...(isExternal ? { nodePort: 30_000 + number * 8 + index } : {}),
    })),
    internalTrafficPolicy: random.chance(0.2) ? 'Local' : 'Cluster',
    ...(random.chance(0.5)
      ? {
          sessionAffinity: 'ClientIP',
          sessionAffinityConfig: { clientIP: { timeoutSeconds: random.pick(TIMEOUTS) } },
        }
      : { sessionAffinity: 'None' }),
    ...(!isHeadless && random.chance(0.3) ? { externalIPs: random.some(EXTERNAL, 0.5) } : {}),
    ...(isExternal ? { externalTrafficPolicy: isLocal ? 'Local' : 'Cluster' } : {}),
    ...(isLocal && type === 'LoadBalancer' ? { healthCheckNodePort: 30_000 + number * 8 + 7 } : {}),
    ...(type === 'LoadBalancer' && random.chance(0.4) ? { loadBalancerSourceRanges: random.some(RANGES, 0.5) } : {}),
    ...(random.chance(0.1) ? { trafficDistribution: 'PreferSameZone' } : {}),
  };
  const addresses = ingress.map((ip) => ({ ip, ipMode: random.chance(0.3) ? 'Proxy' : 'VIP' }));
  return { apiVersion: 'v1', kind: 'Service', metadata, spec, status: { loadBalancer: { ingress: addresses } } };
}

const PORTS = [
  { name: 'web', protocol: 'TCP', port: 80 },
  { name: 'dns', protocol: 'UDP', port: 53 },
  { name: 'calls', protocol: 'SCTP', port: 9 },
  { name: 'more', protocol: 'TCP', port: 81 },
] as const;

/** What two slices of a Service and family are called. */
export function sliceName(service: Name, family: 'IPv4' | 'IPv6', index: number): string {
  return `${service}-${family.toLowerCase()}-${index}`;
}

export function someSlice(random: SeededRandom, service: Name, family: 'IPv4' | 'IPv6', index: number): ApiObject {
  const number = NAMES.indexOf(service);
  const hosts = random.some([1, 2, 3, 4, 5], random.pick([0.2, 0.5, 1]));
  const isHinted = random.chance(0.2);
  const endpoints = hosts.map((host) => {
    const node = random.pick([NODE, 'another-node']);
    const [ready, terminating] = random.pick([
      [true, false],
      [true, false],
      [true, false],
      [false, false],
      [false, true],
    ] as const);
    // Endpoints of two slices overlap: an address moves from one to the other.
    const address = host + index * 3;
    return {
      addresses: [family === 'IPv4' ? `10.180.${number}.${address}` : `fd00:10:180:${number + 1}::${address}`],
      conditions: { ready, serving: ready || (terminating && random.chance(0.5)), terminating },
      nodeName: node,
      zone: node === NODE ? ZONES[0] : ZONES[1],
      ...(random.chance(0.7)
        ? { targetRef: { kind: 'Pod', namespace: 'default', name: `${service}-${address}` } }
        : {}),
      ...(isHinted ? { hints: { forZones: [{ name: random.pick(ZONES) }] } } : {}),
    };
  });
  return {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: {
      name: sliceName(service, family, index),
      namespace: 'default',
      labels: { 'kubernetes.io/service-name': service },
      ...(random.chance(0.2) ? { annotations: { 'pointsman.dev/weight': random.pick(WEIGHTS) } } : {}),
    },
    addressType: family,
    ports: PORTS.map(({ name, protocol, port }) => ({ name, protocol, port: port + (random.chance(0.1) ? 8000 : 0) })),
    endpoints,
  };
}

export function someNode(random: SeededRandom): ApiObject {
  return {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name: NODE, labels: { 'topology.kubernetes.io/zone': random.pick(ZONES) } },
    status: {
      addresses: [
        { type: 'InternalIP', address: '192.168.0.2' },
        { type: 'InternalIP', address: '2001:db8::1' },
      ],
    },
  };
}
