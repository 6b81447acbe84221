import t from 'tap';
import { LINK } from '../../../src/dataplane/ipvs/names.js';
import { removeLeftovers } from '../../../src/dataplane/removal/remove.js';
import { footprintsOn } from '../../../src/dataplane/modes.js';
import { service, slice } from '../../support/rows.js';
import { NODE_ROWS, Rig } from './rig.js';

/** What a process that starts anew, or a cleanup, knows to be a proxy's. */

const ELSEWHERE = Uint8Array.of(198, 18, 0, 1);

async function served(): Promise<Rig> {
  const rig = new Rig();
  rig.commit([
    ...NODE_ROWS,
    // The node itself has one of them.
    service('web', {
      clusterIPs: ['10.96.0.1'],
      externalIPs: ['192.0.2.9', '192.168.1.2'],
      ports: [{ port: 80, nodePort: 8080 }],
    }),
    slice('web', [{ address: '10.1.0.1', node: 'other' }]),
    service('sctp', { clusterIPs: ['10.96.0.2'], ports: [{ port: 9, protocol: 'SCTP', nodePort: 9009 }] }),
  ]);
  await rig.sync();
  const node = Uint8Array.of(192, 168, 0, 2);
  for (const [address, port] of [[node, 443] as const, [node, 30_999] as const, [ELSEWHERE, 31_000] as const])
    await others(rig, address, port);
  return rig;
}

/** Somebody else's virtual service. */
async function others({ kernel }: Rig, address: Uint8Array, port: number): Promise<void> {
  const service = { family: 'IPv4', protocol: 6, address, port, mark: 0 } as const;
  const state = { scheduler: 'rr', flags: 0, timeoutSeconds: 0, prefixLength: 32 };
  await kernel.addon.ipvs.ipvsApply([{ type: 'service', verb: 'new', service, state }]);
}

t.test('--cleanup finds every virtual service of kube-proxy, on addresses of the node too', async (t) => {
  for (const hasLink of [true, false]) {
    const { kernel } = await served();
    const { ipvs, ipset, route } = kernel.addon;
    if (!hasLink) route.links.delete(LINK);
    const report = await removeLeftovers(kernel.addon, ['IPv4', 'IPv6'], footprintsOn('linux'), null);
    t.same(report.problems, []);
    t.equal(report.freesSysctls, false, 'sysctls are for the virtual services of others too');
    t.same(report.kept, hasLink ? ['sysctls of ip_vs, which virtual services of others use'] : []);
    t.same(
      [...ipvs.services.values()].map(({ service }) => service.port),
      hasLink ? [443, 31_000] : [443, 30_999, 31_000],
      hasLink ? 'others stay' : "without the link a port of the usual range may be somebody else's",
    );
    t.equal(ipset.sets.size, 0);
    t.notOk(route.links.has(LINK));
  }
});

t.test('--cleanup removes the sets that only kube-proxy uses, of both families', async (t) => {
  const { kernel } = await served();
  const { ipset } = kernel.addon;
  for (const [name, family] of [
    ['KUBE-LOOP-BACK', 'IPv4'],
    ['KUBE-6-LOOP-BACK', 'IPv6'],
  ] as const) {
    const size = { hashSize: 1024, maxElements: 65_536, comments: false, counters: false, ports: null };
    await ipset.ipsetApply([{ type: 'create', set: { name, type: 'hash:ip,port,ip', family, ...size } }]);
  }
  t.same((await removeLeftovers(kernel.addon, ['IPv4', 'IPv6'], footprintsOn('linux'), null)).problems, []);
  t.same([...ipset.sets.keys()], []);
});

t.test('node ports are on addresses of the node: foreign virtual services elsewhere with the port stay', async (t) => {
  const rig = await served();
  await others(rig, ELSEWHERE, 8080);
  rig.restart();
  t.same((await rig.sync()).repairs, []);
  const at = [...rig.kernel.addon.ipvs.services.values()].filter(({ service }) => service.port === 8080);
  t.same(at.map(({ service }) => service.address?.join('.')).toSorted(), ['192.168.0.2', '192.168.1.2', '198.18.0.1']);
  t.same(await rig.difference(), []);
  t.equal(await rig.dataplane.audit(), false);
});

t.test('a Service removed while no process runs leaves nothing on addresses of the node', async (t) => {
  const rig = await served();
  rig.restart();
  rig.commit([], [{ kind: 'Service', namespace: 'default', name: 'web' }]);
  await rig.sync();
  const left = [...rig.kernel.addon.ipvs.services.values()].map(({ service }) => service);
  t.same(
    left.filter(({ port }) => port === 80 || port === 8080),
    [],
  );
  t.ok(
    left.some(({ port }) => port === 31_000),
    'what is elsewhere is not on a node port',
  );
  t.same(await rig.difference(), []);
});

t.test('--cleanup resets the sysctls of ipvs mode if it removed the last virtual service, and only then', async (t) => {
  const rig = new Rig();
  rig.commit([...NODE_ROWS, service('web'), slice('web', [{ address: '10.1.0.1', node: 'other' }])]);
  await rig.sync();
  const cleanup = () => removeLeftovers(rig.kernel.addon, ['IPv4', 'IPv6'], footprintsOn('linux'), null);
  const first = await cleanup();
  t.match(first, { freesSysctls: true, kept: [] });
  t.match(await cleanup(), { freesSysctls: false, kept: [] });
});
