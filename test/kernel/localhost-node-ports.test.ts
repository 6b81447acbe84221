// Mode nftables: node ports on loopback (behaviour SV-36), by listeners of the process.
// needs: nft, iptables
import { readdir, readFile, writeFile } from 'node:fs/promises';
import t from 'tap';
import { usually } from '../support/extent.js';
import { eventually, Lab, type TCPConnection } from '../support/lab/lab.js';
import type { Manifest } from '../support/lab/objects.js';
import { dualStack } from '../support/lab/packet-table.js';
import { Proxy } from '../support/lab/proxy.js';

const GATE = 'KubeProxyNFTablesLocalhostNodePorts';
const LOOPBACK = ['127.0.0.1', '[::1]'] as const;
const PODS = ['pod-a', 'pod-b', 'remote-a'] as const;
const PORTS = {
  web: 30001,
  local: 30002,
  sticky: 30003,
  elsewhere: 30004,
  taken: 30005,
  dns: 30053,
  sctp: 30054,
} as const;
/** One after the other, in both families together; in parts that each say something (test/run.ts). */
const CONNECTIONS = usually(500, 5000);
const OF_A_PART = 500;
const AT_ONCE = 300;

type Pod = (typeof PODS)[number];

function web(pods: readonly Pod[]): Manifest[] {
  const nodePort = (name: string, port: number, endpoints: readonly Pod[], fields: object = {}): Manifest[] =>
    dualStack(name, {
      type: 'NodePort',
      number: port - 30000,
      ports: [{ port: 80, nodePort: port }],
      endpoints: endpoints.map((pod) => ({ pod, targetKind: 'Pod' })),
      ...fields,
    });
  return [
    ...nodePort('web', PORTS.web, pods),
    ...nodePort('local', PORTS.local, pods, { externalTrafficPolicy: 'Local' }),
    ...nodePort('elsewhere', PORTS.elsewhere, ['remote-a'], { externalTrafficPolicy: 'Local' }),
    ...nodePort('sticky', PORTS.sticky, pods, { affinitySeconds: 10_800 }),
    ...nodePort('taken', PORTS.taken, ['pod-a']),
    ...(['UDP', 'SCTP'] as const).flatMap((protocol) => {
      const nodePort = protocol === 'UDP' ? PORTS.dns : PORTS.sctp;
      return dualStack(protocol.toLowerCase(), {
        type: 'NodePort',
        number: nodePort - 30000,
        ports: [{ port: 53, nodePort, protocol }],
        endpoints: [{ pod: 'pod-a', targetKind: 'Pod' }],
      });
    }),
  ];
}

