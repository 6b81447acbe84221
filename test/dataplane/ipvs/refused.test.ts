import t from 'tap';
import { MOST_COUNTED } from '../../../src/dataplane/ipvs/refusal-counters.js';
import { packVirtual } from '../../../src/dataplane/ipvs/frontends.js';
import { parseFrontendKey } from '../../../src/plan/frontend-key.js';
import { address, service, slice } from '../../support/rows.js';
import { NODE_ROWS, Rig } from './rig.js';

/** How many packets to a frontend were refused or dropped, by sets that rules count in where that is asked for. */

const SETS = ['KUBE-COUNT-NO-ENDPOINTS', 'KUBE-COUNT-NO-LOCAL', 'KUBE-COUNT-SOURCE-RANGES'] as const;
const [NO_ENDPOINTS, NO_LOCAL, SOURCE_RANGES] = SETS;
const EMPTY = service('empty', { clusterIPs: ['10.96.0.1'], ports: [{ port: 80, nodePort: 30001 }] });
const RANGES = service('ranges', {
  clusterIPs: ['10.96.0.3'],
  ports: [{ port: 80, protocol: 'UDP' }],
  loadBalancer: ['192.0.2.3'],
  sourceRanges: ['10.0.0.0/8'],
});
const LOCAL = service('local', {
  clusterIPs: ['10.96.0.2'],
  loadBalancer: ['192.0.2.2'],
  externalTrafficPolicy: 'Local',
});
const ELSEWHERE = [{ address: '10.0.2.1', node: 'other' }];
const ROWS = [...NODE_ROWS, EMPTY, RANGES, LOCAL, slice('local', ELSEWHERE)];

async function started(countsRefused = true): Promise<Rig> {
  const rig = new Rig();
  rig.countsRefused = countsRefused;
  rig.restart();
  await rig.dataplane.refused();
  rig.commit(ROWS);
  await rig.sync();
  return rig;
}

function arrive({ kernel }: Rig, set: string, frontend: string, packets = 1): void {
  const virtual = parseFrontendKey(frontend);
  const key = packVirtual({ ...virtual, address: virtual.address ?? address('192.168.0.2') });
  for (let each = 0; each < packets; each++) kernel.addon.ipset.count(set, key);
}

async function refused(rig: Rig): Promise<readonly string[]> {
  const rows = await rig.dataplane.refused();
  return rows.map(({ frontend, verdict, reason, packets }) => `${frontend} ${verdict} ${reason} ${packets}`).sort();
}

function setsOf({ kernel }: Rig): readonly string[] {
  return SETS.filter((name) => kernel.addon.ipset.sets.has(name));
}

t.test('refused packets are counted by set for each frontend of the plan', async (t) => {
  const rig = await started();
  t.same(await refused(rig), []);
  arrive(rig, NO_ENDPOINTS, '10.96.0.1:80/TCP', 2);
  arrive(rig, NO_ENDPOINTS, 'nodeport:30001/TCP', 3);
  arrive(rig, NO_ENDPOINTS, '10.96.0.9:80/TCP', 4);
  arrive(rig, NO_LOCAL, '10.96.0.1:80/TCP', 5);
  arrive(rig, SOURCE_RANGES, '192.0.2.3:80/UDP', 6);
  const outgoing = rig.kernel.programs.rules('filter', 'KUBE-IPVS-OUT-FILTER') ?? [];
  for (const rule of outgoing) rig.kernel.programs.packets.set(`filter KUBE-IPVS-OUT-FILTER ${rule}`, 7);
  t.same(await refused(rig), [
    '10.96.0.1:80/TCP dropped no-local-endpoints 5',
    '10.96.0.1:80/TCP refused no-endpoints 2',
    '192.0.2.3:80/UDP dropped source-range 6',
    '192.0.2.3:80/UDP dropped source-range 7',
    'nodeport:30001/TCP refused no-endpoints 3',
  ]);
});

t.test('refusals that an earlier process counted are not counted again', async (t) => {
  const rig = await started();
  arrive(rig, NO_ENDPOINTS, '10.96.0.1:80/TCP', 2);
  rig.restart();
  t.same(await refused(rig), []);
  t.same(await rig.during(() => rig.sync()), [], 'and the sets stay as they are');
  t.same(await refused(rig), []);
  arrive(rig, NO_ENDPOINTS, '10.96.0.1:80/TCP');
  t.same(await refused(rig), ['10.96.0.1:80/TCP refused no-endpoints 1']);
});

