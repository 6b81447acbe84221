// The DaemonSets' very command lines on a node of the packet laboratory: what kubeadm or deploy/base lays out, in a root like the image's, with
// the rights of the ClusterRole and no more.
// needs: image
import { writeFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Test } from 'tap';
import t from 'tap';
import { KUBEADM } from '../config/load-from.js';
import { inFull } from '../support/extent.js';
import type { ApiObject } from '../support/api-objects.js';
import { KUBEADM_DAEMON_SET } from '../support/deploy/kubeadm.js';
import { Kubelet, type Container } from '../support/deploy/kubelet.js';
import { build, fieldsOf, items, merge, podSpec } from '../support/deploy/kustomize.js';
import { projectFile } from '../support/lab/agent.js';
import { ControlPlane, SERVER_URL } from '../support/lab/control-plane.js';
import { endpoint, eventually, Lab } from '../support/lab/lab.js';
import { node } from '../support/lab/objects.js';
import { checkRows, dualStack, FAMILY_VIEWS } from '../support/lab/packet-table.js';
import { NODE_NAME } from '../support/lab/proxy.js';
import { ADDRESSES } from '../support/lab/topology.js';

const PODS = ['pod-a', 'pod-b'] as const;
/** Starting a process takes its time on a machine that is busy with other tests. */
const TIMEOUT_MS = 60_000;

const OBJECTS = [
  node(NODE_NAME, { addresses: Object.values(ADDRESSES.node) }),
  ...dualStack('web', { type: 'NodePort', number: 41, ports: [{ port: 80, nodePort: 30001 }], endpoints: PODS }),
];
const BASE = build(projectFile('deploy/base'));
const CONFIG_MAP = configMapOf(BASE);

function daemonSetOf(objects: readonly ApiObject[]): ApiObject {
  return objects.find(({ kind }) => kind === 'DaemonSet') ?? {};
}

/**
 * A ConfigMap of the cluster: with its API server, and with the table of flows left at its size, which on a node made of namespaces is the
 * machine's.
 */
function configMapOf(objects: readonly ApiObject[]): ApiObject {
  const configMap = objects.find(({ kind }) => kind === 'ConfigMap') ?? {};
  const texts = fieldsOf(configMap['data']);
  const config = String(texts['config.conf']);
  return merge(configMap, {
    data: {
      'kubeconfig.conf': String(texts['kubeconfig.conf']).replace('https://control-plane.example:6443', SERVER_URL),
      'config.conf': /maxPerCore: null/.test(config)
        ? config.replace('maxPerCore: null', 'maxPerCore: 0')
        : `${config}conntrack:\n  maxPerCore: 0\n`,
    },
  });
}

interface Node {
  readonly lab: Lab;
  readonly plane: ControlPlane;
  readonly kubelet: Kubelet;
  readonly pod: ApiObject;
  readonly container: ApiObject;
}

/** A node with two pods of a Service, an API server with the rights of the ClusterRole, and a kubelet. */
async function nodeFor(t: Test, daemonSet: ApiObject, configMap: ApiObject): Promise<Node> {
  const lab = await Lab.start(t);
  await lab.serveAll(PODS, [[80, 'TCP']]);
  const rules = join(t.testdir({}), 'rules.json');
  writeFileSync(rules, JSON.stringify(BASE.find(({ kind }) => kind === 'ClusterRole')?.['rules']));
  const plane = await ControlPlane.start(t, lab, { flags: ['--rules', rules] });
  await plane.replace(OBJECTS);
  const kubelet = new Kubelet(t, lab, {
    nodeName: NODE_NAME,
    nodeAddress: ADDRESSES.node.IPv4,
    account: plane.account,
    configMaps: [configMap],
  });
  const pod = podSpec(daemonSet);
  const [container = {}] = items(pod['containers']);
  return { lab, plane, kubelet, pod, container };
}

/** Starts the container and waits for what its probes wait for. */
async function ready(t: Test, { kubelet, pod, container }: Node, probes: readonly ApiObject[]): Promise<Container> {
  const running = kubelet.start(pod, container);
  t.teardown(() => {
    if (!t.passing()) t.comment(running.log());
  });
  for (const probe of probes) {
    await eventually(
      'a probe that is content',
      async () => {
        const { exitCode } = running.process;
        if (exitCode !== null) throw new Error(`the container has ended with ${exitCode}: ${running.log()}`);
        const answer = await kubelet.probe(container, probe);
        return 'status' in answer && answer.status === 200 ? true : null;
      },
      TIMEOUT_MS,
    );
  }
  return running;
}

function probesOf(container: ApiObject): readonly ApiObject[] {
  return ['startupProbe', 'livenessProbe', 'readinessProbe'].map((name) => fieldsOf(container[name]));
}

async function checkService(t: Test, lab: Lab, message: string): Promise<void> {
  const rows = FAMILY_VIEWS.flatMap((view) => [
    { from: 'pod-c', to: endpoint(view.clusterIP(41), 80), expect: view.kept(PODS, 80) },
    { from: 'client', to: view.nodePort(30001), expect: view.masqueraded(PODS, 80) },
  ]);
  await checkRows(t, lab, rows, message);
}

async function checkRights(t: Test, plane: ControlPlane): Promise<void> {
  const { forbidden, requests } = await plane.state();
  t.same(forbidden, [], 'nothing was asked for that the ClusterRole does not grant');
  for (const request of ['watchlist services', 'watchlist endpointslices', 'watchlist nodes', 'list servicecidrs']) {
    t.ok(requests[request], request);
  }
}

