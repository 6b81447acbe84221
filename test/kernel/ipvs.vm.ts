// What mode ipvs does with connections, and with what another proxy or mode left: behaviour §5c. Runs in the virtual machine of npm run test:vm.
import '../support/namespace.js';

import t, { type Test } from 'tap';
import { endpoint, HERE_VARIABLE, Lab, type Connection, type Watch } from '../support/lab/lab.js';
import { checkRows, dualStack, FAMILY_VIEWS, type Row } from '../support/lab/packet-table.js';
import type { PeerService } from '../support/lab/peer-iptables.js';
import { allIpvsSets, ipvsLink, ipvsRules, ipvsServers } from '../support/lab/peer-ipvs.js';
import { Proxy } from '../support/lab/proxy.js';

process.env[HERE_VARIABLE] = 'yes';

const PODS = ['pod-a', 'remote-a'] as const;
const WEB = { number: 41, ports: [{ name: 'p80', port: 80, nodePort: 30001 }] } as const;
const OBJECTS = [
  ...dualStack('web', {
    ...{ ...WEB, endpoints: PODS },
    loadBalancers: [3],
    sourceRanges: ['203.0.113.0/25', '2001:db8:203::/65'],
  }),
  ...dualStack('sticky', { number: 42, affinitySeconds: 10800, ports: [{ name: 'p80', port: 80 }], endpoints: PODS }),
  ...dualStack('empty', { number: 43, ports: [{ name: 'p80', port: 80 }], endpoints: [] }),
  ...dualStack('dns', { number: 44, ports: [{ name: 'dns', port: 53, protocol: 'UDP' }], endpoints: PODS }),
];
const ROWS: readonly Row[] = FAMILY_VIEWS.flatMap((view) => [
  { from: 'pod-b', to: endpoint(view.clusterIP(41), 80), expect: view.kept(PODS, 80) },
  { from: 'pod-b', to: endpoint(view.clusterIP(44), 53), protocol: 'UDP', expect: view.kept(PODS, 53) },
  { from: 'client', to: endpoint(view.loadBalancerIP(3), 80), expect: view.masqueraded(PODS, 80) },
  { from: 'blocked', to: endpoint(view.loadBalancerIP(3), 80), expect: 'dropped' },
  { from: 'client', to: view.nodePort(30001), expect: view.masqueraded(PODS, 80) },
  { from: 'client', to: endpoint(view.clusterIP(43), 80), expect: 'refused' },
]);
const TARGETS = ROWS.filter(({ expect }) => expect.includes(':')).map(({ from, to, protocol = 'TCP' as const }) => ({
  ...{ from, to, protocol },
}));

/** Requests without pause, and connections that stay open, until the end of a test. */
class Traffic {
  private constructor(
    private readonly connections: readonly { readonly connection: Connection; readonly name: string }[],
    private readonly watches: readonly Watch[],
  ) {}

  static async start(lab: Lab): Promise<Traffic> {
    const connections = await Promise.all(
      TARGETS.filter(({ protocol }) => protocol === 'TCP').map(async (target) => {
        const connection = await lab.open(target);
        const answer = await connection.exchange();
        return { connection, name: 'name' in answer ? answer.name : answer.error };
      }),
    );
    const watches = TARGETS.map((target) => lab.watch({ ...target, timeoutMs: 20_000 }, 1, 100));
    return new Traffic(connections, await Promise.all(watches));
  }

  async check(t: Test): Promise<void> {
    const outcomes = (await Promise.all(this.watches.map((watch) => watch.stop()))).flat();
    t.ok(outcomes.length > 0);
    t.same(
      outcomes.filter((outcome) => 'error' in outcome),
      [],
      'no request is lost',
    );
    for (const { connection, name } of this.connections)
      t.match(await connection.exchange(), { name }, 'an established connection goes on');
  }
}

async function servers(lab: Lab): Promise<readonly string[]> {
  return (await lab.output('node', ['ipvsadm', '-Sn'])).split('\n').sort();
}

