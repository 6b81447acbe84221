// How connections are shared among endpoints: weights and hashing by tables of slots (docs/balancing.md).
// needs: nft, conntrack, iptables
import t from 'tap';
import { inFull, usually } from '../support/extent.js';
import { endpoint, eventually, Lab, type Connection, type Outcome } from '../support/lab/lab.js';
import { labMode } from '../support/lab/mode.js';
import { endpointSlice, node, type Manifest } from '../support/lab/objects.js';
import { dualStack, FAMILY_VIEWS, IPV4, podEndpoint, type FamilyView } from '../support/lab/packet-table.js';
import { NODE_NAME, Proxy } from '../support/lab/proxy.js';
import type { ADDRESSES } from '../support/lab/topology.js';

const onlyNftables = labMode() === 'nftables' ? {} : { skip: 'tables of slots are of mode nftables' };

const withHashing = labMode().startsWith('iptables') ? { skip: 'mode iptables cannot hash' } : {};

/** How many connections show shares. Mode ipvs gives each endpoint its turn, so that few do. */
function enough(usual: number, all: number): number {
  return labMode().startsWith('ipvs') ? usual : usually(usual, all);
}

type Pod = keyof typeof ADDRESSES;
const PODS = ['pod-a', 'pod-b', 'remote-a', 'remote-b'] as const;

/** A Service with a slice for each endpoint and family, so that each has a weight of its own. */
function weighted(
  weights: Readonly<Partial<Record<Pod, string>>>,
  annotations: Readonly<Record<string, string>>,
): Manifest[] {
  const [service] = dualStack('web', {
    type: 'LoadBalancer',
    number: 41,
    loadBalancers: [3],
    ports: [{ port: 80, nodePort: 30080 }],
    endpoints: [],
    annotations,
  });
  const slices = FAMILY_VIEWS.flatMap((view) =>
    Object.entries(weights).map(([pod, weight]) =>
      endpointSlice('web', [podEndpoint(view, { pod: pod as Pod })], [{ port: 80 }], {
        name: `web-${pod}-${view.family.toLowerCase()}`,
        annotations: { 'pointsman.dev/weight': weight },
      }),
    ),
  );
  return service === undefined ? [] : [service, ...slices];
}

function equal(pods: readonly Pod[], annotations: Readonly<Record<string, string>>): Manifest[] {
  return weighted(Object.fromEntries(pods.map((pod) => [pod, '1'])), annotations);
}

function counted(outcomes: readonly Outcome[]): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const outcome of outcomes) {
    const name = 'name' in outcome ? outcome.name : outcome.error;
    counts.set(name, (counts.get(name) ?? 0) + outcome.count);
  }
  return counts;
}

t.test('connections follow the weights of endpoints', async (t) => {
  const lab = await Lab.start(t);
  await lab.serveAll(PODS, [[80, 'TCP']]);
  const weights = { 'pod-a': '1', 'pod-b': '2', 'remote-a': '5', 'remote-b': '8' } as const;
  const proxy = await Proxy.start(t, lab, { objects: weighted(weights, {}) });
  const connections = enough(500, 6000);
  // What slots say: of 251, by largest remainders.
  const slots = { 'pod-a': 16 / 251, 'pod-b': 31 / 251, 'remote-a': 78 / 251, 'remote-b': 126 / 251 };
  const exact = { 'pod-a': 1 / 16, 'pod-b': 2 / 16, 'remote-a': 5 / 16, 'remote-b': 8 / 16 };
  const expected = labMode() === 'nftables' ? slots : exact;
  const ways: readonly [string, (view: FamilyView) => string][] = [
    ['pod-c', (view) => endpoint(view.clusterIP(41), 80)],
    ['client', (view) => endpoint(view.loadBalancerIP(3), 80)],
    ['client', (view) => view.nodePort(30080)],
  ];
  for (const view of FAMILY_VIEWS) {
    for (const [from, to] of usually(ways.slice(0, 1), ways)) {
      const counts = counted(await lab.burst({ from, to: to(view) }, connections));
      let square = 0;
      for (const [name, part] of Object.entries(expected)) {
        const wanted = part * connections;
        square += ((counts.get(name) ?? 0) - wanted) ** 2 / wanted;
      }
      // With three degrees of freedom chance alone exceeds it once in a hundred million times.
      t.ok(square < 40, `${view.family} to ${to(view)}: χ² ${square.toFixed(1)}, ${JSON.stringify([...counts])}`);
      t.equal(
        [...counts.values()].reduce((sum, count) => sum + count, 0),
        connections,
      );
    }
  }
  await proxy.apply(weighted({ ...weights, 'remote-b': '0' }, {}));
  for (const view of FAMILY_VIEWS) {
    const counts = counted(await lab.burst({ from: 'pod-c', to: endpoint(view.clusterIP(41), 80) }, 200));
    t.same([...counts.keys()].sort(), ['pod-a', 'pod-b', 'remote-a'], 'weight 0: no new connections');
  }
});

