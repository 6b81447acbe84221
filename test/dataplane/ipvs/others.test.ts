import t from 'tap';
import type { Row } from '../../../src/state/rows.js';
import { printVerdict } from '../../support/plan-tracer.js';
import { address, service, slice } from '../../support/rows.js';
import { NODE_ROWS, Rig } from './rig.js';

/** Rules of others beside the mode's. */

const EXTERNAL = { externalIPs: ['192.0.2.9', '192.168.1.2'], loadBalancer: ['192.0.2.8'] };
const WEB: readonly Row[] = [
  service('web', { clusterIPs: ['10.96.0.1'], ...EXTERNAL }),
  slice('web', [{ address: '10.1.0.1', node: 'me' }]),
];
const LOCAL: readonly Row[] = [
  service('web', { clusterIPs: ['10.96.0.1'], ...EXTERNAL, externalTrafficPolicy: 'Local' }),
  slice('web', [{ address: '10.1.0.1', node: 'me' }]),
];

/** As the portmap plugin of CNI has them. */
function hostPorts(rig: Rig, ports: readonly number[]): void {
  rig.kernel.programs.tamper('nat', (chains) => {
    for (const chain of ['PREROUTING', 'OUTPUT'])
      chains.set(chain, [...(chains.get(chain) ?? []), '-m addrtype --dst-type LOCAL -j CNI-HOSTPORT-DNAT']);
    const rules = ports.map((port) => `-p tcp -m tcp --dport ${port} -j DNAT --to-destination 10.9.0.9:${port}`);
    chains.set('CNI-HOSTPORT-DNAT', rules);
  });
}

t.test("IV-22: host ports answer on the node's addresses, and on no address of a Service", async (t) => {
  for (const rows of [WEB, LOCAL]) {
    const rig = new Rig();
    rig.commit([...NODE_ROWS, ...rows]);
    await rig.sync();
    hostPorts(rig, [80, 8080]);
    await rig.sync(true);
    const ask = (inputInterface: string | null, destination: string, port: number): string => {
      const source = address(inputInterface === null ? '192.168.0.2' : '203.0.113.2');
      const to = { source, destination: address(destination), port, protocol: 'TCP' } as const;
      const verdict = rig.kernel.verdict({ ...to, inputInterface });
      return verdict.type === 'forward' ? printVerdict(verdict).replace(/ .*/, '') : verdict.type;
    };
    for (const link of ['eth0', null]) {
      for (const destination of ['10.96.0.1', '192.0.2.9', '192.168.1.2', '192.0.2.8'])
        t.equal(ask(link, destination, 80), '10.1.0.1:80', `${destination} by ${link ?? 'the node'}`);
      for (const destination of ['10.96.0.1', '192.0.2.9', '192.0.2.8'])
        t.equal(ask(link, destination, 8080), 'reject', `another port of ${destination} by ${link ?? 'the node'}`);
      for (const destination of ['192.168.0.2', '192.168.1.2'])
        t.equal(ask(link, destination, 8080), '10.9.0.9:8080', `the node's own ${destination}`);
    }
  }
});
