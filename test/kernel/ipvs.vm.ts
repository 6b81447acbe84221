// What mode ipvs does with connections, and with what another proxy or mode left: behaviour §5c. Runs in the virtual machine of npm run test:vm.
// needs: ipset, iptables, ip
import '../support/namespace.js';

import t, { type Test } from 'tap';
import { printMessage } from '../../src/dataplane/ipvs/print.js';
import type { IpsetCreation } from '../../src/native/contract.js';
import { loadAddon } from '../../src/native/load.js';
import { endpoint, eventually, HERE_VARIABLE, Lab } from '../support/lab/lab.js';
import { nothingSent, servers } from '../support/lab/ipvs-servers.js';
import { PausedRestore } from '../support/lab/paused-restore.js';
import { checkRows, dualStack, FAMILY_VIEWS, IPV4, type Row } from '../support/lab/packet-table.js';
import type { PeerService } from '../support/lab/peer-iptables.js';
import { allIpvsSets, ipvsLink, ipvsRules, ipvsServers } from '../support/lab/peer-ipvs.js';
import { Proxy } from '../support/lab/proxy.js';
import { OBJECTS, PEER_SERVICES, PODS, ROWS, SERVED, SteadyTraffic, TARGETS } from '../support/lab/takeover-scene.js';

process.env[HERE_VARIABLE] = 'yes';

/** The machine is emulated. */
const TIMEOUT_MS = 20_000;
const GONE_MS = 200_000;
/** Of somebody else; of kube-proxy, if it is told to leave that alone; and of a node port that no Service has any more. */
const FOREIGN = ['-A -t 198.18.0.1:5000 -s wlc', '-a -t 198.18.0.1:5000 -r 10.244.2.11:5000 -m -w 7'];
const EXCLUDED = ['-A -t 192.168.1.2:31234 -s rr'];
const STALE = ['-A -t 192.168.0.2:31235 -s rr', '-A -u [fd00:192:168::2]:31235 -s rr'];
const PEERS: readonly PeerService[] = [
  ...PEER_SERVICES,
  { name: 'default/gone:p80', protocol: 'tcp', number: 45, port: 80, pods: PODS },
];

async function startPeer(lab: Lab): Promise<void> {
  await lab.sysctl('node', 'net/ipv4/vs/conntrack', '1');
  await lab.output('node', ['ip', '-batch', '-'], ipvsLink(FAMILY_VIEWS, PEERS));
  await writePeer(lab);
  const servers = FAMILY_VIEWS.map((view) => ipvsServers(view, PEERS)).join('');
  await lab.output('node', ['ipvsadm', '-R'], servers + [...FOREIGN, ...EXCLUDED, ...STALE, ''].join('\n'));
}

/** kube-proxy's sets and rules, which it makes where there are none, and which have to be as it makes them where there are some. */
async function writePeer(lab: Lab): Promise<void> {
  for (const view of FAMILY_VIEWS) {
    await lab.output('node', ['ipset', '-exist', 'restore'], allIpvsSets(view, PEERS));
    const program = view.family === 'IPv4' ? 'iptables-legacy-restore' : 'ip6tables-legacy-restore';
    await lab.output('node', [program, '--noflush'], ipvsRules(view, true));
  }
}

/** All sets as the addon lists them, in the words of `ipset save`. */
async function listedSets(): Promise<readonly string[]> {
  const { ipset } = loadAddon();
  const listings = await ipset.ipsetList(await ipset.ipsetNames());
  return listings.flatMap((listing): readonly string[] => {
    if (listing === null || listing.elements === null) return [`cannot list ${String(listing?.name)}`];
    const { elements, elementComments: comments } = listing;
    const set = listing as IpsetCreation;
    const lines = printMessage({
      type: 'sets',
      operations: [
        { type: 'create', set },
        { type: 'add', set, elements, comments },
      ],
    });
    // ipset leaves out the length of a single address.
    return lines.map((line) => line.replace(/^ipset /, '').replace(/\/(?:32|128)(?= |$)/, ''));
  });
}

/** The same by `ipset save`, but for what the kernel chooses. */
async function savedSets(lab: Lab): Promise<readonly string[]> {
  const lines = (await lab.output('node', ['ipset', 'save'])).split('\n').filter((line) => line !== '');
  return lines.map((line) => line.replaceAll(/ (?:hashsize|bucketsize|initval) \S+/g, ''));
}

