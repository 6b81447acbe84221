import t from 'tap';
import { renderTable } from '../../../src/dataplane/iptables/render.js';
import { loadAddon } from '../../../src/native/load.js';
import { service, slice } from '../../support/rows.js';
import { NODE_ROWS, Rig } from './rig.js';

t.test('a first sync as iptables-restore takes it', async (t) => {
  const rig = new Rig();
  rig.commit([...NODE_ROWS, service('web'), slice('web', [{ address: '10.0.1.1' }, { address: '10.0.1.2' }])]);
  await rig.sync();
  const lines = renderTable(loadAddon(), rig.table, 'nft', { ...rig.settings, countsPackets: false }).split('\n');
  t.ok(lines.includes('*nat'));
  t.ok(lines.some((line) => line.startsWith(':KUBE-SERVICES - ')));
  t.ok(lines.some((line) => line.startsWith('-I PREROUTING ') && line.endsWith(' -j KUBE-SERVICES')));
  t.ok(lines.some((line) => line.startsWith('-A KUBE-SVC-') && line.endsWith('--to-destination 10.0.1.2:80')));
  t.equal(lines.filter((line) => line === 'COMMIT').length, 3);
});
