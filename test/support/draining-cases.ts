/**
 * Load balancers of a LoadBalancer Service on Windows while no endpoint is ready for new connections (kubernetes/kubernetes#113841). It has one endpoint on
 * this node and one on another. After the steps of each case the process is restarted, which changes nothing.
 */
export interface DrainingCase {
  readonly title: string;
  readonly externalTrafficPolicy: 'Cluster' | 'Local';
  readonly steps: readonly DrainingStep[];
  /** An endpoint is ready again. */
  readonly again: DrainingStep;
  /** Whether the load balancers that the steps leave exist only for connections under way. */
  readonly drains: boolean;
}

export interface DrainingStep {
  readonly state: Readonly<Record<Place, State>>;
  /** The endpoints of each load balancer; none: there is no load balancer. */
  readonly held: Readonly<Record<LoadBalancerOf, readonly Place[]>>;
}

export type Place = 'here' | 'there';
export type State = 'ready' | 'not ready' | 'terminating';
/** The load balancer's address, and the node port. */
export type LoadBalancerOf = 'clusterIP' | 'ingress' | 'nodePort';

const NONE: readonly Place[] = [];
const HERE: readonly Place[] = ['here'];
const THERE: readonly Place[] = ['there'];
const BOTH: readonly Place[] = ['here', 'there'];

function step(here: State, there: State, clusterIP: readonly Place[], outside = clusterIP): DrainingStep {
  return { state: { here, there }, held: { clusterIP, ingress: outside, nodePort: outside } };
}

export const DRAINING_CASES: readonly DrainingCase[] = [
  {
    title: 'all endpoints terminate and none serves',
    externalTrafficPolicy: 'Cluster',
    steps: [step('ready', 'ready', BOTH), step('terminating', 'terminating', BOTH)],
    again: step('terminating', 'ready', THERE),
    drains: true,
  },
  {
    title: 'all endpoints terminate and none serves, policy Local',
    externalTrafficPolicy: 'Local',
    steps: [step('ready', 'ready', BOTH, HERE), step('terminating', 'terminating', BOTH, HERE)],
    again: step('ready', 'terminating', HERE),
    drains: true,
  },
  {
    title: 'only the endpoint on another node is ready, policy Local',
    externalTrafficPolicy: 'Local',
    steps: [step('ready', 'ready', BOTH, HERE), step('not ready', 'ready', THERE, HERE)],
    again: step('ready', 'ready', BOTH, HERE),
    drains: true,
  },
  {
    title: 'all endpoints are not ready and none terminates',
    externalTrafficPolicy: 'Cluster',
    steps: [step('ready', 'ready', BOTH), step('not ready', 'not ready', BOTH)],
    again: step('ready', 'not ready', HERE),
    drains: true,
  },
  {
    title: 'one endpoint after the other is not ready',
    externalTrafficPolicy: 'Cluster',
    steps: [step('ready', 'ready', BOTH), step('ready', 'not ready', HERE), step('not ready', 'not ready', BOTH)],
    again: step('not ready', 'ready', THERE),
    drains: true,
  },
  {
    title: 'the endpoint on another node never was ready',
    externalTrafficPolicy: 'Cluster',
    steps: [step('ready', 'not ready', HERE), step('not ready', 'not ready', HERE)],
    again: step('not ready', 'ready', THERE),
    drains: true,
  },
  {
    title: 'no endpoint was ever ready',
    externalTrafficPolicy: 'Cluster',
    steps: [step('not ready', 'not ready', NONE)],
    again: step('ready', 'not ready', HERE),
    drains: false,
  },
];
