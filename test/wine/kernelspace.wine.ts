import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import t, { type Test } from 'tap';
import { nodeObject, serviceObject, sliceObject } from '../support/api-objects.js';
import { ApiServer } from '../support/api-server/server.js';
import { Authority } from '../support/certificates.js';
import { isChange, refusal, type HnsCall } from './hns-server.js';
import { freePort, NODE_NAME, until, WindowsNode } from './node.js';
import { windowsPath } from './windows.js';

const ONE = '10.96.0.10 to 10.1.1.1';
const TWO = '10.96.0.10 to 10.1.1.1 10.1.1.2';

t.test('the Windows proxy programs HNS from manifests, and again after a kill', async (t) => {
  const node = await WindowsNode.make(t);
  node.put('web', serviceObject('web'), sliceObject('web', 'web', ['10.1.1.1']));
  const first = node.start(...node.fromManifests);
  await node.healthy();
  t.same(node.held(), ['10.1.1.1', ONE]);
  t.match((await node.get('metrics', '/metrics')).text, /^kubeproxy_sync_proxy_rules_last_timestamp_seconds\{/m);
  t.match(await node.status(), { status: 0, stdout: /kernelspace/ });
  t.match(await node.command('dump'), { status: 0, stdout: /10\.96\.0\.10/ });
  node.server.calls.length = 0;
  node.put('web', serviceObject('web'), sliceObject('web', 'web', ['10.1.1.1', '10.1.1.2']));
  await until('another endpoint', () => node.held().includes(TWO));
  t.same(
    node.server.changes().map(({ name }) => name),
    ['create.endpoint', 'modify.loadBalancer'],
    'an endpoint more costs two changes',
  );
  t.match(first.stderr(), /^I\S+ \S+ +\d+ \S+\.ts:\d+\] "rules complete" /m);
  await node.kill();
  node.server.calls.length = 0;
  node.start(...node.fromManifests);
  await node.healthy();
  t.same(node.server.changes(), [], 'what is right is adopted');
  t.match(await node.command('diff', ...node.fromManifests), { status: 0, stdout: '' });
  await node.kill();
  t.match(await node.command('--cleanup'), { status: 0 });
  t.same(node.held(), []);
});

t.test('a running Windows proxy reports its state and its limitations', async (t) => {
  const node = await WindowsNode.make(t);
  const ranged = serviceObject(
    'web',
    { type: 'LoadBalancer', loadBalancerSourceRanges: ['198.51.100.0/24'] },
    { status: { loadBalancer: { ingress: [{ ip: '192.0.2.80' }] } } },
  );
  const healthPort = await freePort();
  const checked = serviceObject('checked', {
    type: 'LoadBalancer',
    clusterIP: '10.96.0.12',
    externalTrafficPolicy: 'Local',
    healthCheckNodePort: healthPort,
  });
  node.put('web', ranged, sliceObject('web', 'web', ['10.1.1.1']), checked);
  const { stderr } = node.start(...node.fromManifests);
  await node.healthy();
  await until('health checks of a Service', async () => {
    const answer = await fetch(`http://127.0.0.1:${healthPort}/`).catch(() => null);
    return answer?.status === 503 && /"localEndpoints": 0/.test(await answer.text());
  });
  const reported = /not on this platform: IPv4 default\/web: loadBalancerSourceRanges have no effect/;
  t.match(await node.status(), { status: 0, stdout: reported });
  await until('the log', () => reported.test(stderr()));
  node.server.calls.length = 0;
  const explained = await node.command('explain', '--from', 'external', '192.0.2.80:80/TCP');
  t.match(explained, { status: 0, stdout: /10\.1\.1\.1:8080[^]*loadBalancerSourceRanges have no effect/ });
  t.match(await node.command('diff', ...node.fromManifests), { status: 0, stdout: '' });
  const planned = await node.command('plan', ...node.fromManifests);
  t.match(planned, { status: 0, stdout: /frontend 192\.0\.2\.80:80\/TCP .*default\/web / });
  t.match(await node.command('dump', ...node.fromManifests), { status: 0, stdout: planned.stdout });
  t.same(node.server.changes(), [], 'questions change nothing');
  const { text: metrics } = await node.get('metrics', '/metrics');
  t.match(metrics, /^kubeproxy_sync_proxy_rules_endpoint_changes_total 1$/m);
  t.notMatch(metrics, /conntrack|iptables|nftables|ipvs/);
  // HNS fails once, which passes, and then refuses one load balancer of two: the other does not wait for it.
  let fails = true;
  node.server.intercept = ({ name, text }) => {
    if (name !== 'create.loadBalancer' || !text.includes('10.96.0.11')) return null;
    if (!fails) return refusal('E_INVALIDARG', 'No such thing.');
    fails = false;
    return { result: E_OUTOFMEMORY, text: '', record: '' };
  };
  node.put('other', serviceObject('other', { clusterIP: '10.96.0.11' }));
  node.put('others', sliceObject('other', 'other', ['10.1.1.1']));
  await until('a refusal', async () => /10\.96\.0\.11:80\/TCP/.test((await node.status()).stdout));
  t.match((await node.status()).stdout, /quarantined .*10\.96\.0\.11:80\/TCP of default\/other.*No such thing\./);
  t.equal((await node.get('healthz', '/healthz')).status, 200);
  const { text: later } = await node.get('metrics', '/metrics');
  t.match(later, /^kubeproxy_sync_proxy_rules_hns_failures_total\{ip_family="IPv4"\} 1$/m);
  t.match(later, /^pointsman_quarantined_frontends\{ip_family="IPv4"\} 1$/m);
  node.server.intercept = () => null;
  await until('what was refused', () => node.held().includes('10.96.0.11 to 10.1.1.1'));
  // HNS tells of networks.
  const held = node.held();
  for (const network of node.hns.networks.keys()) node.hns.removeNetwork(network);
  await until('the network is missed', () => /there is no HNS network cbr0/.test(stderr()));
  node.hns.addNetwork('cbr0');
  await until('everything again', () => isDeepStrictEqual(node.held(), held));
});

