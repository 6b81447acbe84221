// A running cluster: what it keeps of its configuration is read over TLS, checked like files, and nothing is asked or told that need not be.
import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import t, { type Test } from 'tap';
import { check, type Outcome } from '../src/command.js';
import { serviceCIDRObject, serviceObject, nodeObject, type ApiObject } from '../../../test/support/api-objects.js';
import type { ApiServerOptions } from '../../../test/support/api-server/options.js';
import { ApiServer } from '../../../test/support/api-server/server.js';
import { Authority } from '../../../test/support/certificates.js';
import { PROGRAM } from '../../../test/support/program.js';
import { CONFIG_MAPS } from './golden/defaults.js';
import { SECRET } from './golden/golden.js';

const CLUSTER = `apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
kubernetesVersion: v1.36.0
networking:
  podSubnet: 10.244.0.0/16
  serviceSubnet: 10.96.0.0/16
`;
const PROXY = `apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
clientConnection:
  kubeconfig: /var/lib/kube-proxy/kubeconfig.conf
clusterCIDR: 10.244.0.0/16
`;
const KUBELET = `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
clusterDNS: [10.96.0.10]
`;

function configMap(name: string, data: Readonly<Record<string, string>>): ApiObject {
  return { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, namespace: 'kube-system' }, data };
}

/** @param user what the proxy's kubeconfig has in place of a file with a token. */
function proxyMap(config: string, user: string | null = null): ApiObject {
  const given = CONFIG_MAPS['kube-proxy']?.['kubeconfig.conf'] ?? '';
  const kubeconfig = user === null ? given : given.replace(/\{tokenFile:.*\}/, user);
  return configMap('kube-proxy', { 'config.conf': config, 'kubeconfig.conf': kubeconfig });
}

/** A cluster that is right. */
const OBJECTS: readonly ApiObject[] = [
  configMap('kubeadm-config', { ClusterConfiguration: CLUSTER }),
  proxyMap(PROXY),
  configMap('kubelet-config', { kubelet: KUBELET }),
  nodeObject('n1', {
    spec: { podCIDRs: ['10.244.0.0/24'] },
    status: { addresses: [{ type: 'InternalIP', address: '192.0.2.1' }] },
  }),
  serviceCIDRObject('kubernetes', ['10.96.0.0/16']),
  serviceObject('web'),
  serviceObject('headless', { clusterIP: 'None' }),
];

const authority = new Authority();
const issued = authority.issue({ commonName: 'api', alternativeNames: ['IP:127.0.0.1'] });
const folder = mkdtempSync(join(tmpdir(), 'check-cluster-'));
t.teardown(() => {
  authority.remove();
  rmSync(folder, { recursive: true });
});

let kubeconfigs = 0;

/** @param trusted who vouches for the server. */
function kubeconfigFor(server: string, trusted = authority.own.certificate): string {
  const file = join(folder, `kubeconfig-${kubeconfigs++}`);
  const cluster = { server, 'certificate-authority-data': Buffer.from(trusted).toString('base64') };
  const kubeconfig = {
    clusters: [{ name: 'c', cluster }],
    users: [{ name: 'u', user: { token: SECRET } }],
    contexts: [{ name: 'x', context: { cluster: 'c', user: 'u' } }],
    'current-context': 'x',
  };
  writeFileSync(file, JSON.stringify(kubeconfig));
  return file;
}

interface World {
  readonly server: ApiServer;
  readonly kubeconfig: string;
  readonly run: (...argv: readonly string[]) => Promise<Outcome>;
}

