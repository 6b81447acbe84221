import t from 'tap';
import { removeLeftovers } from '../../../src/dataplane/removal/remove.js';
import { footprintsOn } from '../../../src/dataplane/modes.js';
import { service } from '../../support/rows.js';
import { NODE_ROWS, Rig } from './rig.js';

t.test('who removes the table is told which flows it had noted as still to be removed', async (t) => {
  const rig = new Rig();
  const dns = service('dns', { clusterIPs: ['10.96.0.53'], ports: [{ port: 53, protocol: 'UDP' }] });
  rig.commit([...NODE_ROWS, dns]);
  await rig.sync();
  rig.commit([], [{ kind: 'Service', namespace: 'default', name: 'dns' }]);
  await rig.sync();
  // Killed here.
  const { goneFlows, removed } = await removeLeftovers(rig.kernel, ['IPv4', 'IPv6'], footprintsOn('linux'), null);
  t.same([...goneFlows], [['IPv4', ['10.96.0.53:53/UDP']]]);
  t.ok(removed.includes('nftables: table ip kube-proxy'));
});
