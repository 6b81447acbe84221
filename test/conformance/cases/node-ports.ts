// On which addresses node ports answer.
import { ADDRESSES, PREFIXES } from '../../support/lab/topology.js';
import type { Act, Case, Flow, ServiceSpec, Step } from '../case.js';
import { PLACES } from '../places.js';

const PROTOCOLS = ['TCP', 'UDP', 'SCTP'] as const;

const OBJECTS: readonly ServiceSpec[] = [
  {
    service: 'web',
    type: 'NodePort',
    ports: PROTOCOLS.map((protocol) => ({ protocol, port: 80 })),
    endpoints: ['pod-a', 'remote-a'],
  },
  { service: 'empty', type: 'NodePort', ports: [{ port: 80 }], endpoints: [] },
  {
    service: 'elsewhere',
    type: 'NodePort',
    externalTrafficPolicy: 'Local',
    ports: [{ port: 80 }],
    endpoints: ['remote-a'],
  },
];
const BOTH = 'masqueraded pod-a remote-a';

/** The node's first address has node ports in every configuration here, and no other machine's address has any. */
const PRIMARY: readonly Flow[] = [
  { shows: 'PF-041', from: 'pod-b', to: 'web:80', protocol: PROTOCOLS, expect: 'kept pod-a remote-a' },
  { shows: 'PF-041', from: ['client', 'node', 'pod-b'], to: 'web node-port:80', protocol: PROTOCOLS, expect: BOTH },
  { shows: 'PF-109 policy Local, none local', from: 'client', to: 'elsewhere node-port:80', expect: 'dropped' },
  { from: 'client', to: 'place node:29999', expect: 'refused' },
  { from: 'pod-b', to: 'web node-port at remote-node:80', expect: 'refused' },
];

/** An address of the node that has node ports, or that has none and refuses as it has no listener. */
const at = (place: 'alternate' | 'later', isServed: boolean, fields: Partial<Flow> = {}): readonly Flow[] => [
  { from: 'client', to: `web node-port at ${place}:80`, expect: isServed ? BOTH : 'refused', ...fields },
  { from: 'client', to: `empty node-port at ${place}:80`, expect: 'refused', ...fields },
  { from: 'client', to: `elsewhere node-port at ${place}:80`, expect: isServed ? 'dropped' : 'refused', ...fields },
];

const loopback = (isNamed: boolean): readonly Flow[] => [
  {
    shows: 'SV-32, SV-35',
    from: 'node',
    to: 'web node-port at loopback:80',
    expect: 'refused',
    differs: isNamed ? { 'node ports on 127.0.0.1': BOTH } : {},
  },
  {
    shows: 'PF-109 policy Local, none local',
    from: 'node',
    to: 'elsewhere node-port at loopback:80',
    expect: 'refused',
    differs: isNamed ? { 'node ports on 127.0.0.1': 'masqueraded remote-a' } : {},
  },
];

/** On a link of the node. */
const further = (place: 'later' | 'fourth', add: boolean): Act => ({
  address: PLACES[place],
  to: 'node',
  link: 'lo',
  add,
});

const SERVED = { expect: BOTH, hold: true } as const;
/** What is left of a node port with a connection. */
const DRAINS = { 'connections drain': 'refused' } as const;

/** An address that the node is given and loses; in between, whether it has node ports. */
const laterAddress = (v4: boolean, v6: boolean): readonly Step[] => {
  const to = 'web node-port at later:80';
  return [
    {
      title: 'address added live',
      acts: [further('later', true)],
      flows: [
        { from: 'node', to, family: 'IPv4', ...(v4 ? SERVED : { expect: 'refused' }) },
        { from: 'node', to, family: 'IPv6', ...(v6 ? SERVED : { expect: 'refused' }) },
      ],
    },
    {
      title: 'address removed live',
      acts: [further('later', false)],
      flows: [
        { from: 'node', to, family: 'IPv4', expect: 'unreachable', differs: v4 ? DRAINS : {} },
        { from: 'node', to, family: 'IPv6', expect: 'unreachable', differs: v6 ? DRAINS : {} },
      ],
    },
  ];
};

