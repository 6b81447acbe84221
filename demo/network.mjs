// @ts-check

/**
 *     client ── node ─┬─ web-1, web-2   (pods on this node)
 *                     └─ other-node ── web-3
 *
 * What test/support/lab/namespaces.py builds. The client and the other node send everything that is not their own to the node.
 */
export const NETWORK = {
  node: {
    router: true,
    interfaces: {
      eth0: { peer: 'other-node/eth0', addresses: ['192.168.0.2/24', 'fd00:192:168::2/64'] },
      eth1: { peer: 'client/eth0', addresses: ['203.0.113.1/24', '2001:db8:203::1/64'] },
      'veth-1': { peer: 'web-1/eth0', addresses: ['10.244.1.1/32', 'fd00:244:1::1/128'] },
      'veth-2': { peer: 'web-2/eth0', addresses: ['10.244.1.1/32', 'fd00:244:1::1/128'] },
    },
    routes: [
      { to: '10.244.1.10/32', link: 'veth-1' },
      { to: 'fd00:244:1::a/128', link: 'veth-1' },
      { to: '10.244.1.11/32', link: 'veth-2' },
      { to: 'fd00:244:1::b/128', link: 'veth-2' },
      { to: '0.0.0.0/0', via: '192.168.0.3' },
      { to: '::/0', via: 'fd00:192:168::3' },
    ],
  },
  'other-node': {
    router: true,
    interfaces: {
      eth0: { addresses: ['192.168.0.3/24', 'fd00:192:168::3/64'] },
      'veth-3': { peer: 'web-3/eth0', addresses: ['10.244.2.1/32', 'fd00:244:2::1/128'] },
    },
    routes: [
      { to: '10.244.2.10/32', link: 'veth-3' },
      { to: 'fd00:244:2::a/128', link: 'veth-3' },
      { to: '0.0.0.0/0', via: '192.168.0.2' },
      { to: '::/0', via: 'fd00:192:168::2' },
    ],
  },
  'web-1': pod('10.244.1.10', '10.244.1.1', 'fd00:244:1::a', 'fd00:244:1::1'),
  'web-2': pod('10.244.1.11', '10.244.1.1', 'fd00:244:1::b', 'fd00:244:1::1'),
  'web-3': pod('10.244.2.10', '10.244.2.1', 'fd00:244:2::a', 'fd00:244:2::1'),
  client: {
    interfaces: { eth0: { addresses: ['203.0.113.2/24', '2001:db8:203::2/64'] } },
    routes: [
      { to: '0.0.0.0/0', via: '203.0.113.1' },
      { to: '::/0', via: '2001:db8:203::1' },
    ],
  },
};

/** Servers of the demo: namespace, address and port, protocol. */
export const SERVERS = /** @type {const} */ ([
  ['web-1', '10.244.1.10', 8080, 'TCP'],
  ['web-2', '10.244.1.11', 8080, 'TCP'],
  ['web-3', '10.244.2.10', 8080, 'TCP'],
  ['web-1', 'fd00:244:1::a', 8080, 'TCP'],
  ['web-2', 'fd00:244:1::b', 8080, 'TCP'],
  ['web-3', 'fd00:244:2::a', 8080, 'TCP'],
  ['web-1', '10.244.1.10', 5353, 'UDP'],
  ['web-3', '10.244.2.10', 5353, 'UDP'],
]);

/**
 * A pod as most network plugins make it: a host address, and a gateway that answers for everything else.
 * @param {string} address4
 * @param {string} gateway4
 * @param {string} address6
 * @param {string} gateway6
 */
function pod(address4, gateway4, address6, gateway6) {
  return {
    interfaces: { eth0: { addresses: [`${address4}/32`, `${address6}/128`] } },
    routes: [
      { to: `${gateway4}/32`, link: 'eth0' },
      { to: `${gateway6}/128`, link: 'eth0' },
      { to: '0.0.0.0/0', via: gateway4 },
      { to: '::/0', via: gateway6 },
    ],
  };
}
