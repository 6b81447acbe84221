// An API server that stops answering while its connections stay open: named as soon as it is asked for, long before a bookmark is overdue.
// needs: nft
import t from 'tap';
import { ControlPlane } from '../support/lab/control-plane.js';
import { Lab } from '../support/lab/lab.js';
import { dualStack } from '../support/lab/packet-table.js';
import { Proxy } from '../support/lab/proxy.js';
import { named } from './fault-scene.js';

const OBJECTS = dualStack('web', { number: 41, ports: [{ port: 80 }], endpoints: ['pod-a'] });

/** How often lists and watches of Services were requested. */
async function reads(cluster: ControlPlane): Promise<readonly unknown[]> {
  const { requests } = await cluster.state();
  return Object.entries(requests).filter(([request]) => request.endsWith(' services'));
}

t.test('table of faults: an API server that hangs under a running proxy is named', async (t) => {
  const lab = await Lab.start(t);
  await lab.serveAll(['pod-a'], [[80, 'TCP']]);
  const cluster = await ControlPlane.start(t, lab);
  const proxy = await Proxy.prepare(t, lab, { cluster });
  await proxy.write(OBJECTS);
  const at = { lab, proxy };
  proxy.launch();
  await proxy.ready();
  const before = await reads(cluster);
  cluster.freeze(true);
  await named(t, at, {
    command: ['status'],
    says: [
      /services, endpointslices.* cannot be read from the API server, .*: unavailable: no answer within 3 s/,
      /remedy: check that it runs and is reachable from here: curl -k URL\/livez/,
    ],
  });
  const { stdout } = await lab.run('node', ['curl', '-s', '-m', '60', 'http://127.0.0.1:10256/healthz?verbose']);
  t.match(stdout, /"kind":"api-server",[^}]*: unavailable: no answer within 3 s[^}]*"remedy":"check that it runs/);
  t.match(stdout, /"healthy":true/, 'what was read still forwards');
  t.match(await lab.request({ from: 'client', to: '10.96.0.41:80' }), { name: 'pod-a' });
  cluster.freeze(false);
  t.same(await reads(cluster), before, 'its watches go on: nothing was requested anew');
  await named(t, at, { command: ['status'], says: [/\nhealthy\n/], exit: 0 });
});
