import { endpointSize, packedKey } from '../../../src/base/endpoint-list.js';
import type { Family } from '../../../src/base/ip.js';
import type {
  IpvsAddon,
  IpvsDestinations,
  IpvsListedService,
  IpvsOperation,
  IpvsService,
  IpvsServiceState,
  IpvsTimeouts,
} from '../../../src/native/contract.js';
import type { Applied } from '../../../src/native/errors.js';
import { digestOf } from './digest.js';
import type { IpvsFaults } from './faults.js';

export interface FakeDestination {
  weight: number;
  connections: number;
  method: number;
  bounded?: boolean;
}

export interface FakeService {
  readonly service: IpvsService;
  state: IpvsServiceState;
  /** By packed endpoint. */
  readonly destinations: Map<string, FakeDestination>;
  /** With persistence: by client where it went. */
  readonly clients: Map<string, string>;
}

const PERSISTENT = 1;

/** ip_vs behind the addon's contract: virtual services, their destinations, and what the kernel says to those who ask for something else. */
export class FakeVirtualServers implements IpvsAddon {
  readonly services = new Map<string, FakeService>();
  readonly schedulers = new Set(['rr', 'wrr', 'lc', 'wlc', 'sh', 'mh', 'sed', 'nq']);
  timeouts: IpvsTimeouts = { tcp: 900, tcpFin: 120, udp: 300 };
  /** Operations that were done, as calls took them. */
  readonly committed: (readonly IpvsOperation[])[] = [];
  /** Of services and of destinations. */
  listings = 0;
  /** Asked for, of services and of destinations. */
  digests = 0;

  constructor(private readonly faults: IpvsFaults) {}

  async ipvsApply(operations: readonly IpvsOperation[]): Promise<Applied> {
    await Promise.resolve();
    return this.faults.apply(operations, {
      call: 'ipvs apply',
      committed: this.committed,
      sizeOf,
      placeOf: (operation, element) => ({
        object: keyOf(operation.service),
        element: operation.type === 'service' ? null : element,
      }),
      change: (operation, element) => this.apply(operation, element),
    });
  }

  async ipvsServices(family: Family): Promise<readonly IpvsListedService[]> {
    await Promise.resolve();
    this.faults.list('ipvs services');
    this.listings++;
    const own = [...this.services.values()].filter(({ service }) => service.family === family);
    return own.reverse().map(({ service, state }) => ({ ...service, ...state }));
  }

  async ipvsDestinations(services: readonly IpvsService[]): Promise<readonly IpvsDestinations[]> {
    await Promise.resolve();
    this.faults.list('ipvs destinations');
    if (services.length > 0) this.listings++;
    return services.map((service) => {
      const held = [...(this.services.get(keyOf(service))?.destinations ?? [])].reverse();
      return {
        endpoints: new Uint8Array(Buffer.from(held.map(([key]) => key).join(''), 'latin1')),
        weights: Uint32Array.from(held, ([, { weight }]) => weight),
        connections: Uint32Array.from(held, ([, { connections }]) => connections),
        methods: Uint8Array.from(held, ([, { method }]) => method),
        bounded: Uint8Array.from(held, ([, { bounded = false }]) => Number(bounded)),
      };
    });
  }

  async ipvsServicesDigest(family: Family): Promise<number> {
    await Promise.resolve();
    this.faults.list('ipvs services digest');
    this.digests++;
    const own = [...this.services].filter(([, { service }]) => service.family === family);
    return digestOf(own.map(([key, { state }]) => JSON.stringify([key, state])));
  }

  async ipvsDestinationsDigests(services: readonly IpvsService[]): Promise<Float64Array> {
    await Promise.resolve();
    this.faults.list('ipvs destinations digests');
    this.digests++;
    return Float64Array.from(services, (service) => {
      const held = [...(this.services.get(keyOf(service))?.destinations ?? [])];
      const records = held.map(([key, each]) => JSON.stringify([key, { ...each, connections: 0 }]));
      return records.length === 0 ? 0 : digestOf(records);
    });
  }

  async ipvsRemembered(service: IpvsService, client: Uint8Array): Promise<Uint8Array | null> {
    await Promise.resolve();
    this.faults.list('ipvs remembered');
    const key = this.services.get(keyOf(service))?.clients.get(packedKey(client, 0, client.length));
    return key === undefined ? null : new Uint8Array(Buffer.from(key, 'latin1'));
  }

  ipvsTimeouts(): Promise<IpvsTimeouts> {
    return Promise.resolve(this.timeouts);
  }

  ipvsSetTimeouts({ tcp, tcpFin, udp }: IpvsTimeouts): Promise<void> {
    const { timeouts } = this;
    this.timeouts = { tcp: tcp || timeouts.tcp, tcpFin: tcpFin || timeouts.tcpFin, udp: udp || timeouts.udp };
    return Promise.resolve();
  }

  /** Null: done. */
  private apply(operation: IpvsOperation, element: number): string | null {
    const key = keyOf(operation.service);
    const held = this.services.get(key);
    if (operation.type === 'destinations')
      return held === undefined ? 'ESRCH' : applyDestination(held, operation, element);
    if (operation.verb === 'delete') {
      this.services.delete(key);
      return held === undefined ? 'ESRCH' : null;
    }
    if (operation.verb === 'new' && held !== undefined) return 'EEXIST';
    if (operation.verb === 'set' && held === undefined) return 'ESRCH';
    const { service, state } = operation;
    if (!this.schedulers.has(state.scheduler)) return 'ENOENT';
    const isPersistent = (state.flags & PERSISTENT) !== 0;
    if (isPersistent !== state.timeoutSeconds > 0) return 'EINVAL';
    if (held === undefined) this.services.set(key, { service, state, destinations: new Map(), clients: new Map() });
    else held.state = state;
    if (!isPersistent) held?.clients.clear();
    return null;
  }
}

function applyDestination(
  { destinations, clients }: FakeService,
  operation: Extract<IpvsOperation, { readonly type: 'destinations' }>,
  element: number,
): string | null {
  const { verb, service, endpoints, weight } = operation;
  const size = endpointSize(service.family);
  const key = Buffer.from(endpoints.subarray(element * size, (element + 1) * size)).toString('latin1');
  const held = destinations.get(key);
  if (verb === 'new' && held !== undefined) return 'EEXIST';
  if (verb !== 'new' && held === undefined) return 'ENOENT';
  if (verb === 'delete') destinations.delete(key);
  else destinations.set(key, { weight, connections: held?.connections ?? 0, method: 0 });
  // net.ipv4.vs.expire_quiescent_template
  if (verb === 'delete' || weight === 0)
    for (const [client, endpoint] of clients) if (endpoint === key) clients.delete(client);
  return null;
}

function sizeOf(operation: IpvsOperation): number {
  return operation.type === 'service' ? 1 : operation.endpoints.length / endpointSize(operation.service.family);
}

export function keyOf({ family, protocol, address, port }: IpvsService): string {
  return [family, protocol, address === null ? '' : Buffer.from(address).toString('hex'), port].join(' ');
}
