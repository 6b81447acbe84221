import t from 'tap';
import { removeLeftovers } from '../../../src/dataplane/removal/remove.js';
import { footprintsOn } from '../../../src/dataplane/modes.js';
import { service } from '../../support/rows.js';
import { NODE_ROWS, Rig } from './rig.js';

t.test('the removal of the table returns the flows that were noted in it', async (t) => {
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