t.test('node ports answer on loopback in mode nftables, by the plan', async (t) => {
  const lab = await Lab.start(t);
  await lab.serveAll(PODS, [[80, 'TCP']]);
  await lab.serveAll(PODS, [[53, 'UDP']]);
  const occupiers = await Promise.all(
    LOOPBACK.map((host) => lab.serve('node', `${host}:${PORTS.taken}`, 'TCP', 'occupier')),
  );
  const config = { featureGates: { [GATE]: true }, nodePortAddresses: ['primary', 'localhost'] };
  const proxy = await Proxy.start(t, lab, { config, objects: web(PODS) });
  const names = async (host: string, port: number, count: number): Promise<ReadonlySet<string>> =>
    new Set(
      (await lab.burst({ from: 'node', to: `${host}:${port}`, timeoutMs: 5000 }, count)).map((outcome) =>
        'name' in outcome ? outcome.name : JSON.stringify(outcome),
      ),
    );
  const metrics = async (): Promise<string> => {
    const answer = await lab.http('node', 'http://127.0.0.1:10249/metrics');
    return 'body' in answer ? answer.body : '';
  };
  const metric = async (name: string, labels: string): Promise<number> =>
    Number(
      (await metrics())
        .split('\n')
        .find((line) => line.startsWith(`kubeproxy_nftables_localhost_nodeport_${name}{${labels}}`))
        ?.split(' ')[1],
    );
  const descriptors = async (): Promise<number> => (await readdir(`/proc/${proxy.pid}/fd`)).length;

  for (const host of LOOPBACK) {
    await eventually(`an answer on ${host}`, async () => (await names(host, PORTS.web, 1)).has('pod-a') || null);
    t.same([...(await names(host, PORTS.web, 60))].sort(), [...PODS].sort(), 'all endpoints');
    t.same([...(await names(host, PORTS.local, 40))].sort(), ['pod-a', 'pod-b'], 'policy Local: those here');
    t.match(await lab.request({ from: 'node', to: `${host}:${PORTS.elsewhere}` }), { error: 'refused' }, 'none here');
    t.equal((await names(host, PORTS.sticky, 30)).size, 1, 'session affinity: one endpoint');
    const udp = { from: 'node', to: `${host}:${PORTS.dns}`, protocol: 'UDP' } as const;
    t.match(await lab.request({ ...udp, timeoutMs: 2000 }), { error: 'refused' }, 'UDP is refused');
    await lab.serve('node', udp.to, 'UDP', 'private');
    t.match(await lab.request({ ...udp, timeoutMs: 2000 }), { error: 'refused' }, 'also if a program listens');
    const sctp = { from: 'node', to: `${host}:${PORTS.sctp}`, protocol: 'SCTP', timeoutMs: 2000 } as const;
    t.match(await lab.request(sctp), { error: 'refused' }, 'SCTP is refused');
  }
  for (const family of ['IPv4', 'IPv6']) {
    t.equal(await metric('rejected_packets_total', `ip_family="${family}",protocol="UDP"`), 2);
    t.equal(await metric('rejected_packets_total', `ip_family="${family}",protocol="SCTP"`), 1);
    t.equal(await metric('listeners', `ip_family="${family}"`), 3);
    t.ok((await metric('listener_creation_failures_total', `ip_family="${family}"`)) >= 1);
  }
  t.match(proxy.log, /cannot listen for a node port on loopback.*default\/taken/);
  for (const { family, problems } of (await proxy.status()).families)
    t.match(problems, [/^cannot listen on .* for node port 30005 of default\/taken: EADDRINUSE$/], family);

  const before = await descriptors();
  for (const host of LOOPBACK) {
    for (let made = 0; made < CONNECTIONS; made += OF_A_PART) {
      const outcomes = await lab.burst({ from: 'node', to: `${host}:${PORTS.web}`, timeoutMs: 10_000 }, OF_A_PART);
      const failed = outcomes.filter((outcome) => !('name' in outcome));
      t.same(failed, [], `${OF_A_PART} connections to ${host}, one after the other`);
    }
    const open: TCPConnection[] = [];
    for (let count = 0; count < AT_ONCE; count++)
      open.push(await lab.open({ from: 'node', to: `${host}:${PORTS.web}` }));
    const answers = await Promise.all(open.map((connection) => connection.exchange()));
    t.ok(
      answers.every((answer) => 'name' in answer),
      `${AT_ONCE} at once`,
    );
    await Promise.all(open.map((connection) => connection.close()));
  }
  await eventually('no descriptor left', async () => (await descriptors()) <= before || null);

  await Promise.all(occupiers.map((occupier) => occupier.close()));
  for (const host of LOOPBACK)
    await eventually(`the free port on ${host}`, async () => (await names(host, PORTS.taken, 1)).has('pod-a') || null);

  const kept: { readonly pod: string; readonly connection: TCPConnection }[] = [];
  for (const host of LOOPBACK)
    for (let count = 0; count < 12; count++) {
      const connection = await lab.open({ from: 'node', to: `${host}:${PORTS.web}` });
      const answer = await connection.exchange();
      kept.push({ pod: 'name' in answer ? answer.name : '', connection });
    }
  t.ok(kept.some(({ pod }) => pod === 'pod-b'));
  await proxy.write(web(['pod-a', 'remote-a']));
  for (const { pod, connection } of kept)
    if (pod === 'pod-b') t.match(await connection.fate(60_000), { error: 'reset' }, 'the endpoint is gone');
    else t.match(await connection.exchange(), { name: pod }, 'others go on');
  const file = JSON.parse(await readFile(proxy.configFile, 'utf8')) as object;
  await writeFile(proxy.configFile, JSON.stringify({ ...file, featureGates: { [GATE]: false } }));
  for (const host of LOOPBACK)
    await eventually(
      `no listener on ${host} without the gate`,
      async () => 'error' in (await lab.request({ from: 'node', to: `${host}:${PORTS.web}` })) || null,
    );
  for (const { pod, connection } of kept)
    if (pod !== 'pod-b') t.match(await connection.fate(10_000), { error: 'reset' }, 'its connections end');
  t.match(proxy.log, /node ports answer on loopback in mode nftables only with feature gate/);
});

t.test('a live change of mode closes the listeners on loopback, and opens them again', async (t) => {
  const lab = await Lab.start(t);
  await lab.serveAll(['pod-a'], [[80, 'TCP']]);
  const config = { featureGates: { [GATE]: true }, nodePortAddresses: ['primary', 'localhost'] };
  const objects = dualStack('web', {
    type: 'NodePort',
    number: 1,
    ports: [{ port: 80, nodePort: PORTS.web }],
    endpoints: ['pod-a'],
  });
  const proxy = await Proxy.start(t, lab, { config, objects, flags: ['--iptables-flavor', 'nft'], mode: 'nftables' });
  const answers = async (host: string): Promise<boolean> =>
    'name' in (await lab.request({ from: 'node', to: `${host}:${PORTS.web}`, timeoutMs: 2000 }));
  const reached = (what: string, holds: () => Promise<boolean>): Promise<unknown> =>
    eventually(what, async () => (await holds()) || null);
  for (const host of LOOPBACK) await reached(`${host} in mode nftables`, () => answers(host));
  const connections = await Promise.all(LOOPBACK.map((host) => lab.open({ from: 'node', to: `${host}:${PORTS.web}` })));
  for (const connection of connections) t.match(await connection.exchange(), { name: 'pod-a' });
  await proxy.useMode('iptables-nft');
  for (const connection of connections) t.match(await connection.fate(10_000), { error: 'reset' });
  await reached('mode iptables, which has rules for IPv4 alone', async () => !(await answers('[::1]')));
  await reached('127.0.0.1 in mode iptables', () => answers('127.0.0.1'));
  await proxy.useMode('nftables');
  for (const host of LOOPBACK) await reached(`${host} in mode nftables again`, () => answers(host));
});
