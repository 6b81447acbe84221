// Internal traffic policies, step by step on one Service.
import type { Case, EndpointSpec, ServiceSpec, Step } from '../case.js';

const web = (
  internalTrafficPolicy: 'Local' | undefined,
  endpoints: readonly EndpointSpec[],
): readonly ServiceSpec[] => [
  {
    service: 'inner',
    type: 'NodePort',
    ...(internalTrafficPolicy === undefined ? {} : { internalTrafficPolicy }),
    ports: [{ port: 80 }],
    endpoints,
  },
];

/** Pods inside, the node, and a client at the node port, which an internal policy does not concern. */
const step = (
  shows: string,
  policy: 'Local' | undefined,
  endpoints: readonly string[],
  inside: readonly string[] | 'dropped' | 'refused',
): Step => ({
  title: shows,
  objects: web(policy, endpoints as readonly EndpointSpec[]),
  flows: [
    typeof inside === 'string'
      ? { shows, from: 'pod-b', to: 'inner:80', expect: inside }
      : // Held, so that there are connections to endpoints that a later step removes.
        { shows, from: 'pod-b', to: 'inner:80', expect: `kept ${inside.join(' ')}`, hold: true },
    {
      shows,
      from: 'node',
      to: 'inner:80',
      expect: typeof inside === 'string' ? inside : `masqueraded ${inside.join(' ')}`,
      differs: inside === 'dropped' ? { 'connections drain': 'refused' } : {},
    },
    {
      shows,
      from: 'client',
      to: 'inner node-port:80',
      expect: endpoints.length === 0 ? 'refused' : `masqueraded ${endpoints.join(' ')}`,
    },
  ],
});

export const POLICY_CASES: readonly Case[] = [
  {
    id: 'internal-policies',
    title: 'internal traffic policies are obeyed and follow changes',
    shows: ['PF-070'],
    steps: [
      step('PF-070', undefined, ['pod-a', 'remote-a', 'remote-b'], ['pod-a', 'remote-a', 'remote-b']),
      step('PF-071', 'Local', ['pod-a', 'remote-a', 'remote-b'], ['pod-a']),
      step('PF-072', 'Local', ['pod-a', 'pod-c', 'remote-b'], ['pod-a', 'pod-c']),
      step('PF-073', 'Local', ['remote-a', 'remote-b'], 'dropped'),
      step('PF-074', 'Local', [], 'refused'),
      step('PF-073 after no endpoints', 'Local', ['remote-a'], 'dropped'),
      step('PF-071 after a drop', 'Local', ['pod-a', 'remote-a'], ['pod-a']),
      step('PF-074', undefined, [], 'refused'),
    ],
  },
];
