// Bad manifests beside good ones: what works goes on working.
import { appendFile, mkdir, mkdtemp, rename, rm, symlink, truncate, unlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import t from 'tap';
import { endpoint, eventually, Lab } from '../support/lab/lab.js';
import { endpointSlice, service, type Manifest } from '../support/lab/objects.js';
import { checkRows, dualStack, IPV4 } from '../support/lab/packet-table.js';
import { NODE_NAME, Proxy } from '../support/lab/proxy.js';
import { ADDRESSES } from '../support/lab/topology.js';

const PODS = ['pod-a', 'pod-b', 'remote-a'] as const;

function web(pod: (typeof PODS)[number], number = 41): Manifest[] {
  return [
    service('web', { clusterIPs: [IPV4.clusterIP(number)], ports: [{ port: 80 }] }),
    endpointSlice('web', [{ address: ADDRESSES[pod].IPv4, node: NODE_NAME }], [{ port: 80 }]),
  ];
}

function text(objects: readonly Manifest[]): string {
  return objects.map((object) => JSON.stringify(object)).join('\n---\n');
}

async function answers(lab: Lab, name: (typeof PODS)[number], number = 41): Promise<void> {
  await eventually(`an answer of ${name}`, async () => {
    const answer = await lab.request({ from: 'pod-c', to: endpoint(IPV4.clusterIP(number), 80), timeoutMs: 200 });
    return 'name' in answer && answer.name === name ? true : null;
  });
}

/** Objects that nobody should have written, each beside good ones. */
const GARBAGE: readonly unknown[] = [
  {},
  { kind: 'Service' },
  { apiVersion: 'v1', kind: 'Service', metadata: null, spec: 7 },
  {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name: 'Bad Name', namespace: '../..' },
    spec: { clusterIP: '10.96.0.60', ports: [{ port: 80 }] },
  },
  {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name: 'bad' },
    spec: { clusterIP: '10.96.0.999', ports: [{ port: 80 }] },
  },
  {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name: 'bad' },
    spec: { clusterIP: '10.96.0.60', ports: [{ port: 99999 }] },
  },
  {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name: 'bad' },
    spec: { clusterIP: '10.96.0.60', ports: [{ port: 80, protocol: 'ICMP' }] },
  },
  {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name: 'bad' },
    spec: { clusterIP: '10.96.0.60', ports: 'none', loadBalancerSourceRanges: [1, null, {}] },
  },
  {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: { name: 'bad', labels: { 'kubernetes.io/service-name': 'web' } },
    addressType: 'IPv4',
    endpoints: [{ addresses: [] }, { addresses: ['x'] }, null, 5],
    ports: [{ port: '80' }],
  },
  {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: { name: 'bad', labels: { 'kubernetes.io/service-name': 'web' } },
    addressType: 'IPX',
    endpoints: {},
    ports: 4,
  },
  {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name: 'other' },
    status: { addresses: [{ type: 'InternalIP', address: 'somewhere' }] },
  },
  {
    apiVersion: 'networking.k8s.io/v1',
    kind: 'ServiceCIDR',
    metadata: { name: 'bad' },
    spec: { cidrs: ['10.96.0.0/99'] },
  },
  { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'stranger' }, data: {} },
  { apiVersion: 'v1', kind: 'List', items: [null, 3, { kind: 'List', items: 'x' }] },
  [],
  'text',
  17,
];

const BROKEN_TEXTS: readonly string[] = [
  '',
  '{',
  '\0\0\0',
  'a: [1, 2',
  'a: &a [*a]',
  '['.repeat(5000),
  '%YAML 9.9\n---\n!!binary x',
  'kind: Service\nkind: Service\n\tspec: {}',
];

t.test('broken files beside good manifests do not matter', async (t) => {
  const lab = await Lab.start(t);
  await lab.serveAll(PODS, [[80, 'TCP']]);
  const proxy = await Proxy.start(t, lab, { objects: web('pod-a') });
  const beside = (name: string): string => join(proxy.manifestFile, '..', name);
  let number = 42;
  for (const garbage of GARBAGE) {
    // In a file of its own, and among good objects of another file.
    number = number === 42 ? 43 : 42;
    await writeFile(beside('garbage.json'), JSON.stringify(garbage));
    await proxy.write([
      ...web('pod-a'),
      garbage as Manifest,
      ...dualStack('good', { number, ports: [{ port: 80 }], endpoints: ['pod-b'] }),
    ]);
    await answers(lab, 'pod-b', number);
    await answers(lab, 'pod-a');
    t.pass(`beside ${JSON.stringify(garbage).slice(0, 100)}`);
  }
  for (const broken of BROKEN_TEXTS) {
    number = number === 42 ? 43 : 42;
    await writeFile(beside('garbage.json'), broken);
    await writeFile(beside('garbage.yaml'), broken);
    await proxy.write([...web('pod-a'), ...dualStack('good', { number, ports: [{ port: 80 }], endpoints: ['pod-b'] })]);
    await answers(lab, 'pod-b', number);
    await answers(lab, 'pod-a');
    t.pass(`beside ${JSON.stringify(broken).slice(0, 60)}`);
  }
  await unlink(beside('garbage.json'));
  await unlink(beside('garbage.yaml'));
  await proxy.apply(web('pod-b'));
  await answers(lab, 'pod-b');
  t.equal(await proxy.stop('SIGTERM'), 0, 'the process has survived it all');
  t.match(proxy.log, /spec\.ports\[0\]\.port: 99999/, 'and said what is wrong');
});

