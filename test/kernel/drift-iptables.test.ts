// What others do to our chains is found and repaired within seconds, although nothing tells of it; what they do to theirs is left alone.
// needs: iptables
import t from 'tap';
import { eventually, Lab } from '../support/lab/lab.js';
import { MODE_VARIABLE } from '../support/lab/mode.js';
import { dualStack } from '../support/lab/packet-table.js';
import { Proxy } from '../support/lab/proxy.js';
import { jumpOf } from './jump.js';

const OBJECTS = dualStack('web', { number: 41, ports: [{ port: 80, targetPort: 8080 }], endpoints: ['pod-a'] });
/** No periodic check comes to help. */
const CONFIG = { iptables: { syncPeriod: '1h' } };
const NOTICED = '"external change to the table"';
const REPAIRED = '"repaired what the kernel no longer held';

for (const flavor of process.env[MODE_VARIABLE] === undefined ? (['nft', 'legacy'] as const) : [])
  t.test(`external changes of iptables rules are repaired, flavour ${flavor}`, async (t) => {
    const lab = await Lab.start(t);
    await lab.serveAll(['pod-a'], [[8080, 'TCP']]);
    const mode = `iptables-${flavor}` as const;
    const env = { POINTSMAN_TRACE_NATIVE: '1' };
    const proxy = await Proxy.start(t, lab, { objects: OBJECTS, mode, config: CONFIG, env });
    const change = (...parameters: readonly string[]): Promise<unknown> =>
      lab.output('node', [mode, '-w', ...parameters]);
    const logged = (from: number, ...words: readonly string[]): Promise<true | null> =>
      Promise.resolve(words.every((word) => proxy.log.slice(from).includes(word)) || null);
    const saved = await lab.output('node', [`${mode}-save`, '-t', 'nat']);
    const [, chain = ''] = /default\/web\b.* -j (KUBE-SVC-\w+)/.exec(saved) ?? [];

    for (const [title, repair, ...parameters] of [
      ['a chain that was emptied', `nat ${chain}`, '-t', 'nat', '-F', chain],
      ['a jump that was deleted', 'nat PREROUTING', ...jumpOf(saved, 'PREROUTING')],
      ['a table that was emptied', 'nat KUBE-SERVICES', '-t', 'nat', '-F'],
    ] as const) {
      const from = proxy.log.length;
      await change(...parameters);
      await eventually(`repair of ${title}`, () => logged(from, NOTICED, REPAIRED, repair));
      const answer = await lab.request({ from: 'pod-b', to: '10.96.0.41:80', timeoutMs: 3000 });
      t.ok('at' in answer, `packets after ${title}`);
    }

    await proxy.consistent();
    const calm = proxy.log.length;
    await change('-t', 'nat', '-N', 'OTHERS');
    await change('-t', 'nat', '-A', 'OTHERS', '-d', '192.0.2.1/32', '-j', 'RETURN');
    await change('-A', 'INPUT', '-s', '192.0.2.2/32', '-j', 'DROP');
    const look = flavor === 'nft' ? 'native nftGeneration' : 'native iptablesSizes';
    await eventually('a look at it, and a further one', () => {
      const listed = proxy.log.indexOf('native iptablesList', calm);
      return listed < 0 ? Promise.resolve(null) : logged(listed, look);
    });
    t.notOk(proxy.log.slice(calm).includes(NOTICED), 'nothing is repaired');
    t.notOk(proxy.log.slice(calm).includes('native iptablesRestore'), 'nor written');
    t.match(await lab.output('node', [`${mode}-save`]), /OTHERS -d 192\.0\.2\.1/, 'rules that are not ours stay');
    await proxy.consistent();
  });
