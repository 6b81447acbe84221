// What others do to our table comes back at once, is reported, and costs traffic as little as it can.
import { readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import t from 'tap';
import { inFull, usually } from '../support/extent.js';
import { endpoint, eventually, Lab, type TimedOutcome, type Traffic, type Watch } from '../support/lab/lab.js';
import type { Manifest } from '../support/lab/objects.js';
import { checkRows, dualStack, FAMILY_VIEWS, IPV4, type Row } from '../support/lab/packet-table.js';
import { faulty } from '../support/lab/kernel-faults.js';
import { Proxy } from '../support/lab/proxy.js';
import { withoutClients } from '../support/without-clients.js';

const PODS = ['pod-a', 'pod-b', 'remote-a'] as const;
const OBJECTS: readonly Manifest[] = [
  ...dualStack('web', {
    number: 41,
    loadBalancers: [3],
    sourceRanges: ['203.0.113.0/25', '2001:db8:203::/65'],
    ports: [{ port: 80, nodePort: 30001 }],
    endpoints: PODS,
  }),
  ...dualStack('sticky', { number: 42, affinitySeconds: 600, ports: [{ port: 80 }], endpoints: PODS }),
  ...dualStack('dns', { number: 43, ports: [{ protocol: 'UDP', port: 53 }], endpoints: PODS }),
  ...dualStack('empty', { number: 44, ports: [{ port: 80 }], endpoints: [] }),
  ...dualStack('hashed', {
    number: 45,
    ports: [{ port: 80 }],
    endpoints: PODS,
    annotations: { 'pointsman.dev/balance': 'hash=address' },
  }),
];
/** Nothing is found by chance: no periodic check comes to help, and the minimum interval would be in the way. */
const NO_PERIODIC_CHECK = { nftables: { minSyncPeriod: '30s', syncPeriod: '1h' } };
const PERIODIC_CHECK = { nftables: { syncPeriod: '1s' } };
const REPAIRED = 'repaired what the kernel no longer held';

async function laboratory(t: Parameters<typeof Lab.start>[0]): Promise<Lab> {
  const lab = await Lab.start(t);
  await lab.serveAll(PODS, [
    [80, 'TCP'],
    [53, 'UDP'],
  ]);
  return lab;
}

/** That rules are there and complete. */
function rows(): readonly Row[] {
  return FAMILY_VIEWS.flatMap((view) => [
    { from: 'pod-c', to: endpoint(view.clusterIP(41), 80), expect: view.kept(PODS, 80) },
    { from: 'client', to: view.nodePort(30001), expect: view.masqueraded(PODS, 80) },
    { from: 'blocked', to: endpoint(view.loadBalancerIP(3), 80), expect: 'dropped' },
    { from: 'pod-c', to: endpoint(view.clusterIP(44), 80), expect: 'refused' },
  ]);
}

const TABLE = 'ip kube-proxy';

/** Commands by which one slot of a table leads to another of its endpoints; every endpoint is still there. */
function movedSlot(maps: readonly { readonly name: string; readonly body: string }[]): readonly string[] {
  for (const { name, body } of maps) {
    const [, held] = /[^\d.]7 \. 10\.96\.0\.45 \. tcp \. 80 : (\S+) \. 80\b/.exec(body) ?? [];
    if (held === undefined) continue;
    const [other = ''] = PODS.map((pod) => IPV4.address(pod)).filter((address) => address !== held);
    const key = '7 . 10.96.0.45 . tcp . 80';
    return [`delete element ${TABLE} ${name} { ${key} }`, `add element ${TABLE} ${name} { ${key} : ${other} . 80 }`];
  }
  throw new Error('no table of slots is listed');
}

/** What somebody may do to the table, each on top of a repaired one; endpoints are divided among maps that the listing tells. */
function damages(ruleset: string): readonly (readonly [title: string, ...commands: string[]])[] {
  const table = ruleset.split(/^table /m).find((part) => part.startsWith(`${TABLE} {`)) ?? '';
  const maps = [...table.matchAll(/^\tmap (\S+) \{$([^]*?)^\t\}$/gm)].map(([, name = '', body = '']) => ({
    name,
    body,
  }));
  const endpoints = maps.filter(({ name }) => name.includes('endpoints'));
  const holding = (key: string): string => endpoints.find(({ body }) => body.includes(key))?.name ?? 'not found';
  return [
    ['everything', 'flush ruleset'],
    ['a family', `delete table ${TABLE}`],
    [
      'rules of base chains',
      `flush chain ${TABLE} nat-prerouting`,
      `flush chain ${TABLE} filter-forward`,
      'flush chain ip6 kube-proxy nat-postrouting',
    ],
    ['base chains', `delete chain ${TABLE} nat-postrouting`, 'delete chain ip6 kube-proxy filter-input'],
    [
      'properties of base chains',
      `add chain ${TABLE} filter-forward { policy drop; }`,
      'delete chain ip6 kube-proxy nat-output',
      'add chain ip6 kube-proxy nat-output { type nat hook output priority 50; }',
      'add rule ip6 kube-proxy nat-output jump dispatch',
    ],
    ['a table asleep', `add table ${TABLE} { flags dormant; }`],
    ['rules of the skeleton', `flush chain ${TABLE} dispatch`, `flush chain ${TABLE} masquerade-sources`],
    ['frontends', `flush map ${TABLE} frontends`, `flush map ${TABLE} nodeport-frontends`],
    ['endpoints', ...endpoints.map(({ name }) => `flush map ${TABLE} ${name}`)],
    [
      'sets',
      `flush set ${TABLE} cluster-addresses`,
      `flush set ${TABLE} rejected-frontends`,
      `flush set ${TABLE} admitted-sources`,
      `flush map ${TABLE} sticky-frontends`,
    ],
    [
      'single elements',
      `delete element ${TABLE} frontends { 10.96.0.41 . tcp . 80 }`,
      `delete element ${TABLE} ${holding('10.96.0.43 . udp . 53')} { 0 . 10.96.0.43 . udp . 53 }`,
    ],
    ['a slot of a table', ...movedSlot(endpoints)],
    [
      'elements that do not belong',
      `add element ${TABLE} ${holding('10.96.0.41 . tcp . 80')} { 3 . 10.96.0.41 . tcp . 80 : 192.0.2.99 . 80 }`,
      `add element ${TABLE} rejected-frontends { 10.96.0.41 . tcp . 80 }`,
    ],
    [
      'rules that do not belong',
      `insert rule ${TABLE} dispatch ip daddr { 10.96.0.41, 10.96.0.77 } drop`,
      `add chain ${TABLE} stranger`,
      `add rule ${TABLE} stranger ip daddr { 10.96.0.41, 10.96.0.77 } drop`,
    ],
  ];
}

for (const [how, config, env, extent] of [
  ['at once, as the kernel tells', NO_PERIODIC_CHECK, {}, {}],
  [
    'by the periodic audit where the kernel does not tell',
    PERIODIC_CHECK,
    faulty({ refuse: { nftWatch: 'EPERM' } }),
    inFull,
  ],
] as const) {
  t.test(`a damaged table is repaired ${how}`, extent, async (t) => {
    const lab = await laboratory(t);
    const proxy = await Proxy.start(t, lab, { objects: OBJECTS, config, env });
    const whole = withoutClients(await lab.ruleset());
    for (const [title, ...commands] of damages(whole)) {
      const logged = proxy.log.length;
      await lab.output('node', ['nft', '-f', '-'], commands.join('\n'));
      // The log tells that there was something to repair: listing the damage could come too late.
      await eventually(`a word about ${title}`, () =>
        Promise.resolve(proxy.log.slice(logged).includes(REPAIRED) ? true : null),
      ).catch((error: unknown) => t.fail(String(error)));
      await eventually(`repair of ${title}`, async () =>
        sorted(withoutClients(await lab.ruleset())) === sorted(whole) ? true : null,
      ).catch(async (error: unknown) => {
        t.fail(String(error), { found: withoutClients(await lab.ruleset()), wanted: whole });
      });
      await checkRows(t, lab, rows(), title);
    }
    const client = '203.0.113.2';
    await lab.output('node', ['nft', `add element ${TABLE} clients-10.96.0.42-tcp-80 { ${client} : 192.0.2.99 . 80 }`]);
    await eventually('a client sent astray to be forgotten', async () => {
      const answer = await lab.request({ from: 'client', to: '10.96.0.42:80', timeoutMs: 1000 });
      return 'name' in answer ? true : null;
    });
    await proxy.consistent();
  });
}

const ROUNDS = usually(2, 5);

t.test('the flushed ruleset is repaired under traffic', async (t) => {
  const lab = await laboratory(t);
  const proxy = await Proxy.start(t, lab, { objects: OBJECTS, config: NO_PERIODIC_CHECK });
  const traffic = FAMILY_VIEWS.flatMap((view): Traffic[] => [
    { from: 'pod-c', to: endpoint(view.clusterIP(41), 80) },
    { from: 'client', to: view.nodePort(30001) },
    { from: 'pod-c', to: endpoint(view.clusterIP(43), 53), protocol: 'UDP' },
  ]);
  const connections = await Promise.all(traffic.slice(0, 2).map((each) => lab.open(each)));
  const watches: readonly Watch[] = await Promise.all(
    traffic.map((each) => lab.watch({ ...each, timeoutMs: 3000 }, 1, 2)),
  );
  const whole = sorted(withoutClients(await lab.ruleset()));
  for (let round = 0; round < ROUNDS; round++) {
    const logged = proxy.log.length;
    await lab.output('node', ['nft', 'flush', 'ruleset']);
    await eventually('all of it back', async () => {
      if (sorted(withoutClients(await lab.ruleset())) !== whole) return null;
      return [...proxy.log.slice(logged).matchAll(new RegExp(REPAIRED, 'g'))].length >= 2 || null;
    });
    t.match(proxy.log.slice(logged), /"external change to the table".* process="nft\[\d+\]"/, 'it says who');
    t.match(proxy.log.slice(logged), /repair="chain dispatch was lost"/, 'and what');
    const line =
      /"external change repaired" family="IPv4" process="nft\[\d+\]" differences=[1-9]\d* what="(?:chain|table) [^"]+" seconds=[\d.]+$/m;
    await eventually('one line for it', () => Promise.resolve(line.test(proxy.log.slice(logged)) || null));
    for (const each of traffic) t.hasProp(await lab.request(each), 'name', `answered again: ${each.to}`);
  }
  const outcomes: readonly TimedOutcome[] = (await Promise.all(watches.map((watch) => watch.stop()))).flat();
  const served = outcomes.reduce((sum, outcome) => sum + ('name' in outcome ? outcome.count : 0), 0);
  t.ok(served > 0, `${served} requests of the constant traffic were answered`);
  const afterwards = await Promise.all(traffic.map((each) => lab.watch(each, 1, 2)));
  for (let turn = 0; turn < usually(5, 20); turn++) await Promise.all(afterwards.map((watch) => watch.turn()));
  const late = (await Promise.all(afterwards.map((watch) => watch.stop()))).flat();
  t.same(
    late.filter((outcome) => 'error' in outcome),
    [],
    'and every one afterwards',
  );
  for (const connection of connections) t.hasProp(await connection.exchange(), 'name');
  await checkRows(t, lab, rows());
  await proxy.consistent();

  const metrics = await lab.http('node', 'http://127.0.0.1:10249/metrics');
  const text = 'body' in metrics ? metrics.body : '';
  const value = (name: string): number =>
    [...text.matchAll(new RegExp(`^${name}\\{[^}]*\\} ([\\d.e+-]+)$`, 'gm'))].reduce(
      (sum, [, each]) => sum + Number(each),
      0,
    );
  t.ok(value('pointsman_foreign_changes_total') >= 2 * ROUNDS, 'noticed in both families each time');
  t.ok(value('pointsman_repairs_total') >= 2 * ROUNDS, 'counted');
  t.equal(value('pointsman_drift_duration_seconds_count'), value('pointsman_foreign_changes_total'), 'and settled');
});

