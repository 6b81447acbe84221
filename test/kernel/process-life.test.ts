// What the end and the start of the process do to traffic: nothing.
import { readFile } from 'node:fs/promises';
import t from 'tap';
import { inFull, usually } from '../support/extent.js';
import { endpoint, eventually, Lab, type Traffic, type Watch } from '../support/lab/lab.js';
import type { Manifest } from '../support/lab/objects.js';
import { checkRows, dualStack, FAMILY_VIEWS, IPV4, type Row } from '../support/lab/packet-table.js';
import { failed } from '../support/lab/failures.js';
import { Proxy } from '../support/lab/proxy.js';
import { withoutClients } from '../support/without-clients.js';

const PODS = ['pod-a', 'pod-b', 'remote-a'] as const;
const OBJECTS: readonly Manifest[] = [
  ...dualStack('web', {
    number: 41,
    loadBalancers: [3],
    externals: [11],
    sourceRanges: ['203.0.113.0/25', '2001:db8:203::/65'],
    ports: [{ port: 80, nodePort: 30001 }],
    endpoints: PODS,
  }),
  ...dualStack('sticky', {
    number: 42,
    loadBalancers: [4],
    externalTrafficPolicy: 'Local',
    affinitySeconds: 600,
    ports: [{ port: 80, nodePort: 30002 }],
    endpoints: PODS,
  }),
  ...dualStack('dns', { number: 43, ports: [{ protocol: 'UDP', port: 53 }], endpoints: PODS }),
  ...dualStack('empty', { number: 44, ports: [{ port: 80 }], endpoints: [] }),
];
const TRAFFIC: readonly Traffic[] = FAMILY_VIEWS.flatMap((view): Traffic[] => [
  { from: 'pod-c', to: endpoint(view.clusterIP(41), 80) },
  { from: 'client', to: endpoint(view.loadBalancerIP(3), 80) },
  { from: 'client', to: view.nodePort(30001) },
  { from: 'client', to: endpoint(view.loadBalancerIP(4), 80) },
  { from: 'node', to: endpoint(view.clusterIP(42), 80) },
  { from: 'pod-c', to: endpoint(view.clusterIP(43), 53), protocol: 'UDP' },
]);

async function laboratory(t: Parameters<typeof Lab.start>[0]): Promise<Lab> {
  const lab = await Lab.start(t);
  await lab.serveAll(PODS, [
    [80, 'TCP'],
    [53, 'UDP'],
  ]);
  return lab;
}

function watchAll(lab: Lab): Promise<readonly Watch[]> {
  return Promise.all(TRAFFIC.map((traffic) => lab.watch({ ...traffic, timeoutMs: 3000 }, 1, 2)));
}

/** The second one meets what a killed process has adopted. */
const SIGNALS: readonly ('SIGKILL' | 'SIGTERM' | 'SIGINT')[] = ['SIGKILL', 'SIGKILL', 'SIGTERM', 'SIGINT'];

t.test('a process that is ended and restarted under traffic keeps its rules and loses no request', async (t) => {
  const lab = await laboratory(t);
  const proxy = await Proxy.start(t, lab, { objects: OBJECTS, flags: ['-v', '4'] });
  const connections = await Promise.all(
    TRAFFIC.filter(({ protocol }) => protocol !== 'UDP').map((traffic) => lab.open(traffic)),
  );
  const names = await Promise.all(connections.map((connection) => connection.exchange()));
  const watches = await watchAll(lab);
  const ruleset = await lab.ruleset();
  for (const signal of usually(SIGNALS.slice(1, 3), SIGNALS)) {
    const status = await proxy.stop(signal);
    t.equal(status, signal === 'SIGKILL' ? null : 0, `${signal} ends it`);
    t.equal(withoutClients(await lab.ruleset()), withoutClients(ruleset), 'the rules stay');
    await checkRows(t, lab, afterwards(), 'without the process');
    const logged = proxy.log.length;
    proxy.launch();
    await proxy.ready();
    // Adopted: the first sync compares everything and sends nothing.
    for (const family of ['IPv4', 'IPv6']) {
      const synced = proxy.log.slice(logged).match(new RegExp(`"synced" family="${family}".*`, 'g')) ?? [];
      t.match(synced[0], /full=true transactions=0 elementOperations=0 ruleOperations=0 bytes=0/, `${family} adopted`);
    }
    t.equal(withoutClients(await lab.ruleset()), withoutClients(ruleset), 'and it is the same ruleset');
  }
  for (const [index, connection] of connections.entries()) {
    const [before, after] = [names[index], await connection.exchange()];
    t.ok(before !== undefined && 'name' in before && 'name' in after, 'a long connection goes on');
    if (before !== undefined && 'name' in before) t.match(after, { name: before.name, seen: before.seen });
  }
  t.same(await failed(watches), [], 'no request is lost');
});

