import { FAMILIES, type Family } from '../../src/base/ip.js';
import { endpointSlice, service, serviceCIDR, type Manifest } from '../support/lab/objects.js';
import { hasNodePorts, type AddressKind, type Allocation } from './addresses.js';
import type { EndpointSpec, ObjectSpec, PortSpec, ServiceSpec } from './case.js';
import { nodeOf, PLACES } from './places.js';

/** The manifests of a case's objects, in a namespace of the case's own. */
export function manifests(id: string, allocation: Allocation, specs: readonly ObjectSpec[]): readonly Manifest[] {
  return specs.flatMap((spec) =>
    'serviceCIDR' in spec
      ? [serviceCIDR(`${id}-${spec.serviceCIDR}`, spec.prefixes)]
      : serviceAndSlices(id, allocation, spec),
  );
}

/** One slice per family; none without endpoints. */
function serviceAndSlices(id: string, allocation: Allocation, spec: ServiceSpec): readonly Manifest[] {
  const {
    service: name,
    families = FAMILIES,
    externals = 0,
    balancers = 0,
    externalAt = [],
    ports,
    endpoints,
    created,
    ...fields
  } = spec;
  const addresses = (kind: AddressKind, count: number): readonly string[] =>
    families.flatMap((family) =>
      Array.from({ length: count }, (_, index) => allocation.address(name, kind, index + 1, family)),
    );
  const externalIPs = [
    ...addresses('external', externals),
    ...externalAt.flatMap((place) => families.map((family) => PLACES[place][family])),
  ];
  const manifest = service(name, {
    namespace: id,
    ...fields,
    clusterIPs: addresses('cluster', 1),
    ...(externalIPs.length === 0 ? {} : { externalIPs }),
    ...(balancers === 0 ? {} : { loadBalancerIPs: addresses('balancer', balancers) }),
    ports: ports.map((port) => ({
      name: portName(port),
      ...port,
      ...(hasNodePorts(spec) ? { nodePort: allocation.nodePort(name, port.port, port.protocol ?? 'TCP') } : {}),
    })),
    ...(created === undefined ? {} : { creationTimestamp: created }),
  });
  if (endpoints.length === 0) return [manifest];
  const slices = families.map((family) =>
    endpointSlice(
      name,
      endpoints.map((each) => endpointOf(each, family)),
      ports.map((port) => ({
        name: portName(port),
        protocol: port.protocol ?? 'TCP',
        port: port.targetPort ?? port.port,
      })),
      { namespace: id },
    ),
  );
  return [manifest, ...slices];
}

function endpointOf(spec: EndpointSpec, family: Family): Parameters<typeof endpointSlice>[1][number] {
  const { pod, nodeless, ...conditions } = typeof spec === 'string' ? { pod: spec } : spec;
  return { address: PLACES[pod][family], ...(nodeless ? {} : { node: nodeOf(pod) }), ...conditions };
}

/** Ports of one number and two protocols need two names. */
function portName({ name, protocol = 'TCP', port }: PortSpec): string {
  return name ?? `${protocol.toLowerCase()}-${port}`;
}
