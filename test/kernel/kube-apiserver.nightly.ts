// The manifests in a real API server, and the program with the rights that they give it.
// POINTSMAN_KUBE_APISERVER names the folder of kube-apiserver and etcd; without it this is skipped.
// needs: nft, ip
import '../support/namespace.js';
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import t from 'tap';
import { nodeSubject, serviceSubject, type ProxyEvent } from '../../src/base/events.js';
import { systemWallClock } from '../../src/base/timestamp.js';
import { DEFAULT_EVENT_RATES } from '../../src/config/event-rates.js';
import { EventSender } from '../../src/sources/kubernetes/events/event-sender.js';
import { connectBy, kubeconfigText } from '../sources/kubernetes/connect.js';
import { nodeObject, serviceObject, sliceObject, type ApiObject } from '../support/api-objects.js';
import { Authority } from '../support/certificates.js';
import { KUBEADM_DAEMON_SET } from '../support/deploy/kubeadm.js';
import { build, buildUncommented, fieldsOf, items, podSpec } from '../support/deploy/kustomize.js';
import { FakeClock } from '../support/fake-clock.js';
import { KubeApiServer, TOKEN, type Answer } from '../support/kube-apiserver.js';
import { projectFile } from '../support/lab/agent.js';
import { eventually } from '../support/lab/lab.js';
import { PROGRAM } from '../support/program.js';
import { RecordingLog } from '../support/recording-log.js';

const PROGRAMS = process.env['POINTSMAN_KUBE_APISERVER'] ?? '';
const SKIPPED = { skip: PROGRAMS === '' && 'POINTSMAN_KUBE_APISERVER is not set' };
const NODE = 'node-1';
const NODE_ADDRESS = '192.0.2.1';
const PROXIES = 50;
/** Made by others: by the Prometheus operator. */
const OTHERS_KINDS = new Set(['PodMonitor', 'PrometheusRule']);

const authority = new Authority();
const folder = mkdtempSync(join(tmpdir(), 'pointsman-cluster-'));
t.teardown(() => {
  authority.remove();
  rmSync(folder, { recursive: true, force: true });
});
execFileSync('ip', ['link', 'set', 'lo', 'up']);
execFileSync('ip', ['address', 'add', `${NODE_ADDRESS}/32`, 'dev', 'lo']);

/** Where objects of a kind are, as the API server says. */
class Paths {
  private readonly known = new Map<string, readonly ApiObject[]>();

  constructor(private readonly server: KubeApiServer) {}

  async of(object: ApiObject): Promise<string> {
    const apiVersion = String(object['apiVersion']);
    const group = apiVersion.includes('/') ? `/apis/${apiVersion}` : `/api/${apiVersion}`;
    const resources = this.known.get(group) ?? items(parsed(await this.server.ask('GET', group))['resources']);
    this.known.set(group, resources);
    const resource = resources.find(({ kind, name }) => kind === object['kind'] && !String(name).includes('/'));
    const { name, namespace = 'default' } = fieldsOf(object['metadata']);
    const within = resource?.['namespaced'] === true ? `/namespaces/${String(namespace)}` : '';
    return `${group}${within}/${String(resource?.['name'])}/${String(name)}`;
  }
}

function parsed({ body }: Answer): ApiObject {
  return fieldsOf(JSON.parse(body));
}

class World {
  readonly paths: Paths;

  constructor(readonly server: KubeApiServer) {
    this.paths = new Paths(server);
  }

  /** As `kubectl apply --server-side`; unknown fields are errors. */
  async apply(object: ApiObject, query = ''): Promise<Answer> {
    const path = `${await this.paths.of(object)}?fieldManager=test&force=true&fieldValidation=Strict${query}`;
    return this.server.ask('PATCH', path, object, 'application/apply-patch+yaml');
  }

  async applyAll(objects: readonly ApiObject[]): Promise<void> {
    for (const object of objects) {
      const { status, body } = await this.apply(object);
      if (status >= 300) throw new Error(body);
    }
  }

  /** Its file. @param user as the kubeconfig has it. */
  kubeconfig(name: string, user: ApiObject): string {
    const file = join(folder, `${name}.conf`);
    const ca = Buffer.from(authority.own.certificate).toString('base64');
    writeFileSync(
      file,
      kubeconfigText({ cluster: { server: this.server.url, 'certificate-authority-data': ca }, user }),
    );
    return file;
  }

