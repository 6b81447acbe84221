// Flows whose client keeps its source port: behaviour §4.6, E-40, E-42, E-73, and docs/differences.md.
// needs: conntrack
import t from 'tap';
import type { Protocol } from '../../src/base/protocol.js';
import { inFull, usually } from '../support/extent.js';
import { endpoint, eventually, Lab, patience, type Connection, type Traffic } from '../support/lab/lab.js';
import { labMode, traitsOf } from '../support/lab/mode.js';
import type { Manifest } from '../support/lab/objects.js';
import { dualStack, FAMILY_VIEWS, IPV4, type DualStackOptions, type FamilyView } from '../support/lab/packet-table.js';
import { Proxy } from '../support/lab/proxy.js';
import { PREFIXES } from '../support/lab/topology.js';

const PODS = ['pod-a', 'pod-b', 'remote-a', 'remote-b'] as const;
/** A client that keeps sending must have moved by then; it would keep a flow that nobody removes for ever. */
const MOVE_MS = Math.max(20_000, patience(5000));
/** How long a poll waits for an answer. */
const POLL_MS = patience(100);

/** Client and the way it takes to the Service. */
interface Way {
  readonly from: string;
  readonly to: (view: FamilyView) => string;
}

const WAYS: readonly Way[] = [
  { from: 'pod-c', to: (view) => endpoint(view.clusterIP(41), 53) },
  { from: 'node', to: (view) => endpoint(view.clusterIP(41), 53) },
  { from: 'client', to: (view) => endpoint(view.loadBalancerIP(3), 53) },
  { from: 'client', to: (view) => endpoint(view.externalIP(11), 53) },
  { from: 'client', to: (view) => view.nodePort(30053) },
  { from: 'pod-c', to: (view) => view.nodePort(30053) },
];
/** One from a pod, one from outside by each kind of frontend. */
const SOME_WAYS = WAYS.filter((_, index) => index % 2 === 0);

function dns(protocol: Protocol, options: Partial<DualStackOptions>, targetPort = 53, nodePort = 30053): Manifest[] {
  return dualStack('dns', {
    type: 'LoadBalancer',
    number: 41,
    loadBalancers: [3],
    externals: [11],
    ports: [{ protocol, port: 53, targetPort, nodePort }],
    endpoints: ['pod-a'],
    ...options,
  });
}

/** Asks once; the name of who answers, or what failed. */
async function who(connection: Connection, timeoutMs = patience(3000)): Promise<string> {
  const answer = await connection.exchange({ timeoutMs });
  return 'name' in answer ? `${answer.name} ${answer.at}` : answer.error;
}

/** Keeps asking until the answer fits; how long that took. */
async function until(connection: Connection, wanted: RegExp): Promise<number> {
  const started = Date.now();
  let last = '';
  await eventually(
    `an answer like ${String(wanted)}`,
    async () => {
      last = await who(connection, POLL_MS);
      return wanted.test(last) || null;
    },
    MOVE_MS * 4,
  ).catch((error: unknown) => {
    throw new Error(`${String(error)}; the last one: ${last}`);
  });
  return Date.now() - started;
}

interface Flow {
  readonly title: string;
  readonly connection: Connection;
}

async function flows(lab: Lab, protocol: Protocol, ways: readonly Way[] = WAYS): Promise<readonly Flow[]> {
  return Promise.all(
    FAMILY_VIEWS.flatMap((view) =>
      ways.map(async ({ from, to }) => {
        const traffic: Traffic = { from, to: to(view), protocol };
        return { title: `${from} to ${traffic.to}/${protocol}`, connection: await lab.open(traffic) };
      }),
    ),
  );
}

