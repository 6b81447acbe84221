// From kube-proxy in iptables or ipvs mode to pointsman in nftables mode and back, without a cleanup in between.
import t, { type Test } from 'tap';
import { endpoint, eventually, Lab, type Connection, type TimedOutcome, type Watch } from '../support/lab/lab.js';
import { checkRows, dualStack, FAMILY_VIEWS, type Row } from '../support/lab/packet-table.js';
import { iptablesRules, type PeerService } from '../support/lab/peer-iptables.js';
import { ipvsRules, ipvsSets } from '../support/lab/peer-ipvs.js';
import { Proxy } from '../support/lab/proxy.js';

const PODS = ['pod-a', 'remote-a'] as const;
const FLAVORS = ['legacy', 'nft'] as const;
type Flavor = (typeof FLAVORS)[number];

const OBJECTS = [
  ...dualStack('web', {
    number: 41,
    loadBalancers: [3],
    sourceRanges: ['203.0.113.0/25', '2001:db8:203::/65'],
    ports: [{ name: 'p80', port: 80, nodePort: 30001 }],
    endpoints: PODS,
  }),
  ...dualStack('sticky', { number: 42, affinitySeconds: 10800, ports: [{ name: 'p80', port: 80 }], endpoints: PODS }),
  ...dualStack('empty', { number: 43, ports: [{ name: 'p80', port: 80 }], endpoints: [] }),
  ...dualStack('dns', { number: 44, ports: [{ name: 'dns', port: 53, protocol: 'UDP' }], endpoints: PODS }),
];
const PEER_SERVICES: readonly PeerService[] = [
  { name: 'default/web:p80', protocol: 'tcp', number: 41, port: 80, nodePort: 30001, loadBalancer: 3, pods: PODS },
  { name: 'default/sticky:p80', protocol: 'tcp', number: 42, port: 80, affinitySeconds: 10800, pods: PODS },
  { name: 'default/empty:p80', protocol: 'tcp', number: 43, port: 80, pods: [] },
  { name: 'default/dns:dns', protocol: 'udp', number: 44, port: 53, pods: PODS },
];

const ROWS: readonly Row[] = FAMILY_VIEWS.flatMap((view) => [
  { from: 'pod-b', to: endpoint(view.clusterIP(41), 80), expect: view.kept(PODS, 80) },
  { from: 'pod-b', to: endpoint(view.clusterIP(44), 53), protocol: 'UDP', expect: view.kept(PODS, 53) },
  { from: 'client', to: endpoint(view.loadBalancerIP(3), 80), expect: view.masqueraded(PODS, 80) },
  { from: 'blocked', to: endpoint(view.loadBalancerIP(3), 80), expect: 'dropped' },
  { from: 'client', to: view.nodePort(30001), expect: view.masqueraded(PODS, 80) },
  { from: 'node', to: endpoint(view.clusterIP(41), 80), expect: view.masqueraded(PODS, 80) },
  { from: 'client', to: endpoint(view.clusterIP(43), 80), expect: 'refused' },
]);

const TARGETS = FAMILY_VIEWS.flatMap((view) => [
  { from: 'pod-b', to: endpoint(view.clusterIP(41), 80) },
  { from: 'pod-b', to: endpoint(view.clusterIP(44), 53), protocol: 'UDP' as const },
  { from: 'client', to: endpoint(view.loadBalancerIP(3), 80) },
  { from: 'client', to: view.nodePort(30001) },
  { from: 'node', to: endpoint(view.clusterIP(42), 80) },
]);

/** Rules of somebody else beside kube-proxy's, one of which uses its chain for marking. */
const FOREIGN = `*nat
:CNI-HOSTPORT-SETMARK - [0:0]
:OTHER - [0:0]
-A CNI-HOSTPORT-SETMARK -m comment --comment "portmap -j KUBE-SERVICES" -j KUBE-MARK-MASQ
-A POSTROUTING -m comment --comment other -j OTHER
COMMIT
`;

const programs = (flavor: Flavor): readonly [string, string] => [`iptables-${flavor}`, `ip6tables-${flavor}`];

async function load(lab: Lab, flavor: Flavor, rules: (view: (typeof FAMILY_VIEWS)[number]) => string): Promise<void> {
  for (const [index, view] of FAMILY_VIEWS.entries()) {
    const program = `${programs(flavor)[index] ?? ''}-restore`;
    await lab.output('node', [program, '--noflush', '-w', '30'], rules(view));
  }
}

/** Lines of the listings of both families, without counters and comments of the program. */
async function saved(lab: Lab, flavor: Flavor): Promise<readonly string[]> {
  const texts = await Promise.all(programs(flavor).map((program) => lab.output('node', [`${program}-save`])));
  const lines = texts.flatMap((text) => text.split('\n').filter((line) => /^[-:*]/.test(line)));
  return lines.map((line) => line.replace(/ \[\d+:\d+\]$/, ''));
}

const isKubeProxys = (line: string): boolean => /KUBE-(?!FIREWALL|KUBELET-CANARY|IPTABLES-HINT)/.test(line);

async function gone(lab: Lab, flavor: Flavor, keeps: RegExp = /^$/): Promise<void> {
  await eventually(
    'a node without chains of kube-proxy',
    async () => {
      const rest = (await saved(lab, flavor)).filter((line) => isKubeProxys(line) && !keeps.test(line));
      return rest.length === 0 ? true : null;
    },
    30_000,
  );
}