/** @param changed objects in place of those of the same name. */
async function world(
  t: Test,
  changed: readonly ApiObject[] = [],
  options: Partial<ApiServerOptions> = {},
): Promise<World> {
  const tls = { key: issued.key, cert: issued.certificate, clientCa: null };
  const server = new ApiServer({ tls, tokens: [SECRET], ...options });
  await server.start();
  t.teardown(() => server.stop());
  server.put(...OBJECTS, ...changed);
  const kubeconfig = kubeconfigFor(server.url);
  return {
    server,
    kubeconfig,
    run: async (...argv) => {
      const outcome = await check(['--cluster', '--kubeconfig', kubeconfig, ...argv]);
      t.notMatch(outcome.stdout + outcome.stderr, SECRET);
      return outcome;
    },
  };
}

t.test('check --cluster finds nothing wrong in a kubeadm cluster, and reads it in few requests', async (t) => {
  const { server, run } = await world(t, [
    ...Object.entries(CONFIG_MAPS).map(([name, data]) => configMap(name, data)),
    serviceCIDRObject('kubernetes', ['10.96.0.0/12']),
  ]);
  t.same(await run(), { stdout: '', stderr: '', status: 0 });
  t.same(
    server.requests.map(({ method, path, query }) => `${method} ${path} ${query['limit'] ?? ''}`.trim()),
    [
      'GET /version',
      'GET /api/v1/namespaces/kube-system/configmaps/kubeadm-config',
      'GET /api/v1/namespaces/kube-system/configmaps/kube-proxy',
      'GET /api/v1/namespaces/kube-system/configmaps/kubelet-config',
      'GET /api/v1/nodes 500',
      'GET /api/v1/services 500',
      'GET /apis/networking.k8s.io/v1/servicecidrs 500',
    ],
  );
});

t.test('findings in a cluster name lines within the key of a ConfigMap, and objects by name', async (t) => {
  const user = `{token: [${SECRET}], tokenFile: ${join(folder, 'token')}, ${SECRET}: 1}`;
  const { run } = await world(t, [
    proxyMap(`${PROXY.replace('10.244', '10.245')}Mode: nftables\n`, user),
    configMap('kubelet-config', { kubelet: `${KUBELET}port: -1\n` }),
    nodeObject('n2', { spec: { podCIDRs: ['10.244.0.0/25'] } }),
    serviceObject('a-web'),
    serviceObject('bad', { clusterIP: 'x' }),
  ]);
  const { stdout, stderr, status } = await run();
  const proxy = 'ConfigMap kube-system/kube-proxy, key';
  const cluster = 'ConfigMap kube-system/kubeadm-config, key ClusterConfiguration';
  t.same(stdout.trim().split('\n').sort(), [
    `${proxy} config.conf:5: document 1: error: KubeProxyConfiguration.clusterCIDR: "10.245.0.0/16": does not agree with "10.244.0.0/16" of ClusterConfiguration.networking.podSubnet (${cluster})`,
    `${proxy} config.conf:6: document 1: error: KubeProxyConfiguration.Mode: has the wrong case: should be mode`,
    `${proxy} kubeconfig.conf:12: document 1: error: Config.users[0].user.token: has the wrong type, a list: should be text`,
    `${proxy} kubeconfig.conf:12: document 1: error: Config.users[0].user.…: is an unknown field`,
    'ConfigMap kube-system/kubelet-config, key kubelet:4: document 1: error: KubeletConfiguration.port: -1: is out of range: should be an integer from 1 to 65535',
    'Nodes: error: Node[n2].spec.podCIDRs[0]: "10.244.0.0/25": overlaps "10.244.0.0/24" of Node[n1].spec.podCIDRs[0] (Nodes)',
    'Services: error: Service[default/bad].spec.clusterIP: "x": must be an IP address or "None"',
    'Services: error: Service[default/web].spec.clusterIPs: "10.96.0.10:80/TCP": belongs to default/a-web, as old as the other and first by name',
  ]);
  t.same([stderr, status], ['', 1]);
  const { runs } = JSON.parse((await run('-o', 'sarif')).stdout) as { runs: [{ results: readonly object[] }] };
  t.match(
    runs[0].results.find((result) => JSON.stringify(result).includes('Mode')),
    {
      locations: [
        {
          physicalLocation: {
            artifactLocation: { uri: 'ConfigMap%20kube-system/kube-proxy%2C%20key%20config.conf' },
            region: { startLine: 6 },
          },
        },
      ],
    },
  );
});

