// No request is lost while endpoints come and go, and all endpoints get their share.
import t from 'tap';
import { inFull, underEmulation, usually } from '../support/extent.js';
import {
  endpoint,
  Lab,
  patience,
  type Closable,
  type TimedOutcome,
  type Traffic,
  type Watch,
} from '../support/lab/lab.js';
import { endpointSlice, service, type Endpoint, type Manifest } from '../support/lab/objects.js';
import { labMode, traitsOf } from '../support/lab/mode.js';
import { dualStack, FAMILY_VIEWS, IPV4, type PodEndpoint } from '../support/lab/packet-table.js';
import { Passage } from '../support/lab/passage.js';
import { NODE_NAME, Proxy } from '../support/lab/proxy.js';

const ADDRESSES = Array.from({ length: 20 }, (_, index) => `10.244.1.${101 + index}`);
const FRONTENDS = [
  { from: 'pod-c', to: endpoint(IPV4.clusterIP(41), 80) },
  { from: 'client', to: endpoint(IPV4.loadBalancerIP(3), 80) },
  { from: 'client', to: IPV4.nodePort(30001) },
] as const;

/** Endpoints in turn get even shares of few connections, drawn ones only of many. */
const TAKES_TURNS = traitsOf(labMode()).takesTurns;

/** What of requests, or Services, there are where machines are emulated: a fifth. */
function orFewer(lab: Lab, count: number): number {
  return lab.isHere ? count / 5 : count;
}

/** How many requests there have to be while something changes. */
function enough(lab: Lab): number {
  return underEmulation(30, orFewer(lab, usually(150, 500)));
}

/** How long each client waits between two requests, for each client that there is: where machines are emulated, requests without pause are all that they do. */
const PAUSE_MS = underEmulation(40, usually(1, 0));

/** A Service with this many of {@link ADDRESSES} behind it; the first and last of them change with `from`. */
function sized(count: number, from = 0, affinitySeconds?: number): Manifest[] {
  const chosen = ADDRESSES.map((_, index) => ADDRESSES[(index + from) % ADDRESSES.length] ?? '').slice(0, count);
  return [
    service('sized', {
      clusterIPs: [IPV4.clusterIP(41)],
      ports: [{ port: 80, nodePort: 30001 }],
      loadBalancerIPs: [IPV4.loadBalancerIP(3)],
      ...(affinitySeconds === undefined ? {} : { affinitySeconds }),
    }),
    endpointSlice(
      'sized',
      chosen.map((address): Endpoint => ({ address, node: NODE_NAME })),
      [{ port: 80 }],
    ),
  ];
}

async function manyEndpoints(t: Parameters<typeof Lab.start>[0]): Promise<Lab> {
  const lab = await Lab.start(t);
  for (const address of ADDRESSES) {
    await lab.addPodAddress('pod-a', address);
    await lab.serve('pod-a', `${address}:80`, 'TCP', address);
  }
  return lab;
}

function watchAll(lab: Lab, traffic: readonly Traffic[], workers = 2): Promise<readonly Watch[]> {
  const pauseMs = Math.max(1, PAUSE_MS * traffic.length * workers);
  return Promise.all(traffic.map((each) => lab.watch({ ...each, timeoutMs: patience(3000) }, workers, pauseMs)));
}

/** Everything that was under way has ended, and more has come after it. */
async function turned(watches: readonly Watch[]): Promise<void> {
  await Promise.all(watches.map((watch) => watch.turn()));
}

async function failures(watches: readonly Watch[]): Promise<{ total: number; failed: readonly TimedOutcome[] }> {
  const outcomes = (await Promise.all(watches.map((watch) => watch.stop()))).flat();
  return {
    total: outcomes.reduce((sum, { count }) => sum + count, 0),
    failed: outcomes.filter((outcome) => 'error' in outcome),
  };
}

t.test('every endpoint gets its share of connections', inFull, async (t) => {
  const lab = await manyEndpoints(t);
  const proxy = await Proxy.start(t, lab);
  for (const count of underEmulation([3], usually([5], [5, 9, 3]))) {
    await proxy.apply(sized(count));
    for (const { from, to } of usually(FRONTENDS.slice(0, 1), FRONTENDS)) {
      const share = TAKES_TURNS ? underEmulation(8, 20) : 400;
      const connections = share * count;
      const outcomes = await lab.burst({ from, to, timeoutMs: patience(3000) }, connections, 8);
      t.equal(outcomes.length, count, `${count} endpoints answer at ${to}`);
      for (const outcome of outcomes) {
        const name = 'name' in outcome ? outcome.name : outcome.error;
        t.ok(
          outcome.count > 0.75 * share && outcome.count < 1.25 * share,
          `${name} got ${outcome.count} of ${connections} at ${to}`,
        );
      }
    }
  }
});

