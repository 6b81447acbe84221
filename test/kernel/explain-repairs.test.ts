// What explain finds missing in the kernel is repaired at once, in modes where nothing else tells of it.
// needs: iptables
import t from 'tap';
import { eventually, Lab } from '../support/lab/lab.js';
import { MODE_VARIABLE } from '../support/lab/mode.js';
import { dualStack } from '../support/lab/packet-table.js';
import { Proxy } from '../support/lab/proxy.js';

const OBJECTS = dualStack('web', { number: 41, ports: [{ port: 80, targetPort: 8080 }], endpoints: ['pod-a'] });
/** No periodic check comes to help. */
const CONFIG = { iptables: { syncPeriod: '1h' } };

for (const flavor of process.env[MODE_VARIABLE] === undefined ? (['nft', 'legacy'] as const) : [])
  t.test(`explain shows a chain that was emptied, and its repair, flavour ${flavor}`, async (t) => {
    const lab = await Lab.start(t);
    await lab.serveAll(['pod-a'], [[8080, 'TCP']]);
    const mode = `iptables-${flavor}` as const;
    const proxy = await Proxy.start(t, lab, { objects: OBJECTS, mode, config: CONFIG });
    t.match((await proxy.explain('10.244.1.11%veth-b', '10.96.0.41:80')).kernel, { agrees: true });
    t.match((await proxy.status()).families, [{ repairs: { count: 0 } }, { repairs: { count: 0 } }]);
    const saved = await lab.output('node', [`${mode}-save`, '-t', 'nat']);
    const [, chain = ''] = /default\/web\b.* -j (KUBE-SVC-\w+)/.exec(saved) ?? [];
    await lab.output('node', [mode, '-w', '-t', 'nat', '-F', chain]);
    t.match((await proxy.explain('10.244.1.11%veth-b', '10.96.0.41:80')).kernel, { agrees: false }, 'it is named');
    await eventually('that it is repaired', async () => {
      const { families } = await proxy.status();
      return families.some(({ repairs }) => repairs.count > 0) || null;
    });
    t.match((await proxy.explain('10.244.1.11%veth-b', '10.96.0.41:80')).kernel, { agrees: true });
    const answer = await lab.request({ from: 'pod-b', to: '10.96.0.41:80', timeoutMs: 3000 });
    t.ok('at' in answer, 'packets');
  });
