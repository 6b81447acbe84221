import type { ApiObject } from '../test/support/api-objects.js';
import {
  clusterService,
  clusterSlice,
  ENDPOINTS_PER_SLICE,
  parseKinds,
  type ServiceKinds,
} from '../test/support/api-server/cluster.js';

/** A generated cluster: Services of one port, all with the same number of endpoints. */
export interface Cluster {
  readonly services: number;
  readonly endpoints: number;
  readonly kinds: ServiceKinds;
}

export const CLUSTERS: readonly string[] = [
  '1000x10',
  '5000x50',
  '44000x1',
  '1x10000',
  '5000x10+affinity',
  '200x10+mix',
  '2000x10+mix',
];

/** `SERVICESxENDPOINTS`, with `+affinity` behind it for Services that keep a client on its endpoint, or `+mix` for a mix of kinds. */
export function parseCluster(text: string): Cluster {
  const found = /^(\d+)[x×](\d+)(?:\+(affinity|mix))?$/.exec(text);
  if (found === null) throw new TypeError(`not SERVICESxENDPOINTS, with +affinity or +mix: ${text}`);
  return { services: Number(found[1]), endpoints: Number(found[2]), kinds: parseKinds(found[3] ?? 'plain') };
}

export function printCluster({ services, endpoints, kinds }: Cluster): string {
  return `${services} × ${endpoints}${kinds === 'plain' ? '' : `, ${kinds}`}`;
}

/** How many nodes the endpoints are spread over. The proxy runs on the first. */
export const NODES = 1000;
export const NODE_NAME = 'node-0';
export const NODE_ADDRESS = '192.0.2.1';
/** What contains every address of a Service, and of an endpoint. */
export const SERVICE_RANGE = '10.96.0.0/12';
export const POD_RANGE = '10.128.0.0/9';
/** The port that endpoints answer on. */
export const ENDPOINT_PORT = 8080;
export const SERVICE_PORT = 80;

/** The cluster IP of a Service. */
export function serviceAddress(number: number): string {
  const { clusterIP } = clusterService(number)['spec'] as { readonly clusterIP: string };
  return clusterIP;
}

export function nodeObject(): ApiObject {
  return {
    kind: 'Node',
    apiVersion: 'v1',
    metadata: { name: NODE_NAME, labels: { 'kubernetes.io/hostname': NODE_NAME } },
    spec: { podCIDR: '10.128.0.0/24', podCIDRs: ['10.128.0.0/24'] },
    status: { addresses: [{ type: 'InternalIP', address: NODE_ADDRESS }] },
  };
}

/** One of the Service's slices with its first endpoint ready or not. */
export function changedSlice({ endpoints }: Cluster, service: number, ready: boolean): ApiObject {
  return clusterSlice(service, 0, Math.min(ENDPOINTS_PER_SLICE, endpoints), NODES, ready ? 0 : 1);
}

/** A further Service with one endpoint, of which a benchmark sees from outside where it leads. */
export class ProbeService {
  readonly address: string;
  private replaced = 0;

  constructor(private readonly number: number) {
    this.address = serviceAddress(number);
  }

  service(): ApiObject {
    return clusterService(this.number);
  }

  /** The slice with its endpoint replaced by the other of the two that it may be, and that endpoint's address. */
  next(): { readonly slice: ApiObject; readonly address: string } {
    this.replaced = 1 - this.replaced;
    const slice = clusterSlice(this.number, 0, 1, NODES, 0, this.replaced);
    const [endpoint] = slice['endpoints'] as readonly { readonly addresses: readonly string[] }[];
    return { slice, address: endpoint?.addresses[0] ?? '' };
  }
}

/** A further Service with three endpoints, one of which dies. */
export class MortalService {
  readonly address: string;
  readonly mortal: string;

  constructor(private readonly number: number) {
    this.address = serviceAddress(number);
    this.mortal = addressesOf(this.slice(3)).at(-1) ?? '';
  }

  service(): ApiObject {
    return clusterService(this.number);
  }

  /** @param count 3, or 2: the last one is not in it. */
  slice(count: 2 | 3): ApiObject {
    return clusterSlice(this.number, 0, count, NODES, 0);
  }
}

function addressesOf(slice: ApiObject): readonly string[] {
  return (slice['endpoints'] as readonly { readonly addresses: readonly string[] }[]).flatMap(
    ({ addresses }) => addresses,
  );
}

/** What a rolling replacement does: in each of ten steps, every Service gets another tenth of its endpoints replaced. */
export function rollingSteps({ services, endpoints }: Cluster, rolled: number): readonly (readonly ApiObject[])[] {
  const steps = Math.min(10, endpoints);
  return Array.from({ length: steps }, (_, step) => {
    const slices: ApiObject[] = [];
    for (let service = 0; service < Math.min(services, rolled); service++) {
      for (let first = 0; first < endpoints; first += ENDPOINTS_PER_SLICE) {
        const count = Math.min(ENDPOINTS_PER_SLICE, endpoints - first);
        const replaced = Math.ceil((count * (step + 1)) / steps);
        slices.push(clusterSlice(service, first, count, NODES, 0, replaced));
      }
    }
    return slices;
  });
}
