// Tens of thousands of frontends with affinity have a map and two chains each: more commands than one call takes arguments.
import t from 'tap';
import { BUILT_IN_TIMEOUTS } from '../../../src/base/conntrack-timeouts.js';
import { renderTable } from '../../../src/dataplane/nftables/render.js';
import { port, service, slice } from '../../support/rows.js';
import { compiler, NODE_ROWS, Rig } from './rig.js';

/** A Service may have 990 of them. */
const [SERVICES, PORTS] = [50, 900];

t.test('a table of 45,000 frontends with affinity is made', (t) => {
  const rig = new Rig();
  const ports = Array.from({ length: PORTS }, (_, index) => ({ name: `p${index}`, port: 1000 + index }));
  rig.commit([
    ...NODE_ROWS,
    ...Array.from({ length: SERVICES }, (_, index) => [
      service(`web-${index}`, {
        clusterIPs: [`10.96.1.${index + 1}`],
        affinitySeconds: 600,
        ports: ports.map(port),
      }),
      slice(`web-${index}`, [{ address: '10.0.1.1', node: 'me' }], { ports }),
    ]).flat(),
  ]);
  rig.plan();
  const commands = renderTable(compiler, rig.table, false, BUILT_IN_TIMEOUTS);
  const maps = commands.filter((command) =>
    JSON.stringify(command).includes('"map":{"family":"ip","table":"kube-proxy","name":"clients-'),
  );
  t.equal(maps.length, SERVICES * PORTS, 'a map of clients for each');
  t.end();
});
