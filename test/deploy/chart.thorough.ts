// The Helm chart, rendered by Go's template engine with sprig, as Helm does it: it makes what kustomize makes where both exist.
import { mkdtempSync, readFileSync, rmSync, writeFileSync, cpSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { load } from 'js-yaml';
import t, { type Test } from 'tap';
import type { ApiObject } from '../support/api-objects.js';
import { ChartRenderer } from '../support/deploy/chart/renderer.js';
import { wrongFields } from '../support/deploy/fields.js';
import { build, fieldsOf, items } from '../support/deploy/kustomize.js';
import { projectFile } from '../support/lab/agent.js';
import { withValues } from '../support/deploy/chart/values.js';

const CHART = projectFile('deploy/chart');
const renderer = ChartRenderer.get((step) => {
  t.comment(step);
});
const skip = typeof renderer === 'string' ? { skip: renderer } : {};

function rendered(values: ApiObject): ApiObject[] {
  if (typeof renderer === 'string') throw new Error(renderer);
  return renderer.render(CHART, withValues(values));
}

/** A folder of deploy/ with components switched on, in place of those that are commented out. */
function kustomized(t: Test, folder: string, components: readonly string[] = []): ApiObject[] {
  const copy = mkdtempSync(join(tmpdir(), 'kustomize-'));
  t.teardown(() => {
    rmSync(copy, { recursive: true });
  });
  cpSync(projectFile('deploy'), copy, { recursive: true });
  const file = join(copy, folder, 'kustomization.yaml');
  const up = folder.replaceAll(/[^/]+/g, '..');
  const lines = components.map((name) => `  - ${up}/components/${name}\n`);
  const text = readFileSync(file, 'utf8').replaceAll(/^#.*\n/gm, '');
  writeFileSync(file, components.length === 0 ? text : `${text}components:\n${lines.join('')}`);
  return build(join(copy, folder));
}

/** In one order, with texts that are YAML read. */
function comparable(objects: readonly ApiObject[]): unknown {
  const name = (object: ApiObject): string =>
    `${String(object['kind'])} ${String(fieldsOf(object['metadata'])['name'])}`;
  return Object.fromEntries(
    objects
      .map((object): [string, unknown] => {
        const data = Object.entries(fieldsOf(object['data']));
        const read = data.map(([key, text]) => [key, load(String(text))] as const);
        const lists = normal(object);
        return [name(object), data.length === 0 ? lists : { ...fieldsOf(lists), data: Object.fromEntries(read) }];
      })
      .sort(([one], [other]) => (one < other ? -1 : 1)),
  );
}

/** Lists of named objects are sets to Kubernetes: kustomize puts what a patch adds first. */
function normal(value: unknown): unknown {
  if (Array.isArray(value)) {
    const list = value.map(normal);
    const keyOf = (item: unknown): string => {
      const { mountPath, name } = fieldsOf(item);
      return JSON.stringify(mountPath ?? name ?? item);
    };
    const isNamed = items(value).length === value.length && value.length > 0 && 'name' in fieldsOf(value[0]);
    return isNamed ? list.sort((one, other) => (keyOf(one) < keyOf(other) ? -1 : 1)) : list;
  }
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, normal(each)]));
}

for (const [title, values, folder, components] of [
  ["in kube-proxy's place", {}, 'overlays/kubeadm', []],
  ['a trial on labelled nodes', { install: 'trial' }, 'overlays/one-node', []],
  ['a cluster without kube-proxy', { install: 'standalone' }, 'base', []],
  ['all privileges', { privileged: true }, 'overlays/kubeadm', ['privileged']],
  ['secured metrics', { secured: true, podMonitor: true }, 'overlays/kubeadm', ['secured', 'secured-pod-monitor']],
  ['a PodMonitor', { install: 'standalone', podMonitor: true }, 'base', ['pod-monitor']],
  ['the webhook', { webhook: { enabled: true } }, 'overlays/kubeadm', ['admission']],
  ['the command nodes', { nodes: true }, 'overlays/kubeadm', ['nodes']],
  ['Windows nodes', { install: 'none', windows: { enabled: true } }, 'windows', []],
  [
    'a trial on Windows nodes',
    { install: 'none', windows: { enabled: true, trial: true } },
    'overlays/one-windows-node',
    [],
  ],
  [
    'Windows nodes with Calico',
    {
      install: 'none',
      windows: { enabled: true, winkernel: { networkName: 'Calico', sourceVip: 'Calico_ep', enableDSR: true } },
    },
    'overlays/windows-calico',
    [],
  ],
  [
    'Windows nodes with Flannel',
    {
      install: 'none',
      windows: { enabled: true, winkernel: { networkName: 'type=Overlay', sourceVip: 'source_vip' } },
    },
    'overlays/windows-flannel',
    [],
  ],
  [
    'Windows nodes of EKS',
    { install: 'none', windows: { enabled: true, winkernel: { networkName: 'vpcbr*' } } },
    'overlays/windows-eks',
    [],
  ],
] as const) {
  t.test(`the Helm chart renders the same as kustomize: ${title}`, skip, async (t) => {
    const objects = rendered(values);
    t.same(comparable(objects), comparable(kustomized(t, folder, components)));
    for (const object of objects.filter(({ kind }) => kind !== 'PodMonitor'))
      t.same(await wrongFields(object), [], String(object['kind']));
  });
}

t.test('the Helm chart names images by tag and by digest', skip, (t) => {
  const digest = `sha256:${'1'.repeat(64)}`;
  const imagesOf = (image: ApiObject): readonly string[] =>
    JSON.stringify(rendered({ image })).match(/(?<="image":")[^"]+/g) ?? [];
  t.same(new Set(imagesOf({ repository: 'a.example/b' })), new Set(['a.example/b:0.1.0']));
  t.same(new Set(imagesOf({ repository: 'a.example/b', tag: '1' })), new Set(['a.example/b:1']));
  t.same(new Set(imagesOf({ repository: 'a.example/b', tag: '1', digest })), new Set([`a.example/b@${digest}`]));
  t.end();
});

t.test('the Helm chart puts values where they belong', skip, (t) => {
  const standalone = comparable(
    rendered({
      install: 'standalone',
      server: 'https://10.0.0.1:6443',
      config: { mode: 'ipvs', ipvs: { scheduler: 'lc' } },
    }),
  );
  t.match(fieldsOf(standalone)['ConfigMap kube-proxy'], {
    data: {
      'config.conf': { mode: 'ipvs', ipvs: { scheduler: 'lc' }, clusterCIDR: '10.244.0.0/16' },
      'kubeconfig.conf': { clusters: [{ cluster: { server: 'https://10.0.0.1:6443' } }] },
    },
  });
  const rules = { nodeAddresses: 'Warn' };
  const annotations = { 'cert-manager.io/inject-ca-from': 'kube-system/pointsman-webhook' };
  const webhook = { enabled: true, replicas: 3, policy: { rules }, caBundle: 'QQ==', annotations };
  const admission = fieldsOf(comparable(rendered({ webhook })));
  t.match(admission['ConfigMap pointsman-webhook'], { data: { 'policy.yaml': { rules } } });
  t.match(admission['Deployment pointsman-webhook'], { spec: { replicas: 3 } });
  t.match(admission['ValidatingWebhookConfiguration pointsman'], {
    metadata: { annotations },
    webhooks: [{ clientConfig: { caBundle: 'QQ==' } }],
  });
  t.end();
});