async function openMany(lab: Lab, view: FamilyView, count: number): Promise<readonly Connection[]> {
  const to = endpoint(view.clusterIP(41), 80);
  return await Promise.all(Array.from({ length: count }, () => lab.open({ from: 'pod-c', to })));
}

/** Connections of which the next exchange goes on, and with the endpoint from before. */
async function lasting(connections: readonly Connection[], lab: Lab): Promise<number> {
  const names = async (): Promise<readonly string[]> => {
    const answers = await Promise.all(connections.map((connection) => connection.exchange()));
    return answers.map((answer) => ('name' in answer ? answer.name : ''));
  };
  const before = await names();
  for (const family of ['ipv4', 'ipv6']) await lab.output('node', ['conntrack', '-F', '-f', family]);
  const after = await names();
  return after.filter((name, index) => name !== '' && name === before[index]).length;
}

t.test('connections to hashed Services survive the loss of all conntrack state', onlyNftables, async (t) => {
  const lab = await Lab.start(t);
  await lab.serveAll(PODS, [[80, 'TCP']]);
  const count = usually(20, 100);
  const proxy = await Proxy.start(t, lab, { objects: equal(PODS, { 'pointsman.dev/balance': 'hash=address,port' }) });
  for (const balance of ['hash=address,port', 'hash=address', 'random']) {
    await proxy.apply(equal(PODS, { 'pointsman.dev/balance': balance }));
    for (const view of FAMILY_VIEWS) {
      const connections = await openMany(lab, view, count);
      const went = await lasting(connections, lab);
      for (const connection of connections) await connection.close();
      if (balance === 'random') t.ok(went < count, `${view.family}, by chance: ${went} of ${count}`);
      else t.equal(went, count, `${view.family}, ${balance}`);
    }
  }
});

t.test('a hashed client keeps its endpoint, also after a restart of the proxy', withHashing, async (t) => {
  const lab = await Lab.start(t);
  await lab.serveAll(PODS, [[80, 'TCP']]);
  const objects = equal(PODS, { 'pointsman.dev/balance': 'hash=address' });
  const proxy = await Proxy.start(t, lab, { objects });
  const chosen = async (view: FamilyView): Promise<string> => {
    const counts = counted(await lab.burst({ from: 'pod-c', to: endpoint(view.clusterIP(41), 80) }, 20));
    t.equal(counts.size, 1, [...counts.keys()].join());
    return [...counts.keys()].join();
  };
  for (const view of FAMILY_VIEWS) {
    await proxy.apply(objects);
    const before = await chosen(view);
    const other = PODS.filter((pod) => pod !== before);
    await proxy.apply(equal(other, { 'pointsman.dev/balance': 'hash=address' }));
    t.ok(other.includes((await chosen(view)) as (typeof PODS)[number]));
    await proxy.apply(objects);
    t.equal(await chosen(view), before, 'back with its endpoint');
    if (labMode() !== 'nftables') continue;
    await proxy.stop();
    await lab.output('node', ['nft', 'flush', 'ruleset']);
    proxy.launch();
    await proxy.ready();
    await eventually('the rules of the next process', async () => ((await chosen(view)) === before ? true : null));
  }
  if (labMode() !== 'nftables') return;
  const listed = await lab.output('node', ['nft', 'list', 'table', 'ip', 'kube-proxy']);
  t.match(
    listed,
    /dnat ip to jhash ip saddr mod 251 seed 0x706f696e \. ip daddr \. meta l4proto \. th dport map @endpoints-/,
  );
});

