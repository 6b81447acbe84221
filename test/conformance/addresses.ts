import type { Family } from '../../src/base/ip.js';
import type { Protocol } from '../../src/base/protocol.js';
import { PREFIXES } from '../support/lab/topology.js';
import type { ServiceSpec } from './case.js';

/** Numbers of each kind that a case has for all its Services. */
const PER_CASE = { addresses: 16, nodePorts: 8 } as const;
const FIRST_NODE_PORT = 30_000;

export type AddressKind = 'cluster' | 'external' | 'balancer';

/** Two groups of IPv4 and the prefix of IPv6 before the number. */
const BASES = {
  cluster: [PREFIXES.services.IPv4, PREFIXES.services.IPv6],
  external: [PREFIXES.externalIPs.IPv4, PREFIXES.externalIPs.IPv6],
  balancer: [PREFIXES.loadBalancers.IPv4, PREFIXES.loadBalancers.IPv6],
} as const;

/** The addresses and node ports of one case, which no other case of a run has. */
export class Allocation {
  readonly #case: number;
  readonly #addresses = new Map<string, number>();
  readonly #nodePorts = new Map<string, number>();

  /** @param index place of the case among all cases of the run, from 0 on. */
  constructor(index: number) {
    this.#case = index;
  }

  /** An address of a Service: the same for the same words. `unused` is a Service like any other, which nobody creates. */
  address(service: string, kind: AddressKind, number: number, family: Family): string {
    const taken = numberOf(this.#addresses, `${kind} ${service} ${number}`, PER_CASE.addresses);
    // The first 256 are left to what is the same in all cases.
    const offset = 256 + this.#case * PER_CASE.addresses + taken;
    const [v4, v6] = BASES[kind];
    if (family === 'IPv6') return `${v6.replace(/\/\d+$/, '')}${offset.toString(16)}`;
    return `${v4.split('.', 2).join('.')}.${offset >> 8}.${offset & 255}`;
  }

  nodePort(service: string, port: number, protocol: Protocol): number {
    const taken = numberOf(this.#nodePorts, `${service} ${port}/${protocol}`, PER_CASE.nodePorts);
    return FIRST_NODE_PORT + this.#case * PER_CASE.nodePorts + taken;
  }
}

function numberOf(taken: Map<string, number>, what: string, most: number): number {
  const number = taken.get(what) ?? taken.size;
  if (number >= most) throw new Error(`${what}: a case has at most ${most}`);
  taken.set(what, number);
  return number;
}

/** Whether node ports are allocated for it. */
export function hasNodePorts({ type, balancers = 0 }: ServiceSpec): boolean {
  return type === 'NodePort' || type === 'LoadBalancer' || (type === undefined && balancers > 0);
}
