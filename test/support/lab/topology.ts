import type { Family } from '../../../src/base/ip.js';

/** What agent.py builds; see namespaces.py. */
export type NetworkDescription = Readonly<Record<string, NamespaceDescription>>;

export interface NamespaceDescription {
  readonly router?: boolean;
  readonly interfaces?: Readonly<Record<string, InterfaceDescription>>;
  readonly routes?: readonly {
    readonly to: string;
    readonly via?: string;
    readonly link?: string;
    readonly source?: string;
  }[];
  readonly blackholes?: readonly { readonly to: string; readonly from: string }[];
  readonly sysctls?: Readonly<Record<string, string | number>>;
}

export interface InterfaceDescription {
  /** `namespace/interface`, or `switch/name` to plug into a switch. */
  readonly peer?: string;
  readonly bridge?: boolean;
  readonly master?: string;
  readonly addresses?: readonly string[];
}

/**
 *     client, blocked ── wan ── router ── lan ─┬─ node ─┬─ pod-a, pod-b   (a routed veth each: veth-a, veth-b)
 *                                              │        └─ pod-c          (behind the bridge cbr0)
 *                                              └─ remote-node ── remote-a, remote-b
 *
 * Everything that is no pod or node address goes to the node: cluster IPs, external IPs, load-balancer addresses.
 */
export const ADDRESSES = {
  node: { IPv4: '192.168.0.2', IPv6: 'fd00:192:168::2' },
  /** The node's second address. */
  alternate: { IPv4: '192.168.1.2', IPv6: 'fd00:192:168:1::2' },
  'remote-node': { IPv4: '192.168.0.3', IPv6: 'fd00:192:168::3' },
  router: { IPv4: '192.168.0.1', IPv6: 'fd00:192:168::1' },
  'pod-a': { IPv4: '10.244.1.10', IPv6: 'fd00:244:1::a' },
  'pod-b': { IPv4: '10.244.1.11', IPv6: 'fd00:244:1::b' },
  'pod-c': { IPv4: '10.244.1.12', IPv6: 'fd00:244:1::c' },
  'remote-a': { IPv4: '10.244.2.10', IPv6: 'fd00:244:2::a' },
  'remote-b': { IPv4: '10.244.2.11', IPv6: 'fd00:244:2::b' },
  client: { IPv4: '203.0.113.2', IPv6: '2001:db8:203::2' },
  blocked: { IPv4: '203.0.113.130', IPv6: '2001:db8:203:0:8000::2' },
} as const satisfies Record<string, Record<Family, string>>;

/** Where packets of a namespace come in to the node; those of all others by eth0. */
export const INPUT_INTERFACES: Readonly<Record<string, string>> = {
  'pod-a': 'veth-a',
  'pod-b': 'veth-b',
  'pod-c': 'cbr0',
};

export const PREFIXES = {
  pods: { IPv4: '10.244.0.0/16', IPv6: 'fd00:244::/32' },
  nodes: { IPv4: '192.168.0.0/24', IPv6: 'fd00:192:168::/64' },
  alternates: { IPv4: '192.168.1.0/24', IPv6: 'fd00:192:168:1::/64' },
  services: { IPv4: '10.96.0.0/16', IPv6: 'fd00:10:96::/112' },
  /** Routed to the node as well, for a second ServiceCIDR. */
  moreServices: { IPv4: '10.97.0.0/16', IPv6: 'fd00:10:97::/112' },
  externalIPs: { IPv4: '198.51.0.0/16', IPv6: '2001:db8:198::/64' },
  loadBalancers: { IPv4: '192.0.0.0/16', IPv6: '2001:db8:192::/64' },
  /** Holds `client`, not `blocked`. */
  admitted: { IPv4: '203.0.113.0/25', IPv6: '2001:db8:203::/65' },
} as const satisfies Record<string, Record<Family, string>>;

const GATEWAYS = { local: ['10.244.1.1', 'fd00:244:1::1'], remote: ['10.244.2.1', 'fd00:244:2::1'] } as const;
const EVERYTHING = ['0.0.0.0/0', '::/0'] as const;
const SERVICE_PREFIXES = [PREFIXES.services, PREFIXES.moreServices, PREFIXES.externalIPs, PREFIXES.loadBalancers];

