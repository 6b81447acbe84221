import t from 'tap';
import { service, slice } from '../../support/rows.js';
import { NODE_ROWS, Rig } from './rig.js';

/** How many packets to a frontend were refused or dropped, by the counters of rules. */

const ELSEWHERE = [{ address: '10.0.2.1', node: 'other' }];
const EMPTY = service('empty', { clusterIPs: ['10.96.0.1'], ports: [{ port: 80, nodePort: 30001 }] });
const LOCAL = service('local', {
  clusterIPs: ['10.96.0.2'],
  ports: [{ port: 80, nodePort: 30002 }],
  loadBalancer: ['192.0.2.2'],
  externalTrafficPolicy: 'Local',
});
const RANGES = service('ranges', {
  clusterIPs: ['10.96.0.3'],
  ports: [{ port: 80, protocol: 'UDP' }],
  loadBalancer: ['192.0.2.3'],
  sourceRanges: ['10.0.0.0/8', '172.16.0.0/12'],
});
const BOTH = service('both', {
  clusterIPs: ['10.96.0.4'],
  loadBalancer: ['192.0.2.4'],
  sourceRanges: ['10.0.0.0/8'],
  externalTrafficPolicy: 'Local',
});
const ROWS = [...NODE_ROWS, EMPTY, LOCAL, slice('local', ELSEWHERE), RANGES, BOTH, slice('both', ELSEWHERE)];

async function started(): Promise<Rig> {
  const rig = new Rig();
  rig.commit(ROWS);
  await rig.sync();
  return rig;
}

/** Packets that come to a rule of filter. */
function arrive({ kernel, family }: Rig, chain: string, rule: RegExp, packets: number): void {
  const found = (kernel.rules('filter', chain, family) ?? []).filter((each) => rule.test(each));
  const [only = '', ...others] = found;
  if (found.length === 0 || others.length > 0) throw new Error(`${chain} ${rule.source}: ${found.join('\n')}`);
  const key = `filter ${chain} ${only}`;
  kernel.packets.set(key, (kernel.packets.get(key) ?? 0) + packets);
}

async function refused(rig: Rig): Promise<readonly string[]> {
  const rows = await rig.dataplane.refused();
  return rows.map(({ frontend, verdict, reason, packets }) => `${frontend} ${verdict} ${reason} ${packets}`).sort();
}

t.test('each refusing rule counts for its frontend, and jumps do not count', async (t) => {
  const rig = await started();
  t.same(await refused(rig), []);
  arrive(rig, 'KUBE-SERVICES', /10\.96\.0\.1\/32/, 1);
  arrive(rig, 'KUBE-EXTERNAL-NP', /30001/, 2);
  arrive(rig, 'KUBE-EXTERNAL-NP', /30002/, 3);
  arrive(rig, 'KUBE-EXTERNAL-SERVICES', /192\.0\.2\.2/, 4);
  arrive(rig, 'KUBE-PROXY-FIREWALL', /-s 10\.0\.0\.0\/8 .*REJECT/, 5);
  arrive(rig, 'KUBE-PROXY-FIREWALL', /-s 172\.16\.0\.0\/12 .*REJECT/, 6);
  arrive(rig, 'KUBE-PROXY-FIREWALL', /^-d 192\.0\.2\.3.*DROP/, 7);
  arrive(rig, 'KUBE-PROXY-FIREWALL', /-s 10\.0\.0\.0\/8 .*192\.0\.2\.4.*DROP/, 8);
  arrive(rig, 'KUBE-PROXY-FIREWALL', /^-d 192\.0\.2\.4.*DROP/, 9);
  arrive(rig, 'KUBE-EXTERNAL-SERVICES', /-j KUBE-EXTERNAL-NP/, 100);
  arrive(rig, 'KUBE-FORWARD', /INVALID/, 100);
  const expected = [
    '10.96.0.1:80/TCP refused no-endpoints 1',
    '192.0.2.2:80/TCP dropped no-local-endpoints 4',
    '192.0.2.3:80/UDP dropped source-range 7',
    '192.0.2.3:80/UDP refused no-endpoints 11',
    '192.0.2.4:80/TCP dropped no-local-endpoints 8',
    '192.0.2.4:80/TCP dropped source-range 9',
    'nodeport:30001/TCP refused no-endpoints 2',
    'nodeport:30002/TCP dropped no-local-endpoints 3',
  ];
  t.same(await refused(rig), expected);
  t.same(await refused(rig), expected, 'a second look counts nothing twice');
});

t.test('refused packets are counted on when a chain is rewritten, or its counters are reset', async (t) => {
  const rig = await started();
  arrive(rig, 'KUBE-SERVICES', /10\.96\.0\.1\/32/, 5);
  t.same(await refused(rig), ['10.96.0.1:80/TCP refused no-endpoints 5']);
  rig.commit([service('another', { clusterIPs: ['10.96.0.9'] })]);
  await rig.sync();
  // More than before: only the chain itself tells that it is another.
  arrive(rig, 'KUBE-SERVICES', /10\.96\.0\.1\/32/, 6);
  t.same(await refused(rig), ['10.96.0.1:80/TCP refused no-endpoints 11']);
  rig.kernel.packets.clear();
  arrive(rig, 'KUBE-SERVICES', /10\.96\.0\.1\/32/, 2);
  t.same(await refused(rig), ['10.96.0.1:80/TCP refused no-endpoints 13']);
});

t.test('a frontend that no longer refuses keeps its count, and a removed one loses it', async (t) => {
  const rig = await started();
  arrive(rig, 'KUBE-SERVICES', /10\.96\.0\.1\/32/, 5);
  t.equal((await refused(rig)).length, 1);
  rig.commit([slice('empty', ELSEWHERE)]);
  await rig.sync();
  t.same(await refused(rig), ['10.96.0.1:80/TCP refused no-endpoints 5']);
  rig.commit([], [EMPTY]);
  await rig.sync();
  t.same(await refused(rig), []);
});

t.test('refused packets are counted by frontend in divided chains too', async (t) => {
  const rig = new Rig();
  const many = Array.from({ length: 100 }, (_, index) =>
    service(`web-${index}`, { clusterIPs: [`10.96.1.${index + 1}`] }),
  );
  rig.commit([...NODE_ROWS, ...many]);
  await rig.sync();
  // 10.96.1.18: the lowest nibble is 2, the other 1.
  arrive(rig, 'KUBE-SERVICES', /-j KUBE-SERVICES-2$/, 3);
  arrive(rig, 'KUBE-SERVICES-2', /-j KUBE-SERVICES-21$/, 3);
  arrive(rig, 'KUBE-SERVICES-21', /10\.96\.1\.18\/32/, 3);
  t.same(await refused(rig), ['10.96.1.18:80/TCP refused no-endpoints 3']);
});

t.test('a listing of counters that fails is an error, and the next one misses no packet', async (t) => {
  const rig = await started();
  arrive(rig, 'KUBE-SERVICES', /10\.96\.0\.1\/32/, 1);
  await refused(rig);
  rig.kernel.faults.push('fail-list');
  await t.rejects(rig.dataplane.refused());
  arrive(rig, 'KUBE-SERVICES', /10\.96\.0\.1\/32/, 1);
  t.same(await refused(rig), ['10.96.0.1:80/TCP refused no-endpoints 2']);
});