t.test("kube-proxy's virtual services are adopted under traffic, and given back", async (t) => {
  const lab = await Lab.start(t);
  await lab.serveAll(PODS, SERVED);
  await startPeer(lab);
  const traffic = await SteadyTraffic.start(lab, TARGETS, { pauseMs: 100, timeoutMs: TIMEOUT_MS });
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
  const saved = await savedSets(lab);
  t.ok(saved.filter((line) => line.startsWith('add')).length > 20);
  t.same([...(await listedSets())].sort(), [...saved].sort(), 'sets are listed as ipset lists them');
  await checkRows(t, lab, ROWS, 'adopted');
  await proxy.restart();
  await nothingSent(t, proxy);
  await proxy.stop();
  await writePeer(lab);
  await checkRows(t, lab, ROWS, 'kube-proxy again');
  await traffic.check(t, TIMEOUT_MS);
  await changesFlavour(t, lab, proxy);
});

/** In mode iptables, where rules of the other flavour have ip_vs translate until nat is written: what sources are admitted is for those to say. */
async function changesFlavour(t: Test, lab: Lab, proxy: Proxy): Promise<void> {
  const pause = new PausedRestore(t, 'iptables-nft-restore');
  await proxy.useMode('iptables-nft');
  proxy.launch();
  await pause.reached(GONE_MS);
  const to = endpoint(IPV4.loadBalancerIP(3), 80);
  t.match(await lab.request({ from: 'client', to, timeoutMs: TIMEOUT_MS }), { name: /a$/ }, 'before nat is written');
  pause.end();
  await proxy.ready();
  const there = ROWS.filter((row) => row.to === to);
  await checkRows(t, lab, there, 'iptables-nft after ipvs-legacy');
  await proxy.stop();
}

/** What somebody does to what the kernel tells nobody of, with what is said of it. */
const DAMAGE: readonly (readonly [command: string, reported: string])[] = [
  ['ipvsadm -D -t 10.96.0.42:80', 'virtual service 10.96.0.42:80/TCP was missing'],
  ['ipvsadm -E -t 10.96.0.41:80 -s lc', 'virtual service 10.96.0.41:80/TCP was another'],
  ['ipvsadm -d -u 10.96.0.44:53 -r 10.244.2.10:53', 'destinations of 10.96.0.44:53/UDP was another'],
  ['ipset del KUBE-CLUSTER-IP 10.96.0.43,tcp:80', 'element 10.96.0.43,tcp:80 of KUBE-CLUSTER-IP was missing'],
  ['ip address del 192.0.2.3/32 dev kube-ipvs0', 'address 192.0.2.3 was missing'],
  ['iptables-nft -F KUBE-IPVS-FILTER', 'chain filter KUBE-IPVS-FILTER had other rules'],
];

/** Where host ports of pods lead, as rules of others have them for whatever is sent to the node. Of the second nobody listens there. */
const HOST_PORTS = [
  [7777, 'pod-a'],
  [80, 'pod-b'],
] as const;

async function openHostPorts(lab: Lab): Promise<void> {
  for (const view of FAMILY_VIEWS)
    for (const [port, pod] of HOST_PORTS) {
      const program = view.family === 'IPv4' ? 'iptables-nft' : 'ip6tables-nft';
      const rule = `-p tcp -m addrtype --dst-type LOCAL -m tcp --dport ${port} -j DNAT --to-destination`;
      const to = endpoint(view.address(pod), 80);
      await lab.output('node', [program, '-t', 'nat', '-A', 'PREROUTING', ...rule.split(' '), to]);
    }
}

/** Prints the type of what answers an echo request. */
const ECHO = `
import socket, sys
six = ':' in sys.argv[1]
family, protocol, kind = (socket.AF_INET6, 58, 128) if six else (socket.AF_INET, 1, 8)
with socket.socket(family, socket.SOCK_DGRAM, protocol) as asking:
    asking.settimeout(${TIMEOUT_MS / 1000})
    asking.connect((sys.argv[1], 0))
    asking.send(bytes([kind, 0, 0, 0, 0, 0, 0, 1]))
    print(asking.recv(100)[0])
`;
const ECHO_REPLY = { IPv4: 0, IPv6: 129 } as const;

