// E-41: what a client makes of a segment that conntrack cannot place, which reaches it untranslated if at all (NF-38, IT-22).
// needs: iptables
import { once } from 'node:events';
import type { Readable } from 'node:stream';
import t from 'tap';
import { projectFile } from '../support/lab/agent.js';
import { endpoint, Lab } from '../support/lab/lab.js';
import type { LabMode } from '../support/lab/mode.js';
import { dualStack, IPV4 } from '../support/lab/packet-table.js';
import { Proxy } from '../support/lab/proxy.js';
import { ADDRESSES } from '../support/lab/topology.js';

const LIBERAL = { conntrack: { maxPerCore: 0, tcpBeLiberal: true } };
const CASES: readonly (readonly [mode: LabMode, config: Readonly<Record<string, unknown>>, outcome: string])[] = [
  ['nftables', {}, 'reset'],
  ['iptables-nft', {}, 'quiet'],
  ['iptables-legacy', {}, 'quiet'],
  // Once set it stays: last.
  ['iptables-nft', LIBERAL, 'quiet'],
  ['nftables', LIBERAL, 'quiet'],
];

async function line(stream: Readable): Promise<string> {
  const [text] = (await once(stream, 'data')) as [Buffer];
  return text.toString().trim();
}

t.test('a TCP segment out of the window resets the connection or not, by mode', async (t) => {
  const lab = await Lab.start(t);
  await lab.serveAll(['remote-a'], [[80, 'TCP']]);
  const objects = dualStack('web', { number: 41, ports: [{ port: 80 }], endpoints: ['remote-a'] });
  for (const [mode, config, outcome] of CASES) {
    await t.test(`${mode}${config === LIBERAL ? ', liberal' : ''}`, async (t) => {
      await Proxy.start(t, lab, { mode, config, objects });
      const connection = await lab.open({ from: 'pod-b', to: endpoint(IPV4.clusterIP(41), 80) });
      t.match(await connection.exchange(), { name: 'remote-a' });
      const script = projectFile('test/support/lab/unexpected_segment.py');
      const { stdout } = lab.spawn('remote-a', ['python3', script, ADDRESSES['remote-a'].IPv4, '80']);
      t.equal(await line(stdout), 'ready');
      const reported = line(stdout);
      await connection.exchange();
      t.equal(await reported, outcome, 'the client');
      t.equal('name' in (await connection.exchange()), outcome === 'quiet', 'whether the connection lives on');
      await connection.close();
    });
  }
});
