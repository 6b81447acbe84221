import { readFileSync } from 'node:fs';
import { basename, dirname } from 'node:path';
import t from 'tap';
import type { ApiObject } from '../support/api-objects.js';
import { load, WINDOWS } from '../config/load-from.js';
import { wrongFields } from '../support/deploy/fields.js';
import { build, fieldsOf, items, podSpec } from '../support/deploy/kustomize.js';
import { projectFile } from '../support/lab/agent.js';

/** The manifests for Windows nodes, and the image that they start. */

const OBJECTS = build(projectFile('deploy/windows'));

function only(kind: string): ApiObject {
  const [object = {}, ...more] = OBJECTS.filter((each) => each['kind'] === kind);
  t.equal(more.length, 0, kind);
  return object;
}

const pod = podSpec(only('DaemonSet'));
const [container = {}] = items(pod['containers']);
const command = (container['command'] as readonly string[]).map((word) => word.replace('$(NODE_NAME)', 'win-1'));

t.test('every field of the Windows manifests exists and has its type', async (t) => {
  for (const object of OBJECTS) t.same(await wrongFields(object), []);
});

t.test('overlays/one-windows-node runs on labelled Windows nodes only', (t) => {
  const [daemonSet, ...others] = build(projectFile('deploy/overlays/one-windows-node')).reverse();
  t.same(podSpec(daemonSet ?? {}), {
    ...pod,
    nodeSelector: { 'kubernetes.io/os': 'windows', 'node-proxy': 'pointsman' },
  });
  t.same(others, [only('ConfigMap')]);
  t.end();
});

t.test('the Windows pod is a HostProcess container as SYSTEM, on Windows nodes', (t) => {
  t.match(pod, {
    securityContext: { windowsOptions: { hostProcess: true, runAsUserName: 'NT AUTHORITY\\SYSTEM' } },
    hostNetwork: true,
    nodeSelector: { 'kubernetes.io/os': 'windows' },
    serviceAccountName: 'kube-proxy',
  });
  t.end();
});

t.test('the Windows image has what the pod’s command starts', (t) => {
  const file = readFileSync(projectFile('deploy/windows/Dockerfile'), 'utf8');
  const copied = [...file.matchAll(/^COPY (?:--from=\w+ )?(\S+) (\/\S+)$/gm)];
  const places = copied.map(([, , place = '']) => `C:/hpc${place}`);
  const taken = readFileSync(projectFile('deploy/windows/Dockerfile.dockerignore'), 'utf8').match(/(?<=^!).+/gm);
  const [, addon = ''] = /^ARG ADDON=(.*)$/m.exec(file) ?? [];
  const sources = copied.map(([, source = '']) => source.replace('${ADDON}', addon));
  t.same(
    sources.filter((source) => source !== 'node.exe' && taken?.includes(source) !== true),
    [],
    'nothing of it is left out of the build',
  );
  const [node = '', program = ''] = command;
  t.ok(places.includes(node), node);
  t.same([places.includes(dirname(program)), basename(program)], [true, 'main.js']);
  // It looks for the addon above its own folder.
  t.ok(places.includes(`${dirname(dirname(program))}/build/Release/pointsman.node`));
  t.end();
});

t.test('the Windows configuration has effect, and serves the ports of the probes', (t) => {
  const [, , flag = '', ...flags] = command;
  const path = flag.replace('--config=', '');
  const data = fieldsOf(only('ConfigMap')['data']);
  const loaded = load([flag, ...flags], { [path]: String(data[basename(path)]) }, WINDOWS);
  if (!('config' in loaded)) throw new Error('no configuration');
  const { config, warnings } = loaded;
  t.same(warnings, []);
  t.match(config, { mode: 'kernelspace', nodeName: 'win-1', kernelspace: { networkName: /./ } });
  t.match(items(container['ports']), [
    { name: 'healthz', containerPort: config.healthz?.port },
    { name: 'metrics', containerPort: config.metrics.port },
  ]);
  for (const probe of ['livenessProbe', 'readinessProbe'])
    t.match(container[probe], { httpGet: { port: 'healthz' } }, probe);
  const mounts = items(container['volumeMounts']).map(({ name, mountPath }) => [mountPath, name]);
  const volumes = items(pod['volumes']);
  for (const [file, configMap] of [
    [path, fieldsOf(only('ConfigMap')['metadata'])['name']],
    [config.kubernetes?.kubeconfig ?? '', 'kube-proxy'],
  ]) {
    const [, volume] = mounts.find(([mountPath]) => mountPath === dirname(String(file))) ?? [];
    t.match(
      volumes.find(({ name }) => name === volume),
      { configMap: { name: configMap } },
      String(file),
    );
  }
  t.end();
});
