import { crowdAround } from '../crowded-addresses.js';
import { IS_NIGHTLY } from '../extent.js';
import { endpoint } from '../lab/lab.js';
import { labMode } from '../lab/mode.js';
import { endpointSlice, service, type Endpoint, type Manifest } from '../lab/objects.js';
import { dualStack, IPV4, IPV6 } from '../lab/packet-table.js';
import { ADDRESSES } from '../lab/topology.js';
import { flood, NEWCOMERS, PIPELINED, type Attack } from './attacks.js';

/** Mode ipvs is tried under a kernel that runs as a program, on one processor: a call to ip_vs takes it a millisecond. */
export const IS_EMULATED = labMode().startsWith('ipvs');

function ports(count: number): readonly { readonly name: string; readonly port: number }[] {
  return Array.from({ length: count }, (_, index) => ({ name: `p${index}`, port: index + 1 }));
}

function addresses(count: number, network = 0): readonly string[] {
  return Array.from({ length: count }, (_, index) => `203.${network}.${index >> 8}.${index & 255}`);
}

function hostile(name: string, number: number, portCount: number, addressCount: number, network = 0): Manifest {
  const clusterIPs = [IPV4.clusterIP(number)];
  return service(name, { clusterIPs, ports: ports(portCount), externalIPs: addresses(addressCount, network) });
}

/** Each port with session affinity is a map and two chains in mode nftables. */
const STICKY: readonly Manifest[] = [
  service('sticky', { clusterIPs: [IPV4.clusterIP(62)], ports: ports(10_001), affinitySeconds: 10_800 }),
  endpointSlice('sticky', [{ address: ADDRESSES['pod-a'].IPv4 }], ports(10_001)),
];

/** Services with one frontend more than each may have, all of them of their own. */
function atTheLimit(count: number): readonly Manifest[] {
  return Array.from({ length: count }, (_, index) => [
    hostile(`limit-${index}`, 70 + index, 73, 137, index + 1),
    endpointSlice(`limit-${index}`, [{ address: ADDRESSES['pod-a'].IPv4 }], ports(73)),
  ]).flat();
}

function slices(name: string, endpoints: number, portCount: number): readonly Manifest[] {
  const all = Array.from({ length: endpoints }, (_, index) => ({ address: `10.9.${index >> 8}.${index & 255}` }));
  return Array.from({ length: endpoints / 1000 }, (_, index) =>
    endpointSlice(name, all.slice(1000 * index, 1000 * (index + 1)), ports(portCount), { name: `${name}-${index}` }),
  );
}

/** Services with a timeout of session affinity each. */
function timeouts(count: number): readonly Manifest[] {
  return Array.from({ length: count }, (_, index) => {
    const name = `sticky-${index}`;
    const clusterIPs = [`10.96.${1 + (index >> 8)}.${index & 255}`];
    return [
      service(name, { clusterIPs, ports: [{ port: 80 }], affinitySeconds: 100 + index }),
      endpointSlice(name, [{ address: ADDRESSES['pod-a'].IPv4 }], [{ port: 80 }]),
    ];
  }).flat();
}

/** Over IPv6, as a tenant may ask for it. None is an address of the laboratory: in mode ipvs the node would take it for its own. */
const OVER_IPV6 = service('over-ipv6', {
  clusterIPs: [IPV6.clusterIP(61)],
  ports: ports(1000),
  externalIPs: Array.from({ length: 1000 }, (_, index) => `2001:db8:204::${(index + 1).toString(16)}`),
});

/** A Service with session affinity that clients without number connect to. */
const CROWDED = dualStack('crowded', {
  number: 65,
  ports: [{ port: 80 }],
  endpoints: ['pod-b'],
  affinitySeconds: 10_800,
});

const NODE_PORT = 30500;

/** The Service of others that connections go to meanwhile. */
export const VICTIM = { address: IPV4.clusterIP(60), port: 80 };
export const OTHERS: readonly Manifest[] = dualStack('victim-of-all', {
  number: 60,
  ports: [{ port: VICTIM.port }],
  endpoints: ['pod-a'],
});
const VICTIM_IPV6 = { to: endpoint(IPV6.clusterIP(60), VICTIM.port), answers: 'pod-a' };