t.test('/healthz?verbose shows drift until it is repaired', async (t) => {
  const lab = await laboratory(t);
  const refusing = join(t.testdir(), 'refusing');
  const env = faulty({ refuse: { nftTransact: 'EPERM' }, while: refusing });
  const proxy = await Proxy.start(t, lab, { objects: OBJECTS, config: NO_PERIODIC_CHECK, env });
  const health = async (query: string): Promise<string> => {
    const answer = await lab.http('node', `http://127.0.0.1:10256/healthz${query}`);
    return 'body' in answer ? answer.body : '';
  };
  t.match(await health('?verbose'), /"drift":\{\}\}$/);
  await writeFile(refusing, '');
  await lab.output('node', ['nft', 'delete', 'table', 'ip', 'kube-proxy']);
  await eventually('a word about it', async () =>
    (await health('?verbose')).includes('"drift":{"IPv4"') ? true : null,
  );
  await eventually('a failed repair', () => Promise.resolve(proxy.log.includes('EPERM') || null));
  t.match(
    await health('?verbose'),
    /"drift":\{"IPv4":\{"since":"[^"]+","process":"nft\[\d+\]"\}\},"observations":\[\{"kind":"sync".*EPERM/,
  );
  t.notMatch(await health(''), /drift/, 'the usual answer is as ever');
  await rm(refusing);
  await eventually('repair', async () => ((await health('?verbose')).endsWith('"drift":{}}') ? true : null));
  t.match(proxy.log, /repair="chain dispatch was lost"/, 'reported although the first attempt failed');
  await checkRows(t, lab, rows());
  await proxy.consistent();
});