  /** Of a ServiceAccount of kube-system. */
  async token(account: string): Promise<string> {
    const request = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: {} };
    const path = `/api/v1/namespaces/kube-system/serviceaccounts/${account}/token`;
    return String(fieldsOf(parsed(await this.server.ask('POST', path, request))['status'])['token']);
  }
}

async function start(): Promise<World> {
  const programs = { programs: PROGRAMS, directory: folder, authority };
  const server = await KubeApiServer.start({
    ...programs,
    serviceRange: '10.96.0.0/16',
    nodeAddress: NODE_ADDRESS,
    authorization: 'RBAC',
    // As kubeadm starts it.
    flags: ['--allow-privileged=true'],
  });
  return new World(server);
}

t.test('pointsman works with a real API server', SKIPPED, async (t) => {
  const world = await start();
  t.teardown(() => world.server.stop());

  await t.test('a real API server takes every manifest as it is', async (t) => {
    await world.applyAll([KUBEADM_DAEMON_SET]);
    const overlays = readdirSync(projectFile('deploy/overlays')).map((name) => `overlays/${name}`);
    for (const path of ['base', 'windows', 'nodes', ...overlays]) {
      const made = [build, buildUncommented].flatMap((how) => how(projectFile(`deploy/${path}`)));
      for (const object of made.filter(({ kind }) => !OTHERS_KINDS.has(String(kind)))) {
        const { status, body } = await world.apply(object, '&dryRun=All');
        t.ok(status < 300, `${path}: ${String(object['kind'])}: ${status < 300 ? status : body}`);
      }
    }
  });

  await world.applyAll(installed());
  const [daemonSet] = installed().filter(({ kind }) => kind === 'DaemonSet');
  const pod = podSpec(fieldsOf(daemonSet));
  const proxyAccount = { token: await world.token('kube-proxy') };
  const node = nodeObject(NODE);
  const objects = [
    { ...node, status: { addresses: [{ type: 'InternalIP', address: NODE_ADDRESS }] } },
    {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'kube-proxy-abcde', namespace: 'kube-system', labels: { 'k8s-app': 'kube-proxy' } },
      spec: { ...pod, nodeName: NODE },
    },
    serviceObject('web', { externalIPs: ['198.51.100.1'] }),
    serviceObject('web-2', { clusterIP: '10.96.0.11', externalIPs: ['198.51.100.1'] }),
    sliceObject('web-1', 'web', ['10.244.0.5']),
  ];
  await world.applyAll(objects);
  const ready = { phase: 'Running', podIP: NODE_ADDRESS, podIPs: [{ ip: NODE_ADDRESS }], hostIP: NODE_ADDRESS };
  const status = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'kube-proxy-abcde' }, status: ready };
  const path = '/api/v1/namespaces/kube-system/pods/kube-proxy-abcde/status';
  const patched = await world.server.ask('PATCH', path, status, 'application/merge-patch+json');
  t.equal(patched.status, 200, patched.body);

  await t.test('with its rights the program runs, and `nodes` and `check --cluster` read', async (t) => {
    const config = join(folder, 'config.yaml');
    const [{ data = {} } = {}] = installed().filter(({ kind }) => kind === 'ConfigMap');
    const kubeconfig = world.kubeconfig('proxy', proxyAccount);
    const text = String(fieldsOf(data)['config.conf']).replace('/var/lib/kube-proxy/kubeconfig.conf', kubeconfig);
    const bind = `metricsBindAddress: 0.0.0.0:10249\nconntrack: {maxPerCore: 0}\n`;
    writeFileSync(config, text.replace(/^oomScoreAdj.*$/m, '') + bind);
    const [{ command = [] } = {}] = items(pod['containers']);
    const flags = (command as readonly string[]).filter((word) => !/^--(?:config|hostname-override)=|^\//.test(word));
    t.ok(flags.includes('--metrics-tls'), 'as the components say');
    const own = [`--config=${config}`, `--hostname-override=${NODE}`, `--cert-dir=${folder}`, '--status-socket='];
    const program = spawn(PROGRAM, [...flags, ...own]);
    let reported = '';
    program.stderr.setEncoding('utf8').on('data', (chunk: string) => (reported += chunk));
    t.teardown(() => {
      program.kill('SIGKILL');
      if (!t.passing()) t.comment(reported);
    });

    // Who gives the command has the roles for it, and no more.
    const who = { kind: 'User', apiGroup: 'rbac.authorization.k8s.io', name: 'asker' };
    const binding = { apiVersion: 'rbac.authorization.k8s.io/v1', subjects: [who] };
    const roleRef = { apiGroup: 'rbac.authorization.k8s.io', name: 'pointsman-nodes' };
    const metadata = { name: 'asker', namespace: 'kube-system' };
    await world.applyAll([
      {
        ...binding,
        kind: 'ClusterRoleBinding',
        metadata: { name: 'asker' },
        roleRef: { ...roleRef, kind: 'ClusterRole' },
      },
      { ...binding, kind: 'RoleBinding', metadata, roleRef: { ...roleRef, kind: 'Role' } },
    ]);
    const asker = world.kubeconfig('asker', { token: TOKEN, as: 'asker' });
    const nodes = (): ApiObject => run('nodes', '-o', 'json', `--kubeconfig=${asker}`);
    const report = await eventually('in step', () => {
      const reported = nodes();
      return Promise.resolve(fieldsOf(reported['counts'])['in-step'] === 1 ? reported : null);
    });
    t.match(JSON.stringify(report), /default\/web-2/, 'and a conflict');
    t.notMatch(reported, /forbidden|Forbidden|^E/m);

    const findings = run(
      'check',
      '--cluster',
      '-o',
      'json',
      `--kubeconfig=${world.kubeconfig('admin', { token: TOKEN })}`,
    );
    t.match(JSON.stringify(findings), /default\/web-2/);
  });

  await t.test('a finding that all nodes share is one event in the cluster', async (t) => {
    const kubeconfig = world.kubeconfig('proxy', proxyAccount);
    const own: ProxyEvent = {
      type: 'Warning',
      reason: 'Starting',
      action: 'ProgramService',
      regarding: nodeSubject(NODE),
      related: null,
      note: 'the same for all',
    };
    const shared = { ...own, reason: 'InvalidObject', regarding: serviceSubject('default/web'), finding: 'the same' };
    const senders = await Promise.all(
      Array.from({ length: PROXIES }, async (_, index) => {
        const clock = new FakeClock();
        const log = new RecordingLog();
        const sender = new EventSender({
          hostname: `host-${index}`,
          rates: DEFAULT_EVENT_RATES,
          limit: null,
          clock,
          log,
          wallClock: systemWallClock(),
        });
        t.teardown(() => {
          sender.stop();
        });
        sender.start(await connectBy(t, { kubeconfig }));
        return { sender, clock, log };
      }),
    );
    for (const [index, { sender }] of senders.entries()) {
      sender.record(shared);
      sender.record({ ...own, note: `host-${index}` });
    }
    for (const { clock } of senders) await clock.advance(10_000);
    for (const { sender } of senders) await sender.flush(60_000);
    const events = items(parsed(await world.server.ask('GET', '/apis/events.k8s.io/v1/events'))['items']);
    const count = (wanted: string): number => events.filter(({ reason }) => reason === wanted).length;
    t.equal(count('InvalidObject'), 1);
    t.ok(count('Starting') >= PROXIES, 'an event of a node is sent by each');
    t.same(
      senders.flatMap(({ log }) => log.lines),
      [],
    );
  });
});

/** Base and components as an operator has them, with TLS and users on the metrics address. */
function installed(): readonly ApiObject[] {
  const base = build(projectFile('deploy/base'));
  return ['secured', 'nodes'].reduce((made, name) => build(projectFile(`deploy/components/${name}`), made), base);
}

/** What a command prints as JSON. */
function run(...argv: readonly string[]): ApiObject {
  const { stdout, stderr } = spawnSync(PROGRAM, argv, { encoding: 'utf8' });
  if (stdout === '') throw new Error(stderr);
  return fieldsOf(JSON.parse(stdout));
}
