// Session affinity: behaviour SV-22, SV-23, E-16, E-17, E-72.
import t from 'tap';
import { inFull, usually } from '../support/extent.js';
import { endpoint, eventually, Lab, patience } from '../support/lab/lab.js';
import { labMode, traitsOf } from '../support/lab/mode.js';
import type { Manifest } from '../support/lab/objects.js';
import { dualStack, FAMILY_VIEWS, IPV4, type PodEndpoint } from '../support/lab/packet-table.js';
import { Proxy } from '../support/lab/proxy.js';
import {
  PODS,
  LONG,
  CLIENTS,
  elsewhere,
  sticky,
  laboratory,
  enough,
  forgottenByIpvs,
  theOne,
  CLUSTER_IP,
} from './affinity-service.js';

const TRAITS = traitsOf(labMode());
const whereShared = TRAITS.sharesAffinity ? {} : { skip: 'each address remembers by itself' };

t.test('a client keeps its endpoint whichever frontend of the Service port it uses', async (t) => {
  const lab = await laboratory(t, ['TCP', 'UDP', 'SCTP']);
  await Proxy.start(t, lab, { objects: sticky(LONG) });
  const chosen = new Map<string, string>();
  for (let round = 0; round < 2; round++) {
    for (const view of FAMILY_VIEWS) {
      const targets = [
        endpoint(view.clusterIP(41), 80),
        endpoint(view.loadBalancerIP(3), 80),
        endpoint(view.externalIP(11), 80),
        view.nodePort(30001),
      ];
      // Everybody starts with another one.
      targets.push(...targets.splice(0, FAMILY_VIEWS.indexOf(view) + 1));
      for (const to of targets) {
        for (const protocol of ['TCP', 'UDP', 'SCTP'] as const) {
          for (const { from } of protocol === 'TCP' ? CLIENTS : CLIENTS) {
            const where = TRAITS.sharesAffinity ? `in family ${FAMILY_VIEWS.indexOf(view)}` : `at ${to}`;
            const client = `${from} by ${protocol} ${where}`;
            const name = await theOne(lab, { from, to, protocol }, round === 0 ? enough(6) : 2);
            t.match(name, /^[a-z-]+$/, `${client}: one endpoint at ${to}`);
            t.equal(name, chosen.get(client) ?? name, `${client}: the same as before at ${to}`);
            chosen.set(client, name);
          }
        }
      }
    }
  }
  t.ok(new Set(chosen.values()).size >= 3, 'clients are spread among endpoints');
  if (labMode() !== 'nftables') return;
  const listing = await lab.output('node', ['nft', '-j', 'list', 'ruleset']);
  const { nftables } = JSON.parse(listing) as { readonly nftables: readonly unknown[] };
  t.ok(nftables.length > 100, 'nft lists it as JSON');
  t.match(await lab.ruleset(), /remember-clients-3600-10\.96\.0\.41-tcp-80/, 'and as text');
});

const LEAVING = ['pod-a', 'remote-a', 'pod-b', 'remote-b'] as const;

t.test('clients whose endpoint is removed move at once, others keep theirs', async (t) => {
  const lab = await laboratory(t);
  const proxy = await Proxy.start(t, lab, { objects: sticky(LONG) });
  const targets = [CLUSTER_IP, endpoint(IPV4.loadBalancerIP(3), 80), IPV4.nodePort(30001)];
  const clients = CLIENTS.flatMap(({ from }) => targets.map((to) => ({ from, to })));
  const before = await Promise.all(clients.map((client) => theOne(lab, client)));
  let endpoints: readonly (typeof PODS)[number][] = PODS;
  let expected = before;
  // One endpoint after the other goes: a client moves exactly when its own goes.
  for (const gone of usually(LEAVING.slice(0, 2), LEAVING)) {
    endpoints = endpoints.filter((name) => name !== gone);
    await proxy.apply(sticky(LONG, { endpoints }));
    const after = await Promise.all(clients.map((client) => theOne(lab, client)));
    for (const [index, client] of clients.entries()) {
      const title = `${client.from} to ${client.to} after ${gone} went`;
      const name = after[index] ?? '';
      if (expected[index] === gone)
        t.ok((endpoints as readonly string[]).includes(name), `${title}: moved to one (${name})`);
      else t.equal(name, expected[index], `${title}: stayed`);
    }
    expected = after;
  }
  await proxy.apply(sticky(LONG));
  const after = await Promise.all(clients.map((client) => theOne(lab, client)));
  t.same(after, expected, 'no client moves when endpoints are added');
});

