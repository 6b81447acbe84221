import t from 'tap';
import { Timeouts } from '../../../src/dataplane/ipvs/timeouts.js';
import { watchAddresses } from '../../../src/dataplane/ipvs/watch.js';
import type { Row } from '../../../src/state/rows.js';
import type { FakeDestination } from '../../support/fake-ipvs/virtual-servers.js';
import { address, service, slice } from '../../support/rows.js';
import { NODE_ROWS, Rig } from './rig.js';

/** What others do to what the kernel tells nobody of: found by looking, at little cost, and never where only syncs were at work. */

function web(index: number): Row {
  return service(`web-${index}`, { clusterIPs: [`10.96.0.${index}`] });
}

function endpoints(index: number, last: readonly number[]): Row {
  return slice(
    `web-${index}`,
    last.map((each) => ({ address: `10.${index}.0.${each}`, node: 'other' })),
  );
}

async function running(): Promise<Rig> {
  const rig = new Rig();
  rig.commit([...NODE_ROWS, ...[0, 1, 2].flatMap((index) => [web(index), endpoints(index, [1, 2])])]);
  await rig.sync();
  return rig;
}

/** Seen to be right: from here on nothing is listed without need. */
async function settled(rig: Rig): Promise<void> {
  while (await rig.dataplane.probe()) await rig.sync(true);
  await rig.dataplane.audit();
}

const DAMAGE: Readonly<Record<string, (rig: Rig) => unknown>> = {
  'all virtual services are removed': ({ kernel }) => {
    kernel.addon.ipvs.services.clear();
  },
  'a virtual service is removed': ({ kernel }) => {
    const { services } = kernel.addon.ipvs;
    services.delete([...services.keys()][0] ?? '');
  },
  'one is added at an address of ours': async ({ kernel }) => {
    const [first] = kernel.addon.ipvs.services.values();
    if (first === undefined) throw new Error('there is none');
    const { state } = first;
    await kernel.addon.ipvs.ipvsApply([
      { type: 'service', verb: 'new', service: { ...first.service, port: 4711 }, state },
    ]);
  },
  'one has another scheduler': ({ kernel }) => {
    for (const each of kernel.addon.ipvs.services.values()) each.state = { ...each.state, scheduler: 'lc' };
  },
  'one has another netmask': ({ kernel }) => {
    for (const each of kernel.addon.ipvs.services.values()) each.state = { ...each.state, prefixLength: 24 };
  },
  'destinations are removed': ({ kernel }) => {
    for (const { destinations } of kernel.addon.ipvs.services.values()) destinations.clear();
  },
  'a destination has another weight': ({ kernel }) => {
    for (const destination of someDestinations(kernel)) destination.weight = 7;
  },
  'a destination takes nothing new': ({ kernel }) => {
    for (const destination of someDestinations(kernel)) destination.weight = 0;
  },
  'a destination has another way of forwarding': ({ kernel }) => {
    for (const destination of someDestinations(kernel)) destination.method = 3;
  },
  'a destination has bounds': ({ kernel }) => {
    for (const destination of someDestinations(kernel)) destination.bounded = true;
  },
  'an element is removed': ({ kernel }) => kernel.addon.ipset.sets.get('KUBE-CLUSTER-IP')?.elements.clear(),
  'an element is replaced': ({ kernel }) => {
    const elements = kernel.addon.ipset.sets.get('KUBE-CLUSTER-IP')?.elements;
    elements?.delete([...elements.keys()][0] ?? '');
    elements?.set('\x0a\x60\x63\x63\0\x50\x06', '');
  },
  'a set that is empty is removed': ({ kernel }) => kernel.addon.ipset.sets.delete('KUBE-NO-LOCAL'),
  'an address is removed': ({ kernel }) => kernel.addon.route.links.get('kube-ipvs0')?.delete(address('10.96.0.1')),
  'an address is added': ({ kernel }) => kernel.addon.route.links.get('kube-ipvs0')?.add(address('203.0.113.7')),
  'the link is removed': ({ kernel }) => kernel.addon.route.links.delete('kube-ipvs0'),
  'the node has another address': ({ kernel }) => kernel.addon.route.links.get('eth0')?.add(address('192.168.9.9')),
  'rules are removed': ({ kernel }) => {
    kernel.programs.tamper('filter', (chains) => chains.get('KUBE-IPVS-FILTER')?.pop());
  },
};