/** External IPs with the last byte of the Service of others, and more of its bits. */
const CROWD: readonly Manifest[] = [
  service('crowd', {
    clusterIPs: ['10.98.3.77'],
    ports: ports(3),
    externalIPs: crowdAround(VICTIM.address, 8),
  }),
  endpointSlice('crowd', [{ address: ADDRESSES['pod-a'].IPv4 }], ports(3)),
  service('port-crowd', {
    clusterIPs: ['10.98.3.78'],
    ports: ports(1000),
    externalIPs: [VICTIM.address.replace(/^\d+/, '203')],
  }),
  endpointSlice('port-crowd', [{ address: ADDRESSES['pod-a'].IPv4 }], ports(1000)),
];

/** A Service without endpoints that admits many ranges of sources. */
const RANGE_COUNT = IS_EMULATED ? 1000 : 5000;
const RANGES: readonly Manifest[] = [
  service('ranges', {
    clusterIPs: [IPV4.clusterIP(61)],
    ports: ports(3),
    loadBalancerIPs: [ADDRESSES['pod-a'].IPv4.replace(/^\d+/, '203')],
    sourceRanges: Array.from({ length: RANGE_COUNT }, (_, index) => `198.${index >> 8}.${index & 255}.0/24`),
  }),
];

/** A Service with a node port, and an older one of somebody else that names the node's address and that port. */
const ON_A_NODE_PORT: readonly Manifest[] = [
  ...dualStack('victim', {
    type: 'NodePort',
    number: 64,
    ports: [{ port: 80, nodePort: NODE_PORT }],
    endpoints: ['pod-a'],
  }),
  service('thief', {
    clusterIPs: [IPV4.clusterIP(63)],
    ports: [{ port: NODE_PORT }],
    externalIPs: [ADDRESSES.node.IPv4],
    creationTimestamp: '2020-01-01T00:00:00Z',
  }),
];

/** The API server is on the other node, and an older Service has that node's address as its external IP. */
const ON_THE_API_SERVER: readonly Manifest[] = [
  ...dualStack('kubernetes', {
    number: 66,
    ports: [{ port: 443, targetPort: 80 }],
    endpoints: ['remote-node'],
  }),
  service('usurper', {
    clusterIPs: [IPV4.clusterIP(67)],
    ports: ports(100),
    externalIPs: [ADDRESSES['remote-node'].IPv4],
    creationTimestamp: '2020-01-01T00:00:00Z',
  }),
  endpointSlice('usurper', [{ address: ADDRESSES['pod-a'].IPv4 }], ports(100)),
];

/** A Service's slices of one endpoint and one weight each, of which another one changes in every turn. */
const WEIGHTED_SLICES = 818;
const WEIGHTED = service('weighted', { clusterIPs: [IPV4.clusterIP(68)], ports: ports(12) });
function weights(turn: number): readonly Manifest[] {
  return Array.from({ length: WEIGHTED_SLICES }, (_, index) =>
    endpointSlice('weighted', [{ address: `10.9.${index >> 8}.${index & 255}` }], ports(12), {
      name: `weighted-${index}`,
      annotations: { 'pointsman.dev/weight': String(1 + index + (index < turn ? 1000 : 0)) },
    }),
  );
}

/** An endpoint in a zone whose name no label could have. */
function longZone(turn: number): readonly Manifest[] {
  const zone = String.fromCharCode(97 + (turn % 26)).repeat(1_400_000);
  return [endpointSlice('zoned', [{ address: ADDRESSES['pod-a'].IPv4, zone }], [{ port: 80 }])];
}

/** 40 slices of a thousand endpoints. */
function thousands(name: string, network: number, fields: (index: number) => Partial<Endpoint>): readonly Manifest[] {
  return Array.from({ length: 40 }, (_, slice) => {
    const endpoints = Array.from({ length: 1000 }, (_, index) => ({
      address: `10.${network}.${4 * slice + (index >> 8)}.${index & 255}`,
      ...fields(1000 * slice + index),
    }));
    return endpointSlice(name, endpoints, [{ port: 80 }], { name: `${name}-${slice}` });
  });
}

