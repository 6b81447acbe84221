import type { Test } from 'tap';
import { Lab } from '../support/lab/lab.js';
import { configuredMode, type LabMode } from '../support/lab/mode.js';
import { dualStack } from '../support/lab/packet-table.js';
import { Proxy } from '../support/lab/proxy.js';
import { laterFaults } from './fault-scene.js';

/** A chain of ours that another program empties: it is repaired, and `status` names who did it, how much, and for how long. */
export async function flushedChain(t: Test, mode: LabMode): Promise<void> {
  const lab = await Lab.start(t);
  const objects = dualStack('web', { number: 41, ports: [{ port: 80 }], endpoints: ['pod-a'] });
  const proxy = await Proxy.start(t, lab, { mode, objects });
  const { flavor } = configuredMode(mode);
  const flush =
    flavor === null
      ? ['nft', 'flush', 'chain', 'ip', 'kube-proxy', 'nat-prerouting']
      : [`iptables-${flavor}`, '-w', '-t', 'nat', '-F', 'KUBE-SERVICES'];
  // Of the kernel's news, who changed the table is known in mode nftables alone.
  const who = mode === 'nftables' ? 'nft\\[\\d+\\]' : 'unknown';
  await laterFaults(t, { lab, proxy }, [
    {
      name: `a flushed chain in mode ${mode}`,
      make: () => lab.output('node', flush),
      command: ['status'],
      says: [
        new RegExp(
          `repairs: [1-9]\\d*, last at \\S+Z: an external change by ${who}, \\d+ differences? repaired in [\\d.]+ s: `,
        ),
      ],
      exit: 0,
    },
  ]);
}
