// From kube-proxy in iptables or ipvs mode to pointsman in nftables mode and back, without a cleanup in between.
// needs: ipset, iptables
import t from 'tap';
import { endpoint, eventually, Lab } from '../support/lab/lab.js';
import { checkRows, FAMILY_VIEWS, type Row } from '../support/lab/packet-table.js';
import { iptablesRules } from '../support/lab/peer-iptables.js';
import { ipvsRules, ipvsSets } from '../support/lab/peer-ipvs.js';
import { Proxy } from '../support/lab/proxy.js';
import {
  OBJECTS,
  PEER_SERVICES,
  PODS,
  SERVED,
  ROWS as SERVICE_ROWS,
  SteadyTraffic,
} from '../support/lab/takeover-scene.js';

const FLAVORS = ['legacy', 'nft'] as const;
type Flavor = (typeof FLAVORS)[number];

/** Of kube-proxy in iptables mode, and of ours in nftables mode. */
const ROWS: readonly Row[] = [
  ...SERVICE_ROWS,
  ...FAMILY_VIEWS.map((view): Row => ({
    from: 'node',
    to: endpoint(view.clusterIP(41), 80),
    expect: view.masqueraded(PODS, 80),
  })),
];

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

for (const flavor of FLAVORS) {
  t.test(`migration from kube-proxy in iptables mode (${flavor}) to pointsman and back, under traffic`, async (t) => {
    const lab = await Lab.start(t);
    await lab.serveAll(PODS, SERVED);
    await load(lab, flavor, (view) => iptablesRules(view, PEER_SERVICES));
    // Twice what is there once as a rule, and in another order.
    await load(lab, flavor, () => '*nat\n-A OUTPUT -j KUBE-SERVICES\nCOMMIT\n');
    await checkRows(t, lab, ROWS, 'kube-proxy alone');
    const before = await saved(lab, flavor);
    const traffic = await SteadyTraffic.start(lab, TARGETS);

    const proxy = await Proxy.start(t, lab, { objects: OBJECTS });
    await gone(lab, flavor);
    await checkRows(t, lab, ROWS, 'after the takeover');
    await proxy.consistent();
    t.same(
      await saved(lab, flavor),
      before.filter((line) => !isKubeProxys(line)),
      "kubelet's chains and the others' rules are as they were",
    );
    t.match(proxy.log, /removed rules of another proxy mode/);

    await proxy.stop('SIGTERM');
    await load(lab, flavor, (view) => iptablesRules(view, PEER_SERVICES));
    for (const ip of ['ip', 'ip6']) await lab.output('node', ['nft', 'delete', 'table', ip, 'kube-proxy']);
    await checkRows(t, lab, ROWS, 'kube-proxy started again and removed our table');
    await traffic.check(t);
  });

  t.test(`chains that foreign rules use stay, and --cleanup removes the rest (${flavor})`, async (t) => {
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

  t.test(`migration from kube-proxy in ipvs mode (${flavor}): chains, jumps and sets`, async (t) => {
    const lab = await Lab.start(t);
    await lab.serveAll(PODS, SERVED);
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
