import { FAMILIES, type Family } from '../../../src/base/ip.js';
import type { Protocol } from '../../../src/base/protocol.js';
import { usually } from '../extent.js';
import { describeOutcomes, endpoint, type Lab, type Repeats, type Traffic } from './lab.js';
import { labMode, traitsOf } from './mode.js';
import {
  endpointSlice,
  service,
  type Endpoint,
  type Manifest,
  type ServiceOptions,
  type ServicePort,
} from './objects.js';
import { misprediction, unexplained } from './prediction.js';
import { NODE_NAME } from './proxy.js';
import { ADDRESSES } from './topology.js';

/** One row of a packet table: who sends where, and what has to become of it, in the words of Lab.verdict. */
export interface Row {
  readonly from: string;
  readonly to: string;
  readonly protocol?: Protocol;
  /** Address to send from; the kernel's choice when not given. */
  readonly source?: string;
  readonly expect: string;
  /** Nobody listens on the endpoints: that the network refuses the packets says nothing of the proxy. */
  readonly deaf?: boolean;
  /** Which rule of behaviour it shows. */
  readonly shows?: string;
  /** So many requests meet the same, in place of as many as show who answers. */
  readonly times?: number;
}

interface Checks {
  equal(found: string, wanted: string, message: string): unknown;
}

const DROP_TIMEOUT_MS = 250;
const AT_ONCE = 6;
const REQUESTS_TO_ONE = usually(6, 12);
/** After so many `npm test` sends no more where each of several has answered: it would not notice one more endpoint in one row of a hundred. */
const LEAST_TO_MANY = usually({ least: 12 }, {});
/** Where endpoints are taken in turn: by four at a time, up to four of them. */
const REQUESTS_IN_TURN = { toOne: 4, toMany: 12 };

/** In how many questions one is asked of the process too: of a laboratory in the test's own process, and of others. */
const EXPLAINED_ONE_IN = { here: 16, elsewhere: usually(5, 1) };
const questions = new WeakMap<Lab, number>();

/** Whether the running process is to explain what is asked now. */
function isAsked(lab: Lab): boolean {
  const asked = questions.get(lab) ?? 0;
  questions.set(lab, asked + 1);
  return asked % EXPLAINED_ONE_IN[lab.isHere ? 'here' : 'elsewhere'] === 0;
}

/**
 * Sends every row's packets, rows side by side, and compares what became of them; a running process has to explain the same. It looks at the kernel for that,
 * which takes it longer than the packets, so it is asked of some rows only in `npm test`, and of few in the test's own process, in an emulated machine.
 */
