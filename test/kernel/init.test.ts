// --init-only, and a process after it that has nothing but CAP_NET_ADMIN: behaviour CL-62.
import { readFile } from 'node:fs/promises';
import t from 'tap';
import { ControlPlane } from '../support/lab/control-plane.js';
import { endpoint, Lab } from '../support/lab/lab.js';
import { checkRows, dualStack, FAMILY_VIEWS } from '../support/lab/packet-table.js';
import { Proxy } from '../support/lab/proxy.js';

const ONLY_NET_ADMIN = ['setpriv', '--bounding-set=-all,+net_admin', '--inh-caps=-all', '--'];
const CAP_NET_ADMIN = 1n << 12n;
const PODS = ['pod-a', 'remote-a'] as const;

t.test('CL-62: --init-only sets kernel parameters, and the proxy runs without privileges', async (t) => {
  const lab = await Lab.start(t);
  await lab.serveAll(PODS, [
    [80, 'TCP'],
    [53, 'UDP'],
  ]);
  const plane = await ControlPlane.start(t, lab);
  const ports = [
    { name: 'http', port: 80, nodePort: 30001 },
    { name: 'dns', port: 53, protocol: 'UDP' as const },
  ];
  const objects = dualStack('web', { type: 'NodePort', number: 41, ports, endpoints: PODS });
  const proxy = await Proxy.prepare(t, lab, {
    cluster: plane,
    config: { conntrack: { maxPerCore: 0, udpTimeout: '77s' } },
    launcher: ONLY_NET_ADMIN,
  });
  await proxy.write(objects);
  const initialised = await proxy.initialise();
  const onlyTheServer = /^I\S+ \S+ +\d+ \S+ "API server" server="https:\S+" .*\n$/;
  t.match(initialised, { status: 0, stderr: onlyTheServer }, 'with all privileges');
  t.equal((await lab.output('node', ['cat', '/proc/sys/net/netfilter/nf_conntrack_udp_timeout'])).trim(), '77');
  t.equal(await lab.ruleset(), '', 'nothing is programmed');
  t.ok(((await plane.state()).requests['watchlist nodes'] ?? 0) > 0, 'the Node was looked up');

  proxy.launch();
  await proxy.ready();
  const status = await readFile(`/proc/${proxy.pid ?? 0}/status`, 'utf8');
  t.equal(BigInt(`0x${/^CapEff:\s*(\S+)$/m.exec(status)?.[1] ?? '0'}`), CAP_NET_ADMIN, 'no other privilege');
  t.notMatch(proxy.log, /sysctl|nf_conntrack/, 'all is right already');
  const rows = FAMILY_VIEWS.flatMap((view) => [
    { from: 'pod-c', to: endpoint(view.clusterIP(41), 80), expect: view.kept(PODS, 80) },
    { from: 'client', to: view.nodePort(30001), expect: view.masqueraded(PODS, 80) },
    { from: 'pod-c', to: endpoint(view.clusterIP(41), 53), protocol: 'UDP' as const, expect: view.kept(PODS, 53) },
  ]);
  await checkRows(t, lab, rows);
  await proxy.apply([]);
  t.notMatch(proxy.log, /sync failed|EPERM/, 'flows are looked at too');
});