for (const protocol of ['UDP', 'SCTP'] as const) {
  t.test(`${protocol}: flows follow changes of the Service`, protocol === 'UDP' ? {} : inFull, async (t) => {
    const lab = await Lab.start(t);
    await lab.serveAll(PODS, [
      [53, protocol],
      [5353, protocol],
    ]);
    const proxy = await Proxy.start(t, lab);
    const moved = async (all: readonly Flow[], wanted: RegExp, what: string): Promise<void> => {
      await Promise.all(
        all.map(async ({ title, connection }) => {
          const taken = await until(connection, wanted);
          t.ok(taken < MOVE_MS, `${what}: ${title} after ${taken} ms`);
        }),
      );
    };

    await proxy.apply(dns(protocol, { endpoints: [] }));
    const all = await flows(lab, protocol, usually(SOME_WAYS, WAYS));
    for (const { title, connection } of all) t.equal(await who(connection), 'refused', `no endpoints: ${title}`);
    await proxy.apply(dns(protocol, {}));
    await moved(all, /^pod-a .*:53$/, 'first endpoint');
    await proxy.apply(dns(protocol, { endpoints: ['remote-a'] }));
    await moved(all, /^remote-a .*:53$/, 'replaced endpoint');
    await proxy.apply(dns(protocol, { endpoints: ['remote-a'] }, 5353));
    await moved(all, /^remote-a .*:5353$/, 'E-42 target port');
    await proxy.apply(dns(protocol, { endpoints: ['remote-a', 'pod-a'] }));
    await moved(all, /^(remote-a|pod-a) .*:53$/, 'target port back');

    // An existing flow stays where it is as long as its endpoint serves.
    const held = await Promise.all(all.map(({ connection }) => who(connection)));
    await proxy.apply(dns(protocol, { endpoints: PODS }));
    const serving = { ready: false, serving: true, terminating: true } as const;
    t.same(
      await Promise.all(all.map(({ connection }) => who(connection))),
      held,
      'no client moves when endpoints are added',
    );
    await proxy.apply(
      dns(protocol, { endpoints: PODS.map((pod) => (pod.endsWith('a') ? { pod, ...serving } : { pod })) }),
    );
    // What is asked by SCTP here are INITs alone.
    if (protocol === 'SCTP' && traitsOf(labMode()).movesInit) await moved(all, /^(remote-b|pod-b) /, 'INIT');
    else
      t.same(
        await Promise.all(all.map(({ connection }) => who(connection))),
        held,
        'nor when theirs is terminating but serves',
      );
    const stopped = { ready: false, serving: false, terminating: true } as const;
    await proxy.apply(
      dns(protocol, { endpoints: PODS.map((pod) => (pod.endsWith('a') ? { pod, ...stopped } : { pod })) }),
    );
    await moved(all, /^(remote-b|pod-b) /, 'endpoint no longer serving');

    await proxy.apply(dns(protocol, { endpoints: [] }));
    await Promise.all(
      all.map(async ({ title, connection }) => {
        await until(connection, /^refused$/);
        t.pass(`last endpoint gone: ${title} is refused`);
      }),
    );
    await proxy.apply(dns(protocol, {}));
    await moved(all, /^pod-a /, 'endpoint after refusals');

    await proxy.apply([]);
    await Promise.all(
      all.map(async ({ title, connection }) => {
        await until(connection, /^(timeout|refused|unreachable)$/);
        t.pass(`Service deleted: ${title}`);
      }),
    );
    await proxy.apply(dns(protocol, { endpoints: ['pod-b'] }));
    await moved(all, /^pod-b /, 'E-07 Service created again');
    for (const { connection } of all) await connection.close();
  });
}

t.test('flows follow changed addresses and ports of a Service', async (t) => {
  const lab = await Lab.start(t);
  await lab.serveAll(PODS, [[53, 'UDP']]);
  const proxy = await Proxy.start(t, lab, { objects: dns('UDP', {}) });
  const all = await flows(lab, 'UDP');
  for (const { connection } of all) await until(connection, /^pod-a /);
  const titled = (part: string): readonly Flow[] => all.filter(({ title }) => title.includes(part));
  const nodePorts = titled('30053');
  t.equal(nodePorts.length, 4);

  await proxy.apply(dns('UDP', {}, 53, 30054));
  for (const { title, connection } of nodePorts) {
    await until(connection, /^refused$/);
    t.pass(`node port changed: ${title} is refused`);
  }
  for (const { title, connection } of all.filter((flow) => !nodePorts.includes(flow))) {
    t.match(await who(connection), /^pod-a /, `undisturbed: ${title}`);
  }
  await proxy.apply(dns('UDP', { loadBalancers: [4] }));
  for (const { title, connection } of [...titled('192.0.2.3'), ...titled('2001:db8:192::3')]) {
    await until(connection, /^timeout$/);
    t.pass(`load balancer address removed: ${title}`);
  }
  for (const { connection } of nodePorts) await until(connection, /^pod-a /);
  await proxy.apply(dns('UDP', { loadBalancers: [3, 4], externals: [] }));
  for (const { connection } of titled('192.0.2.3')) await until(connection, /^pod-a /);
  for (const { connection } of titled('198.51.100.11')) await until(connection, /^timeout$/);
  await proxy.apply([
    ...dns('UDP', { loadBalancers: [3, 4], externals: [] }),
    ...dualStack('other', {
      type: 'ClusterIP',
      number: 42,
      externals: [11],
      ports: [{ protocol: 'UDP', port: 53 }],
      endpoints: ['pod-b'],
    }),
  ]);
  for (const { connection } of titled('198.51.100.11')) await until(connection, /^pod-b /);
  t.pass('an address given to another Service');
});