const ZONED = service('zoned', { clusterIPs: [IPV4.clusterIP(69)], ports: [{ port: 80 }] });
const DRAINING = service('draining', {
  clusterIPs: [IPV4.clusterIP(61)],
  ports: [{ port: 80 }],
  annotations: { 'pointsman.dev/drain': '24h' },
});

/** Attacks of clients on the listeners, and of tenants by objects that are written again and again. */
const REPEATED: readonly Row[] = [
  {
    name: '2,600 requests in each of 20 connections a second to the health address',
    inFull: true,
    objects: [],
    attack: PIPELINED,
    reported: null,
    event: null,
  },
  {
    name: '100 connections a second of 20 clients that stay after a request',
    inFull: true,
    objects: [],
    attack: NEWCOMERS,
    reported: null,
    event: null,
  },
  {
    name: 'a zone of 1.4 MB that is another in each update',
    inFull: true,
    objects: [ZONED],
    rewritten: longZone,
    reported: null,
    event: null,
  },
  {
    name: '40,000 endpoints in a zone each',
    inFull: true,
    objects: [ZONED, ...thousands('zoned', 10, (index) => ({ zone: `zone-${index}` }))],
    reported: null,
    event: null,
  },
  {
    name: '40,000 endpoints that drain for a day',
    inFull: true,
    objects: [DRAINING, ...thousands('draining', 12, () => ({ ready: false, serving: true, terminating: true }))],
    reported: null,
    event: null,
  },
  {
    name: '12 ports × 818 weights, of which one changes in each update',
    inFull: true,
    objects: [WEIGHTED],
    rewritten: weights,
    reported: null,
    event: null,
  },
];

export interface Row {
  readonly name: string;
  readonly objects: readonly Manifest[];
  /** What the status says of it, and the log; null: nothing is left out. */
  readonly reported: RegExp | null;
  /** What the log says, if it says it in other words. */
  readonly logged?: RegExp;
  /** Of the event, and the name of the Service that it is about. */
  readonly event: readonly [reason: string, service: string] | null;
  /** Paths of the metrics address that are asked meanwhile. */
  readonly asked?: readonly string[];
  /** `npm test` has another row of its kind. */
  readonly inFull?: true;
  /** What clients do meanwhile. */
  readonly attack?: Attack;
  /** What is written in each turn besides, when it is always something new. */
  readonly rewritten?: (turn: number) => readonly Manifest[];
  /** Another Service that works all the same. */
  readonly works?: { readonly to: string; readonly answers: string };
}