const E_OUTOFMEMORY = 0x8007000e;

/** Two endpoints and a load balancer. */
const STEPS = 3;

for (const moment of ['before', 'after'] as const)
  t.test(`a Windows proxy killed ${moment} every step ends in the right state`, (t) => killedAtEveryStep(t, moment));

async function killedAtEveryStep(t: Test, moment: 'before' | 'after'): Promise<void> {
  const node = await WindowsNode.make(t);
  node.put('web', serviceObject('web'), sliceObject('web', 'web', ['10.1.1.1', '10.1.1.2']));
  let steps = 0;
  for (let step = 1; ; step++) {
    let left = step;
    const killedAt: HnsCall[] = [];
    const kill = (call: HnsCall): boolean => {
      if (!isChange(call) || --left !== 0) return false;
      killedAt.push(call);
      node.running?.child.kill('SIGKILL');
      return true;
    };
    if (moment === 'before')
      node.server.intercept = (call) => (kill(call) ? { result: 1, text: '', record: '' } : null);
    else node.server.done = kill;
    const { status, stderr } = node.start(...node.fromManifests);
    const healthy = node.healthy().then(
      () => true,
      () => false,
    );
    const isKilled = await Promise.race([status.then(() => true), healthy.then((is) => !is)]);
    await node.kill();
    await healthy;
    if (!isKilled) break;
    steps += killedAt.length;
    // Seen once in many runs: a start under Wine that goes no further, after every step was done. Its log says where.
    if (killedAt.length === 0) {
      t.ok(step === STEPS + 1, `not killed, and not healthy:\n${stderr()}`);
      break;
    }
    node.server.intercept = () => null;
    node.server.done = () => undefined;
    node.start(...node.fromManifests);
    await node.healthy();
    t.same(node.held(), ['10.1.1.1', '10.1.1.2', TWO], `step ${step}`);
    await node.kill();
    const asked = node.server.changes().length;
    t.equal(asked, moment === 'before' ? STEPS + 1 : STEPS, 'nothing that was done is done again');
    node.server.calls.length = 0;
    for (const objects of [node.hns.loadBalancers, node.hns.endpoints]) objects.clear();
  }
  t.equal(steps, STEPS);
}

t.test('an HNS that reports success and changes nothing is detected', async (t) => {
  const node = await WindowsNode.make(t);
  node.hns.pretendsToModify = true;
  node.put('web', serviceObject('web'), sliceObject('web', 'web', ['10.1.1.1']));
  const { stderr } = node.start(...node.fromManifests);
  await node.healthy();
  node.server.calls.length = 0;
  node.put('web', serviceObject('web'), sliceObject('web', 'web', ['10.1.1.1', '10.1.1.2']));
  await until('another endpoint', () => node.held().includes(TWO));
  t.same(
    node.server.changes().map(({ name }) => name),
    ['create.endpoint', 'modify.loadBalancer', 'delete.loadBalancer', 'create.loadBalancer'],
  );
  await until('the warning', () => /HNS 15\.5 reports a load balancer as changed that is not/.test(stderr()));
});

t.test('the Windows proxy reads an API server over TLS', async (t) => {
  const authority = new Authority();
  t.teardown(() => {
    authority.remove();
  });
  const { key, certificate } = authority.issue({ commonName: 'api', alternativeNames: ['IP:127.0.0.1'] });
  const api = new ApiServer({ tls: { key, cert: certificate, clientCa: null }, tokens: ['a-token'] });
  api.put(nodeObject(NODE_NAME, { status: { addresses: [{ type: 'InternalIP', address: '192.0.2.1' }] } }));
  api.put(serviceObject('web'));
  api.put(sliceObject('web', 'web', ['10.1.1.1']));
  await api.start();
  t.teardown(() => api.stop());
  const node = await WindowsNode.make(t);
  const kubeconfig = join(node.folder, 'kubeconfig');
  const cluster = { server: api.url, 'certificate-authority': windowsPath(authority.own.certificateFile) };
  writeFileSync(
    kubeconfig,
    JSON.stringify({
      apiVersion: 'v1',
      kind: 'Config',
      'current-context': 'c',
      clusters: [{ name: 'c', cluster }],
      users: [{ name: 'u', user: { token: 'a-token' } }],
      contexts: [{ name: 'c', context: { cluster: 'c', user: 'u' } }],
    }),
  );
  node.configure({ clientConnection: { kubeconfig: windowsPath(kubeconfig) } });
  node.start();
  await node.healthy();
  t.same(node.held(), ['10.1.1.1', ONE]);
  node.server.calls.length = 0;
  api.put(sliceObject('web', 'web', ['10.1.1.1', '10.1.1.2']));
  await until('another endpoint', () => node.held().includes(TWO));
  t.ok(node.server.changes().length <= 3);
});
