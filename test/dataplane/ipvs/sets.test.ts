import t from 'tap';
import type { IpsetCreation } from '../../../src/native/contract.js';
import { service, slice } from '../../support/rows.js';
import { NODE_ROWS, Rig } from './rig.js';

/** Sets that were there before, as kube-proxy makes them. */

function hash(name: string, type: 'hash:ip,port' | 'hash:ip,port,ip', maxElements: number): IpsetCreation {
  return { name, type, family: 'IPv4', hashSize: 1024, maxElements, comments: false, counters: false, ports: null };
}

function addressSet(maxElements: number): IpsetCreation {
  return { ...hash('KUBE-IPVS-IPS', 'hash:ip,port', maxElements), type: 'hash:ip' };
}

function web(index: number) {
  return [
    service(`web-${index}`, { clusterIPs: [`10.96.0.${index}`] }),
    slice(`web-${index}`, [{ address: `10.${index}.0.1`, node: 'other' }]),
  ];
}

t.test('sets that only kube-proxy needs are removed, unless a rule of another owner uses them', async (t) => {
  for (const isUsed of [false, true]) {
    const rig = new Rig();
    const { ipset } = rig.kernel.addon;
    await ipset.ipsetApply([{ type: 'create', set: hash('KUBE-LOOP-BACK', 'hash:ip,port,ip', 65_536) }]);
    const rule = `-m set --match-set KUBE-LOOP-BACK dst,dst,src -j ${isUsed ? 'ACCEPT' : 'MASQUERADE'}`;
    // Of both families, but kube-proxy's chain of this one alone.
    const places = isUsed ? ['SITE', 'SITE'] : ['KUBE-POSTROUTING'];
    rig.kernel.programs.tamper('nat', (chains) => {
      const place = places.pop();
      if (place !== undefined) chains.set(place, [rule]);
    });
    rig.commit([...NODE_ROWS, ...web(1)]);
    await rig.sync();
    t.equal(ipset.sets.has('KUBE-LOOP-BACK'), isUsed);
  }
});

t.test('an element that a full set refuses is quarantined with its frontend, and others are served', async (t) => {
  const rig = new Rig();
  const { ipset, ipvs } = rig.kernel.addon;
  await ipset.ipsetApply([{ type: 'create', set: hash('KUBE-CLUSTER-IP', 'hash:ip,port', 2) }]);
  rig.commit([...NODE_ROWS, ...web(1), ...web(2), ...web(3)]);
  const { quarantined } = await rig.sync();
  t.same(
    quarantined.map(({ frontend, reason }) => [frontend, /ENOSPC/.test(reason)]),
    [['10.96.0.3:80/TCP', true]],
  );
  t.equal(ipvs.services.size, 3);
  t.equal(await rig.dataplane.audit(), false, 'which is no difference');
  rig.commit([], [{ kind: 'Service', namespace: 'default', name: 'web-1' }]);
  rig.now += 1000;
  t.same((await rig.sync()).quarantined, []);
  t.same(await rig.difference(), []);
});

t.test(
  'an address that its full set refuses is not put on the link, where its other ports would be open',
  async (t) => {
    const rig = new Rig();
    const { ipset, ipvs, route } = rig.kernel.addon;
    await ipset.ipsetApply([{ type: 'create', set: addressSet(1) }]);
    rig.commit([...NODE_ROWS, ...web(1), ...web(2)]);
    const { quarantined } = await rig.sync();
    t.same(
      quarantined.map(({ frontend }) => frontend),
      ['10.96.0.2:80/TCP'],
    );
    t.equal(ipvs.services.size, 1);
    t.equal(route.links.get('kube-ipvs0')?.size, 1);
    t.equal(ipset.sets.get('KUBE-CLUSTER-IP')?.elements.size, 1);
    t.equal(await rig.dataplane.audit(), false, 'which is no difference');
    rig.commit([], [{ kind: 'Service', namespace: 'default', name: 'web-1' }]);
    // What is added comes first.
    await rig.sync();
    rig.now += 1000;
    t.same((await rig.sync()).quarantined, []);
    t.same(await rig.difference(), []);
  },
);

t.test("sets shared with kube-proxy are made as it makes them; pointsman's own hold every endpoint", async (t) => {
  const rig = new Rig();
  rig.commit(NODE_ROWS);
  await rig.sync();
  const { sets } = rig.kernel.addon.ipset;
  const own = ['KUBE-NO-ENDPOINTS', 'KUBE-NO-LOCAL', 'KUBE-NO-LOCAL-EXTERNAL', 'KUBE-HAIRPIN', 'KUBE-SERVICE-NAMES'];
  for (const [name, { creation }] of sets) {
    const { comments, maxElements, ports } = creation;
    if (own.includes(name)) t.equal(maxElements, 1_048_576, name);
    else
      t.match({ comments, size: ports?.last ?? maxElements }, { comments: false, size: ports ? 65_535 : 65_536 }, name);
  }
  t.equal(sets.size, own.length + 16);
});

t.test('sets in use by rules are adopted, with comments or without', async (t) => {
  for (const comments of [false, true]) {
    const rig = new Rig();
    const { ipset } = rig.kernel.addon;
    const set = { ...hash('KUBE-CLUSTER-IP', 'hash:ip,port', 65_536), comments };
    const elements = Uint8Array.of(10, 96, 0, 1, 0, 80, 6, 10, 96, 0, 9, 0, 80, 6);
    await ipset.ipsetApply([
      { type: 'create', set },
      { type: 'add', set, elements, comments: comments ? ['a predecessor', 'a predecessor'] : null },
    ]);
    rig.kernel.programs.tamper('nat', (chains) => {
      chains.set('SITE', ['-m set --match-set KUBE-CLUSTER-IP dst,dst -j ACCEPT']);
    });
    rig.commit([...NODE_ROWS, ...web(1)]);
    const sent = await rig.during(() => rig.sync());
    t.same(
      sent.filter((line) => line.includes(' KUBE-CLUSTER-IP ')),
      ['ipset del KUBE-CLUSTER-IP 10.96.0.9,tcp:80'],
    );
    t.same(await rig.difference(), [], 'whose frontends are is known all the same');
    rig.restart();
    t.same(await rig.during(() => rig.sync()), []);
  }
});