t.test('affinity: removal of an endpoint under traffic', inFull, async (t) => {
  const lab = await laboratory(t);
  const proxy = await Proxy.start(t, lab, { objects: sticky(LONG) });
  // No pod that is an endpoint: a client that is remembered as its own endpoint has no way out of hairpin while that one is removed.
  const clients = [...CLIENTS.filter(({ from }) => from !== 'pod-b'), { from: 'remote-node' }];
  const watches = await Promise.all(
    clients.map(({ from }) => lab.watch({ from, to: CLUSTER_IP, timeoutMs: patience(3000) }, 2, 2)),
  );
  let endpoints: readonly (typeof PODS)[number][] = PODS;
  for (const gone of PODS.slice(0, 4)) {
    endpoints = endpoints.filter((name) => name !== gone);
    await proxy.apply(sticky(LONG, { endpoints }));
    for (const { from } of clients) {
      const name = await theOne(lab, { from, to: CLUSTER_IP });
      t.ok((endpoints as readonly string[]).includes(name), `${from} after ${gone} went: ${name}`);
    }
  }
  for (const watch of watches) {
    const outcomes = await watch.stop();
    t.same(
      outcomes.filter((outcome) => 'error' in outcome),
      [],
      'no request is lost while clients move',
    );
  }
});

t.test('affinity: expiry and refresh', async (t) => {
  const lab = await laboratory(t);
  // Longer than the ten seconds that ip_vs remembers a connection which was reset: it looks again a minute later where it has some when the time is over.
  const seconds = patience(3000) / 1000;
  await Proxy.start(t, lab, { objects: sticky(seconds) });
  const clients = CLIENTS.flatMap(({ from }) =>
    [CLUSTER_IP, endpoint(IPV4.loadBalancerIP(3), 80), IPV4.nodePort(30001)].map((to) => ({ from, to })),
  );
  const ask = (count: number): Promise<string[]> => Promise.all(clients.map((client) => theOne(lab, client, count)));
  /** Whether nothing that was asked for at this time or later has had the time to expire: a busy machine may stretch every step. */
  const isFresh = (time: number): boolean => Date.now() - time < seconds * 1000;
  const askAtOnce = (): Promise<readonly string[]> =>
    eventually('answers before the first of them expires', async () => {
      const started = Date.now();
      const names = await ask(enough(5, 2));
      return isFresh(started) ? names : null;
    });
  let kept = await askAtOnce();
  // Requests closer together than the timeout, over a span longer than it: each starts the time anew.
  let since = Date.now();
  let last = since;
  await eventually('a span of requests that came in time', async () => {
    await new Promise((resolve) => setTimeout(resolve, patience(250)));
    const started = Date.now();
    const names = await ask(1);
    if (isFresh(last)) t.same(names, kept, 'refreshed by every connection');
    else [kept, since] = [names, started];
    last = started;
    return last - since > 2 * seconds * 1000 || null;
  });
  for (const name of kept) t.match(name, /^[a-z-]+$/);
  // Four clients that choose among five find the same once in 625 times.
  await eventually('E-17: after the timeout clients choose anew', async () => {
    if (TRAITS.remembersConnected) await forgottenByIpvs(lab);
    else await new Promise((resolve) => setTimeout(resolve, seconds * 1000 + 200));
    const later = await askAtOnce();
    for (const name of later) t.match(name, /^[a-z-]+$/, 'one endpoint again');
    return later.join() !== kept.join() || null;
  });
});

t.test('affinity is switched off, on, and to another timeout', inFull, async (t) => {
  const lab = await laboratory(t);
  const proxy = await Proxy.start(t, lab, { objects: sticky(LONG) });
  const targets = [CLUSTER_IP, endpoint(IPV4.loadBalancerIP(3), 80), IPV4.nodePort(30001)];
  const answers = (count = enough(40, 4)) =>
    Promise.all(targets.map((to) => theOne(lab, { from: 'client', to }, count)));
  for (const name of await answers()) t.match(name, /^[a-z-]+$/, 'on');
  await proxy.apply(sticky(null));
  for (const name of await answers()) t.match(name, /\+/, 'off: more than one endpoint');
  await proxy.apply(sticky(LONG));
  const on = await answers();
  for (const name of on) t.match(name, /^[a-z-]+$/, 'on again');
  await proxy.apply(sticky(LONG + 1));
  const other = await answers();
  for (const name of other) t.match(name, /^[a-z-]+$/, 'another timeout');
  t.same(await answers(), other);
  await proxy.apply(sticky(null));
  for (const name of await answers()) t.match(name, /\+/, 'off again');
});