/** How many endpoints a Service has, one change after the other. */
const SIZES = underEmulation([3, 20, 1], usually([2, 20, 5, 1], [2, 3, 5, 9, 4, 17, 20, 8, 2, 1, 6, 1]));

t.test('Services grow and shrink through the size classes under traffic', async (t) => {
  const lab = await manyEndpoints(t);
  const passage = await Passage.watch(lab, [30001]);
  for (const affinitySeconds of usually([3600], [undefined, 3600])) {
    await t.test(affinitySeconds === undefined ? 'plain' : 'with affinity', async (t) => {
      const proxy = await Proxy.start(t, lab, { objects: sized(1, 0, affinitySeconds) });
      await passage.counted();
      const watches = await watchAll(lab, FRONTENDS);
      let from = 0;
      for (const count of SIZES) {
        // The next list shares endpoints with the one before, at other places.
        from += count > 4 ? 0 : 1;
        await proxy.apply(sized(count, from, affinitySeconds));
        await turned(watches);
      }
      const { total, failed } = await failures(watches);
      t.ok(total > enough(lab), `${total} requests`);
      t.same(failed, [], 'none of them refused or lost');
      await passage.complete(t, total);
      const emptied = await watchAll(lab, FRONTENDS);
      const before = Date.now();
      await proxy.apply(sized(0, 0, affinitySeconds));
      await turned(emptied);
      await proxy.apply(sized(1, 0, affinitySeconds));
      const after = Date.now();
      await turned(emptied);
      const outcomes = (await Promise.all(emptied.map((watch) => watch.stop()))).flat();
      const errors = outcomes.filter((outcome) => 'error' in outcome);
      t.ok(errors.length > 0 && errors.every((outcome) => outcome.error === 'refused'), 'refused without endpoints');
      for (const { first, last } of errors) t.ok(first >= before && last <= after, 'and only then');
    });
  }
});

t.test('TCP connections keep their endpoint while it serves, through every change of the Service', async (t) => {
  const lab = await manyEndpoints(t);
  const proxy = await Proxy.start(t, lab, { objects: sized(1) });
  const connections = await Promise.all(FRONTENDS.map((traffic) => lab.open(traffic)));
  const [own] = ADDRESSES;
  const changes = [sized(3), sized(0), sized(2, 4), sized(1, 7, 3600), [], sized(20)];
  for (const objects of underEmulation(changes.slice(2), changes)) {
    await proxy.apply(objects);
    for (const connection of connections) t.match(await connection.exchange(), { name: own });
  }
  for (const connection of connections)
    t.match(await connection.exchange({ bytes: 30_000 }), { name: own, bytes: 30_000 }, 'E-64 large');
});

t.test('a rolling replacement of endpoints under traffic loses no connection', async (t) => {
  const lab = await Lab.start(t);
  const olds = ['pod-a', 'remote-a'] as const;
  const news = ['pod-b', 'remote-b'] as const;
  const serve = async (pod: (typeof olds)[number] | (typeof news)[number]): Promise<readonly Closable[]> =>
    Promise.all(
      FAMILY_VIEWS.flatMap((view) =>
        (['TCP', 'UDP'] as const).map((protocol) => lab.serve(pod, endpoint(view.address(pod), 80), protocol)),
      ),
    );
  const running = new Map<string, readonly Closable[]>();
  for (const pod of olds) running.set(pod, await serve(pod));
  const rolled = (endpoints: readonly PodEndpoint[]): Manifest[] => [
    ...dualStack('cluster', { number: 41, loadBalancers: [3], ports: transportPorts(30001), endpoints }),
    ...dualStack('local', {
      number: 42,
      loadBalancers: [4],
      externalTrafficPolicy: 'Local',
      ports: transportPorts(30002),
      endpoints,
    }),
  ];
  const proxy = await Proxy.start(t, lab, { objects: rolled(olds.map((pod) => ({ pod }))) });
  const traffic = FAMILY_VIEWS.flatMap((view) =>
    (['TCP', 'UDP'] as const).flatMap((protocol): Traffic[] => [
      { from: 'pod-c', to: endpoint(view.clusterIP(41), 80), protocol },
      { from: 'client', to: endpoint(view.loadBalancerIP(3), 80), protocol },
      { from: 'client', to: endpoint(view.loadBalancerIP(4), 80), protocol },
      { from: 'client', to: view.nodePort(30002), protocol },
      { from: 'node', to: view.nodePort(30001), protocol },
    ]),
  );
  const passage = await Passage.watch(lab, [30001, 30002]);
  const watches = await watchAll(lab, traffic, 1);
  const serving = { ready: false, serving: true, terminating: true } as const;
  const starting = { ready: false, serving: false, terminating: false } as const;
  // As a Deployment goes: every old pod leaves before its successor is ready, so that terminating ones are the last resort.
  let endpoints: readonly PodEndpoint[] = olds.map((pod) => ({ pod }));
  const step = async (next: readonly PodEndpoint[]): Promise<void> => {
    endpoints = next;
    await proxy.apply(rolled(endpoints));
  };
  await step(endpoints.map((each) => ({ ...each, ...serving })));
  for (const [index, pod] of news.entries()) {
    await step([...endpoints, { pod, ...starting }]);
    running.set(pod, await serve(pod));
    await step(endpoints.map((each) => (each.pod === pod ? { pod } : each)));
    const old = olds[index] ?? pod;
    await step(endpoints.filter((each) => each.pod !== old));
    // Requests in flight are answered before the server ends.
    await turned(watches);
    for (const server of running.get(old) ?? []) await server.close();
  }
  const { total, failed } = await failures(watches);
  t.ok(total > enough(lab), `${total} requests`);
  t.same(failed, [], 'none of them lost');
  await passage.complete(t, total);
});

