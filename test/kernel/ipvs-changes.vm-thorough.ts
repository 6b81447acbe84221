// Modes changed under traffic, and connections that outlive their endpoint, in mode ipvs: behaviour §5c. Runs in the virtual machine of npm run test:vm.
import '../support/namespace.js';

import t from 'tap';
import { endpoint, eventually, HERE_VARIABLE, Lab } from '../support/lab/lab.js';
import type { LabMode } from '../support/lab/mode.js';
import { nothingSent, servers } from '../support/lab/ipvs-servers.js';
import { checkRows, dualStack, IPV4 } from '../support/lab/packet-table.js';
import { Proxy } from '../support/lab/proxy.js';
import { OBJECTS, PODS, ROWS, SERVED, SteadyTraffic, TARGETS } from '../support/lab/takeover-scene.js';

process.env[HERE_VARIABLE] = 'yes';

/** The machine is emulated. */
const TIMEOUT_MS = 20_000;
const GONE_MS = 200_000;

const WAYS: readonly (readonly LabMode[])[] = [
  ['nftables', 'ipvs-nft', 'iptables-nft', 'ipvs-nft', 'nftables'],
  ['iptables-legacy', 'ipvs-legacy', 'iptables-nft'],
];

for (const [first = 'nftables', ...modes] of WAYS) {
  t.test(`from ${first} to ${modes.join(', ')} under traffic`, async (t) => {
    const lab = await Lab.start(t);
    await lab.serveAll(PODS, SERVED);
    const proxy = await Proxy.start(t, lab, { objects: OBJECTS, mode: first });
    // Flows of UDP go on too, but as if they were new: ip_vs and conntrack do not know of each other's choices.
    const held = TARGETS.filter(({ protocol }) => protocol === 'TCP');
    const traffic = await SteadyTraffic.start(lab, TARGETS, { pauseMs: 100, timeoutMs: TIMEOUT_MS, held });
    for (const mode of modes) {
      const former = proxy.mode;
      await proxy.useMode(mode);
      await eventually(
        `nothing of ${former} beside ${mode}`,
        async () => ((await remains(lab, former)) ? null : true),
        GONE_MS,
      );
      await proxy.consistent();
      await checkRows(t, lab, ROWS, `${mode} after ${former}`);
      await traffic.goesOn(t, TIMEOUT_MS);
    }
    await traffic.check(t, TIMEOUT_MS);
  });
}

/** Whether rules of a mode are there. Virtual services with connections, and sets with them, wait for these. */
async function remains(lab: Lab, mode: LabMode): Promise<boolean> {
  const [name, flavor] = mode.split('-');
  if (flavor === undefined) return (await lab.output('node', ['nft', 'list', 'tables'])).includes('kube-proxy');
  const chain = name === 'ipvs' ? 'KUBE-IPVS-FILTER' : 'KUBE-SVC-';
  return (await lab.output('node', [`iptables-${flavor}-save`])).includes(chain);
}

t.test('connections outlive their endpoint, and the process', async (t) => {
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