t.test('connections spill over to zones with free capacity', inFull, async (t) => {
  const lab = await Lab.start(t);
  await lab.serveAll([...PODS, 'pod-c'], [[80, 'TCP']]);
  // One endpoint in this zone, and four in others: of a third of all clients a fifth of all connections can stay.
  const zones: readonly (readonly [Pod, string])[] = [
    ['pod-a', 'a'],
    ['pod-b', 'b'],
    ['remote-a', 'b'],
    ['remote-b', 'c'],
    ['pod-c', 'c'],
  ];
  const [service] = dualStack('web', {
    number: 41,
    ports: [{ port: 80 }],
    endpoints: [],
    annotations: { 'pointsman.dev/zone': 'spill' },
  });
  const slices = FAMILY_VIEWS.map((view) =>
    endpointSlice(
      'web',
      zones.map(([pod, zone]) => ({ ...podEndpoint(view, { pod }), zone, zoneHints: [zone] })),
      [{ port: 80 }],
    ),
  );
  const self = node(NODE_NAME, { addresses: FAMILY_VIEWS.map((view) => view.address('node')), zone: 'a' });
  await Proxy.start(t, lab, { node: self, objects: [...(service === undefined ? [] : [service]), ...slices] });
  const connections = enough(500, 6000);
  for (const view of FAMILY_VIEWS) {
    const counts = counted(await lab.burst({ from: 'node', to: endpoint(view.clusterIP(41), 80) }, connections));
    // Zone a: 1/5 of 1/3; the others have 2/5 - 1/3 left, each as much.
    const expected = { 'pod-a': 0.6, 'pod-b': 0.1, 'remote-a': 0.1, 'remote-b': 0.1, 'pod-c': 0.1 };
    for (const [name, part] of Object.entries(expected)) {
      const found = (counts.get(name) ?? 0) / connections;
      // Six standard deviations, and half a slot.
      const off = 6 * Math.sqrt((part * (1 - part)) / connections) + 0.002;
      t.ok(Math.abs(found - part) < off, `${view.family} ${name}: ${found} of ${part}`);
    }
  }
});

/** Endpoints of a Service in zones, as many as numbers say: each a port of a pod with a slice of its own. */
async function zonedEndpoints(lab: Lab, counts: Readonly<Record<string, number>>): Promise<readonly Manifest[]> {
  const places = Object.entries(counts).flatMap(([zone, count]) => new Array<string>(count).fill(zone));
  const slices: Manifest[] = [];
  for (const [index, zone] of places.entries()) {
    const [pod, port] = [PODS[index % PODS.length] ?? 'pod-a', 8000 + index];
    for (const view of FAMILY_VIEWS) {
      await lab.serve(pod, endpoint(view.address(pod), port), 'TCP', `${zone}-${index}`);
      const name = `web-${index}-${view.family.toLowerCase()}`;
      slices.push(
        endpointSlice('web', [{ ...podEndpoint(view, { pod }), zone, zoneHints: [zone] }], [{ port }], { name }),
      );
    }
  }
  return slices;
}