/** That the last start found nothing to send. */
async function nothingSent(t: Test, proxy: Proxy): Promise<void> {
  for (const { family, recentSyncs } of (await proxy.status()).families) {
    const sent = recentSyncs.map(({ transactions, elementOperations, ruleOperations }) => [
      ...[transactions, elementOperations, ruleOperations],
    ]);
    t.ok(sent.length > 0);
    t.same(
      sent.filter((numbers) => numbers.some((number) => number > 0)),
      [],
      `a restart sends nothing for ${family}`,
    );
  }
}

/** Of somebody else; of kube-proxy, if it is told to leave that alone; and of a node port that no Service has any more. */
const FOREIGN = ['-A -t 198.18.0.1:5000 -s wlc', '-a -t 198.18.0.1:5000 -r 10.244.2.11:5000 -m -w 7'];
const EXCLUDED = ['-A -t 192.168.1.2:31234 -s rr'];
const STALE = ['-A -t 192.168.0.2:31235 -s rr', '-A -u [fd00:192:168::2]:31235 -s rr'];
const PEER_SERVICES: readonly PeerService[] = [
  { name: 'default/web:p80', protocol: 'tcp', number: 41, port: 80, nodePort: 30001, loadBalancer: 3, pods: PODS },
  { name: 'default/sticky:p80', protocol: 'tcp', number: 42, port: 80, affinitySeconds: 10800, pods: PODS },
  { name: 'default/empty:p80', protocol: 'tcp', number: 43, port: 80, pods: [] },
  { name: 'default/dns:dns', protocol: 'udp', number: 44, port: 53, pods: PODS },
  { name: 'default/gone:p80', protocol: 'tcp', number: 45, port: 80, pods: PODS },
];

async function startPeer(lab: Lab, flavor: 'legacy' | 'nft'): Promise<void> {
  const load = (command: readonly string[], input: string): Promise<string> => lab.output('node', command, input);
  await lab.sysctl('node', 'net/ipv4/vs/conntrack', '1');
  await load(['ip', '-batch', '-'], ipvsLink(FAMILY_VIEWS, PEER_SERVICES));
  for (const view of FAMILY_VIEWS) {
    await load(['ipset', 'restore'], allIpvsSets(view, PEER_SERVICES));
    await load(['ipvsadm', '-R'], ipvsServers(view, PEER_SERVICES));
    const program = `${view.family === 'IPv4' ? 'iptables' : 'ip6tables'}-${flavor}-restore`;
    await load([program, '--noflush'], ipvsRules(view, true));
  }
  await load(['ipvsadm', '-R'], `${[...FOREIGN, ...EXCLUDED, ...STALE].join('\n')}\n`);
}

t.test("kube-proxy's virtual services are adopted under traffic", async (t) => {
  const lab = await Lab.start(t);
  await lab.serveAll(PODS, [
    [80, 'TCP'],
    [53, 'UDP'],
  ]);
  await startPeer(lab, 'legacy');
  const traffic = await Traffic.start(lab);
  const before = await servers(lab);
  const mode = 'ipvs-legacy';
  const proxy = await Proxy.start(t, lab, {
    objects: OBJECTS,
    mode,
    config: { ipvs: { excludeCIDRs: ['192.168.1.2/32'] } },
  });
  await proxy.consistent();
  const isLeft = (line: string): boolean =>
    !STALE.includes(line) &&
    !/10\.96\.0\.45|10:96::45/.test(line) &&
    !/ (192\.168\.1\.2|\[fd00:192:168:1::2\]):30001/.test(line);
  const after = await servers(lab);
  const isMarker = (line: string): boolean => /10\.96\.255\.254|10:96::fffe/.test(line);
  t.same(
    after.filter((line) => !isMarker(line)),
    before.filter(isLeft),
    'what is wanted, what is of others and what is excluded stays; the rest goes',
  );
  const sets = await lab.output('node', ['ipset', 'list', '-n']);
  t.notMatch(sets, /LOOP-BACK/, 'nothing is left that is for nothing');
  await checkRows(t, lab, ROWS, 'adopted');
  await proxy.restart();
  await nothingSent(t, proxy);
  await traffic.check(t);
});