export async function checkRows(t: Checks, lab: Lab, rows: readonly Row[], state = ''): Promise<void> {
  const verdict = async (row: Row): Promise<string> => {
    const { from, to, protocol = 'TCP', source, expect, deaf = false } = row;
    const patience = expect === 'dropped' ? { timeoutMs: DROP_TIMEOUT_MS } : {};
    const traffic = { from, to, protocol, ...patience, ...(source === undefined ? {} : { source }) };
    const outcome =
      row.times === undefined
        ? await lab.verdict(traffic, repeats(expect.split(',').length))
        : describeOutcomes(await lab.burst(traffic, row.times)).join(', ');
    const wrong = isAsked(lab) ? await misprediction(lab, traffic, outcome, deaf) : null;
    return wrong === null ? outcome : `${outcome}, but ${wrong}`;
  };
  const found = new Array<string>(rows.length);
  const waiting = rows.map((row, index) => ({ row, index }));
  const work = async (): Promise<void> => {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
      found[next.index] = await verdict(next.row);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  for (const [index, row] of rows.entries()) t.equal(found[index] ?? '', row.expect, describe(row, state));
}

/** How many requests show who answers. */
function repeats(expected: number): Repeats {
  const toMany = expected > 1;
  if (traitsOf(labMode()).takesTurns) return { most: toMany ? REQUESTS_IN_TURN.toMany : REQUESTS_IN_TURN.toOne };
  return toMany ? { ...LEAST_TO_MANY, expected } : { most: REQUESTS_TO_ONE };
}

function describe({ from, to, protocol = 'TCP', source, shows }: Row, state: string): string {
  const sender = source === undefined ? from : `${from} (${source})`;
  return [shows, state, `${sender} to ${to}/${protocol}`]
    .filter((part) => part !== undefined && part !== '')
    .join(': ');
}

/** Addresses and text of one family, so that one table serves both. */
export class FamilyView {
  constructor(readonly family: Family) {}

  /** Address of a namespace of the laboratory. */
  address(name: keyof typeof ADDRESSES): string {
    return ADDRESSES[name][this.family];
  }

  clusterIP(number: number): string {
    return this.family === 'IPv4' ? `10.96.0.${number}` : `fd00:10:96::${number}`;
  }

  loadBalancerIP(number: number): string {
    return this.family === 'IPv4' ? `192.0.2.${number}` : `2001:db8:192::${number}`;
  }

  externalIP(number: number): string {
    return this.family === 'IPv4' ? `198.51.100.${number}` : `2001:db8:198::${number}`;
  }

  /** `192.168.0.2:30080` of the node, or of another of the laboratory's addresses. */
  nodePort(port: number, of: keyof typeof ADDRESSES = 'node'): string {
    return endpoint(this.address(of), port);
  }

  /** The verdict of being answered by all of these pods and nobody else, who see the client's own address. */
  kept(pods: readonly (keyof typeof ADDRESSES)[], port: number): string {
    return pods
      .map((pod) => endpoint(this.address(pod), port))
      .sort()
      .join(', ');
  }

  /** The same, and the pods see an address of the node. */
  masqueraded(pods: readonly (keyof typeof ADDRESSES)[], port: number): string {
    return pods
      .map((pod) => `${endpoint(this.address(pod), port)} masqueraded`)
      .sort()
      .join(', ');
  }
}

export const FAMILY_VIEWS: readonly FamilyView[] = FAMILIES.map((family) => new FamilyView(family));
export const IPV4 = new FamilyView('IPv4');
export const IPV6 = new FamilyView('IPv6');

const LOCAL_PODS: readonly string[] = ['pod-a', 'pod-b', 'pod-c'];

export type PodEndpoint = Omit<Endpoint, 'address' | 'node'> & { readonly pod: keyof typeof ADDRESSES };

/** An endpoint that is a pod of the laboratory or the node, on the node where that is. */
export function podEndpoint(view: FamilyView, { pod, ...conditions }: PodEndpoint): Endpoint {
  const node = pod === 'node' || LOCAL_PODS.includes(pod) ? NODE_NAME : 'node-2';
  return { address: view.address(pod), node, ...conditions };
}

export interface DualStackOptions extends Omit<ServiceOptions, 'clusterIPs' | 'loadBalancerIPs' | 'externalIPs'> {
  /** Last part of the cluster IPs. */
  readonly number: number;
  readonly loadBalancers?: readonly number[];
  readonly externals?: readonly number[];
  /** Pods behind every port, in slices of both families. */
  readonly endpoints: readonly (PodEndpoint | keyof typeof ADDRESSES)[];
}

/** A Service of both families and its slices, whose ports are the Service's target ports. */
export function dualStack(name: string, options: DualStackOptions): Manifest[] {
  const { number, loadBalancers, externals, endpoints, ...fields } = options;
  const everywhere = (numbers: readonly number[], address: (view: FamilyView, number: number) => string): string[] =>
    FAMILY_VIEWS.flatMap((view) => numbers.map((each) => address(view, each)));
  return [
    service(name, {
      ...fields,
      clusterIPs: everywhere([number], (view, each) => view.clusterIP(each)),
      ...(loadBalancers === undefined
        ? {}
        : { loadBalancerIPs: everywhere(loadBalancers, (view, each) => view.loadBalancerIP(each)) }),
      ...(externals === undefined ? {} : { externalIPs: everywhere(externals, (view, each) => view.externalIP(each)) }),
    }),
    ...slices(name, endpoints, fields.ports),
  ];
}

/** One slice per family; none without endpoints. */
export function slices(
  name: string,
  endpoints: readonly (PodEndpoint | keyof typeof ADDRESSES)[],
  ports: readonly ServicePort[],
): Manifest[] {
  if (endpoints.length === 0) return [];
  return FAMILY_VIEWS.map((view) =>
    endpointSlice(
      name,
      endpoints.map((each) => podEndpoint(view, typeof each === 'string' ? { pod: each } : each)),
      ports.map(({ name: portName = '', protocol = 'TCP', port, targetPort = port }) => ({
        name: portName,
        protocol,
        port: targetPort,
      })),
    ),
  );
}

/** Requests of one kind from the same client, and the names of those who answered; and what a running process would not explain of it. */
export async function answeringNames(lab: Lab, traffic: Traffic, count: number): Promise<readonly string[]> {
  const outcomes = await lab.burst(traffic, count);
  const wrong = isAsked(lab) ? await unexplained(lab, traffic, outcomes) : null;
  const names = [...new Set(outcomes.map((outcome) => ('name' in outcome ? outcome.name : outcome.error)))].sort();
  return wrong === null ? names : [...names, wrong];
}