t.test('constant changes of foreign tables cost nothing', inFull, async (t) => {
  const lab = await laboratory(t);
  const env = { POINTSMAN_TRACE_NATIVE: '1' };
  const proxy = await Proxy.start(t, lab, { objects: OBJECTS, config: NO_PERIODIC_CHECK, env });
  // What it does at last after a start is to look for what other modes left, and of that for the link of mode ipvs; and to give memory back, the second time.
  for (const last of [/native linkAddresses\(.*\n/, /native memoryTrim\([^]*native memoryTrim\(.*\n/])
    await eventually('the end of the start', () => Promise.resolve(last.test(proxy.log) || null));
  const logged = proxy.log.length;
  // Each line is a transaction of its own.
  const sets = Array.from({ length: 300 }, (_, index) => `add set ip other s${index} { type ipv4_addr; }\n`);
  await lab.output('node', ['nft', '-i'], `add table ip other\n${sets.join('')}`);
  t.equal((await lab.ruleset()).match(/\bset s\d+ /g)?.length, sets.length, 'they were made');
  t.notMatch(proxy.log.slice(logged), /native /, 'not even a call into the addon');
  const enough = join(t.testdir(), 'enough');
  const script = `until [ -e ${enough} ]; do nft 'add table ip another'; nft 'delete table ip another'; done`;
  const writing = lab.output('node', ['sh', '-c', script]);
  await proxy.restart();
  await proxy.consistent();
  await writeFile(enough, '');
  await writing;
  t.notMatch(proxy.log, /sync failed/, 'nor do they keep a table from being listed');
});

t.test('repeated removal of the table is repaired, within limits', inFull, async (t) => {
  const lab = await laboratory(t);
  const proxy = await Proxy.start(t, lab, { objects: OBJECTS, config: NO_PERIODIC_CHECK });
  const script = `i=0; while [ $i -lt ${usually(20, 100)} ]; do nft flush ruleset; i=$((i+1)); done`;
  await lab.output('node', ['sh', '-c', script]);
  await eventually('the last repair', async () => {
    const ruleset = await lab.ruleset();
    return (ruleset.includes('table ip kube-proxy') && ruleset.includes('table ip6 kube-proxy')) || null;
  });
  await checkRows(t, lab, rows());
  await proxy.consistent();
});

t.test('sysctls that are changed externally are set again', async (t) => {
  const lab = await laboratory(t);
  const proxy = await Proxy.start(t, lab, { objects: OBJECTS });
  const key = 'net/netfilter/nf_conntrack_tcp_timeout_close_wait';
  const wanted = await lab.sysctl('node', key);
  for (let round = 1; round <= 2; round++) {
    await lab.sysctl('node', key, '7');
    await eventually('the value set again', async () => ((await lab.sysctl('node', key)) === wanted ? true : null));
    await eventually('a word about it', () =>
      Promise.resolve(
        proxy.log.match(/repaired an external change of a sysctl.*close_wait" value=3600 found="7"/g)?.length ===
          round || null,
      ),
    );
  }
});

t.test('sysctls are restored once the configuration does not set them', inFull, async (t) => {
  const lab = await laboratory(t);
  const keys = ['tcp_be_liberal', 'udp_timeout', 'tcp_timeout_close_wait'].map(
    (key) => `net/netfilter/nf_conntrack_${key}`,
  );
  const values = (): Promise<readonly string[]> => Promise.all(keys.map((key) => lab.sysctl('node', key)));
  const before = await values();
  const proxy = await Proxy.start(t, lab, { objects: OBJECTS });
  const written = JSON.parse(await readFile(proxy.configFile, 'utf8')) as object;
  const configure = (conntrack: object): Promise<void> =>
    writeFile(proxy.configFile, JSON.stringify({ ...written, conntrack: { maxPerCore: 0, ...conntrack } }));
  const become = (wanted: readonly string[]): Promise<unknown> =>
    eventually(wanted.join(), async () => ((await values()).join() === wanted.join() ? true : null));
  for (const [liberal, udp] of [
    ['1', '77'],
    ['1', '78'],
  ] as const) {
    await configure({ tcpBeLiberal: true, udpTimeout: `${udp}s`, tcpCloseWaitTimeout: '5s' });
    await become([liberal, udp, '5']);
  }
  await configure({ tcpCloseWaitTimeout: '0s' });
  await become(before);
  t.notMatch(proxy.log, /stays: what it was before/);
  t.ok(proxy.isRunning);
});

/** Chains and elements made anew are listed in another order. */
function sorted(ruleset: string): string {
  return ruleset
    .split(/[\n,]/)
    .map((line) => line.replace(/elements = \{|\}/g, '').trim())
    .filter((line) => line !== '')
    .sort()
    .join('\n');
}
