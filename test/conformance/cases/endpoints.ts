// Services without endpoints, and which endpoints their conditions leave.
import type { Case, EndpointSpec, ServiceSpec } from '../case.js';

const ALL = [
  { port: 80 },
  { port: 80, protocol: 'UDP' },
  { port: 80, protocol: 'SCTP' },
] as const satisfies ServiceSpec['ports'];
const PROTOCOLS = ['TCP', 'UDP', 'SCTP'] as const;

const SERVING = { ready: false, serving: true, terminating: true } as const;
const STOPPED = { ready: false, serving: false, terminating: true } as const;
const UNREADY = { ready: false, serving: true, terminating: false } as const;

const conditions = (
  id: string,
  title: string,
  shows: readonly string[],
  endpoints: readonly EndpointSpec[],
  expected: { readonly inside: string; readonly cluster: string; readonly local: string },
): Case => ({
  id,
  title,
  shows,
  steps: [
    {
      objects: [
        { service: 'cluster', balancers: 1, ports: [{ port: 80 }], endpoints },
        { service: 'local', balancers: 1, externalTrafficPolicy: 'Local', ports: [{ port: 80 }], endpoints },
      ],
      flows: [
        { from: 'visitor', to: ['cluster:80', 'local:80'], expect: expected.inside },
        { from: 'client', to: 'cluster balancer:80', expect: expected.cluster },
        { from: 'client', to: 'local balancer:80', expect: expected.local },
      ],
    },
  ],
});

export const ENDPOINT_CASES: readonly Case[] = [
  {
    id: 'no-endpoints',
    title: 'a Service without endpoints is refused on every frontend',
    shows: ['VD-01'],
    steps: [
      {
        objects: [{ service: 'empty', type: 'LoadBalancer', externals: 1, balancers: 1, ports: ALL, endpoints: [] }],
        flows: [
          { shows: 'PF-001', from: ['pod-b', 'node'], to: 'empty:80', protocol: PROTOCOLS, expect: 'refused' },
          {
            shows: 'PF-002, VD-01',
            from: ['client', 'node'],
            to: 'empty external:80',
            protocol: PROTOCOLS,
            expect: 'refused',
          },
          {
            shows: 'PF-003, PF-004, VD-01',
            from: ['pod-b', 'client', 'node'],
            to: 'empty node-port:80',
            protocol: PROTOCOLS,
            expect: 'refused',
          },
          {
            shows: 'PF-005, PF-006, VD-01',
            from: ['pod-b', 'client', 'node'],
            to: 'empty balancer:80',
            protocol: PROTOCOLS,
            expect: 'refused',
          },
          {
            shows: 'VD-21 resets have no rate limit',
            from: 'client',
            to: 'empty node-port:80',
            times: 200,
            expect: 'refused',
          },
        ],
      },
    ],
  },
  conditions(
    'ready-endpoints',
    'ready endpoints are used while there are some, terminating ones are not',
    ['PF-080', 'PF-090'],
    ['pod-a', 'pod-b', { pod: 'pod-c', ...SERVING }, { pod: 'remote-b', ...STOPPED }, 'remote-a'],
    {
      inside: 'kept pod-a pod-b remote-a',
      cluster: 'masqueraded pod-a pod-b remote-a',
      local: 'kept pod-a pod-b',
    },
  ),
  conditions(
    'terminating-on-this-node',
    'terminating endpoints of this node are used with policy Local if none is ready here',
    ['PF-081'],
    [{ pod: 'pod-a', ...SERVING }, { pod: 'pod-b', ...SERVING }, { pod: 'pod-c', ...STOPPED }, 'remote-a'],
    { inside: 'kept remote-a', cluster: 'masqueraded remote-a', local: 'kept pod-a pod-b' },
  ),
  conditions(
    'terminating-everywhere',
    'terminating endpoints that serve are used if none is ready',
    ['PF-091'],
    [
      { pod: 'pod-a', ...SERVING },
      { pod: 'pod-b', ...SERVING },
      { pod: 'pod-c', ...STOPPED },
      { pod: 'remote-a', ...SERVING },
    ],
    {
      inside: 'kept pod-a pod-b remote-a',
      cluster: 'masqueraded pod-a pod-b remote-a',
      local: 'kept pod-a pod-b',
    },
  ),
  conditions(
    'terminating-elsewhere',
    'policy Local drops packets if the only endpoint terminates on another node',
    ['PF-082', 'PF-092'],
    [{ pod: 'remote-a', ...SERVING }],
    { inside: 'kept remote-a', cluster: 'masqueraded remote-a', local: 'dropped' },
  ),
  conditions(
    'no-endpoint-serves',
    'endpoints that no longer serve count as none',
    ['PF-083', 'PF-093'],
    [
      { pod: 'pod-a', ...STOPPED },
      { pod: 'remote-a', ...STOPPED },
    ],
    { inside: 'refused', cluster: 'refused', local: 'refused' },
  ),
  conditions(
    'serving-but-unready',
    'endpoints that serve and are neither ready nor terminating count as none',
    ['SE-02'],
    [
      { pod: 'pod-a', ...UNREADY },
      { pod: 'remote-a', ...UNREADY },
    ],
    { inside: 'refused', cluster: 'refused', local: 'refused' },
  ),
  conditions(
    'ready-and-terminating',
    'an endpoint that is ready is used, terminating or not',
    ['SE-04'],
    [{ pod: 'pod-a', ready: true, serving: true, terminating: true }, 'remote-a'],
    { inside: 'kept pod-a remote-a', cluster: 'masqueraded pod-a remote-a', local: 'kept pod-a' },
  ),
  conditions('policies-without-endpoints', 'without endpoints every policy refuses', ['PF-084', 'PF-093'], [], {
    inside: 'refused',
    cluster: 'refused',
    local: 'refused',
  }),
];
