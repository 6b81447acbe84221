// Modes changed under traffic, in mode ipvs: behaviour §5c. Runs in the virtual machine of npm run test:vm.
// needs: iptables
import '../support/namespace.js';

import t from 'tap';
import { eventually, HERE_VARIABLE, Lab } from '../support/lab/lab.js';
import type { LabMode } from '../support/lab/mode.js';
import { checkRows } from '../support/lab/packet-table.js';
import { Proxy } from '../support/lab/proxy.js';
import { OBJECTS, PODS, ROWS, SERVED, SteadyTraffic, TARGETS } from '../support/lab/takeover-scene.js';

process.env[HERE_VARIABLE] = 'yes';

/** The machine is emulated, perhaps on busy cores. What is lost never comes. */
const TIMEOUT_MS = 100_000;
const GONE_MS = 200_000;

const WAYS: readonly (readonly LabMode[])[] = [
  ['nftables', 'ipvs-nft', 'iptables-nft', 'ipvs-nft', 'nftables'],
  ['iptables-legacy', 'ipvs-legacy', 'iptables-nft'],
];

for (const [first = 'nftables', ...modes] of WAYS) {
  t.test(`mode changes from ${first} to ${modes.join(', ')} under traffic`, async (t) => {
    const lab = await Lab.start(t);
    await lab.serveAll(PODS, SERVED);
    const proxy = await Proxy.start(t, lab, { objects: OBJECTS, mode: first });
    // Flows of UDP go on too, but as if they were new: ip_vs and conntrack do not know of each other's choices.
    const held = TARGETS.filter(({ protocol }) => protocol === 'TCP');
    const traffic = await SteadyTraffic.start(lab, TARGETS, { pauseMs: 100, timeoutMs: TIMEOUT_MS, held });
    for (const mode of modes) {
      // Each step may take longer than the runner waits for a word of all of them.
      t.pass(`${proxy.mode} serves`);
      const former = proxy.mode;
      await proxy.useMode(mode);
      t.pass(`${mode} is in force`);
      await eventually(
        `nothing of ${former} beside ${mode}`,
        async () => ((await remains(lab, former)) ? null : true),
        GONE_MS,
      );
      t.pass(`nothing of ${former} is left`);
      await proxy.consistent();
      t.pass('plan and kernel agree');
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