t.test('Service addresses do not expose ports of the node, and node addresses none of Services', async (t) => {
  const lab = await Lab.start(t);
  await lab.serveAll(PODS, SERVED);
  // On every address of either family, those of Services among them.
  await lab.serve('node', '[::]:7777');
  const proxy = await Proxy.start(t, lab, { objects: OBJECTS, mode: 'ipvs-nft' });
  for (const view of FAMILY_VIEWS)
    t.match(await lab.request({ from: 'client', to: view.nodePort(7777) }), { name: 'node' }, 'it listens');
  const shows = 'VD-15, VD-17 no port of the node itself';
  const closed = FAMILY_VIEWS.flatMap((view): Row[] =>
    [view.clusterIP(41), view.loadBalancerIP(3)].flatMap((address) =>
      ['client', 'pod-b', 'node'].map((from) => ({ shows, from, to: endpoint(address, 7777), expect: 'refused' })),
    ),
  );
  await checkRows(t, lab, closed);
  await openHostPorts(lab);
  for (const view of FAMILY_VIEWS)
    t.match(await lab.request({ from: 'client', to: view.nodePort(7777) }), { name: 'pod-a' }, 'a host port answers');
  await checkRows(t, lab, [...closed, ...ROWS], 'IV-22 beside host ports');
  await lab.sysctl('client', 'net/ipv4/ping_group_range', '0 0');
  for (const view of FAMILY_VIEWS) {
    const answered = await lab.output('client', ['python3', '-c', ECHO, view.clusterIP(41)]);
    t.equal(Number(answered), ECHO_REPLY[view.family], 'VD-18 an echo request is answered');
  }

  await lab.output('node', ['ipvsadm', '-R'], `${FOREIGN.join('\n')}\n`);
  const held = async (): Promise<readonly string[]> => [
    ...(await servers(lab)),
    ...(await savedSets(lab)),
    ...(await lab.output('node', ['ip', '-o', 'address', 'show', 'dev', 'kube-ipvs0'])).split('\n'),
    ...(await lab.output('node', ['iptables-nft', '-S'])).split('\n'),
  ];
  const whole = (await held()).toSorted();
  await lab.output('node', ['sh', '-e'], DAMAGE.map(([command]) => `${command}\n`).join(''));
  await eventually(
    'everything is as it was',
    async () => (await held()).toSorted().join('\n') === whole.join('\n') || null,
    GONE_MS,
  );
  for (const [command, reported] of DAMAGE) t.ok(proxy.log.includes(`repair="${reported}"`), `${command}: ${reported}`);

  await proxy.stop();
  const cleaned = await proxy.run(null, ['--cleanup']);
  t.equal(cleaned.status, 0, cleaned.stderr);
  t.same(await servers(lab), ['', ...FOREIGN].toSorted(), "others' virtual services stay");
  t.same(await savedSets(lab), []);
  t.notMatch(await lab.output('node', ['ip', 'link']), /kube-ipvs0/);
  for (const program of ['iptables-nft', 'ip6tables-nft'])
    for (const table of ['filter', 'nat']) t.notMatch(await lab.output('node', [program, '-t', table, '-S']), /KUBE-/);
});

t.test('ipvs: connections survive a removed endpoint and a restart', async (t) => {
  const lab = await Lab.start(t);
  await lab.serveAll(PODS, [[80, 'TCP']]);
  const web = (endpoints: readonly (typeof PODS)[number][]) =>
    dualStack('web', { type: 'NodePort', number: 41, ports: [{ port: 80, nodePort: 30001 }], endpoints });
  const proxy = await Proxy.start(t, lab, { objects: web(['pod-a']), mode: 'ipvs-nft' });
  const [from, to] = ['pod-b', endpoint(IPV4.clusterIP(41), 80)] as const;
  const connection = await lab.open({ from, to });
  const goesOn = async (): Promise<void> => {
    t.match(await connection.exchange({ timeoutMs: TIMEOUT_MS }), { name: 'pod-a' }, 'the connection goes on');
  };
  const weights = async (): Promise<readonly string[]> =>
    (await servers(lab)).flatMap(
      (line) => /-t 10\.96\.0\.41:80 -r (\S+) .*(-w \d)/.exec(line)?.slice(1).join(' ') ?? [],
    );
  const [podA, remoteA] = [endpoint(IPV4.address('pod-a'), 80), endpoint(IPV4.address('remote-a'), 80)];
  await goesOn();
  await proxy.apply(web(['remote-a']));
  t.same(await weights(), [`${podA} -w 0`, `${remoteA} -w 1`], 'takes no new ones');
  await goesOn();
  await checkRows(t, lab, [{ from, to, expect: IPV4.kept(['remote-a'], 80) }], 'draining');
  // Until then there is something to send, whoever looks.
  await eventually(
    'what has no connections is gone',
    async () => (await servers(lab)).filter((line) => line.endsWith(' -w 0')).length === 1 || null,
    GONE_MS,
  );
  await proxy.restart();
  await nothingSent(t, proxy);
  t.same(await weights(), [`${podA} -w 0`, `${remoteA} -w 1`], 'and so after a restart');
  await goesOn();
  await proxy.apply(web(PODS));
  t.same(await weights(), [`${podA} -w 1`, `${remoteA} -w 1`], 'is as any other again');
  await checkRows(t, lab, [{ from, to, expect: IPV4.kept(PODS, 80) }], 'back');
  await proxy.apply([]);
  t.ok((await weights()).includes(`${podA} -w 0`), 'the Service is gone');
  await goesOn();
  // A reset ends a connection at once, but for ten seconds that ip_vs remembers it.
  await connection.close();
  await eventually(
    'its virtual service goes with its last connection',
    async () => ((await servers(lab)).some((line) => line.includes('10.96.0.41')) ? null : true),
    GONE_MS,
  );
});