export const NODE_PORT_CASES: readonly Case[] = [
  {
    id: 'node-ports-primary',
    title: "node ports answer on the node's primary addresses alone by default",
    shows: ['PF-030', 'PF-032'],
    own: {},
    steps: [
      { objects: OBJECTS, flows: [...PRIMARY, ...at('alternate', false), ...loopback(false)] },
      ...laterAddress(false, false),
    ],
  },
  {
    id: 'node-ports-prefixes',
    title: 'node ports answer on addresses in the configured prefixes',
    shows: ['PF-031', 'PF-033'],
    own: {
      config: {
        nodePortAddresses: [
          PREFIXES.nodes.IPv4,
          PREFIXES.alternates.IPv4,
          PREFIXES.nodes.IPv6,
          `${ADDRESSES.alternate.IPv6}/128`,
          '198.18.0.0/16',
          '2001:db8:18::/64',
          '127.0.0.0/8',
        ],
      },
    },
    steps: [
      { objects: OBJECTS, flows: [...PRIMARY, ...at('alternate', true), ...loopback(true)] },
      ...laterAddress(true, true),
    ],
  },
  {
    id: 'node-ports-one-family',
    title: 'prefixes of one family leave the other open for node ports',
    shows: ['SV-31'],
    own: { config: { nodePortAddresses: [PREFIXES.nodes.IPv4] } },
    steps: [
      {
        objects: OBJECTS,
        flows: [
          ...PRIMARY,
          ...at('alternate', false, { family: 'IPv4' }),
          ...at('alternate', true, { family: 'IPv6' }),
          ...loopback(false),
        ],
      },
      ...laterAddress(false, true),
    ],
  },
  {
    id: 'node-ports-everywhere',
    title: 'node ports answer on all addresses of the node',
    shows: ['SV-32'],
    own: { config: { nodePortAddresses: ['0.0.0.0/0', '::/0'] } },
    steps: [
      { objects: OBJECTS, flows: [...PRIMARY, ...at('alternate', true), ...loopback(true)] },
      ...laterAddress(true, true),
    ],
  },
  {
    id: 'node-ports-follow-the-node',
    title: "node ports follow the Node's primary addresses",
    shows: ['PF-030'],
    own: { nodeAddresses: 'alternate' },
    steps: [
      {
        title: 'second address is primary',
        objects: OBJECTS,
        flows: [...at('alternate', true), { from: 'client', to: 'web node-port:80', expect: 'refused' }],
      },
      {
        title: 'changed live',
        acts: [{ nodeAddresses: 'node' }],
        flows: [...at('alternate', false), { from: 'client', to: 'web node-port:80', expect: BOTH }],
      },
    ],
  },
  {
    id: 'node-ports-bind-address',
    title: 'node ports of its family follow bindAddress',
    shows: ['PF-030'],
    own: { config: { bindAddress: ADDRESSES.alternate.IPv4, healthzBindAddress: '0.0.0.0:10256' } },
    steps: [
      {
        objects: OBJECTS,
        flows: [
          ...at('alternate', true, { family: 'IPv4' }),
          ...at('alternate', false, { family: 'IPv6' }),
          { from: 'client', to: 'web node-port:80', family: 'IPv4', expect: 'refused' },
          { from: 'client', to: 'web node-port:80', family: 'IPv6', expect: BOTH },
        ],
      },
    ],
  },
  {
    id: 'node-ports-four-addresses',
    title: 'of four addresses of each family those have node ports that the prefixes name',
    shows: ['PF-031', 'PF-041'],
    own: {
      config: {
        nodePortAddresses: [
          PREFIXES.nodes.IPv4,
          PREFIXES.nodes.IPv6,
          '198.18.0.0/16',
          '2001:db8:18::/64',
          `${PLACES.fourth.IPv4}/32`,
          `${PLACES.fourth.IPv6}/128`,
        ],
      },
      after: [further('fourth', false)],
    },
    steps: [
      {
        objects: OBJECTS,
        acts: [further('later', true), further('fourth', true)],
        flows: [
          ...PRIMARY,
          ...at('alternate', false),
          {
            from: 'node',
            to: ['web node-port at later:80', 'web node-port at fourth:80'],
            protocol: PROTOCOLS,
            ...SERVED,
          },
          { from: 'node', to: ['empty node-port at later:80', 'empty node-port at fourth:80'], expect: 'refused' },
          { from: 'node', to: 'web:80', protocol: PROTOCOLS, expect: BOTH },
        ],
      },
      {
        title: 'one of the four removed',
        acts: [further('later', false)],
        flows: [
          { from: 'node', to: 'web node-port at later:80', expect: 'unreachable', differs: DRAINS },
          { from: 'node', to: 'web node-port at fourth:80', expect: BOTH },
          { from: 'client', to: 'web node-port:80', expect: BOTH },
        ],
      },
    ],
  },
];