t.test('affinity with policy Local, host network endpoints and terminating ones', inFull, async (t) => {
  const lab = await laboratory(t);
  const loadBalancer = endpoint(IPV4.loadBalancerIP(3), 80);
  const local = (endpoints: readonly (PodEndpoint | (typeof PODS)[number])[]) =>
    sticky(LONG, { externalTrafficPolicy: 'Local', endpoints });
  const proxy = await Proxy.start(t, lab, { objects: local(PODS) });
  const name = await theOne(lab, { from: 'client', to: loadBalancer });
  t.match(name, /^pod-[abc]$/, 'a local endpoint, always the same');
  t.equal(await theOne(lab, { from: 'client', to: loadBalancer }), name);
  const inside = await theOne(lab, { from: 'pod-b', to: loadBalancer });
  t.match(inside, /^[a-z-]+$/, 'a pod uses any endpoint, always the same');
  const others = PODS.filter((pod) => pod !== name);
  await proxy.apply(local(others));
  const moved = await theOne(lab, { from: 'client', to: loadBalancer });
  t.match(moved, /^pod-[abc]$/);
  t.not(moved, name, 'moved when its endpoint went');
  await proxy.apply(local(others.filter((pod) => !pod.startsWith('pod'))));
  t.equal(
    await theOne(lab, { from: 'client', to: loadBalancer, timeoutMs: 250 }, 2),
    'timeout',
    'VD-09: remote endpoints only',
  );
  await proxy.apply(local(PODS));
  t.match(await theOne(lab, { from: 'client', to: loadBalancer }), /^pod-[abc]$/, 'local endpoints come back');

  const draining = await theOne(lab, { from: 'client', to: loadBalancer });
  await proxy.apply(
    local(PODS.map((pod) => (pod === draining ? { pod, ready: false, serving: true, terminating: true } : { pod }))),
  );
  t.not(
    await theOne(lab, { from: 'client', to: loadBalancer }),
    draining,
    'SV-23: a terminating endpoint is left while others are ready',
  );

  // Connections to the node itself never see postrouting.
  await proxy.apply(
    sticky(LONG, { endpoints: [{ pod: 'node' }, { pod: 'pod-a' }, { pod: 'pod-b' }, { pod: 'remote-a' }] }),
  );
  for (const { from } of CLIENTS) {
    for (const to of [CLUSTER_IP, loadBalancer, IPV4.nodePort(30001)]) {
      t.match(
        await theOne(lab, { from, to }, enough(30)),
        /^[a-z-]+$/,
        `host network among the endpoints: ${from} to ${to}`,
      );
    }
  }
  await proxy.apply(sticky(LONG, { endpoints: [{ pod: 'node' }] }));
  t.equal(await theOne(lab, { from: 'client', to: CLUSTER_IP }), 'node');
});

/** Local pods are the only ones in one of two lists: which list a connection uses is a matter of the policies and of where it comes from. */
const POLICIES = [
  { externalTrafficPolicy: 'Local' },
  { internalTrafficPolicy: 'Local' },
  { internalTrafficPolicy: 'Local', externalTrafficPolicy: 'Local' },
] as const;
const KINDS = ['LoadBalancer', 'NodePort'] as const;
const INSIDE: readonly string[] = ['pod-b', 'node'];

