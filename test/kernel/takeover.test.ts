// One proxy stops and the other starts, either way round, without a cleanup in between.
// needs: iptables
import t from 'tap';
import { ATTEMPTS_TABLE } from '../../src/dataplane/attempts/footprint.js';
import { inFull } from '../support/extent.js';
import { endpoint, eventually, Lab, type TimedOutcome } from '../support/lab/lab.js';
import { checkRows, dualStack, FAMILY_VIEWS, type Row } from '../support/lab/packet-table.js';
import { PEER_COUNTERS, PEER_OBJECTS as OBJECTS, PEER_PODS as PODS, peerStart } from '../support/lab/peer-table.js';
import { Proxy } from '../support/lab/proxy.js';
import { ADDRESSES } from '../support/lab/topology.js';

const ROWS: readonly Row[] = FAMILY_VIEWS.flatMap((view) => [
  { from: 'pod-b', to: endpoint(view.clusterIP(41), 80), expect: view.kept(PODS, 80) },
  { from: 'pod-a', to: endpoint(view.clusterIP(42), 81), expect: 'refused' },
  { from: 'client', to: endpoint(view.loadBalancerIP(3), 80), expect: view.masqueraded(PODS, 80) },
  { from: 'blocked', to: endpoint(view.loadBalancerIP(3), 80), expect: 'dropped' },
  { from: 'client', to: view.nodePort(30001), expect: view.masqueraded(PODS, 80) },
  { from: 'node', to: endpoint(view.clusterIP(41), 80), expect: view.masqueraded(PODS, 80) },
  { from: 'client', to: endpoint(view.clusterIP(43), 80), expect: 'refused' },
  { from: 'pod-b', to: endpoint(view.clusterIP(46), 53), protocol: 'UDP', expect: view.kept(['pod-a'], 53) },
  { from: 'client', to: view.nodePort(30053), protocol: 'UDP', expect: view.masqueraded(['pod-a'], 53) },
  {
    from: 'node',
    to: endpoint(view.family === 'IPv4' ? '127.0.0.1' : '::1', 30053),
    protocol: 'UDP',
    expect: 'refused',
  },
]);
const SERVED = [
  [80, 'TCP'],
  [53, 'UDP'],
] as const;

t.test('migration from kube-proxy to pointsman and back, under traffic', async (t) => {
  const lab = await Lab.start(t);
  await lab.serveAll(PODS, SERVED);
  const nft = (script: string): Promise<string> => lab.output('node', ['nft', '-f', '-'], script);
  for (const view of FAMILY_VIEWS) await nft(peerStart(view));
  await checkRows(t, lab, ROWS, 'kube-proxy alone');
  t.same(await peerCounters(lab), [...PEER_COUNTERS, ...PEER_COUNTERS].sort(), 'its counters are in both tables');

  const targets = FAMILY_VIEWS.flatMap((view) => [
    { from: 'pod-b', to: endpoint(view.clusterIP(41), 80) },
    { from: 'client', to: endpoint(view.loadBalancerIP(3), 80) },
    { from: 'client', to: view.nodePort(30001) },
    { from: 'node', to: endpoint(view.clusterIP(42), 80) },
  ]);
  const connections = await Promise.all(targets.map((target) => lab.open(target)));
  const watches = await Promise.all(targets.map((target) => lab.watch({ ...target, timeoutMs: 3000 }, 1, 1)));

  const proxy = await Proxy.start(t, lab, { objects: OBJECTS });
  await checkRows(t, lab, ROWS, 'after the takeover');
  await proxy.consistent();
  const taken = await names(lab);
  t.same(
    taken.filter((name) => /\/|localhost/.test(name) || PEER_NAMES.includes(name)),
    [],
    'nothing of its is left',
  );

  await proxy.stop('SIGTERM');
  for (const view of FAMILY_VIEWS) await nft(peerStart(view));
  t.equal((await retryObjects(lab)).length, 4, 'with our objects for unanswered attempts in it');
  t.equal((await peerCounters(lab)).length, 4, 'and with its counters');
  await checkRows(t, lab, ROWS, 'kube-proxy started on our table');

  proxy.launch();
  await proxy.ready();
  await checkRows(t, lab, ROWS, 'and we on its');
  await proxy.consistent();
  t.same(await names(lab), taken, 'the same objects as after the first takeover');

  const outcomes: readonly TimedOutcome[] = (await Promise.all(watches.map((watch) => watch.stop()))).flat();
  t.ok(outcomes.length > 0);
  t.same(
    outcomes.filter((outcome) => 'error' in outcome),
    [],
    'no request is lost',
  );
  for (const connection of connections) t.hasProp(await connection.exchange(), 'name', 'no connection is lost');

  // On a clean node the table has just these objects too.
  await proxy.stop('SIGTERM');
  await proxy.run(null, ['--cleanup']);
  proxy.launch();
  await proxy.ready();
  t.same(await names(lab), taken, 'and as on a clean node');
});

