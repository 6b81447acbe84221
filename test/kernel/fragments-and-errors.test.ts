// Packets that belong to a connection without looking like it: fragments, and the ICMP errors that endpoints send.
import t from 'tap';
import { endpoint, Lab, type Traffic } from '../support/lab/lab.js';
import { checkRows, dualStack, FAMILY_VIEWS, type FamilyView, type Row } from '../support/lab/packet-table.js';
import { Proxy } from '../support/lab/proxy.js';

const PODS = ['pod-a', 'remote-a'] as const;

function ways(view: FamilyView): readonly Omit<Row, 'expect'>[] {
  return [
    { from: 'pod-b', to: endpoint(view.clusterIP(41), 53) },
    { from: 'node', to: endpoint(view.clusterIP(41), 53) },
    { from: 'client', to: endpoint(view.loadBalancerIP(3), 53) },
    { from: 'client', to: endpoint(view.externalIP(11), 53) },
    { from: 'client', to: view.nodePort(30053) },
  ];
}

const dns = (targetPort: number, externalTrafficPolicy: 'Cluster' | 'Local') =>
  dualStack('dns', {
    type: 'LoadBalancer',
    number: 41,
    loadBalancers: [3],
    externals: [11],
    externalTrafficPolicy,
    ports: [{ protocol: 'UDP', port: 53, targetPort, nodePort: 30053 }],
    endpoints: PODS,
  });

t.test('fragmented datagrams reach endpoints, with and without masquerade', async (t) => {
  const lab = await Lab.start(t);
  await lab.serveAll(PODS, [[53, 'UDP']]);
  const proxy = await Proxy.start(t, lab);
  for (const policy of ['Cluster', 'Local'] as const) {
    await proxy.apply(dns(53, policy));
    for (const { from, to } of FAMILY_VIEWS.flatMap(ways)) {
      const traffic: Traffic = { from, to, protocol: 'UDP', bytes: 4000 };
      t.match(await lab.request(traffic), { bytes: 4000 }, `policy ${policy}: ${from} to ${to}`);
    }
  }
});

t.test('an ICMP error of an endpoint without a listener reaches the client', async (t) => {
  const lab = await Lab.start(t);
  const proxy = await Proxy.start(t, lab);
  await proxy.apply(dns(5353, 'Cluster'));
  const shows = 'port unreachable';
  const rows = FAMILY_VIEWS.flatMap(ways).map((way): Row => ({
    ...way,
    protocol: 'UDP',
    expect: 'refused',
    deaf: true,
    shows,
  }));
  await checkRows(t, lab, rows);
});
