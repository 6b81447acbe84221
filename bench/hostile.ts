import { writeFileSync } from 'node:fs';
import { crowdAround } from '../test/support/crowded-addresses.js';
import { endpointSlice, service, type Manifest } from '../test/support/lab/objects.js';
import { serviceAddress } from './cluster.js';

/** What users who may write Services can do to the connections of others, as in test/support/hostile: as many rules and elements as they get. */
function hostileObjects(): readonly Manifest[] {
  const ports = (count: number): readonly { readonly name: string; readonly port: number }[] =>
    Array.from({ length: count }, (_, index) => ({ name: `p${index}`, port: index + 1 }));
  const numbered = (count: number, network: string): readonly string[] =>
    Array.from({ length: count }, (_, index) => `${network}.${index >> 8}.${index & 255}`);
  const endpoints = [{ address: '10.255.255.1' }];
  const loadBalancerIPs = ['203.0.113.1'];
  const sourceRanges = numbered(5000, '198').map((start) => `${start}.0/24`);
  return [
    service('hostile-limit', { clusterIPs: ['10.110.0.1'], ports: ports(73), externalIPs: numbered(137, '203.1') }),
    endpointSlice('hostile-limit', endpoints, ports(73)),
    service('hostile-crowd', {
      clusterIPs: ['10.110.0.2'],
      ports: ports(3),
      externalIPs: crowdAround(serviceAddress(0), 8),
    }),
    endpointSlice('hostile-crowd', endpoints, ports(3)),
    service('hostile-ranges', { clusterIPs: ['10.110.0.3'], ports: ports(3), loadBalancerIPs, sourceRanges }),
    ...numbered(300, '10.111').flatMap((clusterIP, index) => [
      service(`hostile-sticky-${index}`, {
        clusterIPs: [clusterIP],
        ports: [{ port: 80 }],
        affinitySeconds: 100 + index,
      }),
      endpointSlice(`hostile-sticky-${index}`, endpoints, [{ port: 80 }]),
    ]),
  ];
}

export function writeHostile(file: string): void {
  writeFileSync(file, JSON.stringify({ apiVersion: 'v1', kind: 'List', items: hostileObjects() }));
}