function someDestinations({ addon }: Rig['kernel']): readonly FakeDestination[] {
  const [, second] = addon.ipvs.services.values();
  return [...(second?.destinations.values() ?? [])].slice(0, 1);
}

for (const [reported, harm] of Object.entries(DAMAGE)) {
  t.test(`${reported}: a probe and an audit find it, and nothing after the repair`, async (t) => {
    for (const look of ['probe', 'audit'] as const) {
      const rig = await running();
      await settled(rig);
      await harm(rig);
      t.equal(await rig.dataplane[look](), true, look);
      await rig.sync(true);
      t.equal(await rig.dataplane[look](), false);
      t.same(await rig.difference(), []);
    }
  });
}

t.test('externally changed timeouts are found', async (t) => {
  const rig = await running();
  const { ipvs } = rig.kernel.addon;
  const timeouts = new Timeouts(ipvs, { tcpTimeout: 60_000, tcpFinTimeout: 0, udpTimeout: 300 }, () => undefined);
  t.equal(await timeouts.differ(), false, 'not before they were set');
  await timeouts.keep();
  t.equal(ipvs.timeouts.udp, 1, 'none is so short that it would mean another');
  t.equal(await timeouts.differ(), false);
  await ipvs.ipvsSetTimeouts({ tcp: 900, tcpFin: 0, udp: 0 });
  t.equal(await timeouts.differ(), true);
});

t.test('unchanged ipvs objects are not listed again', async (t) => {
  const rig = await running();
  await settled(rig);
  const { ipvs } = rig.kernel.addon;
  const { listings, digests } = ipvs;
  t.equal(await rig.dataplane.probe(), false);
  t.equal(await rig.dataplane.audit(), false);
  t.equal(ipvs.listings, listings);
  t.ok(ipvs.digests > digests);
});

t.test('changes by syncs are no external changes, and are listed once', async (t) => {
  const rig = await running();
  await settled(rig);
  const { ipvs } = rig.kernel.addon;
  rig.commit([endpoints(1, [1, 3]), web(5), endpoints(5, [1])]);
  await rig.sync();
  const { listings } = ipvs;
  t.equal(await rig.dataplane.probe(), false);
  t.equal(ipvs.listings, listings + 2, 'services, and destinations of two of them');
  t.equal(await rig.dataplane.probe(), false);
  t.equal(ipvs.listings, listings + 2);
});

t.test('an object that was replaced externally by an equal one is found', async (t) => {
  const rig = await running();
  await settled(rig);
  rig.commit([endpoints(1, [1])]);
  await rig.sync();
  const key = [...rig.kernel.addon.ipvs.services.keys()].find((each) => each.includes('0a600001')) ?? '';
  const destinations = rig.kernel.addon.ipvs.services.get(key)?.destinations;
  destinations?.set('\x0a\x01\0\x02\0\x50', { weight: 1, connections: 0, method: 0 });
  t.equal(await rig.dataplane.probe(), true);
});

t.test('a sync does not wait for a probe, and its changes are no external ones', async (t) => {
  const rig = await running();
  await settled(rig);
  for (let round = 0; round < 20; round++) {
    rig.commit([endpoints(1, [1, 10 + round])]);
    const looks = [rig.dataplane.probe(), rig.dataplane.audit()];
    for (let turn = 0; turn < round; turn++) await Promise.resolve();
    await rig.sync();
    t.same(await Promise.all(looks), [false, false]);
  }
});