/** That rules are there and complete. */
function afterwards(): readonly Row[] {
  return FAMILY_VIEWS.flatMap((view) => [
    { from: 'pod-c', to: endpoint(view.clusterIP(41), 80), expect: view.kept(PODS, 80) },
    { from: 'client', to: view.nodePort(30001), expect: view.masqueraded(PODS, 80) },
    { from: 'blocked', to: endpoint(view.loadBalancerIP(3), 80), expect: 'dropped' },
    { from: 'pod-c', to: endpoint(view.clusterIP(44), 80), expect: 'refused' },
  ]);
}

t.test('a restart applies the changes made meanwhile', inFull, async (t) => {
  const lab = await laboratory(t);
  const proxy = await Proxy.start(t, lab, { objects: OBJECTS });
  t.equal(proxy.log.match(/"rules complete" family=/g)?.length, 2, 'said once for each family');
  // Who asked for health may have the answer before the log has the line.
  const served = /"serving \d+ Services?, \d+ endpoints? in \w+, healthy after \d+\.\d s" release=/g;
  const lines = await eventually('the line that ends a start', () => Promise.resolve(proxy.log.match(served)));
  t.equal(lines.length, 1, 'the start ends in one line');
  const pid = proxy.pid ?? 0;
  t.equal(await readFile(`/proc/${pid}/comm`, 'utf8'), 'pointsman\n', 'what top shows');
  t.match(await readFile(`/proc/${pid}/cmdline`, 'utf8'), /^pointsman .*--config/, 'what ps shows');
  await proxy.stop('SIGKILL');
  await proxy.write([
    ...dualStack('web', { type: 'NodePort', number: 41, ports: [{ port: 80, nodePort: 30009 }], endpoints: ['pod-b'] }),
    ...dualStack('empty', { number: 44, ports: [{ port: 80 }], endpoints: ['remote-a'] }),
  ]);
  proxy.launch();
  await proxy.ready();
  await proxy.consistent();
  await checkRows(
    t,
    lab,
    FAMILY_VIEWS.flatMap((view) => [
      { from: 'pod-c', to: endpoint(view.clusterIP(41), 80), expect: view.kept(['pod-b'], 80) },
      { from: 'client', to: view.nodePort(30009), expect: view.masqueraded(['pod-b'], 80) },
      { from: 'client', to: view.nodePort(30001), expect: 'refused' },
      { from: 'client', to: endpoint(view.loadBalancerIP(3), 80), expect: 'dropped' },
      { from: 'pod-c', to: endpoint(view.clusterIP(44), 80), expect: view.kept(['remote-a'], 80) },
    ]),
  );
  t.notMatch(await lab.ruleset(), /map clients-/, 'the map of clients without a Service is gone');
});

t.test('a process killed in the middle of changes is completed by the next one', inFull, async (t) => {
  const lab = await laboratory(t);
  const variant = (step: number): readonly Manifest[] => [
    ...OBJECTS,
    ...Array.from({ length: 120 }, (_, index) =>
      dualStack(`many-${index}`, {
        type: 'NodePort',
        number: 100 + ((index + step * 40) % 150),
        ports: [
          { name: 'tcp', port: 1000 + step, targetPort: 80 },
          { name: 'udp', protocol: 'UDP', port: 53, nodePort: 31000 + index + step },
        ],
        ...(index % 3 === 0 ? { affinitySeconds: 100 + step } : {}),
        endpoints: PODS.filter((_, position) => (index + step) % 4 !== position),
      }),
    ).flat(),
  ];
  const proxy = await Proxy.start(t, lab, { objects: variant(0) });
  const watches = await watchAll(lab);
  for (const step of usually([2, 5], [1, 2, 3, 4, 5, 6, 7, 8])) {
    await proxy.write(variant(step));
    // From before the file was noticed to after everything was acknowledged.
    await new Promise((resolve) => setTimeout(resolve, step * 12));
    await proxy.stop('SIGKILL');
    await lab.rulesetJson();
    proxy.launch();
    await proxy.ready();
    await proxy.consistent();
    t.pass(`killed ${step * 12} ms after a write`);
  }
  t.same(await failed(watches), [], 'no request to the other Services is lost');
  await checkRows(t, lab, afterwards());
  await proxy.apply(OBJECTS);
  t.notMatch(await lab.ruleset(), /many-/);
});

t.test('--cleanup removes everything of pointsman and nothing else', async (t) => {
  const lab = await laboratory(t);
  const foreign =
    'table inet foreign {\n\tchain input {\n\t\ttype filter hook input priority filter; policy accept;\n\t}\n}\n';
  await lab.output('node', ['nft', '-f', '-'], foreign);
  const proxy = await Proxy.start(t, lab, { objects: OBJECTS });
  await proxy.stop('SIGTERM');
  const cleanup = await proxy.run(null, ['--cleanup']);
  t.equal(cleanup.status, 0, cleanup.stderr);
  t.equal(await lab.ruleset(), foreign);
  await checkRows(t, lab, [{ from: 'client', to: IPV4.nodePort(30001), expect: 'refused' }]);
  const again = await proxy.run(null, ['--cleanup']);
  t.equal(again.status, 0, 'with nothing left to remove as well');
  t.equal(await lab.ruleset(), foreign);
  proxy.launch();
  await proxy.ready();
  await checkRows(t, lab, afterwards(), 'started again');
});