export const NETWORK: NetworkDescription = {
  node: {
    router: true,
    interfaces: {
      // Of several IPv6 addresses the one added last is preferred as a source.
      eth0: {
        peer: 'switch/lan',
        addresses: ['192.168.0.2/24', '192.168.1.2/24', 'fd00:192:168:1::2/64', 'fd00:192:168::2/64'],
      },
      'veth-a': { peer: 'pod-a/eth0', addresses: gatewayAddresses('local') },
      'veth-b': { peer: 'pod-b/eth0', addresses: gatewayAddresses('local') },
      cbr0: { bridge: true, addresses: gatewayAddresses('local') },
      'veth-c': { peer: 'pod-c/eth0', master: 'cbr0' },
    },
    routes: [
      ...podRoutes('pod-a', 'veth-a'),
      ...podRoutes('pod-b', 'veth-b'),
      ...podRoutes('pod-c', 'cbr0'),
      ...routes(['10.244.2.0/24', 'fd00:244:2::/64'], ADDRESSES['remote-node']),
      ...routes(EVERYTHING, ADDRESSES.router),
    ],
  },
  'remote-node': {
    router: true,
    interfaces: {
      eth0: { peer: 'switch/lan', addresses: ['192.168.0.3/24', 'fd00:192:168::3/64'] },
      'veth-a': { peer: 'remote-a/eth0', addresses: gatewayAddresses('remote') },
      'veth-b': { peer: 'remote-b/eth0', addresses: gatewayAddresses('remote') },
    },
    routes: [
      ...podRoutes('remote-a', 'veth-a'),
      ...podRoutes('remote-b', 'veth-b'),
      ...toNode(),
      ...routes(EVERYTHING, ADDRESSES.router),
    ],
  },
  router: {
    router: true,
    interfaces: {
      eth0: {
        peer: 'switch/lan',
        addresses: ['192.168.0.1/24', '192.168.1.1/24', 'fd00:192:168::1/64', 'fd00:192:168:1::1/64'],
      },
      eth1: { peer: 'switch/wan', addresses: ['203.0.113.1/24', '2001:db8:203::1/64'] },
    },
    routes: [...toNode(), ...routes(['10.244.2.0/24', 'fd00:244:2::/64'], ADDRESSES['remote-node'])],
    // What the node does not take must not bounce between node and router until its time to live is over.
    blackholes: SERVICE_PREFIXES.flatMap((prefix) => [
      { to: prefix.IPv4, from: 'eth0' },
      { to: prefix.IPv6, from: 'eth0' },
    ]),
  },
  'pod-a': pod('pod-a', 'local'),
  'pod-b': pod('pod-b', 'local'),
  'pod-c': pod('pod-c', 'local'),
  'remote-a': pod('remote-a', 'remote'),
  'remote-b': pod('remote-b', 'remote'),
  client: outside('client'),
  blocked: outside('blocked'),
};

function gatewayAddresses(side: keyof typeof GATEWAYS): string[] {
  return [`${GATEWAYS[side][0]}/32`, `${GATEWAYS[side][1]}/128`];
}

/** A pod as most network plugins make it: a host address, and a gateway that answers for everything else. */
function pod(name: keyof typeof ADDRESSES, side: keyof typeof GATEWAYS): NamespaceDescription {
  const [gateway4, gateway6] = GATEWAYS[side];
  return {
    interfaces: { eth0: { addresses: [`${ADDRESSES[name].IPv4}/32`, `${ADDRESSES[name].IPv6}/128`] } },
    routes: [
      { to: `${gateway4}/32`, link: 'eth0' },
      { to: `${gateway6}/128`, link: 'eth0' },
      ...routes(EVERYTHING, { IPv4: gateway4, IPv6: gateway6 }),
    ],
  };
}

function outside(name: 'client' | 'blocked'): NamespaceDescription {
  return {
    interfaces: {
      eth0: { peer: 'switch/wan', addresses: [`${ADDRESSES[name].IPv4}/24`, `${ADDRESSES[name].IPv6}/64`] },
    },
    routes: routes(EVERYTHING, { IPv4: '203.0.113.1', IPv6: '2001:db8:203::1' }),
  };
}

function podRoutes(name: keyof typeof ADDRESSES, link: string): { to: string; link: string }[] {
  return [
    { to: `${ADDRESSES[name].IPv4}/32`, link },
    { to: `${ADDRESSES[name].IPv6}/128`, link },
  ];
}

function routes(to: readonly [string, string], via: Readonly<Record<Family, string>>): { to: string; via: string }[] {
  return [
    { to: to[0], via: via.IPv4 },
    { to: to[1], via: via.IPv6 },
  ];
}

/** Routes of the rest of the world to what this node is responsible for. */
function toNode(): { to: string; via: string }[] {
  const prefixes = [{ IPv4: '10.244.1.0/24', IPv6: 'fd00:244:1::/64' }, ...SERVICE_PREFIXES];
  return prefixes.flatMap((prefix) => routes([prefix.IPv4, prefix.IPv6], ADDRESSES.node));
}
