import t from 'tap';
import { FAMILIES } from '../../src/base/ip.js';
import { nodeFacts } from '../../src/plan/facts.js';
import { ForwardingTable } from '../../src/plan/forwarding-table.js';
import { planNode } from '../../src/plan/node-plan.js';
import { planService } from '../../src/plan/service-plan.js';
import { packedParts, printNode, printTable, unpackLine } from '../../src/plan/text.js';
import { planSettings } from '../support/plan-settings.js';
import { node, service, serviceCIDR, slice } from '../support/rows.js';

t.test('a forwarding table is printed as text', (t) => {
  const settings = planSettings();
  const me = node('me', ['192.168.0.2']);
  const table = new ForwardingTable(planNode('IPv4', settings, me, [serviceCIDR('default', ['10.96.0.0/12'])]));
  const row = service('web', {
    loadBalancer: ['1.2.3.4'],
    sourceRanges: ['203.0.113.0/24'],
    externalTrafficPolicy: 'Local',
    affinitySeconds: 30,
    ports: [{ name: 'http', nodePort: 30080 }],
  });
  const endpoints = [
    { address: '10.0.0.1', node: 'me' },
    { address: '10.0.0.2', node: 'other' },
  ];
  const slices = [slice('web', endpoints, { ports: [{ name: 'http', port: 8080 }] })];
  table.setService('default/web', planService('IPv4', row, slices, nodeFacts(settings, me), settings));
  const empty = service('empty', { clusterIPs: ['10.96.0.11'] });
  table.setService('default/empty', planService('IPv4', empty, [], nodeFacts(settings, me), settings));
  t.same(printTable(table), [
    'IPv4 cluster-address 10.96.0.10',
    'IPv4 cluster-address 10.96.0.11',
    'IPv4 frontend 1.2.3.4:80/TCP admit 203.0.113.0/24',
    'IPv4 frontend 1.2.3.4:80/TCP affinity 30s',
    'IPv4 frontend 1.2.3.4:80/TCP endpoint 10.0.0.1:8080',
    'IPv4 frontend 1.2.3.4:80/TCP endpoint 10.0.0.2:8080',
    'IPv4 frontend 1.2.3.4:80/TCP local-endpoint 10.0.0.1:8080',
    'IPv4 frontend 1.2.3.4:80/TCP masquerade node',
    'IPv4 frontend 1.2.3.4:80/TCP service default/web:http LoadBalancer',
    'IPv4 frontend 10.96.0.10:80/TCP affinity 30s',
    'IPv4 frontend 10.96.0.10:80/TCP endpoint 10.0.0.1:8080',
    'IPv4 frontend 10.96.0.10:80/TCP endpoint 10.0.0.2:8080',
    'IPv4 frontend 10.96.0.10:80/TCP masquerade off-cluster',
    'IPv4 frontend 10.96.0.10:80/TCP service default/web:http ClusterIP',
    'IPv4 frontend 10.96.0.11:80/TCP empty reject',
    'IPv4 frontend 10.96.0.11:80/TCP service default/empty ClusterIP',
    'IPv4 frontend nodeport:30080/TCP affinity 30s',
    'IPv4 frontend nodeport:30080/TCP endpoint 10.0.0.1:8080',
    'IPv4 frontend nodeport:30080/TCP endpoint 10.0.0.2:8080',
    'IPv4 frontend nodeport:30080/TCP local-endpoint 10.0.0.1:8080',
    'IPv4 frontend nodeport:30080/TCP masquerade node',
    'IPv4 frontend nodeport:30080/TCP service default/web:http NodePort',
    'IPv4 hairpin 10.0.0.1',
    'IPv4 node local-detector source 10.0.0.0/8',
    'IPv4 node masquerade-mark 0x00004000',
    'IPv4 node nodeport-address 192.168.0.2/32',
    'IPv4 node service-cidr 10.96.0.0/12',
  ]);
  t.end();
});

t.test('a node plan is printed as text', (t) => {
  const lines = (settings: Parameters<typeof planSettings>[0]): readonly string[] =>
    printNode(planNode('IPv6', planSettings({ nodePortAddresses: [], ...settings }), undefined, []));
  t.same(lines({ localDetection: { type: 'ClusterCIDR', prefixes: [] }, masqueradeAll: true, masqueradeBit: 31 }), [
    'IPv6 node local-detector none',
    'IPv6 node masquerade-mark 0x80000000',
    'IPv6 node masquerade-all',
    'IPv6 node nodeport-address all',
  ]);
  t.match(lines({ localDetection: { type: 'BridgeInterface', name: 'cni0' } })[0], / interface cni0$/);
  t.match(lines({ localDetection: { type: 'InterfaceNamePrefix', prefix: 'veth' } })[0], / interface veth\*$/);
  t.end();
});

t.test('a packed table has a line for each list of endpoints, and unpacks to the text of the table', (t) => {
  const settings = planSettings();
  const me = node('me', ['192.168.0.2', '2001:db8::2']);
  const facts = nodeFacts(settings, me);
  const addresses = { IPv4: '10.0.0.', IPv6: 'fd00::' };
  for (const family of FAMILIES) {
    const tableOf = (count: number): ForwardingTable => {
      const table = new ForwardingTable(planNode(family, settings, me, []));
      const endpoints = Array.from({ length: count }, (_, index) => ({
        address: `${addresses[family]}${index + 1}`,
        node: index % 10 === 0 ? 'me' : 'other',
      }));
      const row = service('web', {
        clusterIPs: ['10.96.0.10', 'fd00:96::10'],
        externalTrafficPolicy: 'Local',
        type: 'NodePort',
        ports: [{ name: 'http', nodePort: 30080 }],
      });
      const slices = [slice('web', endpoints, { family, ports: [{ name: 'http', port: 8080 }] })];
      table.setService('default/web', planService(family, row, slices, facts, settings));
      return table;
    };
    const packed = (count: number): readonly string[] => [...packedParts(tableOf(count))].flat();
    for (const count of [0, 1, 200]) {
      const unpacked = packed(count).flatMap(unpackLine);
      t.same(unpacked.sort(), printTable(tableOf(count)), `${family}, ${count} endpoints`);
    }
    const isList = (line: string): boolean => / (?:local-)?endpoints? /.test(line);
    t.equal(printTable(tableOf(200)).filter(isList).length, 200 + 200 + 20);
    t.equal(packed(200).filter(isList).length, 3);
  }
  t.end();
});
