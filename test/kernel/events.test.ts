// What users of the cluster are told by events, and that telling them is never in the way.
import { writeFile } from 'node:fs/promises';
import type { Test } from 'tap';
import t from 'tap';
import { inFull, usually } from '../support/extent.js';
import { ControlPlane, type PostedEvent } from '../support/lab/control-plane.js';
import { endpoint, eventually, Lab } from '../support/lab/lab.js';
import type { Manifest } from '../support/lab/objects.js';
import { checkRows, dualStack, IPV4 } from '../support/lab/packet-table.js';
import { NODE_NAME, Proxy, type ProxyOptions } from '../support/lab/proxy.js';

const PODS = ['pod-a', 'pod-b'] as const;
const PORT = [{ port: 80 }];

interface World {
  readonly lab: Lab;
  readonly plane: ControlPlane;
  readonly proxy: Proxy;
}

async function prepared(t: Test, options: ProxyOptions = {}): Promise<World> {
  const lab = await Lab.start(t);
  await lab.serveAll(PODS, [[80, 'TCP']]);
  const plane = await ControlPlane.start(t, lab);
  const proxy = await Proxy.prepare(t, lab, { ...options, cluster: plane });
  return { lab, plane, proxy };
}

/** Waits until such an event has come. */
function reported(plane: ControlPlane, reason: string): Promise<PostedEvent> {
  return eventually(
    `event ${reason}`,
    async () => (await plane.state()).events.find((event) => event.reason === reason) ?? null,
    20_000,
  );
}

/** A Service with a node port, of an age. */
function web(name: string, number: number, nodePort: number, day: number): readonly Manifest[] {
  const objects = dualStack(name, { type: 'NodePort', number, ports: [{ port: 80, nodePort }], endpoints: PODS });
  return objects.map((object) => {
    const metadata = object['metadata'] as Readonly<Record<string, unknown>>;
    return { ...object, metadata: { ...metadata, creationTimestamp: `2026-01-0${day}T00:00:00Z` } };
  });
}

t.test('Kubernetes events report start, conflicts and other findings', async (t) => {
  const { lab, plane, proxy } = await prepared(t);
  await proxy.write([...web('old', 41, 30001, 1), ...web('new', 42, 30002, 2)]);
  await proxy.restart();
  t.match(await reported(plane, 'Starting'), { regarding: { kind: 'Node', name: NODE_NAME } }, 'EV-01');

  // One after the other, so that for a moment both Services have one port.
  const swapped = [...web('old', 41, 30002, 1), ...web('new', 42, 30001, 2)];
  await proxy.write([...web('old', 41, 30002, 1), ...web('new', 42, 30002, 2)]);
  await proxy.apply(swapped);
  const swappedAt = performance.now();

  const broken = dualStack('broken', { number: 43, ports: PORT, endpoints: [] }).map((object) =>
    object.kind === 'Service' ? { ...object, spec: { clusterIP: 'nonsense' } } : object,
  );
  await proxy.write([...swapped, ...broken]);
  t.match(await reported(plane, 'InvalidObject'), {
    regarding: { kind: 'Service', name: 'broken', uid: /^0000/ },
    note: /clusterIP/,
  });

  await lab.serve('node', endpoint(IPV4.address('node'), 32001), 'TCP', 'squatter');
  const checked = dualStack('checked', {
    type: 'LoadBalancer',
    number: 44,
    externalTrafficPolicy: 'Local',
    ports: [{ port: 80, nodePort: 30004 }],
    endpoints: PODS,
  }).map((object) =>
    object.kind === 'Service'
      ? { ...object, spec: { ...(object['spec'] as object), healthCheckNodePort: 32001 } }
      : object,
  );
  await proxy.apply([...swapped, ...checked]);
  t.match(
    await reported(plane, 'FailedToStartServiceHealthcheck'),
    { regarding: { kind: 'Service', name: 'checked' }, note: /port 32001/ },
    'EV-04',
  );

  await writeFile(proxy.configFile, '{"apiVersion": "kubeproxy.config.k8s.io/v1alpha1", "kind": "Nonsense"}');
  t.match(await reported(plane, 'ConfigurationRefused'), { regarding: { kind: 'Node', name: NODE_NAME } });

  while (performance.now() - swappedAt < 4000) await new Promise((resolve) => setTimeout(resolve, 100));
  t.notMatch((await plane.state()).events, [{ reason: 'AddressConflict' }], 'an exchange of ports is no conflict');
  t.notMatch(proxy.log, /conflict: /);
  await proxy.write([...web('old', 41, 30001, 1), ...web('new', 42, 30001, 2)]);
  t.match(await reported(plane, 'AddressConflict'), {
    regarding: { kind: 'Service', name: 'new' },
    note: /^nodeport:30001\/TCP belongs to \S+\/old:?\S*, the older Service/,
  });
  await eventually('both families in the log', () =>
    Promise.resolve(/conflict: IPv6 nodeport:30001/.test(proxy.log) || null),
  );
  const { events } = await plane.state();
  t.equal(events.filter(({ reason }) => reason === 'AddressConflict').length, 1, 'once, not once per family');
  t.match(proxy.log, /conflict: IPv4 nodeport:30001/);
});