t.test(
  'a missing or forbidden part of the cluster is one line, a failed read is status 2, and the check goes on',
  async (t) => {
    const { server, run } = await world(t, [configMap('kube-proxy', { config: 'x' }), serviceObject('a-web')], {
      without: ['servicecidrs'],
    });
    const [clash] = (await run()).stdout.split('\n').filter((line) => line.startsWith('Services: error'));
    t.ok(clash);
    const lines = (...more: readonly string[]): string => [...more, clash, ''].join('\n');
    const proxy = 'ConfigMap kube-system/kube-proxy: warning: has no key';
    t.same(await run(), {
      stdout: lines(`${proxy} config.conf`, `${proxy} kubeconfig.conf`),
      stderr: '',
      status: 1,
    });

    server.faults.add({ resource: 'nodes', fault: { type: 'status', code: 403, message: 'not you' } });
    server.faults.add({ resource: 'configmaps', fault: { type: 'status', code: 404 }, times: 1 });
    t.same(await run(), {
      stdout: lines(
        'ConfigMap kube-system/kubeadm-config: warning: is not there',
        `${proxy} config.conf`,
        `${proxy} kubeconfig.conf`,
        'Nodes: warning: may not be read: not you',
      ),
      stderr: '',
      status: 1,
    });

    server.faults.clear();
    server.put(proxyMap('a: "S3cr3t\nb'));
    server.faults.add({ resource: 'nodes', fault: { type: 'status', code: 500, message: 'broken' } });
    server.faults.add({ resource: 'configmaps', fault: { type: 'status', code: 200, body: '[]' }, times: 1 });
    t.match(await run(), {
      stdout: lines(),
      stderr:
        /^could not read ConfigMap kube-system\/kubeadm-config: the answer is no object of JSON\ncould not read Nodes: broken\ncould not read ConfigMap kube-system\/kube-proxy, key config\.conf: is no YAML: line \d+: [^\n]*\n$/,
      status: 2,
    });
  },
);

t.test('check exits 0 with warnings alone, and 1 with --strict', async (t) => {
  const { server, run } = await world(t);
  server.faults.add({ resource: 'configmaps', fault: { type: 'status', code: 403, message: 'no' } });
  const { stdout, status } = await run();
  t.equal(stdout.match(/: warning: may not be read: no\n/g)?.length, 3);
  t.equal(status, 0);
  t.equal((await run('--strict')).status, 1);
});

t.test('check reports an API server that is unreachable or refuses access', async (t) => {
  const { server, run } = await world(t);
  server.tokens = ['another'];
  t.same(await run(), {
    stdout: '',
    stderr: 'could not read the cluster: the API server does not accept the credentials: Unauthorized\n',
    status: 2,
  });
  const other = new Authority('another authority');
  t.teardown(() => {
    other.remove();
  });
  const by = (file: string): Promise<Outcome> => check(['--cluster', '--kubeconfig', file]);
  t.match(await by(kubeconfigFor(server.url, other.own.certificate)), {
    status: 2,
    stderr: /^could not read the cluster: .*certificate/i,
  });
  await server.stop();
  t.match(await run(), { status: 2, stdout: '', stderr: /^could not read the cluster: .*ECONNREFUSED.*\n$/ });
  t.match(await by(join(folder, 'gone')), { status: 2, stderr: /^could not read the cluster: .*gone: .*ENOENT/ });
});