/** Requests without pause, and connections that stay open, until the end of a test. */
class Traffic {
  private constructor(
    private readonly connections: readonly Connection[],
    private readonly watches: readonly Watch[],
  ) {}

  static async start(lab: Lab, targets: typeof TARGETS): Promise<Traffic> {
    const connections = await Promise.all(targets.map((target) => lab.open(target)));
    for (const connection of connections) await connection.exchange({ timeoutMs: 2000 });
    return new Traffic(
      connections,
      await Promise.all(targets.map((target) => lab.watch({ ...target, timeoutMs: 3000 }, 1, 1))),
    );
  }

  async check(t: Test): Promise<void> {
    const outcomes: readonly TimedOutcome[] = (await Promise.all(this.watches.map((watch) => watch.stop()))).flat();
    t.ok(outcomes.length > 0);
    t.same(
      outcomes.filter((outcome) => 'error' in outcome),
      [],
      'no request is lost',
    );
    for (const connection of this.connections)
      t.hasProp(await connection.exchange({ timeoutMs: 2000 }), 'name', 'no connection is lost');
  }
}

for (const flavor of FLAVORS) {
  t.test(`from kube-proxy in iptables mode (${flavor}) to pointsman and back, under traffic`, async (t) => {
    const lab = await Lab.start(t);
    await lab.serveAll(PODS, [
      [80, 'TCP'],
      [53, 'UDP'],
    ]);
    await load(lab, flavor, (view) => iptablesRules(view, PEER_SERVICES));
    // Twice what is there once as a rule, and in another order.
    await load(lab, flavor, () => '*nat\n-A OUTPUT -j KUBE-SERVICES\nCOMMIT\n');
    await checkRows(t, lab, ROWS, 'kube-proxy alone');
    const before = await saved(lab, flavor);
    const traffic = await Traffic.start(lab, TARGETS);

    const proxy = await Proxy.start(t, lab, { objects: OBJECTS });
    await gone(lab, flavor);
    await checkRows(t, lab, ROWS, 'after the takeover');
    await proxy.consistent();
    t.same(
      await saved(lab, flavor),
      before.filter((line) => !isKubeProxys(line)),
      "kubelet's chains and the others' rules are as they were",
    );
    t.match(proxy.log, /removed what another proxy mode left/);

    await proxy.stop('SIGTERM');
    await load(lab, flavor, (view) => iptablesRules(view, PEER_SERVICES));
    for (const ip of ['ip', 'ip6']) await lab.output('node', ['nft', 'delete', 'table', ip, 'kube-proxy']);
    await checkRows(t, lab, ROWS, 'kube-proxy started again and removed our table');
    await traffic.check(t);
  });

  t.test(`chains that others use stay, and --cleanup removes the rest (${flavor})`, async (t) => {
    const lab = await Lab.start(t);
    await lab.serveAll(PODS, [[80, 'TCP']]);
    await load(lab, flavor, (view) => iptablesRules(view, PEER_SERVICES));
    await load(lab, flavor, () => FOREIGN);
    const proxy = await Proxy.prepare(t, lab, { objects: OBJECTS });
    await proxy.write(OBJECTS);
    const cleaned = await proxy.run(null, ['--cleanup']);
    t.equal(cleaned.status, 0, cleaned.stderr);
    t.match(cleaned.stderr + cleaned.stdout, 'KUBE-MARK-MASQ, which CNI-HOSTPORT-SETMARK leads to');
    const rest = await saved(lab, flavor);
    t.same(
      rest.filter((line) => line.startsWith(':KUBE-') && isKubeProxys(line)),
      FAMILY_VIEWS.flatMap(() => [':KUBE-MARK-MASQ -', ':KUBE-POSTROUTING -']),
    );
    t.ok(rest.includes('-A POSTROUTING -m comment --comment other -j OTHER'));
    t.ok(rest.some((line) => line.startsWith('-A POSTROUTING') && line.endsWith('-j KUBE-POSTROUTING')));
    t.equal(rest.filter((line) => line.endsWith('-j KUBE-FIREWALL')).length, 4);
    t.match(await proxy.run(null, ['--cleanup']), { status: 0 }, 'once more');
  });

  t.test(`from kube-proxy in ipvs mode (${flavor}): chains, jumps and sets`, async (t) => {
    const lab = await Lab.start(t);
    await lab.serveAll(PODS, [
      [80, 'TCP'],
      [53, 'UDP'],
    ]);
    for (const view of FAMILY_VIEWS)
      await lab.output(
        'node',
        ['ipset', 'restore'],
        ipvsSets(view, PEER_SERVICES) + `create OTHER-${view.family} hash:ip\n`,
      );
    await load(lab, flavor, ipvsRules);
    const before = await saved(lab, flavor);
    const proxy = await Proxy.start(t, lab, { objects: OBJECTS });
    await gone(lab, flavor);
    await eventually(
      'a node without sets of kube-proxy',
      async () => (/^KUBE-/m.test(await lab.output('node', ['ipset', 'list', '-n'])) ? null : true),
      30_000,
    );
    t.equal(await lab.output('node', ['ipset', 'list', '-n']), 'OTHER-IPv4\nOTHER-IPv6\n');
    t.same(
      await saved(lab, flavor),
      before.filter((line) => !isKubeProxys(line)),
    );
    await checkRows(t, lab, ROWS);
    await proxy.stop('SIGTERM');
  });
}
