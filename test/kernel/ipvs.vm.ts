// What mode ipvs does with connections, and with what another proxy or mode left: behaviour §5c. Runs in the virtual machine of npm run test:vm.
import '../support/namespace.js';

import t from 'tap';
import { printMessage } from '../../src/dataplane/ipvs/print.js';
import type { IpsetCreation } from '../../src/native/contract.js';
import { loadAddon } from '../../src/native/load.js';
import { HERE_VARIABLE, Lab } from '../support/lab/lab.js';
import { nothingSent, servers } from '../support/lab/ipvs-servers.js';
import { checkRows, FAMILY_VIEWS } from '../support/lab/packet-table.js';
import type { PeerService } from '../support/lab/peer-iptables.js';
import { allIpvsSets, ipvsLink, ipvsRules, ipvsServers } from '../support/lab/peer-ipvs.js';
import { Proxy } from '../support/lab/proxy.js';
import { OBJECTS, PEER_SERVICES, PODS, ROWS, SERVED, SteadyTraffic, TARGETS } from '../support/lab/takeover-scene.js';

process.env[HERE_VARIABLE] = 'yes';

/** The machine is emulated. */
const TIMEOUT_MS = 20_000;
/** Of somebody else; of kube-proxy, if it is told to leave that alone; and of a node port that no Service has any more. */
const FOREIGN = ['-A -t 198.18.0.1:5000 -s wlc', '-a -t 198.18.0.1:5000 -r 10.244.2.11:5000 -m -w 7'];
const EXCLUDED = ['-A -t 192.168.1.2:31234 -s rr'];
const STALE = ['-A -t 192.168.0.2:31235 -s rr', '-A -u [fd00:192:168::2]:31235 -s rr'];
const PEERS: readonly PeerService[] = [
  ...PEER_SERVICES,
  { name: 'default/gone:p80', protocol: 'tcp', number: 45, port: 80, pods: PODS },
];

async function startPeer(lab: Lab, flavor: 'legacy' | 'nft'): Promise<void> {
  const load = (command: readonly string[], input: string): Promise<string> => lab.output('node', command, input);
  await lab.sysctl('node', 'net/ipv4/vs/conntrack', '1');
  await load(['ip', '-batch', '-'], ipvsLink(FAMILY_VIEWS, PEERS));
  for (const view of FAMILY_VIEWS) {
    await load(['ipset', 'restore'], allIpvsSets(view, PEERS));
    await load(['ipvsadm', '-R'], ipvsServers(view, PEERS));
    const program = `${view.family === 'IPv4' ? 'iptables' : 'ip6tables'}-${flavor}-restore`;
    await load([program, '--noflush'], ipvsRules(view, true));
  }
  await load(['ipvsadm', '-R'], `${[...FOREIGN, ...EXCLUDED, ...STALE].join('\n')}\n`);
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

t.test("kube-proxy's virtual services are adopted under traffic", async (t) => {
  const lab = await Lab.start(t);
  await lab.serveAll(PODS, SERVED);
  await startPeer(lab, 'legacy');
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
  await traffic.check(t, TIMEOUT_MS);
});