t.test('a half full set of refused packets is emptied, and counting goes on', async (t) => {
  const rig = await started();
  arrive(rig, NO_ENDPOINTS, '10.96.0.1:80/TCP', 2);
  for (let index = 0; index < MOST_COUNTED / 2; index++)
    arrive(rig, NO_ENDPOINTS, `172.16.${index >> 8}.${index & 0xff}:80/TCP`);
  t.same(await refused(rig), ['10.96.0.1:80/TCP refused no-endpoints 2']);
  t.same(await refused(rig), []);
  arrive(rig, NO_ENDPOINTS, '10.96.0.1:80/TCP');
  t.same(await refused(rig), ['10.96.0.1:80/TCP refused no-endpoints 1']);
});

t.test('counting of refused packets follows its flag, and changes nothing else', async (t) => {
  const rig = await started(false);
  t.same(setsOf(rig), []);
  const plain = rig.kernel.contents();
  rig.countsRefused = true;
  rig.restart();
  await rig.dataplane.refused();
  t.same((await rig.during(() => rig.sync())).toSorted(), [
    ...['FILTER', 'NO-ENDPOINTS', 'NO-LOCAL'].map((name) => `chain filter KUBE-IPVS-${name}`),
    ...['filter KUBE-SOURCE-RANGES-FIREWALL', 'nat KUBE-IPVS-NO-ENDPOINTS', 'nat KUBE-SERVICES'].map(
      (chain) => `chain ${chain}`,
    ),
    ...SETS.map((name) => `ipset create ${name} hash:ip,port family inet maxelem 65536 counters`),
  ]);
  t.same(setsOf(rig), SETS);
  t.same(await rig.difference(), []);
  t.equal(await rig.dataplane.audit(), false);
  arrive(rig, NO_ENDPOINTS, '10.96.0.1:80/TCP');
  t.equal(await rig.dataplane.audit(), false, 'what packets wrote is no difference');
  t.same((await rig.sync(true)).repairs, []);
  t.same(await refused(rig), ['10.96.0.1:80/TCP refused no-endpoints 1'], 'and no sync takes it away');
  rig.countsRefused = false;
  rig.restart();
  await rig.sync();
  t.same(rig.kernel.contents(), plain);
});

t.test('rules with counters have the same verdicts as rules without', async (t) => {
  const [plain, counting] = await Promise.all([started(false), started(true)]);
  const verdicts: string[] = [];
  for (const destination of ['10.96.0.1', '10.96.0.2', '10.96.0.9', '192.0.2.2', '192.0.2.3', '192.168.0.2'])
    for (const [source, inputInterface] of [
      ['10.0.1.9', 'veth1'],
      ['203.0.113.9', 'eth0'],
      [destination, null],
    ] as const)
      for (const [port, protocol] of [
        [80, 'TCP'],
        [80, 'UDP'],
        [30001, 'TCP'],
      ] as const) {
        const packet = { source: address(source), destination: address(destination), port, protocol, inputInterface };
        const verdict = plain.kernel.verdict(packet);
        t.same(counting.kernel.verdict(packet), verdict, JSON.stringify(packet));
        verdicts.push(verdict.type);
      }
  for (const type of ['drop', 'forward', 'reject']) t.ok(verdicts.includes(type), type);
});

t.test('without a set of their own, rules refuse without counting', async (t) => {
  const rig = new Rig();
  rig.countsRefused = true;
  rig.restart();
  const { ipset } = rig.kernel.addon;
  const other = { name: NO_LOCAL, type: 'hash:ip', family: 'IPv4', hashSize: 64, maxElements: 9 } as const;
  await ipset.ipsetApply([{ type: 'create', set: { ...other, comments: false, counters: false, ports: null } }]);
  rig.kernel.programs.tamper('filter', (chains) => {
    chains.set('SITE', [`-m set --match-set ${NO_LOCAL} dst -j DROP`]);
  });
  rig.commit(ROWS);
  t.same((await rig.sync()).problems, []);
  t.notOk(rig.kernel.programs.rules('filter', 'KUBE-IPVS-NO-LOCAL'));
  t.same(await rig.difference(), []);
  rig.kernel.programs.tamper('filter', (chains) => chains.delete('SITE'));
  await rig.sync(true);
  t.ok(rig.kernel.programs.rules('filter', 'KUBE-IPVS-NO-LOCAL'), 'until it can');
});

t.test('a frontend whose endpoint returns keeps its count of refused packets', async (t) => {
  const rig = await started();
  arrive(rig, NO_ENDPOINTS, '10.96.0.1:80/TCP', 2);
  rig.commit([slice('empty', ELSEWHERE)]);
  await rig.sync();
  t.same(await refused(rig), ['10.96.0.1:80/TCP refused no-endpoints 2']);
});