t.test('many Services replace all their endpoints under traffic', inFull, async (t) => {
  const lab = await Lab.start(t);
  const olds = ['pod-a', 'remote-a'] as const;
  const news = ['pod-b', 'remote-b'] as const;
  const serve = (pods: readonly (typeof olds | typeof news)[number][]): Promise<readonly Closable[]> =>
    Promise.all(pods.flatMap((pod) => FAMILY_VIEWS.map((view) => lab.serve(pod, endpoint(view.address(pod), 80)))));
  const leaving = await serve(olds);
  await serve(news);
  /** How far each Service has come: on the old endpoints, on the old and some new, on the new. */
  const stages: readonly (readonly PodEndpoint['pod'][])[] = [olds, [...olds, news[0]], [olds[1], ...news], news];
  const services = underEmulation(10, orFewer(lab, 100));
  /** So many parts of them begin one after the other. */
  const parts = underEmulation(5, 10);
  const rolled = (stage: (index: number) => number): Manifest[] =>
    Array.from({ length: services }, (_, index) =>
      dualStack(`rolling-${index}`, {
        number: 100 + index,
        ports: [{ port: 80, ...(index % 4 === 0 ? { nodePort: 31000 + index } : {}) }],
        ...(index % 4 === 0 ? { type: 'NodePort' as const } : {}),
        ...(index % 5 === 0 ? { affinitySeconds: 600 } : {}),
        endpoints: stages[Math.max(0, Math.min(stages.length - 1, stage(index)))] ?? [],
      }),
    ).flat();
  const proxy = await Proxy.start(t, lab, { objects: rolled(() => 0) });
  const watched = [0, 25, 33, 50, 75, 99].map((percent) => Math.floor((percent * services) / 100));
  const traffic = FAMILY_VIEWS.flatMap((view) =>
    watched.flatMap((index): Traffic[] => [
      { from: 'pod-c', to: endpoint(view.clusterIP(100 + index), 80) },
      ...(index % 4 === 0 ? [{ from: 'client', to: view.nodePort(31000 + index) }] : []),
    ]),
  );
  const passage = await Passage.watch(
    lab,
    watched.map((index) => 31000 + index),
  );
  const watches = await watchAll(lab, traffic, 1);
  // Each part takes its next step while the next one begins, so that at every moment some are at each stage.
  for (let step = 1; step <= parts + 2; step++) {
    await proxy.write(rolled((index) => step - Math.floor((parts * index) / services)));
    await proxy.synced();
  }
  await proxy.apply(rolled(() => stages.length));
  await turned(watches);
  for (const server of leaving) await server.close();
  await turned(watches);
  const { total, failed } = await failures(watches);
  t.ok(total > enough(lab), `${total} requests`);
  t.same(failed, [], 'none that an endpoint could have served is refused or lost');
  await passage.complete(t, total);
});

function transportPorts(nodePort: number): { name: string; protocol: 'TCP' | 'UDP'; port: number; nodePort: number }[] {
  return (['TCP', 'UDP'] as const).map((protocol) => ({ name: protocol.toLowerCase(), protocol, port: 80, nodePort }));
}