t.test('flows without a Service stay', async (t) => {
  const lab = await Lab.start(t);
  await lab.serveAll(PODS, [[53, 'UDP']]);
  // Other machines' ports with a node port's number, and with a Service's.
  await Promise.all([
    lab.serve('remote-b', '10.244.2.11:30053', 'UDP', 'stranger'),
    lab.serve('client', '203.0.113.2:30053', 'UDP', 'outsider'),
  ]);
  const proxy = await Proxy.start(t, lab, { objects: dns('UDP', { endpoints: ['pod-a'] }) });
  const strangers = [
    { from: 'pod-c', to: '10.244.2.11:30053' },
    { from: 'pod-c', to: '203.0.113.2:30053' },
    { from: 'node', to: '10.244.2.11:30053' },
    { from: 'pod-c', to: '10.244.2.11:53' },
  ];
  // Under emulation the test takes longer than the 30 s that the kernel remembers them.
  if (lab.isHere) await lab.sysctl('node', 'net/netfilter/nf_conntrack_udp_timeout', '3600');
  const connections = await Promise.all(strangers.map((traffic) => lab.open({ ...traffic, protocol: 'UDP' })));
  for (const connection of connections) t.match(await who(connection), /:(30053|53)$/);
  const ids = async (): Promise<readonly string[]> => {
    const lines = await lab.output('node', ['conntrack', '-L', '-p', 'udp', '-o', 'id']);
    return lines
      .split('\n')
      .filter((line) => strangers.some(({ to }) => line.includes(`dst=${to.split(':')[0] ?? ''} `)))
      .flatMap((line) => / id=(\d+)/.exec(line)?.[1] ?? [])
      .sort();
  };
  const before = await ids();
  t.equal(before.length, strangers.length);
  for (const endpoints of [['pod-b'], [], ['pod-a', 'pod-b'], ['pod-b']] as const) {
    await proxy.apply(dns('UDP', { endpoints }));
    await proxy.apply(dns('UDP', { endpoints }, 53, 30060));
  }
  await proxy.apply([]);
  await proxy.restart();
  t.same(await ids(), before, 'not one of their conntrack entries was replaced');
  for (const connection of connections) t.match(await who(connection), /:(30053|53)$/);
});

t.test('flows to 127.0.0.1 follow changes if node ports answer there, and are left alone otherwise', async (t) => {
  const lab = await Lab.start(t);
  await lab.serveAll(PODS, [[53, 'UDP']]);
  // Some process of the node that has the node port's number on loopback.
  await lab.serve('node', '127.0.0.1:30053', 'UDP', 'own');
  const proxy = await Proxy.start(t, lab, {
    objects: dns('UDP', {}),
    config: { nodePortAddresses: [PREFIXES.nodes.IPv4, '127.0.0.0/8'] },
  });
  const served = traitsOf(labMode()).servesLocalhost;
  if (served) await lab.routesLoopback();
  const answers = (name: string): RegExp => new RegExp(served ? `^${name}( |$)` : '^own ');
  const flow = await lab.open({ from: 'node', to: '127.0.0.1:30053', protocol: 'UDP' });
  const id = async (): Promise<string | undefined> => {
    const lines = await lab.output('node', ['conntrack', '-L', '-p', 'udp', '-o', 'id', '--orig-dst', '127.0.0.1']);
    return / id=(\d+)/.exec(lines)?.[1];
  };
  await until(flow, answers('pod-a'));
  const before = await id();
  t.type(before, 'string');
  for (const pod of ['remote-a', 'pod-b'] as const) {
    await proxy.apply(dns('UDP', { endpoints: [pod] }));
    t.ok((await until(flow, answers(pod))) < MOVE_MS, `endpoint replaced by ${pod}`);
  }
  await proxy.apply(dns('UDP', { endpoints: [] }));
  t.ok((await until(flow, answers('refused'))) < MOVE_MS, 'last endpoint gone');
  await proxy.apply([]);
  t.ok((await until(flow, /^own /)) < MOVE_MS, 'Service deleted: the process has its port again');
  // Where the flow follows it is another entry, which may have the id of one that is gone: the kernel makes it of the addresses and of where the entry lies.
  if (!served) t.equal(await id(), before, 'one and the same conntrack entry');
});

t.test('flows older than the rules, or from a time without a process, are corrected', async (t) => {
  const lab = await Lab.start(t);
  await lab.serveAll(PODS, [[53, 'UDP']]);
  const early = await lab.open({ from: 'pod-c', to: endpoint(IPV4.clusterIP(41), 53), protocol: 'UDP' });
  t.equal(await who(early, POLL_MS), 'timeout', 'it gets no answer: a black hole in conntrack');
  const proxy = await Proxy.start(t, lab, { objects: dns('UDP', {}) });
  t.ok((await until(early, /^pod-a /)) < MOVE_MS, 'CT-04: recovers with the first sync');
  const all = await flows(lab, 'UDP');
  for (const { connection } of all) await until(connection, /^pod-a /);
  await proxy.stop('SIGKILL');
  await proxy.write(dns('UDP', { endpoints: ['pod-b'] }));
  for (const { connection } of all) t.match(await who(connection), /^pod-a /, 'nothing changes without the process');
  proxy.launch();
  await proxy.ready();
  for (const { title, connection } of [...all, { title: 'early', connection: early }])
    t.ok((await until(connection, /^pod-b /)) < MOVE_MS, `endpoint replaced while the process was away: ${title}`);
  await proxy.stop('SIGKILL');
  await proxy.write([]);
  proxy.launch();
  await proxy.ready();
  for (const { title, connection } of all) {
    await until(connection, /^(timeout|refused|unreachable)$/);
    t.pass(`Service deleted while the process was away: ${title}`);
  }
});