// With equal clients in three zones: greatest load of an endpoint in terms of its fair one, and the part that stays in its zone.
for (const { counts, same, stays } of [
  { counts: { a: 1, b: 2, c: 7 }, same: 3.33, stays: 0.63 },
  { counts: { a: 4, b: 3, c: 3 }, same: 1.11, stays: 0.93 },
])
  t.test(
    `zone spill-over for clients in three zones with ${Object.values(counts).join(', ')} endpoints`,
    inFull,
    async (t) => {
      const lab = await Lab.start(t);
      const slices = await zonedEndpoints(lab, counts);
      const [service, preferring] = [{ 'pointsman.dev/zone': 'spill' }, {}].map((annotations) =>
        dualStack('web', { number: 41, ports: [{ port: 80 }], endpoints: [], annotations }),
      );
      const addresses = FAMILY_VIEWS.map((view) => view.address('node'));
      const inZone = (zone: string): Manifest => node(NODE_NAME, { addresses, zone });
      const spilling = [...(service ?? []), ...slices];
      const proxy = await Proxy.start(t, lab, { node: inZone('a'), objects: spilling });
      const connections = enough(600, 4000);
      /** What every endpoint gets and what stays, when clients of each zone connect as often. */
      const load = async (view: FamilyView, objects: readonly Manifest[]): Promise<readonly [number, number]> => {
        const all = new Map<string, number>();
        let kept = 0;
        for (const zone of Object.keys(counts)) {
          proxy.replaceNode(inZone(zone));
          await proxy.apply(objects);
          const outcomes = counted(
            await lab.burst({ from: 'pod-c', to: endpoint(view.clusterIP(41), 80) }, connections),
          );
          for (const [name, count] of outcomes) {
            all.set(name, (all.get(name) ?? 0) + count);
            if (name.startsWith(`${zone}-`)) kept += count;
          }
        }
        t.equal(all.size, 10, [...all.keys()].join());
        return [(Math.max(...all.values()) * 10) / (3 * connections), kept / (3 * connections)];
      };
      for (const view of FAMILY_VIEWS) {
        const [hottest, kept] = await load(view, spilling);
        // The hottest of ten by chance, six standard deviations, and slots: each endpoint has whole ones.
        const chance = 6 * Math.sqrt(0.9 / (0.1 * 3 * connections));
        t.ok(
          hottest < 1.05 + chance,
          `${view.family}: the hottest endpoint has ${hottest.toFixed(2)} of its fair load`,
        );
        t.ok(
          Math.abs(kept - stays) < 0.01 + 3 / Math.sqrt(3 * connections),
          `${view.family}: ${kept} stay of ${stays}`,
        );
      }
      const [hottest, kept] = await load(IPV4, [...(preferring ?? []), ...slices]);
      t.ok(Math.abs(hottest - same) < 0.6, `by hints alone ${hottest.toFixed(2)} of ${same}`);
      t.equal(kept, 1);
    },
  );

t.test('an endpoint that becomes ready gets its connections gradually', inFull, async (t) => {
  const lab = await Lab.start(t);
  await lab.serveAll(PODS, [[80, 'TCP']]);
  const asks = (pods: readonly Pod[]): Manifest[] => equal(pods, { 'pointsman.dev/slow-start': '20s' });
  const proxy = await Proxy.start(t, lab, { objects: asks(['pod-a', 'pod-b']) });
  const asked = usually(100, 400);
  const newest = async (view: FamilyView): Promise<number> => {
    const counts = counted(await lab.burst({ from: 'pod-c', to: endpoint(view.clusterIP(41), 80) }, asked));
    return (counts.get('remote-a') ?? 0) / asked;
  };
  const began = performance.now();
  await proxy.apply(asks(['pod-a', 'pod-b', 'remote-a']));
  const first = await Promise.all(FAMILY_VIEWS.map(newest));
  // On a machine that is busy for so long it has come further.
  if (performance.now() - began < 4000)
    for (const share of first) t.ok(share < 0.15, `a tenth of its weight: ${share}`);
  for (const view of FAMILY_VIEWS)
    await eventually(
      `its whole weight in ${view.family}`,
      async () => {
        if ((await newest(view)) > 0.24) return true;
        // The process gives it more weight each second.
        await new Promise((resolve) => setTimeout(resolve, usually(3000, 1000)));
        return null;
      },
      120_000,
    );
  t.ok(performance.now() - began > 8000, 'not at once');
});