t.test('rules of a broken manifest stay until it is valid again', async (t) => {
  const lab = await Lab.start(t);
  await lab.serveAll(PODS, [[80, 'TCP']]);
  const proxy = await Proxy.start(t, lab);
  const file = join(proxy.manifestFile, '..', 'web.yaml');
  await writeFile(file, text(web('pod-a')));
  await answers(lab, 'pod-a');
  const watch = await lab.watch({ from: 'pod-c', to: endpoint(IPV4.clusterIP(41), 80), timeoutMs: 3000 }, 2, 2);
  const whole = text(web('pod-a'));
  // Never empty, not for a moment that a busy machine may stretch: a file without objects is right as well.
  const pieces = Math.ceil(whole.length / 6);
  // Half-written: the writer stops in the middle for longer than anybody would take for unfinished.
  for (const part of [0.9, 0.5, 0.1]) {
    const end = Math.floor(whole.length * part);
    await truncate(file, end);
    await new Promise((resolve) => setTimeout(resolve, 300));
    await appendFile(file, whole.slice(end));
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  // Written slowly, in pieces.
  await truncate(file, 1);
  for (let end = 1; end < whole.length; end += pieces) {
    await new Promise((resolve) => setTimeout(resolve, 20));
    await appendFile(file, whole.slice(end, end + pieces));
  }
  await proxy.apply([]);
  const outcomes = await watch.stop();
  t.same(
    outcomes.map((outcome) => ('name' in outcome ? outcome.name : outcome.error)),
    ['pod-a'],
    'no request noticed',
  );
  await writeFile(file, text(web('remote-a')));
  await answers(lab, 'remote-a');
  await unlink(file);
  await eventually('the end of a deleted file', async () => {
    const answer = await lab.request({ from: 'pod-c', to: endpoint(IPV4.clusterIP(41), 80), timeoutMs: 100 });
    return 'error' in answer ? true : null;
  });
  t.pass('deleted');
});

t.test('manifests in a ConfigMap volume are replaced at once', async (t) => {
  const lab = await Lab.start(t);
  await lab.serveAll(PODS, [[80, 'TCP']]);
  const volume = await mkdtemp(join(tmpdir(), 'lab-volume-'));
  t.teardown(() => rm(volume, { recursive: true }));
  /** As the kubelet does: a new directory, a new link `..data`, renamed over the old one. */
  const publish = async (version: string, content: string): Promise<void> => {
    await mkdir(join(volume, `..${version}`));
    await writeFile(join(volume, `..${version}`, 'web.yaml'), content);
    await symlink(`..${version}`, join(volume, '..data_tmp'));
    await rename(join(volume, '..data_tmp'), join(volume, '..data'));
  };
  await publish('1', text(web('pod-a')));
  await symlink('..data/web.yaml', join(volume, 'web.yaml'));
  const proxy = await Proxy.start(t, lab, { flags: ['--manifests', volume] });
  await answers(lab, 'pod-a');
  const watch = await lab.watch({ from: 'pod-c', to: endpoint(IPV4.clusterIP(41), 80), timeoutMs: 3000 }, 2, 2);
  for (const [version, pod] of [
    ['2', 'pod-b'],
    ['3', 'remote-a'],
    ['4', 'pod-a'],
  ] as const) {
    await publish(version, text(web(pod)));
    await rm(join(volume, `..${Number(version) - 1}`), { recursive: true });
    await answers(lab, pod);
    t.pass(pod);
  }
  await publish('5', '{ broken');
  await new Promise((resolve) => setTimeout(resolve, 1200));
  await checkRows(t, lab, [{ from: 'pod-c', to: endpoint(IPV4.clusterIP(41), 80), expect: IPV4.kept(['pod-a'], 80) }]);
  await publish('6', text(web('pod-b')));
  await answers(lab, 'pod-b');
  const failed = (await watch.stop()).filter((outcome) => 'error' in outcome);
  t.same(failed, [], 'no request is lost');
  t.equal(await proxy.stop('SIGTERM'), 0);
});