t.test('check --cluster reads pages, and starts again after an expired continue token', async (t) => {
  const addressOf = (index: number): string => `10.96.${1 + (index >> 8)}.${index & 0xff}`;
  const services = Array.from({ length: 1200 }, (_, index) =>
    serviceObject(`s-${String(index).padStart(4, '0')}`, { clusterIP: addressOf(index) }),
  );
  const { server, run } = await world(t, [...services, serviceObject('z', { clusterIP: addressOf(1199) })]);
  const { requests } = server;
  const pages = (): readonly string[] =>
    requests.filter(({ resource }) => resource === 'services').map(({ query }) => query['limit'] ?? '');
  const last =
    /^Services: error: Service\[default\/z\]\.spec\.clusterIPs: "10\.96\.5\.175:80\/TCP": belongs to default\/s-1199[^\n]*\n$/;
  t.match(await run(), { status: 1, stdout: last });
  t.same(pages(), ['500', '500', '500']);

  requests.length = 0;
  let isForgotten = false;
  requests.push = (request) => {
    if ('continue' in request.query && !isForgotten) {
      isForgotten = true;
      server.store.bump();
      server.store.compact();
    }
    return Array.prototype.push.call(requests, request);
  };
  t.match(await run(), { status: 1, stdout: last });
  t.same(pages(), ['500', '500', '500', '500']);
});

t.test('check --cluster takes the cluster’s Kubernetes release, unless --kubernetes-version is given', async (t) => {
  const old = configMap('kubeadm-config', { ClusterConfiguration: CLUSTER.replace('v1beta4', 'v1beta3') });
  const { run } = await world(t, [old], { version: '{"major":"1","minor":"30+"}' });
  t.equal((await run()).stdout, '');
  t.match((await run('--kubernetes-version=1.31')).stdout, /warning: .*is deprecated since Kubernetes 1\.31/);
});

t.test('check --cluster with files: an object in a file replaces the one in the cluster', async (t) => {
  const { run } = await world(t);
  const file = (name: string, object: ApiObject): string => {
    const path = join(folder, name);
    writeFileSync(path, JSON.stringify(object));
    return path;
  };
  t.same(await run(file('same', serviceObject('web', { clusterIP: '10.96.0.11' }))), {
    stdout: '',
    stderr: '',
    status: 0,
  });
  t.match(await run(file('other', serviceObject('z-web'))), {
    stdout: /^\/.*\/other:1: document 1: error: Service\[default\/z-web\]\..* belongs to default\/web/,
    status: 1,
  });
  const admission = `apiVersion: apiserver.config.k8s.io/v1
kind: AdmissionConfiguration
plugins: [{name: A, path: ${join(folder, 'other')}}]
`;
  const { run: attacked } = await world(t, [proxyMap(admission)]);
  t.same(
    await attacked(),
    { stdout: '', stderr: '', status: 0 },
    'nothing is read here that a document of the cluster names',
  );
});

t.test('check --cluster finds the kubeconfig as kubectl does', async (t) => {
  const { server, kubeconfig } = await world(t);
  const home = join(folder, 'home');
  mkdirSync(join(home, '.kube'), { recursive: true });
  writeFileSync(join(home, '.kube', 'config'), `{"current-context": "nowhere"}`);
  const by = (env: Readonly<Record<string, string>>): Promise<Outcome> => check(['--cluster'], undefined, env);
  t.match(await by({ HOME: home, KUBECONFIG: kubeconfig }), { status: 0 });
  t.match(await by({ HOME: home }), { status: 2, stderr: /\.kube\/config: .*nowhere/ });
  t.match(await by({ HOME: folder, KUBECONFIG: 'a:b' }), { stderr: /KUBECONFIG names 2 files/ });
  t.match(await by({ HOME: folder }), { status: 2, stderr: /there is no kubeconfig/ });
  t.match(await check(['--kubeconfig', 'x', 'f']), { status: 2, stderr: /^--kubeconfig needs --cluster/ });
  server.put(serviceObject('a-web'));
  const program = promisify(execFile)(PROGRAM, ['check', '--cluster'], {
    env: { ...process.env, KUBECONFIG: kubeconfig },
  });
  await t.rejects(program, { code: 1, stdout: /^Services: error: Service\[default\/web\]/, stderr: '' }, 'the program');
});
