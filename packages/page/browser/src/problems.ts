import type { ServiceProblem } from '../../../../src/serve/service-answers.js';

/** On a label of a row. */
export const PROBLEM_LABELS: Readonly<Record<ServiceProblem, string>> = {
  refused: 'refused',
  unplanned: 'unplanned',
  quarantined: 'quarantined',
  conflict: 'conflict',
  'port-name': 'no such endpoint port',
  'no-endpoints': 'no endpoints',
  'no-local-endpoints': 'no local endpoints',
  'left-out': 'parts left out',
  limitation: 'partly served',
};

/** After a number of Services. */
export const PROBLEM_TEXTS: Readonly<Record<ServiceProblem, string>> = {
  refused: 'refused: nothing of their objects can be used',
  unplanned: 'cannot be planned: their rules stay as they were',
  quarantined: 'quarantined: the kernel rejects a frontend, whose old rules stay',
  conflict: 'in conflict about an address',
  'port-name': 'refused: no EndpointSlice has a port of that name',
  'no-endpoints': 'refused: no endpoint can serve',
  'no-local-endpoints': 'dropped: traffic policy Local, and no endpoint on this node',
  'left-out': 'of which a part is left out: an address, a range, an endpoint or an EndpointSlice',
  limitation: 'partly served: something they ask for is left out or has no effect',
};

/** What this node does as the Service asks. */
export const MILD: readonly ServiceProblem[] = [
  'no-local-endpoints',
  'left-out',
  'limitation',
  'no-endpoints',
  'port-name',
];
