// Changes of the configuration that end no process: what they are about follows, and traffic does not notice the rest.
import { copyFile, readFile, rename, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import t from 'tap';
import { ControlPlane } from '../support/lab/control-plane.js';
import { endpoint, eventually, Lab, type Traffic } from '../support/lab/lab.js';
import { node } from '../support/lab/objects.js';
import { checkRows, dualStack, FAMILY_VIEWS, IPV4, type Row } from '../support/lab/packet-table.js';
import { NODE_NAME, Proxy } from '../support/lab/proxy.js';
import { ADDRESSES } from '../support/lab/topology.js';

const LOCAL = ['pod-a', 'pod-b'] as const;
const REMOTE = ['remote-a'] as const;
const PODS = [...LOCAL, ...REMOTE];
const OBJECTS = [
  node('node-2', { addresses: Object.values(ADDRESSES.node) }),
  ...dualStack('web', { type: 'NodePort', number: 41, ports: [{ port: 80, nodePort: 30001 }], endpoints: PODS }),
  ...dualStack('near', { number: 42, internalTrafficPolicy: 'Local', ports: [{ port: 80 }], endpoints: PODS }),
];
const TRAFFIC: readonly Traffic[] = FAMILY_VIEWS.flatMap((view): Traffic[] => [
  { from: 'pod-c', to: endpoint(view.clusterIP(41), 80) },
  { from: 'client', to: view.nodePort(30001) },
]);

function near(pods: readonly (typeof PODS)[number][]): readonly Row[] {
  return FAMILY_VIEWS.map((view) => ({
    from: 'pod-c',
    to: endpoint(view.clusterIP(42), 80),
    expect: view.kept(pods, 80),
  }));
}

t.test('the kubeconfig and the node name change under traffic', async (t) => {
  const lab = await Lab.start(t);
  await lab.serveAll(PODS, [[80, 'TCP']]);
  const plane = await ControlPlane.start(t, lab);
  const config = { hostnameOverride: NODE_NAME };
  const proxy = await Proxy.start(t, lab, { objects: OBJECTS, cluster: plane, config, flags: ['-v', '4'] });
  const { pid } = proxy;
  await checkRows(t, lab, near(LOCAL));
  const file = JSON.parse(await readFile(proxy.configFile, 'utf8')) as { clientConnection: { kubeconfig: string } };
  /** Writes the configuration and answers what is logged until it is said. */
  const change = async (fields: object, reported: RegExp): Promise<string> => {
    const logged = proxy.log.length;
    await writeFile(proxy.configFile, JSON.stringify({ ...file, ...fields }));
    return await eventually(reported.source, () => {
      const log = proxy.log.slice(logged);
      return Promise.resolve(reported.test(log) ? log : null);
    });
  };
  const watchesOf = async (resource: string): Promise<number> =>
    (await plane.state()).requests[`watchlist ${resource}`] ?? 0;
  const connections = await Promise.all(TRAFFIC.map((traffic) => lab.open(traffic)));
  const names = await Promise.all(connections.map((connection) => connection.exchange()));
  const watches = await Promise.all(TRAFFIC.map((traffic) => lab.watch({ ...traffic, timeoutMs: 3000 }, 1, 2)));

  const before = await lab.ruleset();
  const kubeconfig = join(t.testdir(), 'other.conf');
  await copyFile(file.clientConnection.kubeconfig, kubeconfig);
  const client = { kubeconfig, qps: 50, burst: 100, contentType: 'application/json' };
  const moved = await change({ clientConnection: client }, /configuration changed.*kubernetes\.kubeconfig/);
  await eventually('everything read anew', async () => ((await watchesOf('endpointslices')) === 2 ? true : null));
  await eventually('the former connections gone', async () =>
    (await plane.state()).openConnections <= 3 ? true : null,
  );
  await proxy.consistent();
  t.equal(await lab.ruleset(), before, 'the same objects found again change nothing');
  for (const line of moved.match(/"synced".*/g) ?? []) t.match(line, /transactions=0/);

  const late = join(dirname(kubeconfig), 'late.conf');
  const refused = await change({ clientConnection: { kubeconfig: late } }, /changed configuration refused.*late\.conf/);
  t.notMatch(refused, /configuration changed/);
  t.match(await proxy.status(), { refusedConfiguration: /late\.conf/ });
  await plane.put(...dualStack('late', { number: 43, ports: [{ port: 80 }], endpoints: REMOTE }));
  await eventually('what was in force goes on', async () => {
    const answer = await lab.request({ from: 'pod-c', to: endpoint(IPV4.clusterIP(43), 80) });
    return 'name' in answer ? true : null;
  });
  const logged = proxy.log.length;
  await copyFile(kubeconfig, `${late}.new`);
  await rename(`${late}.new`, late);
  const taken = await eventually('what was refused is in force once it can be', () => {
    const log = proxy.log.slice(logged);
    return Promise.resolve(/configuration changed.*late\.conf/.test(log) ? log : null);
  });
  t.notMatch(taken, /refused/, 'said once');
  t.match(await proxy.status(), { refusedConfiguration: null });
  const inForce = { clientConnection: { kubeconfig: late } };
  await change({ ...inForce, mode: 'x' }, /changed configuration refused/);
  t.notMatch(
    await change(inForce, /"configuration is valid again"/),
    /configuration changed/,
    'what is in force is back',
  );

  const gate = 'AllowServiceExternalIPs';
  const shown = async (page: string): Promise<string> => {
    const answer = await lab.http('node', `http://127.0.0.1:10249/${page}`);
    return 'body' in answer ? answer.body : answer.error;
  };
  const metric = (value: number): string => `kubernetes_feature_enabled{name="${gate}",stage=""} ${value}`;
  t.ok((await shown('metrics')).includes(metric(1)));
  await change(
    { clientConnection: client, hostnameOverride: 'node-2', featureGates: { [gate]: false } },
    /configuration changed.*nodeName/,
  );
  t.ok((await shown('metrics')).includes(metric(0)), 'gates are shown as they are in force');
  t.ok((await shown('configz')).includes(`"featureGates":{"${gate}":false}`));
  // Each family has syncs of its own.
  for (const view of FAMILY_VIEWS)
    await eventually('the endpoints of the other node', async () => {
      const answer = await lab.request({ from: 'pod-c', to: endpoint(view.clusterIP(42), 80) });
      return 'name' in answer && answer.name === 'remote-a' ? true : null;
    });
  await checkRows(t, lab, near(REMOTE));
  const health = await lab.http('node', 'http://127.0.0.1:10256/healthz');
  t.match(health, { status: 200 });

  for (const [index, connection] of connections.entries()) {
    const [first, last] = [names[index], await connection.exchange()];
    t.ok(first !== undefined && 'name' in first && 'name' in last && last.name === first.name, 'a connection goes on');
  }
  const outcomes = (await Promise.all(watches.map((watch) => watch.stop()))).flat();
  t.same(
    outcomes.filter((outcome) => 'error' in outcome),
    [],
    'no request is lost',
  );
  t.equal(proxy.pid, pid, 'the same process all the time');
  t.ok(proxy.isRunning);
});