t.test(
  'a client keeps its endpoint across frontends with different endpoint lists',
  { ...whereShared, ...inFull },
  async (t) => {
    const lab = await laboratory(t);
    const services = POLICIES.flatMap((policies) => KINDS.map((type) => ({ policies, type })));
    const named = (index: number): { readonly number: number; readonly nodePort: number } => ({
      number: 50 + index,
      nodePort: 30_050 + index,
    });
    const objects = services.flatMap(({ policies, type }, index) => {
      const { number, nodePort } = named(index);
      const alike = { ...policies, type, number, affinitySeconds: LONG, endpoints: PODS };
      const addresses = type === 'LoadBalancer' ? { loadBalancers: [number], externals: [number] } : {};
      return dualStack(`lists-${index}`, { ...alike, ...addresses, ports: [{ port: 80, nodePort }] });
    });
    await Proxy.start(t, lab, { objects });
    const clients = [...CLIENTS.map(({ from }) => from), 'remote-node'];
    let kept = 0;
    let moved = 0;
    for (const [index, { policies, type }] of services.entries()) {
      const { number, nodePort } = named(index);
      for (const [turn, from] of clients.entries()) {
        for (const view of FAMILY_VIEWS) {
          const internal = { to: endpoint(view.clusterIP(number), 80), local: 'internalTrafficPolicy' in policies };
          const local = 'externalTrafficPolicy' in policies && !INSIDE.includes(from);
          const addresses = type === 'LoadBalancer' ? [view.loadBalancerIP(number), view.externalIP(number)] : [];
          const targets = [...addresses.map((address) => endpoint(address, 80)), view.nodePort(nodePort)];
          const external = targets.map((to) => ({ to, local }));
          // Some come by the cluster IP first, some last.
          const way = (turn + FAMILY_VIEWS.indexOf(view)) % 2 === 0 ? [internal, ...external] : [...external, internal];
          const known = new Set<string>();
          for (const { to, local } of [...way, ...way.slice(0, 1)]) {
            const name = await theOne(lab, { from, to }, 3);
            const title = `${JSON.stringify(policies)} ${type}: ${from} at ${to}, known to ${[...known].join()}`;
            const may = [...known].filter((pod) => !local || pod.startsWith('pod-'));
            if (may.length > 0) t.ok(may.includes(name), `${title}, stays: ${name}`);
            else t.match(name, local ? /^pod-[abc]$/ : /^(pod|remote)-[abc]$/, title);
            if (may.length > 0) kept++;
            else if (known.size > 0) moved++;
            known.add(name);
          }
        }
      }
    }
    t.ok(kept > moved && moved > 0, 'some were at an endpoint that the next frontend did not have');
    if (labMode() !== 'nftables') return;
    const rules = /ip6 daddr \. th dport \. .* != @sticky-local-endpoints jump remember-clients-3600-/;
    t.match(await lab.ruleset(), rules, 'nft lists it');
  },
);

t.test('SV-23: an affinity endpoint in one list only is kept for that list', whereShared, async (t) => {
  const lab = await laboratory(t);
  const objects = (endpoints: Parameters<typeof sticky>[1]): Manifest[] =>
    sticky(LONG, { ports: [{ port: 80, nodePort: 30001 }], externalTrafficPolicy: 'Local', ...endpoints });
  const proxy = await Proxy.start(t, lab, { objects: objects({ endpoints: ['pod-a', 'pod-b', 'pod-c'] }) });
  const frontends = FAMILY_VIEWS.map((view) => ({
    internal: { from: 'client', to: endpoint(view.clusterIP(41), 80) },
    external: [endpoint(view.loadBalancerIP(3), 80), view.nodePort(30001)].map((to) => ({ from: 'client', to })),
  }));
  for (const { internal, external } of frontends) {
    const name = await theOne(lab, internal, 3);
    for (const traffic of external) t.equal(await theOne(lab, traffic, 3), name, `${name} is in both lists`);
    // Where its pod is has no say in where packets go, but the slices have in which list it is.
    const others = (['pod-a', 'pod-b', 'pod-c'] as const).filter((pod) => pod !== name);
    await proxy.apply(objects({ endpoints: ['pod-a', 'pod-b', 'pod-c'] }).map((manifest) => elsewhere(manifest, name)));
    for (const traffic of external) {
      const local = await theOne(lab, traffic, 3);
      t.ok((others as readonly string[]).includes(local), `${name} is not local any more: ${local}`);
    }
    await proxy.apply(objects({ endpoints: ['pod-a', 'pod-b', 'pod-c'] }));
  }
  await proxy.apply(
    objects({ endpoints: [{ pod: 'pod-a', ready: false, serving: true, terminating: true }, 'remote-a', 'remote-b'] }),
  );
  for (const { internal, external } of frontends) {
    for (const traffic of external) t.equal(await theOne(lab, traffic, 3), 'pod-a', 'all that is here');
    t.match(await theOne(lab, internal, 6), /^remote-[ab]$/, 'but there are ready ones elsewhere');
    for (const traffic of external) t.equal(await theOne(lab, traffic, 3), 'pod-a', 'and it is kept');
  }
});

