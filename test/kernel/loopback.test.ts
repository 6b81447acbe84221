// 127.0.0.0/8 in iptables mode: routed for node ports (behaviour ST-44), and never open to the network.
// needs: iptables
import { readFile, writeFile } from 'node:fs/promises';
import t from 'tap';
import { ControlPlane } from '../support/lab/control-plane.js';
import { endpoint, eventually, Lab, type Answer } from '../support/lab/lab.js';
import { dualStack } from '../support/lab/packet-table.js';
import { ADDRESSES } from '../support/lab/topology.js';
import { Proxy } from '../support/lab/proxy.js';

const PODS = ['pod-a', 'remote-a'] as const;
const WEB = dualStack('web', { type: 'NodePort', number: 41, ports: [{ port: 80, nodePort: 30001 }], endpoints: PODS });

t.test('loopback is never open to the network, and serves node ports once rules are written', async (t) => {
  const lab = await Lab.start(t);
  await lab.serveAll(PODS, [[80, 'TCP']]);
  await lab.serve('node', '127.0.0.1:8080', 'TCP', 'private');
  const ROUTE = 'net/ipv4/conf/all/route_localnet';
  const plane = await ControlPlane.start(t, lab);
  const proxy = await Proxy.prepare(t, lab, {
    mode: 'iptables-nft',
    cluster: plane,
    config: { nodePortAddresses: ['0.0.0.0/0'], conntrack: { maxPerCore: 0, udpTimeout: '77s' } },
  });
  await proxy.write(WEB);

  // A neighbour that sends packets for 127.0.0.1 to the node.
  await lab.removeAddress('remote-node', 'lo', '127.0.0.1/8');
  await lab.sysctl('remote-node', ROUTE, '1');
  await lab.addRoute('remote-node', '127.0.0.1/32', '192.168.0.2');
  const intruder = { from: 'remote-node', to: '127.0.0.1:8080', source: '192.168.0.3' };
  const intrusion = (timeoutMs: number): Promise<Answer> => lab.request({ ...intruder, timeoutMs });
  await lab.sysctl('node', ROUTE, '1');
  t.match(await intrusion(5000), { name: 'private' }, 'it would get in without a guard');
  await lab.sysctl('node', ROUTE, '0');

  t.match(await proxy.initialise(), { status: 0 });
  t.equal((await lab.sysctl('node', ROUTE)).trim(), '0', 'not by --init-only');
  t.match(await intrusion(300), { error: 'timeout' });

  await plane.down();
  proxy.launch();
  await eventually('attempts to reach the API server', () => Promise.resolve(/ECONN/.test(proxy.log) || null));
  t.equal((await lab.sysctl('node', ROUTE)).trim(), '0', 'not without the rules');
  t.match(await intrusion(300), { error: 'timeout' });

  await plane.up();
  await proxy.ready();
  const isServed = async (): Promise<boolean> =>
    'name' in (await lab.request({ from: 'node', to: '127.0.0.1:30001', timeoutMs: 1000 }));
  const routed = async (): Promise<string> => (await lab.sysctl('node', ROUTE)).trim();
  await eventually('a node port on loopback', async () => (await isServed()) || null);
  t.equal(await routed(), '1');
  t.match(await intrusion(300), { error: 'timeout' }, 'guarded');
  await lab.removeAddress('pod-b', 'lo', '127.0.0.1/8');
  await lab.sysctl('pod-b', ROUTE, '1');
  await lab.addRoute('pod-b', '127.0.0.1/32', '10.244.1.1');
  const isolated = async (): Promise<void> => {
    for (const to of ['127.0.0.1:8080', '127.0.0.1:30001'])
      for (const forged of [intruder, { from: 'pod-b', source: '10.244.1.11' }])
        t.match(
          await lab.request({ ...forged, to, timeoutMs: 300 }),
          { error: 'timeout' },
          `${to} from ${forged.from} is guarded`,
        );
  };
  await isolated();
  await lab.sysctl('node', ROUTE, '0');
  await eventually('node ports on loopback after an external change', async () => (await isServed()) || null);
  t.equal(await routed(), '1', 'set again');
  t.match(proxy.log, /repaired an external change of a sysctl.*route_localnet/);

  const { pid } = proxy;
  const file = JSON.parse(await readFile(proxy.configFile, 'utf8')) as object;
  const attempts = await lab.watch({ ...intruder, timeoutMs: 100 }, 4, 1);
  for (const localhostNodePorts of [false, true, false]) {
    await writeFile(proxy.configFile, JSON.stringify({ ...file, iptables: { localhostNodePorts } }));
    await eventually(`node ports on loopback: ${localhostNodePorts}`, async () => {
      const followed =
        (await isServed()) === localhostNodePorts && (await routed()) === (localhostNodePorts ? '1' : '0');
      return followed || null;
    });
    await proxy.consistent();
  }
  const outcomes = await attempts.stop();
  t.ok(outcomes.length > 0);
  t.same(
    outcomes.filter((outcome) => 'name' in outcome),
    [],
    'not while it is opened or closed either',
  );
  t.equal(proxy.pid, pid, 'the same process all the time');

  // Node ports on loopback alone.
  await writeFile(proxy.configFile, JSON.stringify({ ...file, nodePortAddresses: ['127.0.0.0/8'] }));
  await eventually('a node port on loopback', async () => (await isServed()) || null);
  await proxy.consistent();
  await isolated();
  const elsewhere = endpoint(ADDRESSES.node.IPv4, 30001);
  t.match(
    await lab.request({ from: 'node', to: elsewhere, timeoutMs: 1000 }),
    { error: 'refused' },
    'no other address',
  );
  await proxy.restart();
  t.ok(await isServed());
  t.equal(await routed(), '1');
  await isolated();
});