t.test('the DaemonSet of deploy/base runs on a node: init container, probes, Services', async (t) => {
  const text = String(fieldsOf(CONFIG_MAP['data'])['config.conf']).replace(/$/, '  udpTimeout: 77s\n');
  const configMap = merge(CONFIG_MAP, { data: { 'config.conf': text } });
  const world = await nodeFor(t, daemonSetOf(BASE), configMap);
  const { lab, plane, kubelet, pod, container } = world;
  const [init = {}] = items(pod['initContainers']);
  t.match(await kubelet.run(pod, init), { status: 0 });
  const timeout = 'net/netfilter/nf_conntrack_udp_timeout';
  t.equal(await lab.sysctl('node', timeout), '77', 'set by the init container');
  const running = await ready(t, world, probesOf(container));
  await checkService(t, lab, 'programmed');
  t.match(await lab.ruleset(), /table ip kube-proxy/);
  await checkRights(t, plane);

  const status = await readFile(`/proc/${running.pid()}/status`, 'utf8');
  t.match(status, /^CapEff:\t0000000000003000$/m, 'CAP_NET_ADMIN, CAP_NET_RAW and nothing else');
  t.match(status, /^NoNewPrivs:\t1$/m);
  const asked = await kubelet.run(pod, { ...container, command: ['pointsman', 'status'] });
  t.match(asked, { status: 0, log: /nftables/ }, 'the status socket, on a read-only root');
  // What a kubelet makes of a pod's priority is not here, nor may a test have it.
  const log = running.log().replaceAll(/^.*oom_score_adj.*$/gm, '');
  t.notMatch(log, /sysctl|cannot be written|EROFS|EACCES|EPERM/i);

  // The comparison of the install page, with kubectl's answers in a file.
  const cluster = join(kubelet.root, 'cluster.yaml');
  writeFileSync(cluster, JSON.stringify({ apiVersion: 'v1', kind: 'List', items: OBJECTS }));
  const exec = (...command: readonly string[]): Promise<{ readonly status: number | null; readonly log: string }> =>
    kubelet.run(pod, { ...container, command }, cluster);
  const copy = 'process.stdin.pipe(fs.createWriteStream("/run/pointsman/cluster.yaml"))';
  t.match(await exec('node', '-e', copy), { status: 0, log: '' });
  const flags = [
    '--config=/var/lib/kube-proxy/config.conf',
    `--hostname-override=${NODE_NAME}`,
    '--manifests=/run/pointsman/cluster.yaml',
    '-v=0',
  ];
  const planned = await exec('pointsman', 'plan', ...flags);
  t.match(planned, { status: 0, log: /default\/web/ });
  t.same(await exec('pointsman', 'dump', ...flags), planned);

  await lab.sysctl('node', timeout, '66');
  await eventually('a repair', async () => (await lab.sysctl('node', timeout)) === '77' || null, TIMEOUT_MS);

  const configz = async (): Promise<string> => {
    const answer = await lab.http('node', 'http://127.0.0.1:10249/configz');
    return 'body' in answer ? answer.body : '';
  };
  const changed = `${text}nftables:\n  syncPeriod: 47s\n`;
  kubelet.project(merge(configMap, { data: { 'config.conf': changed } }));
  await eventually('the new configuration', async () => (await configz()).includes('47s') || null, TIMEOUT_MS);
  kubelet.project(merge(configMap, { data: { 'config.conf': 'mode: [nftables' } }));
  await eventually('a refusal', () => Promise.resolve(running.log().includes('refused') || null), TIMEOUT_MS);
  t.match(await configz(), /47s/);
  t.equal(running.process.exitCode, null, 'the same process all the time');
  await checkService(t, lab, 'after changes of the ConfigMap');
});

t.test(
  "the DaemonSet of deploy/overlays/kubeadm runs, and kubeadm's own with only the image changed",
  inFull,
  async (t) => {
    const daemonSet = merge(KUBEADM_DAEMON_SET, daemonSetOf(build(projectFile('deploy/overlays/kubeadm'))));
    const configMap = configMapOf([merge(CONFIG_MAP, { data: { 'config.conf': KUBEADM } })]);
    const world = await nodeFor(t, daemonSet, configMap);
    const { lab, plane, container } = world;
    const probes = probesOf(container);
    const running = await ready(t, world, probes);
    await checkService(t, lab, 'by the overlay');
    const localnet = (): Promise<string> => lab.sysctl('node', 'net/ipv4/conf/all/route_localnet');
    await eventually('node ports on loopback', async () => (await localnet()) === '1' || null, TIMEOUT_MS);
    await checkRights(t, plane);
    process.kill(running.pid(), 'SIGTERM');
    await eventually('the end', () => Promise.resolve(running.process.exitCode), TIMEOUT_MS);
    t.equal(running.process.exitCode, 0);
    await checkService(t, lab, 'without a process');

    // What kubectl set image leaves: kubeadm's DaemonSet, which has no probes.
    const pod = podSpec(KUBEADM_DAEMON_SET);
    const [kubeadms = {}] = items(pod['containers']);
    const imageAlone = { ...world, pod, container: { ...kubeadms, ports: container['ports'] } };
    await ready(t, imageAlone, probes);
    await checkService(t, lab, 'by the image alone');
    await checkRights(t, plane);
  },
);