t.test('E-72: a switch of the external policy under affinity', inFull, async (t) => {
  const lab = await laboratory(t);
  const loadBalancer = endpoint(IPV4.loadBalancerIP(3), 80);
  const senders = [{ from: 'client' }, { from: 'blocked' }, { from: 'remote-node' }] as const;
  const targets = [loadBalancer, IPV4.nodePort(30001), endpoint(IPV4.externalIP(11), 80)];
  const clients = senders.flatMap(({ from }) => targets.map((to) => ({ from, to })));
  const names = (): Promise<readonly string[]> => Promise.all(clients.map((client) => theOne(lab, client, enough(8))));
  const proxy = await Proxy.start(t, lab, { objects: sticky(LONG, { endpoints: ['remote-a', 'remote-b'] }) });
  const remote = await names();
  await proxy.apply(sticky(LONG));
  t.same(await names(), remote, 'all are with remote endpoints');
  await proxy.apply(sticky(LONG, { externalTrafficPolicy: 'Local' }));
  const local = await names();
  for (const [index, name] of local.entries()) t.match(name, /^pod-[abc]$/, `Local: ${JSON.stringify(clients[index])}`);
  await proxy.apply(sticky(LONG));
  for (const name of await names()) t.match(name, /^[a-z-]+$/, 'Cluster: one endpoint');
  const restarted = await names();
  await proxy.restart();
  t.same(await names(), restarted, 'clients are remembered over a restart');
  await proxy.stop('SIGKILL');
  const [gone = ''] = restarted;
  await proxy.write(sticky(LONG, { endpoints: PODS.filter((pod) => pod !== gone) }));
  proxy.launch();
  await proxy.ready();
  for (const [index, name] of (await names()).entries()) {
    if (restarted[index] === gone) t.not(name, gone, 'moved: its endpoint went while the process was away');
    else t.equal(name, restarted[index], 'stayed');
  }
});

t.test('UDP clients that keep their source port move as well', inFull, async (t) => {
  const lab = await laboratory(t, ['UDP']);
  const proxy = await Proxy.start(t, lab, { objects: sticky(LONG) });
  const targets = [CLUSTER_IP, endpoint(IPV4.loadBalancerIP(3), 80), IPV4.nodePort(30001)];
  const connections = await Promise.all(
    CLIENTS.flatMap(({ from }) => targets.map((to) => lab.open({ from, to, protocol: 'UDP' }))),
  );
  const names = (): Promise<readonly string[]> =>
    Promise.all(
      connections.map(async (connection) => {
        const answer = await connection.exchange();
        return 'name' in answer ? answer.name : answer.error;
      }),
    );
  let before = await names();
  let endpoints: readonly (typeof PODS)[number][] = PODS;
  for (const gone of ['pod-a', 'remote-b', 'pod-c'] as const) {
    endpoints = endpoints.filter((name) => name !== gone);
    await proxy.apply(sticky(LONG, { endpoints }));
    const after = await names();
    for (const [index, name] of after.entries()) {
      if (before[index] === gone)
        t.ok((endpoints as readonly string[]).includes(name), `moved from ${gone} to ${name}`);
      else t.equal(name, before[index], 'stayed');
    }
    before = after;
  }
});

// Elsewhere clients are remembered where the endpoint is drawn, which happens once a connection.
const onlyNftables = labMode() === 'nftables' ? {} : { skip: 'a rule of mode nftables' };

t.test('a client that keeps asking a silent local endpoint is not remembered again', onlyNftables, async (t) => {
  const lab = await Lab.start(t);
  // Nothing listens there, so the flow stays without an answer and every packet of it is one of a new connection.
  await Proxy.start(t, lab, { objects: sticky(LONG, { endpoints: [{ pod: 'node' }] }) });
  const map = ['ip', 'kube-proxy', 'clients-10.96.0.41-udp-80'];
  const remembered = async (): Promise<boolean> =>
    (await lab.output('node', ['nft', 'list', 'map', ...map])).includes('elements');
  const connection = await lab.open({ from: 'client', to: CLUSTER_IP, protocol: 'UDP' });
  await connection.exchange({ timeoutMs: 300 });
  t.ok(await remembered(), 'remembered with the first packet');
  await lab.output('node', ['nft', 'flush', 'map', ...map]);
  await connection.exchange({ timeoutMs: 300 });
  t.notOk(await remembered(), 'forgotten for good');
});