t.test("--cleanup after a rollback removes pointsman's objects, and kube-proxy's rules work on", inFull, async (t) => {
  const lab = await Lab.start(t);
  await lab.serveAll(PODS, SERVED);
  const proxy = await Proxy.start(t, lab, { objects: OBJECTS });
  await checkRows(t, lab, ROWS, 'pointsman alone');
  await proxy.stop('SIGTERM');
  for (const view of FAMILY_VIEWS) await lab.output('node', ['nft', '-f', '-'], peerStart(view));
  const both = await names(lab);
  t.ok(both.includes('frontends') && both.includes('services'), 'the table has the objects of both');
  t.equal((await retryObjects(lab)).length, 4);

  const targets = FAMILY_VIEWS.map((view) => ({ from: 'pod-b', to: endpoint(view.clusterIP(41), 80) }));
  const watches = await Promise.all(targets.map((target) => lab.watch({ ...target, timeoutMs: 3000 }, 1, 1)));
  const cleanup = await proxy.run(null, ['--cleanup']);
  t.equal(cleanup.status, 0, cleanup.stderr);
  t.match(cleanup.stderr, /table ip kube-proxy, in which another proxy's rules are in force/);
  const outcomes = (await Promise.all(watches.map((watch) => watch.stop()))).flat();
  t.ok(outcomes.length > 0);
  t.same(
    outcomes.filter((outcome) => 'error' in outcome),
    [],
    'no request is lost',
  );
  await checkRows(t, lab, ROWS, 'kube-proxy alone');

  // What kube-proxy's own start makes on a clean node.
  const left = await names(lab);
  t.notOk((await lab.ruleset()).includes(ATTEMPTS_TABLE));
  t.same(await retryObjects(lab), []);
  await lab.output('node', ['nft', 'flush', 'ruleset']);
  for (const view of FAMILY_VIEWS) await lab.output('node', ['nft', '-f', '-'], peerStart(view));
  t.same(left, await names(lab), 'nothing of ours is left, and all that is its');

  t.match(await proxy.run(null, ['--cleanup']), { status: 0 }, 'once more');
  t.same(await names(lab), left);
});

t.test('a flow created by rules of the old mode follows the new rules once the old are gone', async (t) => {
  const lab = await Lab.start(t);
  await lab.serveAll(['pod-a', 'pod-b'], [[53, 'UDP']]);
  const [view] = FAMILY_VIEWS;
  if (view === undefined) throw new TypeError('no family');
  const to = endpoint(view.clusterIP(44), 53);
  const stale = endpoint(ADDRESSES['pod-b'].IPv4, 53);
  const proxy = await Proxy.start(t, lab, {
    objects: dualStack('dns', { number: 44, ports: [{ protocol: 'UDP', port: 53 }], endpoints: ['pod-a'] }),
    mode: 'nftables',
  });
  // Rules that are younger than ours see packets first.
  await proxy.stop('SIGTERM');
  await lab.output(
    'node',
    ['iptables-nft-restore', '--noflush'],
    `*nat
:KUBE-SERVICES -
-A PREROUTING -j KUBE-SERVICES
-A KUBE-SERVICES -d ${view.clusterIP(44)} -p udp --dport 53 -j DNAT --to-destination ${stale}
COMMIT
`,
  );
  const connection = await lab.open({ from: 'pod-c', to, protocol: 'UDP' });
  const who = async (): Promise<string> => {
    const answer = await connection.exchange({ timeoutMs: 200 });
    return 'name' in answer ? answer.name : answer.error;
  };
  await eventually('an answer by the rules that were there', async () => ((await who()) === 'pod-b' ? true : null));
  const enough = new AbortController();
  const client = (async () => {
    while (!enough.signal.aborted) await who();
  })();
  proxy.launch();
  await proxy.ready();
  await eventually('what was there is gone', () =>
    Promise.resolve(proxy.log.includes('removed rules of another proxy mode') || null),
  );
  enough.abort();
  await client;
  await eventually('an answer by ours', async () => ((await who()) === 'pod-a' ? true : null));
});

t.test('a foreign table with the name kube-proxy is replaced', inFull, async (t) => {
  const lab = await Lab.start(t);
  await lab.serveAll(PODS, SERVED);
  for (const ip of ['ip', 'ip6']) {
    await lab.output(
      'node',
      ['nft', '-f', '-'],
      `table ${ip} kube-proxy {
        flags dormant
        set frontends { type inet_service; flags interval; elements = { 1-5 }; }
        map endpoints-0 { type mark : verdict; elements = { 7 : drop }; }
        set cluster-addresses { type ${ip === 'ip' ? 'ipv4_addr' : 'ipv6_addr'}; }
        chain dispatch { type filter hook prerouting priority -300; policy drop; tcp dport { 1, 2 } accept; }
        chain nat-prerouting { type filter hook input priority 5; }
        chain pick-2 { counter drop; }
        chain stranger { type filter hook forward priority 7; policy drop; }
      }`,
    );
  }
  const proxy = await Proxy.start(t, lab, { objects: OBJECTS });
  await checkRows(t, lab, ROWS);
  await proxy.consistent();
  t.notMatch(await lab.ruleset(), /stranger|dormant|priority 5;|priority raw/);
});

const PEER_NAMES = [
  'services',
  'masquerading',
  'reject-chain',
  'service-endpoints-check',
  'nodeport-endpoints-check',
  'cluster-ips-check',
  'firewall-check',
  'cluster-ips',
  'nodeport-ips',
  'service-ips',
  'service-nodeports',
  'no-endpoint-services',
  'no-endpoint-nodeports',
  'firewall-ips',
  'hairpin-connections',
];

/** The counters of kube-proxy in both tables. */
async function peerCounters(lab: Lab): Promise<readonly string[]> {
  const counters: readonly string[] = PEER_COUNTERS;
  return (await names(lab)).filter((name) => counters.includes(name));
}

/** Those that unanswered attempts are given to: of TCP and of DNS, in both tables. */
async function retryObjects(lab: Lab): Promise<readonly string[]> {
  return (await names(lab)).filter((name) => /^connect-retry-(?:tcp|udp)-\d+-/.test(name));
}

/** Chains, sets, maps and other objects of both tables. */
async function names(lab: Lab): Promise<readonly string[]> {
  // What counts connection attempts is there for a minute after each explanation.
  const tables = (await lab.ruleset()).split(/^(?=table )/m).filter((table) => !table.includes(ATTEMPTS_TABLE));
  const objects = tables.join('').matchAll(/^\t(?:chain|set|map|ct timeout|counter) (\S+) \{$/gm);
  return [...objects].map((match) => match[1] ?? '').sort();
}
