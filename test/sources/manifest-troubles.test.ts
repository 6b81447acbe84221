import { execFileSync } from 'node:child_process';
import {
  appendFileSync,
  mkdirSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import t from 'tap';
import { readManifest } from '../../src/sources/manifests/file-reading.js';
import { ManifestRig, eventually, scratchDirectory, serviceYaml, yaml } from '../support/manifests.js';

/** So long that only change events can tell. */
const EVENTS_ONLY = { filePollMs: 600_000 };

t.test('a manifest that is unreadable at the start is an unsynced source until it is read', async (t) => {
  const directory = scratchDirectory(t);
  const at = (name: string): string => join(directory, name);
  writeFileSync(at('good.yaml'), serviceYaml('good'));
  writeFileSync(at('bad.yaml'), serviceYaml('bad', 'x'));
  writeFileSync(at('broken.yaml'), 'a: [');
  const rig = new ManifestRig(t, [directory], EVENTS_ONLY);
  const { snapshot } = rig.writer.store;
  await rig.ready();
  t.ok(snapshot.unsynced, 'known as soon as the rest is');
  writeFileSync(at('broken.yaml'), serviceYaml('broken'));
  await rig.shows('broken:80 good:80');
  t.ok(snapshot.unsynced, 'the other is still there');
  writeFileSync(at('bad.yaml'), serviceYaml('bad'));
  await rig.shows('bad:80 broken:80 good:80');
  t.notOk(snapshot.unsynced);
  writeFileSync(at('bad.yaml'), serviceYaml('bad', 'x'));
  await eventually(() => rig.errors().length > 2, 'the new problem');
  t.notOk(snapshot.unsynced, 'its last good version is held');
  writeFileSync(at('new.yaml'), 'a: [');
  await eventually(() => snapshot.unsynced, 'an unsynced source');
  unlinkSync(at('new.yaml'));
  await eventually(() => !snapshot.unsynced, 'all sources synced');
});

t.test('a broken manifest keeps its objects and is reported once', async (t) => {
  const file = join(scratchDirectory(t), 's.yaml');
  writeFileSync(file, yaml(serviceYaml('a'), serviceYaml('b')));
  const rig = new ManifestRig(t, [file], { filePollMs: 20 });
  await rig.ready();
  writeFileSync(file, yaml(serviceYaml('a', 81), serviceYaml('b', 70_000)));
  await rig.shows('a:81 b:80');
  await delay(200);
  t.match(rig.errors(), [/^error Bad manifest: spec\.ports\[0\]\.port: 70000: /]);
  writeFileSync(file, 'x: [\n');
  await eventually(() => rig.errors().length === 2, 'the second error');
  await delay(200);
  t.match(rig.errors()[1], /is no YAML: line /);
  t.equal(rig.errors().length, 2, 'said once, not at each look');
  t.equal(rig.services(), 'a:81 b:80');
  writeFileSync(file, serviceYaml('a', 82));
  await rig.shows('a:82');
  t.ok(rig.log.lines.some((line) => line.includes('valid again')));
});

t.test('skipped objects of manifests name their Service', async (t) => {
  const file = join(scratchDirectory(t), 's.yaml');
  const slice = `apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: { name: a-1, labels: { kubernetes.io/service-name: a } }
addressType: IPv4
endpoints: [{ addresses: [10.0.0.x] }, { addresses: [10.0.0.1] }]
ports: [{ port: 80 }]
`;
  writeFileSync(file, yaml(serviceYaml('a'), serviceYaml('b', 70_000), slice));
  const rig = new ManifestRig(t, [file], { filePollMs: 20 });
  await rig.ready();
  t.match(rig.running.leftOut(), [
    { ref: { kind: 'Service', name: 'b' }, service: 'default/b', isWhole: true, text: /70000/ },
    { ref: { kind: 'EndpointSlice', name: 'a-1' }, service: 'default/a', isWhole: false, text: /10\.0\.0\.x/ },
  ]);
  writeFileSync(file, yaml(serviceYaml('a'), serviceYaml('b'), slice.replace('10.0.0.x', '10.0.0.2')));
  await rig.shows('a:80 b:80');
  await eventually(() => rig.running.leftOut().length === 0, 'nothing is left out');
});

t.test('a manifest read while it is written unloads nothing, and is not reported', async (t) => {
  const file = join(scratchDirectory(t), 's.json');
  const text = JSON.stringify({
    apiVersion: 'v1',
    kind: 'List',
    items: ['a', 'b', 'c'].map((name) => ({
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name },
      spec: { clusterIP: '10.0.0.1', ports: [{ port: 80 }] },
    })),
  });
  writeFileSync(file, text);
  const rig = new ManifestRig(t, [file], { filePollMs: 5, settleMs: 1, graceMs: 1500 });
  await rig.ready();
  let lost = false;
  rig.writer.store.onChange(() => {
    lost ||= rig.services() !== 'a:80 b:80 c:80';
  });
  truncateSync(file);
  for (let from = 0; from < text.length; from += 40) {
    await delay(20);
    appendFileSync(file, text.slice(from, from + 40));
  }
  await delay(1800);
  t.equal(lost, false);
  t.same(rig.errors(), []);
});