t.test('an audit compares by itself, after the probe in flight', async (t) => {
  const rig = await running();
  await settled(rig);
  const { ipvs } = rig.kernel.addon;
  const digests = ipvs.ipvsDestinationsDigests.bind(ipvs);
  for (const fails of [false, true]) {
    let go: () => void = () => undefined;
    const gate = new Promise<void>((resolve) => (go = resolve));
    const looked = new Promise<void>((resolve) => {
      ipvs.ipvsDestinationsDigests = async (some) => {
        const answer = await digests(some);
        ipvs.ipvsDestinationsDigests = digests;
        resolve();
        await gate;
        if (fails) throw new Error('ENOBUFS');
        return answer;
      };
    });
    const probe = rig.dataplane.probe();
    await looked;
    for (const destination of someDestinations(rig.kernel)) destination.weight = 7;
    const audits = [rig.dataplane.audit(), rig.dataplane.audit()];
    t.equal(await rig.dataplane.probe(), false, 'another probe is not needed');
    go();
    if (fails) await t.rejects(probe, { message: 'ENOBUFS' });
    else t.equal(await probe, false, 'it had looked before');
    t.same(await Promise.all(audits), [true, true]);
    await rig.sync(true);
    t.equal(await rig.dataplane.audit(), false);
  }
});

t.test('nothing is compared before the first sync, and after a failure', async (t) => {
  const rig = new Rig();
  t.equal(await rig.dataplane.audit(), false);
  rig.commit([...NODE_ROWS, web(0), endpoints(0, [1])]);
  rig.kernel.addon.mishaps.planned.push('lose-ack');
  await rig.sync().catch(() => undefined);
  t.equal(await rig.dataplane.probe(), false);
});

t.test('a probe takes a limited share of the time', async (t) => {
  const rig = await running();
  await settled(rig);
  const { ipvs } = rig.kernel.addon;
  const [services, destinations] = [ipvs.ipvsServicesDigest.bind(ipvs), ipvs.ipvsDestinationsDigests.bind(ipvs)];
  const asked = { services: 0, destinations: 0 };
  ipvs.ipvsServicesDigest = (family) => {
    asked.services++;
    rig.now += 40;
    return services(family);
  };
  ipvs.ipvsDestinationsDigests = (some) => {
    asked.destinations++;
    rig.now += 600;
    return destinations(some);
  };
  const end = rig.now + 600_000;
  for (; rig.now < end; rig.now += 1000) await rig.dataplane.probe();
  // 40 of 2000, and 640 of 64,000.
  t.ok(asked.services > 250 && asked.services <= 310, String(asked.services));
  t.ok(asked.destinations >= 9 && asked.destinations <= 11, String(asked.destinations));
});

t.test('changes of addresses are reported, except those of syncs and of pods', async (t) => {
  const rig = await running();
  const { route } = rig.kernel.addon;
  const reported: unknown[] = [];
  const end = watchAddresses(route, () => [rig.dataplane])((change) => reported.push(change));
  /** Tells of a link, and waits for whoever looked because of it. */
  const tell = async (link: string): Promise<void> => {
    route.notify({ links: [link], missed: false });
    route.notify({ links: [link], missed: false });
    for (let turn = 0; turn < 5; turn++) await new Promise((resolve) => setImmediate(resolve));
  };
  rig.commit([web(7), endpoints(7, [1])]);
  await rig.sync();
  await tell('kube-ipvs0');
  route.links.set('veth1', new Set([address('192.168.0.2')]));
  await tell('veth1');
  t.same(reported, []);
  const CHANGE = { families: ['IPv4'], missed: false, process: null };
  route.links.get('kube-ipvs0')?.delete(address('10.96.0.7'));
  await tell('kube-ipvs0');
  t.same(reported.splice(0).at(-1), CHANGE);
  await rig.sync(true);
  route.links.get('eth0')?.add(address('192.168.9.9'));
  await tell('eth0');
  t.same(reported.splice(0).at(-1), CHANGE);
  await rig.sync(true);
  rig.kernel.addon.mishaps.failListings = 1;
  await tell('eth0');
  t.same(reported.splice(0), [{ ...CHANGE, missed: true }], 'where it cannot be looked everything is');
  end();
  route.links.get('eth0')?.add(address('192.168.9.10'));
  await tell('eth0');
  t.same(reported, []);
});