export const ROWS: readonly Row[] = [
  // The first, as ip_vs keeps removed endpoints for 120 s and looks through them for each new one (ip_vs_trash_get_dest): after those with thousands of
  // endpoints the emulated machine took 18 and 32 s for these.
  {
    name: 'external IPs and ports that are chosen against another Service',
    objects: CROWD,
    reported: null,
    event: null,
  },
  {
    name: 'a Service of 96 kB',
    inFull: true,
    objects: [hostile('a', 61, 700, 1500)],
    reported: /^over a limit: IPv4 default\/a: 1040700 of/,
    event: ['TooManyFrontends', 'a'],
  },
  {
    name: '1,000 ports × 1,000 external IPs',
    objects: [hostile('b', 61, 1000, 1000)],
    reported: /^over a limit: IPv4 default\/b: 991000 of 1001000 frontends/,
    event: ['TooManyFrontends', 'b'],
  },
  {
    name: 'a Service of 346 kB',
    inFull: true,
    objects: [hostile('c', 61, 3000, 6000)],
    reported: /^over a limit: IPv4 default\/c/,
    event: ['TooManyFrontends', 'c'],
  },
  {
    name: '100 ports × 5,000 endpoints',
    inFull: true,
    objects: [hostile('d', 61, 100, 0), ...slices('d', 5000, 100)],
    reported: /^over a limit: IPv4 default\/d: 80 of 100 frontends/,
    event: ['TooManyFrontends', 'd'],
  },
  {
    name: 'two Services with thousands of conflicts, while the page is asked for them',
    objects: [hostile('e', 61, 100, 90), hostile('f', 62, 100, 90)],
    reported: /^conflict: IPv4 203\..*, one of 9000 frontends that both claim$/,
    event: ['AddressConflict', 'f'],
    asked: ['ui/api/service?key=default/e', 'ui/api/service?key=default/f', 'ui/api/services?search=default'],
  },
  // Each virtual service takes the emulated kernel two milliseconds.
  ...(IS_EMULATED
    ? []
    : [
        {
          name: 'five Services at the limit together',
          inFull: true as const,
          objects: atTheLimit(5),
          reported: /^over a limit: IPv4 default\/limit-0: 74 of 10074 frontends/,
          event: ['TooManyFrontends', 'limit-0'] as const,
        },
      ]),
  // Mode iptables writes 21,000 rules for each, which takes minutes. In the legacy flavour the kernel replaces 400,000 rules in each sync.
  ...(labMode() === 'nftables' || (labMode() === 'iptables-nft' && IS_NIGHTLY)
    ? [
        {
          name: 'twenty Services at the limit together',
          inFull: true as const,
          objects: atTheLimit(20),
          reported: /^over a limit: IPv4 default\/limit-0: 74 of 10074 frontends/,
          event: ['TooManyFrontends', 'limit-0'] as const,
        },
      ]
    : []),
  {
    name: '1,000 ports × 1,000 external IPs over IPv6',
    inFull: true,
    objects: [OVER_IPV6],
    reported: /^over a limit: IPv6 default\/over-ipv6: 991000 of 1001000 frontends/,
    event: ['TooManyFrontends', 'over-ipv6'],
    works: VICTIM_IPV6,
  },
  {
    name: 'a Service with session affinity at the frontend limit',
    inFull: true,
    objects: STICKY,
    reported: /^over a limit: IPv4 default\/sticky: 9011 of 10001 frontends/,
    event: ['TooManyFrontends', 'sticky'],
  },
  // In the other modes each Service adds rules or a virtual service, which takes minutes.
  ...(labMode() === 'nftables' && IS_NIGHTLY
    ? [
        {
          name: '10,000 Services with timeouts of session affinity',
          inFull: true as const,
          objects: timeouts(10_000),
          reported: null,
          event: null,
        },
      ]
    : []),
  { name: 'thousands of source ranges without endpoints', objects: RANGES, reported: null, event: null },
  {
    name: '300 Services with timeouts of session affinity',
    inFull: true,
    objects: timeouts(300),
    reported: null,
    event: null,
  },
  {
    name: "an external IP on another Service's node port",
    objects: ON_A_NODE_PORT,
    reported: /^conflict: IPv4 .*:30500\/TCP/,
    event: ['AddressConflict', 'thief'],
    works: { to: endpoint(ADDRESSES.node.IPv4, NODE_PORT), answers: 'pod-a' },
  },
  {
    name: "an external IP on the API server's address",
    objects: ON_THE_API_SERVER,
    reported:
      /^conflict: IPv4 .* belongs to default\/kubernetes, an endpoint of which has this address; default\/usurper:/,
    event: ['AddressConflict', 'usurper'],
    works: { to: endpoint(ADDRESSES['remote-node'].IPv4, 80), answers: 'remote-node' },
  },
  // What they cost beyond the kernel is the same in all modes. Only mode nftables has drains and weights.
  ...(labMode() === 'nftables' ? REPEATED : []),
  // The kernel that runs as a program takes a millisecond for each. Only mode nftables has room of its own for clients.
  ...(IS_EMULATED
    ? []
    : [
        {
          name: 'SYNs from 70,000 addresses to a Service with session affinity',
          inFull: true as const,
          objects: CROWDED,
          attack: flood(IPV4.clusterIP(65), 80),
          works: { to: endpoint(VICTIM.address, VICTIM.port), answers: 'pod-a' },
          ...(labMode() === 'nftables'
            ? {
                reported: /^no room for session affinity: default\/crowded/,
                logged: /session affinity has no room for more clients.*default\/crowded/,
                event: ['AffinityFull', 'crowded'] as const,
              }
            : { reported: null, event: null }),
        },
      ]),
];