t.test('a YAML manifest written in valid pieces unloads nothing', async (t) => {
  const file = join(scratchDirectory(t), 's.yaml');
  const documents = ['a', 'b', 'c', 'd'].map((name) => serviceYaml(name));
  writeFileSync(file, yaml(...documents));
  const rig = new ManifestRig(t, [file], { filePollMs: 5, settleMs: 1, graceMs: 1500 });
  await rig.ready();
  let lost = false;
  rig.writer.store.onChange(() => {
    lost ||= rig.services() !== 'a:80 b:80 c:80 d:80';
  });
  truncateSync(file);
  for (const document of documents) {
    await delay(30);
    appendFileSync(file, `---\n${document}`);
  }
  await delay(1800);
  t.equal(lost, false);
  truncateSync(file);
  await rig.shows('');
});

t.test('a manifest directory that vanishes for a moment unloads nothing; an empty one does', async (t) => {
  const root = scratchDirectory(t);
  const directory = join(root, 'd');
  mkdirSync(directory);
  writeFileSync(join(directory, 'a.yaml'), serviceYaml('a'));
  writeFileSync(join(directory, 'b.yaml'), serviceYaml('b'));
  const rig = new ManifestRig(t, [directory], { filePollMs: 20 });
  await rig.ready();
  renameSync(directory, join(root, 'away'));
  await eventually(() => rig.errors().length === 1, 'an error');
  await delay(300);
  t.match(rig.errors(), [/cannot be read: does not exist/], 'reported once');
  t.equal(rig.services(), 'a:80 b:80');
  writeFileSync(directory, 'a file in its place');
  await eventually(() => rig.errors().length === 2, 'the second error');
  t.match(rig.errors()[1], /is no directory any more/);
  await delay(200);
  t.equal(rig.services(), 'a:80 b:80');
  unlinkSync(directory);
  mkdirSync(directory);
  writeFileSync(join(directory, 'b.yaml'), serviceYaml('b', 81));
  await rig.shows('b:81');
  writeFileSync(join(directory, 'c.yaml'), serviceYaml('c'));
  await rig.shows('b:81 c:80');
  rmSync(directory, { recursive: true });
  mkdirSync(directory);
  await rig.shows('');
  t.ok(rig.log.lines.some((line) => line.includes('valid again')));
});

t.test('an unreadable location delays readiness, a broken manifest does not', async (t) => {
  const root = scratchDirectory(t);
  const missing = new ManifestRig(t, [join(root, 'later')], { filePollMs: 20 });
  writeFileSync(join(root, 'broken.yaml'), 'x: [');
  const broken = new ManifestRig(t, [join(root, 'broken.yaml')], { filePollMs: 20 });
  await broken.ready();
  t.match(broken.errors(), [/is no YAML/]);
  await delay(200);
  t.equal(missing.writer.store.snapshot.ready, false);
  t.match(missing.errors(), [/does not exist/]);
  mkdirSync(join(root, 'later'));
  await missing.ready();
  t.equal(missing.writer.commits.length, 0, 'an empty directory means no objects');
});

t.test('a manifest that is no file, or has no end, delays no source', async (t) => {
  const directory = scratchDirectory(t);
  const at = (name: string): string => join(directory, name);
  writeFileSync(at('z.yaml'), serviceYaml('z'));
  symlinkSync('/proc/self/pagemap', at('a.yaml'));
  symlinkSync('/dev/zero', at('b.yaml'));
  symlinkSync('c.yaml', at('c.yaml'));
  execFileSync('mkfifo', [at('d.yaml')]);
  const rig = new ManifestRig(t, [directory], EVENTS_ONLY);
  await rig.ready();
  t.equal(rig.services(), 'z:80');
  t.match(rig.errors().join('\n'), /null byte/, 'its beginning was read');
  for (const size of [1n, 2n << 20n]) {
    // What a look at a path says may be out of date when it is opened.
    const seen = { ...statSync(at('z.yaml'), { bigint: true }), size };
    await t.rejects(readManifest(at('d.yaml'), seen, 100), /is no file any more/);
    t.equal((await readManifest(at('z.yaml'), seen, 100)).text, serviceYaml('z').slice(0, Number(size)));
  }
});