t.test('events that the API server does not accept are dropped', inFull, async (t) => {
  const { lab, plane, proxy } = await prepared(t);
  await plane.fault({ fault: { type: 'status', code: 403 }, resource: 'events', times: 1 });
  await plane.fault({ fault: { type: 'hang' }, resource: 'events' });
  await proxy.write([...web('old', 41, 30001, 1), ...web('new', 42, 30001, 2)]);
  await proxy.restart();
  await eventually('a dropped event in the log', () =>
    Promise.resolve(/An event is dropped.*reason="Starting".*status 403/.test(proxy.log) || null),
  );
  await eventually(
    'an event under way',
    async () => ((await plane.state()).requests['write events'] ?? 0) > 1 || null,
    20_000,
  );
  await proxy.apply([...web('old', 41, 30001, 1), ...web('new', 42, 30005, 2)]);
  await checkRows(t, lab, [
    { from: 'client', to: IPV4.nodePort(30005), expect: IPV4.masqueraded(PODS, 80) },
    { from: 'pod-c', to: endpoint(IPV4.clusterIP(42), 80), expect: IPV4.kept(PODS, 80) },
  ]);
  t.match(await lab.http('node', 'http://127.0.0.1:10256/healthz'), { status: 200 });
  const startedAt = performance.now();
  t.equal(await proxy.stop('SIGTERM'), 0);
  t.ok(performance.now() - startedAt < 20_000, 'what is under way is dropped at the end, not waited for');
});

t.test('EV-02, EV-03: an address in use is reported, and is fatal with bindAddressHardFail', async (t) => {
  const listeners = [
    [10256, 'FailedToStartProxierHealthcheck'],
    [10249, 'FailedToStartMetricServer'],
  ] as const;
  for (const [port, reason] of usually(listeners.slice(0, 1), listeners)) {
    const { lab, plane, proxy } = await prepared(t, { config: { bindAddressHardFail: true } });
    await lab.serve('node', endpoint('127.0.0.1', port), 'TCP', 'squatter');
    await proxy.write([]);
    proxy.launch();
    t.match(await reported(plane, reason), {
      regarding: { kind: 'Node', name: NODE_NAME },
      note: new RegExp(`${port}`),
    });
    await eventually('the end', () => Promise.resolve(proxy.ended || null));
    t.equal(await proxy.stop(), 1);
    t.equal((await plane.state()).events.filter((event) => event.reason === 'Starting').length, 0);
  }
});

t.test('rules that were removed externally give the event RulesRepaired', async (t) => {
  const { lab, plane, proxy } = await prepared(t);
  await proxy.write(web('web', 41, 30001, 1));
  await proxy.restart();
  await lab.output('node', ['nft', 'delete', 'table', 'ip', 'kube-proxy']);
  t.match(await reported(plane, 'RulesRepaired'), {
    regarding: { kind: 'Node', name: NODE_NAME },
    note: /^the IPv4 rules .* repaired: (chain \S+ was lost(, )?){5}$/,
  });
});
