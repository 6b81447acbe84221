import { execFileSync } from 'node:child_process';
import { cpSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { loadAll } from 'js-yaml';
import t from 'tap';
import { systemClock } from '../../src/base/clock.js';
import { nodeSubject, serviceSubject } from '../../src/base/events.js';
import { systemWallClock } from '../../src/base/timestamp.js';
import { DEFAULT_EVENT_RATES } from '../../src/config/event-rates.js';
import { EventSender } from '../../src/sources/kubernetes/events/event-sender.js';
import { loaded } from '../config/load-from.js';
import { connect } from '../sources/kubernetes/connect.js';
import { LiveWorld, until } from '../sources/kubernetes/live-world.js';
import { nodeObject, serviceObject, sliceObject, type ApiObject } from '../support/api-objects.js';
import type { PolicyRule } from '../support/api-server/rbac.js';
import { wrongFields } from '../support/deploy/fields.js';
import { KUBEADM_DAEMON_SET } from '../support/deploy/kubeadm.js';
import {
  build,
  buildUncommented,
  documents,
  fieldsOf,
  items,
  merge,
  podSpec,
  uncommented,
} from '../support/deploy/kustomize.js';
import { projectFile } from '../support/lab/agent.js';

const DEPLOY = projectFile('deploy');
/** kubeadm reads the target and the kind of patch from the name. */
const KUBEADM_PATCH = 'kubeadm-patches/kubeproxydaemonset+strategic.yaml';

function overlay(path: string): ApiObject[] {
  return build(join(DEPLOY, path));
}

function only(objects: readonly ApiObject[], kind: string): ApiObject {
  const [object, ...more] = objects.filter((each) => each['kind'] === kind);
  if (object === undefined || more.length > 0) throw new Error(`not one ${kind}`);
  return object;
}

function names(objects: readonly ApiObject[]): string[] {
  return objects.map((object) => `${String(object['kind'])} ${String(fieldsOf(object['metadata'])['name'])}`);
}

/** With the components that an operator may switch on. */
function withComponents(path: string): ApiObject[] {
  return buildUncommented(join(DEPLOY, path));
}

t.test('every file in deploy is used by a kustomization or named for kubectl patch', (t) => {
  const files = readdirSync(DEPLOY, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith('.yaml'))
    .map((entry) => relative(DEPLOY, join(entry.parentPath, entry.name)))
    .filter((file) => !file.startsWith('chart/'));
  // Rules in Prometheus' own form, which no kustomization takes: test/deploy/monitoring.test.ts.
  const plainRules = ['components/alerts/rules.yaml', 'components/alerts/rules.test.yaml'];
  const patches = ['overlays/one-node/kube-proxy-patch.yaml', KUBEADM_PATCH];
  const used = new Set([...patches, ...plainRules]);
  for (const file of files.filter((each) => each.endsWith('/kustomization.yaml'))) {
    used.add(file);
    const [kustomization = {}] = documents(join(DEPLOY, file));
    const { resources = [], patches } = kustomization;
    const patchFiles = items(patches).map(({ path }) => path);
    for (const path of [...(resources as readonly unknown[]), ...patchFiles]) used.add(join(file, '..', String(path)));
  }
  t.same(
    files.filter((file) => !used.has(file)),
    [],
  );
  t.end();
});

t.test('the overlays of kustomize make valid manifests', (t) => {
  t.same(names(overlay('base')), [
    'DaemonSet kube-proxy',
    'ConfigMap kube-proxy',
    'ServiceAccount kube-proxy',
    'ClusterRole pointsman',
    'ClusterRoleBinding pointsman',
  ]);
  t.same(names(overlay('overlays/kubeadm')), ['DaemonSet kube-proxy'], "kubeadm's other objects stay as they are");
  t.same(names(overlay('overlays/one-node')), ['DaemonSet kube-proxy-pointsman']);
  const components = [
    'PodMonitor kube-proxy',
    'ClusterRoleBinding pointsman-auth-delegator',
    'ClusterRole pointsman-metrics-reader',
    'ClusterRoleBinding pointsman-metrics-reader',
    'ServiceAccount pointsman-metrics-reader',
    'Secret pointsman-metrics-reader',
    'PodMonitor kube-proxy-secured',
    'PrometheusRule pointsman',
    'ConfigMap pointsman-dashboards',
    'ServiceAccount pointsman-webhook',
    'ClusterRole pointsman-webhook',
    'ClusterRoleBinding pointsman-webhook',
    'ConfigMap pointsman-webhook',
    'Deployment pointsman-webhook',
    'Service pointsman-webhook',
    'ValidatingWebhookConfiguration pointsman',
    'ServiceAccount pointsman-nodes',
    'ClusterRole pointsman-nodes-page',
    'ClusterRoleBinding pointsman-nodes-page',
    'ClusterRole pointsman-nodes',
    'Role pointsman-nodes',
  ];
  t.same(names(withComponents('overlays/kubeadm')), ['DaemonSet kube-proxy', ...components]);
  t.same(names(withComponents('base')), [...names(overlay('base')), ...components]);
  const secured = readFileSync(join(DEPLOY, 'components/secured/kustomization.yaml'), 'utf8');
  t.notMatch(secured, /pod-monitor/, 'TLS and users need no Prometheus operator');
  t.end();
});

function kubectl(...args: readonly string[]): string {
  return execFileSync('kubectl', args, { encoding: 'utf8' });
}

/** What the folders need came with kustomize 4.1. */
function hasKustomize(): boolean {
  try {
    return /Kustomize Version: v([5-9]|4\.[1-9])/.test(kubectl('version', '--client'));
  } catch {
    return false;
  }
}

const noKubectl = hasKustomize() ? {} : { skip: 'there is no kubectl of 1.24 or later' };

t.test("kubectl kustomize renders the same as the test's kustomize", noKubectl, (t) => {
  const copy = join(t.testdir({}), 'deploy');
  cpSync(DEPLOY, copy, { recursive: true });
  const made = (path: string): unknown[] => loadAll(kubectl('kustomize', join(copy, path)));
  const inOrder = (objects: readonly unknown[]): readonly ApiObject[] =>
    objects.map(fieldsOf).sort((one, other) => (names([one]).join() < names([other]).join() ? -1 : 1));
  for (const path of ['daemonset', 'base', 'overlays/kubeadm', 'overlays/one-node', 'overlays/one-windows-node'])
    t.same(inOrder(overlay(path)), inOrder(made(path)), path);
  for (const path of ['base', 'overlays/kubeadm']) {
    const file = join(copy, path, 'kustomization.yaml');
    writeFileSync(file, uncommented(readFileSync(file, 'utf8')));
    t.same(inOrder(withComponents(path)), inOrder(made(path)), `${path} with its components`);
  }
  t.end();
});

t.test('every field of the manifests exists and has its type', async (t) => {
  const objects = [...overlay('base'), ...withComponents('overlays/kubeadm'), ...overlay('overlays/one-node')];
  for (const object of objects) t.same(await wrongFields(object), [], names([object]).join());
});

t.test('the check of manifests finds an unknown field at any depth', async (t) => {
  const daemonSet = only(overlay('base'), 'DaemonSet');
  const container = { name: 'kube-proxy', livenessProbe: { httpGet: { prot: 'healthz' } } };
  const spec = { hostNetwork: 'yes', containers: [container] };
  t.same(await wrongFields(merge(daemonSet, { metadata: { label: {} }, spec: { template: { spec } } })), [
    'DaemonSet.metadata.label: no such field',
    'DaemonSet.spec.template.spec.hostNetwork: "yes" is not of type boolean',
    'DaemonSet.spec.template.spec.containers[0].livenessProbe.httpGet.prot: no such field',
  ]);
  t.same(await wrongFields({ apiVersion: 'apps/v1beta1', kind: 'DaemonSet' }), [
    'apps/v1beta1 DaemonSet: not a kind used here',
  ]);
});

t.test('the ClusterRole grants exactly the permissions that the proxy uses', async (t) => {
  const rules = items(only(overlay('base'), 'ClusterRole')['rules']);
  const asked = new Set<string>();
  const forbidden: string[] = [];
  // With a server that streams what there is, and with one that has it listed first.
  for (const watchList of ['yes', 'invalid'] as const) {
    const world = new LiveWorld({ watchList, rules: rules as unknown as readonly PolicyRule[] });
    world.server.put(serviceObject('web'), sliceObject('web-1', 'web', ['10.0.0.1']), nodeObject('node-1'));
    await world.server.start();
    const connection = await connect(t, { cluster: { server: world.server.url } });
    const dependencies = { clock: systemClock, wallClock: systemWallClock(), log: world.log };
    const sender = new EventSender({ hostname: 'host-1', rates: DEFAULT_EVENT_RATES, limit: null, ...dependencies });
    await world.start({ events: sender }, {}, connection);
    await world.ready();
    await world.inStep();
    for (const regarding of [
      nodeSubject('node-1'),
      serviceSubject('default/web'),
      { apiVersion: 'discovery.k8s.io/v1', kind: 'EndpointSlice', namespace: 'default', name: 'web-1' },
    ])
      sender.record({ type: 'Normal', reason: 'Test', action: 'Test', regarding, related: null, note: '' });
    sender.start(connection);
    await until(() => world.server.events.length === 3 || world.server.forbidden.length > 0, 'told');
    sender.stop();
    await world.stop();
    for (const access of world.server.asked) asked.add(access);
    forbidden.push(...world.server.forbidden);
  }
  t.same(forbidden, [], 'nothing that is not granted');
  const granted = rules.flatMap(({ apiGroups, resources, verbs }) => combinations(apiGroups, resources, verbs));
  t.same(granted.sort(), [...asked].sort());
});

t.test('the ClusterRole is bound to the ServiceAccount of the pods', (t) => {
  const objects = overlay('base');
  const binding = only(objects, 'ClusterRoleBinding');
  t.match(binding, { roleRef: { kind: 'ClusterRole', name: 'pointsman' } });
  t.same(binding['subjects'], [{ kind: 'ServiceAccount', name: 'kube-proxy', namespace: 'kube-system' }]);
  t.match(only(objects, 'ServiceAccount'), { metadata: { name: 'kube-proxy', namespace: 'kube-system' } });
  t.equal(podSpec(only(objects, 'DaemonSet'))['serviceAccountName'], 'kube-proxy');
  t.end();
});

function combinations(...[groups, resources, verbs]: readonly unknown[]): string[] {
  const [first, second, third] = [groups, resources, verbs].map((list) => list as readonly string[]);
  return (first ?? []).flatMap((group) =>
    (second ?? []).flatMap((resource) => (third ?? []).map((verb) => `${verb} ${group}/${resource}`)),
  );
}

t.test("CF-53: kubeadm's DaemonSet with another image, fewer privileges and additions", (t) => {
  const daemonSet = only(overlay('overlays/kubeadm'), 'DaemonSet');
  const [kubeadms] = items(podSpec(KUBEADM_DAEMON_SET)['containers']);
  const [ours] = items(podSpec(daemonSet)['containers']);
  t.same(differences(KUBEADM_DAEMON_SET, merge(KUBEADM_DAEMON_SET, daemonSet)).sort(), [
    'spec.template.spec.containers',
    'spec.template.spec.initContainers',
    'spec.template.spec.shareProcessNamespace',
    'spec.template.spec.volumes',
    'spec.updateStrategy.rollingUpdate.maxUnavailable',
  ]);
  const added = differences(kubeadms ?? {}, merge(kubeadms ?? {}, ours ?? {}));
  t.same(added.filter((path) => !path.startsWith('securityContext.')).sort(), [
    'image',
    'livenessProbe',
    'ports',
    'readinessProbe',
    'resources.requests',
    'startupProbe',
    'volumeMounts',
  ]);
  t.end();
});

t.test("kubeadm's patch makes of its DaemonSet the one of overlays/kubeadm", async (t) => {
  const [patch = {}, ...more] = documents(join(DEPLOY, KUBEADM_PATCH));
  t.same(more, []);
  const [daemonSet] = overlay('overlays/kubeadm');
  t.same(patch, daemonSet, 'written by kubectl kustomize');
  const patched = merge(KUBEADM_DAEMON_SET, patch);
  t.same(await wrongFields(patched), []);
  t.same(patched, merge(KUBEADM_DAEMON_SET, daemonSet ?? {}), 'as kubectl apply -k makes it');
  t.match(podSpec(patched)['containers'], [{ name: 'kube-proxy', image: /^pointsman:/ }]);
  t.end();
});

t.test('probes make the pod ready within a second, and restart it only when it does not live', (t) => {
  const [container = {}] = items(podSpec(only(overlay('base'), 'DaemonSet'))['containers']);
  t.match(container['readinessProbe'], { httpGet: { path: '/healthz' }, periodSeconds: 1 });
  t.match(container['livenessProbe'], { httpGet: { path: '/livez' } });
  const startup = { httpGet: { path: '/livez' }, initialDelaySeconds: 2, periodSeconds: 1, failureThreshold: 90 };
  t.match(container['startupProbe'], startup, 'which lets a process live that waits for its API server');
  t.end();
});

t.test('overlays/one-node separates pointsman from kube-proxy by labels and nodes', (t) => {
  const daemonSet = only(overlay('overlays/one-node'), 'DaemonSet');
  const labels = { 'k8s-app': 'pointsman' };
  t.match(daemonSet, { spec: { selector: { matchLabels: labels }, template: { metadata: { labels } } } });
  t.match(podSpec(daemonSet)['nodeSelector'], { 'kubernetes.io/os': 'linux', 'node-proxy': 'pointsman' });
  const [patch = {}] = documents(join(DEPLOY, 'overlays/one-node/kube-proxy-patch.yaml'));
  const kept = {
    nodeSelectorTerms: [{ matchExpressions: [{ key: 'node-proxy', operator: 'NotIn', values: ['pointsman'] }] }],
  };
  t.same(fieldsOf(fieldsOf(podSpec(merge(KUBEADM_DAEMON_SET, patch))['affinity'])['nodeAffinity']), {
    requiredDuringSchedulingIgnoredDuringExecution: kept,
  });
  t.end();
});

t.test('only the init container is privileged, also over a DaemonSet that was', async (t) => {
  const daemonSet = merge(KUBEADM_DAEMON_SET, only(overlay('overlays/kubeadm'), 'DaemonSet'));
  t.same(await wrongFields(daemonSet), []);
  const pod = podSpec(daemonSet);
  const [init, ...more] = items(pod['initContainers']);
  const [main] = items(pod['containers']);
  t.same(more, []);
  t.match(init, { image: main?.['image'], securityContext: { privileged: true, readOnlyRootFilesystem: true } });
  t.same(init?.['command'], [...(main?.['command'] as readonly string[]), '--init-only']);
  t.same(main?.['securityContext'], {
    privileged: false,
    allowPrivilegeEscalation: false,
    readOnlyRootFilesystem: true,
    runAsUser: 0,
    capabilities: { drop: ['ALL'], add: ['NET_ADMIN', 'NET_RAW'] },
    seccompProfile: { type: 'RuntimeDefault' },
  });
});

t.test('the component privileged has one container with all privileges', async (t) => {
  const daemonSet = only(withComponents('overlays/kubeadm'), 'DaemonSet');
  t.same(await wrongFields(daemonSet), []);
  const pod = podSpec(daemonSet);
  t.notOk('initContainers' in pod);
  t.same(items(pod['containers'])[0]?.['securityContext'], {
    privileged: true,
    readOnlyRootFilesystem: true,
    runAsUser: 0,
  });
});

t.test('the component secured sets flags that fit, and permissions for its clients', (t) => {
  const objects = withComponents('overlays/kubeadm');
  const [plain] = items(podSpec(only(overlay('overlays/kubeadm'), 'DaemonSet'))['containers']);
  const [container] = items(podSpec(only(objects, 'DaemonSet'))['containers']);
  const [before, command] = [plain, container].map((each) => each?.['command'] as readonly string[]);
  t.same(command?.slice(0, before?.length), before);
  const flags = command?.slice(before?.length) ?? [];
  const { config } = loaded(['--master=https://api.example', ...flags]);
  t.match(config.secured, { authentication: { anonymous: false }, authorization: { mode: 'Webhook' } });
  const mounts = items(container?.['volumeMounts']).map(({ mountPath }) => mountPath);
  t.ok(mounts.includes(config.secured?.tls.directory), 'the certificate is kept');
  const named = (kind: string): ApiObject | undefined =>
    objects.find((each) => names([each]).includes(`${kind} pointsman-metrics-reader`));
  const subject = { kind: 'ServiceAccount', name: 'pointsman-metrics-reader', namespace: 'kube-system' };
  t.match(named('ClusterRoleBinding'), { roleRef: { name: 'pointsman-metrics-reader' }, subjects: [subject] });
  t.same(named('ClusterRole')?.['rules'], [{ nonResourceURLs: ['/metrics', '/metrics/slis'], verbs: ['get'] }]);
  t.match(named('Secret'), { metadata: { annotations: { 'kubernetes.io/service-account.name': subject.name } } });
  t.end();
});

/** Paths of what one of two objects has otherwise; lists count as a whole. */
function differences(one: ApiObject, other: ApiObject, path = ''): string[] {
  return [...new Set([...Object.keys(one), ...Object.keys(other)])].flatMap((name) => {
    const [first, second] = [one[name], other[name]];
    const bothMaps = [first, second].every((each) => typeof each === 'object' && each !== null && !Array.isArray(each));
    if (bothMaps) return differences(fieldsOf(first), fieldsOf(second), `${path}${name}.`);
    return isDeepStrictEqual(first, second) ? [] : [`${path}${name}`];
  });
}
