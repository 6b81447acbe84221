import {
  linkSync,
  mkdirSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  unlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import t from 'tap';
import { FileLocation } from '../../src/sources/manifests/files.js';
import { PollTimer } from '../../src/sources/manifests/poll-timer.js';
import { DEFAULT_TIMING } from '../../src/sources/manifests/timing.js';
import { usually } from '../support/extent.js';
import { CountingWriter, ManifestRig, eventually, scratchDirectory, serviceYaml, yaml } from '../support/manifests.js';
import { RecordingLog } from '../support/recording-log.js';

/** So long that only change events can tell. */
const EVENTS_ONLY = { filePollMs: 600_000 };

t.test('manifest directory: files are added, changed, replaced and removed', async (t) => {
  const directory = scratchDirectory(t);
  const at = (name: string): string => join(directory, name);
  writeFileSync(at('a.yaml'), serviceYaml('a'));
  writeFileSync(at('b.json'), JSON.stringify({ apiVersion: 'v1', kind: 'List', items: [] }));
  writeFileSync(at('.hidden.yaml'), serviceYaml('hidden'));
  writeFileSync(at('named anyhow'), serviceYaml('anyhow'));
  mkdirSync(at('below.yaml'));
  writeFileSync(at('below.yaml/c.yaml'), serviceYaml('below'));
  const rig = new ManifestRig(t, [directory], EVENTS_ONLY);
  await rig.ready();
  t.equal(rig.services(), 'a:80 anyhow:80');
  t.equal(rig.writer.commits.length, 1, 'the initial load is one commit');
  writeFileSync(at('c.yml'), yaml(serviceYaml('c'), serviceYaml('d')));
  await rig.shows('a:80 anyhow:80 c:80 d:80');
  writeFileSync(at('a.yaml'), serviceYaml('a', 81));
  await rig.shows('a:81 anyhow:80 c:80 d:80');
  writeFileSync(at('.new'), serviceYaml('e'));
  renameSync(at('.new'), at('c.yml'));
  await rig.shows('a:81 anyhow:80 e:80');
  unlinkSync(at('a.yaml'));
  await rig.shows('anyhow:80 e:80');
  renameSync(at('c.yml'), at('z.yaml'));
  await rig.shows('anyhow:80 e:80');
  unlinkSync(at('z.yaml'));
  await rig.shows('anyhow:80');
  t.same(rig.errors(), []);
  t.equal(rig.writer.completed, 1);
});

t.test('a change of one manifest commits that file only', async (t) => {
  const directory = scratchDirectory(t);
  for (let index = 0; index < 50; index++) writeFileSync(join(directory, `s${index}.yaml`), serviceYaml(`s${index}`));
  await delay(150);
  const rig = new ManifestRig(t, [directory], EVENTS_ONLY);
  await rig.ready();
  writeFileSync(join(directory, 's7.yaml'), serviceYaml('s7', 99));
  await eventually(() => rig.services().includes('s7:99'), 's7');
  const rows = rig.writer.commits.slice(1).flat();
  t.same(
    rows.map((change) => (change.type === 'upsert' ? change.row.name : 'removed')),
    ['s7'],
  );
});

t.test('the poll of a manifest directory finds every change', async (t) => {
  const directory = scratchDirectory(t);
  const elsewhere = scratchDirectory(t);
  writeFileSync(join(elsewhere, 'target'), serviceYaml('a'));
  symlinkSync(join(elsewhere, 'target'), join(directory, 'a.yaml'));
  const rig = new ManifestRig(t, [directory]);
  await rig.ready();
  // No event of the watched directory tells of what a link leads to.
  writeFileSync(join(elsewhere, 'target'), serviceYaml('a', 81));
  await rig.shows('a:81');
  unlinkSync(join(elsewhere, 'target'));
  await eventually(() => rig.errors().length > 0, 'an error');
  t.match(rig.errors(), [/is a link to nothing/]);
  t.equal(rig.services(), 'a:81', 'a broken link unloads nothing');
  writeFileSync(join(elsewhere, 'target'), serviceYaml('a', 82));
  await rig.shows('a:82');
  t.ok(rig.log.lines.some((line) => line.includes('valid again')));
});

/** Whether a directory is listed from now on: that sets an access time that is older than the last change (`relatime`). */
function sinceListed(directory: string): () => boolean {
  utimesSync(directory, new Date(0), new Date());
  return () => statSync(directory).atimeMs > 0;
}

/** Whether the file system keeps access times. */
function keepsAccessTimes(directory: string): boolean {
  const listed = sinceListed(directory);
  readdirSync(directory);
  return listed();
}

t.test('the poll lists no directory whose events report every change', async (t) => {
  const [directory, elsewhere] = [scratchDirectory(t), scratchDirectory(t)];
  for (let index = 0; index < 20; index++) writeFileSync(join(directory, `s${index}.yaml`), serviceYaml('s'));
  const target = join(elsewhere, 'target');
  writeFileSync(target, serviceYaml('a', 1));
  symlinkSync(target, join(directory, 'link.yaml'));
  writeFileSync(join(elsewhere, 'named-twice'), serviceYaml('b', 1));
  linkSync(join(elsewhere, 'named-twice'), join(directory, 'named-twice.yaml'));
  const works = keepsAccessTimes(directory);
  // What is younger than `graceMs` is looked at again.
  await delay(150);
  const rig = new ManifestRig(t, [directory], { filePollMs: 5 });
  await rig.ready();
  await rig.shows('a:1 b:1 s:80');
  const listed = sinceListed(directory);
  for (let port = 2; port < 30; port++) {
    writeFileSync(target, serviceYaml('a', port));
    writeFileSync(join(elsewhere, 'named-twice'), serviceYaml('b', port));
    await rig.shows(`a:${port} b:${port} s:80`);
  }
  if (works) t.notOk(listed());
  else t.comment('this file system keeps no access times: whether the directory was listed cannot be seen');
});

t.test('polls are rarer where events report every change of manifests', async (t) => {
  const root = scratchDirectory(t);
  mkdirSync(join(root, 'plain'));
  writeFileSync(join(root, 'plain', 'a.yaml'), serviceYaml('a'));
  mkdirSync(join(root, 'linking'));
  symlinkSync(join(root, 'plain', 'a.yaml'), join(root, 'linking', 'a.yaml'));
  symlinkSync('plain', join(root, 'link'));
  const filePollMs = 60_000;
  const pollMsOf = async (name: string, ...later: (() => void)[]): Promise<number> => {
    const location = new FileLocation(join(root, name), {
      writer: new CountingWriter().register(name),
      problems: { report: () => undefined },
      log: new RecordingLog(),
      timing: { ...DEFAULT_TIMING, filePollMs },
      timer: new PollTimer(),
    });
    t.teardown(() => {
      location.close();
    });
    await location.round();
    for (const change of later) {
      change();
      await location.round();
    }
    return location.pollMs;
  };
  const isRare = (ms: number): boolean => ms > filePollMs;
  t.ok(isRare(await pollMsOf('plain')));
  t.ok(isRare(await pollMsOf('plain/a.yaml')));
  t.notOk(isRare(await pollMsOf('linking')), 'a link in it');
  t.notOk(isRare(await pollMsOf('link')), 'a link to it');
  t.notOk(isRare(await pollMsOf('link/a.yaml')), 'a file reached by a link');
  t.notOk(isRare(await pollMsOf('absent')), 'nothing there');
  const away = (): void => {
    renameSync(join(root, 'plain'), join(root, 'away'));
  };
  t.notOk(isRare(await pollMsOf('plain', away)), 'nothing there any more');
});

t.test('a directory of manifests that is moved away and replaced is followed by events', async (t) => {
  const root = scratchDirectory(t);
  const directory = join(root, 'manifests');
  mkdirSync(directory);
  writeFileSync(join(directory, 'a.yaml'), serviceYaml('a', 1));
  mkdirSync(join(root, 'next'));
  writeFileSync(join(root, 'next', 'a.yaml'), serviceYaml('a', 2));
  const whole = new ManifestRig(t, [directory], EVENTS_ONLY);
  const single = new ManifestRig(t, [join(directory, 'a.yaml')], EVENTS_ONLY);
  await Promise.all([whole.ready(), single.ready()]);
  renameSync(directory, join(root, 'before'));
  renameSync(join(root, 'next'), directory);
  await Promise.all([whole.shows('a:2'), single.shows('a:2')]);
});

t.test('after more events than the queue holds, every manifest is read', async (t) => {
  const [directory, elsewhere] = [scratchDirectory(t), scratchDirectory(t)];
  writeFileSync(join(directory, 'a.yaml'), serviceYaml('a'));
  await delay(150);
  const rig = new ManifestRig(t, [directory], EVENTS_ONLY);
  await rig.ready();
  const works = keepsAccessTimes(elsewhere);
  for (const name of ['.one', '.two']) writeFileSync(join(directory, name), '');
  const listed = sinceListed(directory);
  // The kernel merges equal events that follow each other. The loop does not turn meanwhile.
  for (let count = 0; count < 5000; count++)
    utimesSync(join(directory, count % 2 === 0 ? '.one' : '.two'), count, count);
  writeFileSync(join(directory, 'b.yaml'), serviceYaml('b'));
  await rig.shows('a:80 b:80');
  if (works) await eventually(listed, 'a look at everything');
});

t.test('manifest writes of equal size within one clock tick are found', async (t) => {
  const file = join(scratchDirectory(t), 'a.yaml');
  writeFileSync(file, serviceYaml('a', 10));
  const rig = new ManifestRig(t, [file]);
  await rig.ready();
  for (let port = 11; port < 60; port++) {
    writeFileSync(file, serviceYaml('a', port));
    if (port % 7 === 0) await delay(3);
  }
  await rig.shows('a:59');
});

t.test('manifests in a ConfigMap volume are followed', async (t) => {
  const volume = scratchDirectory(t);
  const publish = (stamp: string, files: Record<string, string>): void => {
    mkdirSync(join(volume, stamp));
    for (const [name, text] of Object.entries(files)) writeFileSync(join(volume, stamp, name), text);
    symlinkSync(stamp, join(volume, '..data_tmp'));
    renameSync(join(volume, '..data_tmp'), join(volume, '..data'));
  };
  publish('..1', { 'a.yaml': serviceYaml('a'), 'b.yaml': serviceYaml('b') });
  symlinkSync('..data/a.yaml', join(volume, 'a.yaml'));
  symlinkSync('..data/b.yaml', join(volume, 'b.yaml'));
  const whole = new ManifestRig(t, [volume], EVENTS_ONLY);
  const single = new ManifestRig(t, [join(volume, 'a.yaml')], EVENTS_ONLY);
  await Promise.all([whole.ready(), single.ready()]);
  t.equal(whole.services(), 'a:80 b:80');
  t.equal(single.services(), 'a:80');
  publish('..2', { 'a.yaml': serviceYaml('a', 81), 'c.yaml': serviceYaml('c') });
  rmSync(join(volume, '..1'), { recursive: true });
  symlinkSync('..data/c.yaml', join(volume, 'c.yaml'));
  unlinkSync(join(volume, 'b.yaml'));
  await Promise.all([whole.shows('a:81 c:80'), single.shows('a:81')]);
});

t.test('a single manifest is followed when written, replaced, moved by a link, deleted and restored', async (t) => {
  const root = scratchDirectory(t);
  mkdirSync(join(root, 'one'));
  mkdirSync(join(root, 'two'));
  writeFileSync(join(root, 'one', 's.yaml'), serviceYaml('a', 1));
  writeFileSync(join(root, 'two', 's.yaml'), serviceYaml('a', 2));
  symlinkSync('one', join(root, 'current'));
  const file = join(root, 'current', 's.yaml');
  const rig = new ManifestRig(t, [file]);
  await rig.ready();
  t.equal(rig.services(), 'a:1');
  symlinkSync('two', join(root, 'next'));
  renameSync(join(root, 'next'), join(root, 'current'));
  await rig.shows('a:2');
  writeFileSync(file, serviceYaml('a', 3));
  await rig.shows('a:3');
  writeFileSync(join(root, 'new'), serviceYaml('a', 4));
  renameSync(join(root, 'new'), file);
  await rig.shows('a:4');
  unlinkSync(file);
  await rig.shows('');
  writeFileSync(file, serviceYaml('a', 5));
  await rig.shows('a:5');
  t.same(rig.errors(), []);
});

t.test('a manifest that is a dangling link for a while unloads nothing', async (t) => {
  const root = scratchDirectory(t);
  writeFileSync(join(root, 'target'), serviceYaml('a', 1));
  symlinkSync('target', join(root, 's.yaml'));
  const rig = new ManifestRig(t, [join(root, 's.yaml')], { filePollMs: 20 });
  await rig.ready();
  renameSync(join(root, 'target'), join(root, 'away'));
  await eventually(() => rig.errors().length === 1, 'an error');
  await delay(300);
  t.equal(rig.services(), 'a:1');
  t.equal(rig.errors().length, 1);
  writeFileSync(join(root, 'target'), serviceYaml('a', 2));
  await rig.shows('a:2');
});

t.test('events suffice to follow a single manifest', async (t) => {
  const file = join(scratchDirectory(t), 's.yaml');
  writeFileSync(file, serviceYaml('a', 1));
  const rig = new ManifestRig(t, [file], EVENTS_ONLY);
  await rig.ready();
  writeFileSync(file, serviceYaml('a', 2));
  await rig.shows('a:2');
  writeFileSync(`${file}.new`, serviceYaml('a', 3));
  renameSync(`${file}.new`, file);
  await rig.shows('a:3');
});

t.test('of one object in two files the first by name counts, and the other takes over', async (t) => {
  const directory = scratchDirectory(t);
  const at = (name: string): string => join(directory, name);
  writeFileSync(at('b.yaml'), serviceYaml('x', 2));
  writeFileSync(at('c.yaml'), serviceYaml('x', 3));
  const rig = new ManifestRig(t, [directory], { filePollMs: 50 });
  await rig.ready();
  t.equal(rig.services(), 'x:2');
  t.match(rig.errors(), [/is also in b\.yaml, whose version counts/]);
  writeFileSync(at('a.yaml'), serviceYaml('x', 1));
  await rig.shows('x:1');
  unlinkSync(at('b.yaml'));
  await delay(300);
  t.equal(rig.services(), 'x:1');
  unlinkSync(at('a.yaml'));
  await rig.shows('x:3');
});

t.test('the state does not depend on the order in which manifests appear', async (t) => {
  const results = new Set<string>();
  for (const order of [
    ['a', 'b', 'c'],
    ['c', 'b', 'a'],
    ['b', 'c', 'a'],
  ]) {
    const directory = scratchDirectory(t);
    const rig = new ManifestRig(t, [directory], { filePollMs: 20 });
    await rig.ready();
    for (const name of order) {
      writeFileSync(
        join(directory, `${name}.yaml`),
        yaml(serviceYaml('shared', name.charCodeAt(0)), serviceYaml(name)),
      );
      await eventually(() => rig.services().includes(`${name}:80`), name);
    }
    results.add(rig.services());
  }
  t.same([...results], ['a:80 b:80 c:80 shared:97']);
});

t.test('of one object in two locations the first location counts', async (t) => {
  const root = scratchDirectory(t);
  writeFileSync(join(root, 'one.yaml'), serviceYaml('x', 1));
  writeFileSync(join(root, 'two.yaml'), yaml(serviceYaml('x', 2), serviceYaml('z')));
  const rig = new ManifestRig(t, [join(root, 'one.yaml'), join(root, 'two.yaml')], { filePollMs: 20 });
  await rig.ready();
  await rig.shows('x:1 z:80');
  unlinkSync(join(root, 'one.yaml'));
  await rig.shows('x:2 z:80');
});

t.test('rewriting, touching and renaming a manifest with equal content changes no state', async (t) => {
  const directory = scratchDirectory(t);
  writeFileSync(join(directory, 'a.yaml'), serviceYaml('a'));
  const rig = new ManifestRig(t, [directory], { filePollMs: 20 });
  await rig.ready();
  rig.writer.store.takeChanges();
  writeFileSync(join(directory, 'a.yaml'), `# a comment\n${serviceYaml('a')}`);
  await delay(300);
  writeFileSync(join(directory, 'a.yaml'), serviceYaml('a'));
  await delay(300);
  const { services } = rig.writer.store.takeChanges();
  t.equal(services.IPv4.size + services.IPv6.size, 0);
});

t.test('after stop() no manifest is read or applied', async (t) => {
  const file = join(scratchDirectory(t), 's.yaml');
  writeFileSync(file, serviceYaml('a'));
  const rig = new ManifestRig(t, [file], { filePollMs: 5, settleMs: 1 });
  await rig.ready();
  await rig.running.stop();
  writeFileSync(file, serviceYaml('a', 81));
  await delay(200);
  t.equal(rig.services(), 'a:80');
});

const FILES = usually(1000, 5000);

t.test('thousands of files load in one commit while the event loop goes on', async (t) => {
  const directory = scratchDirectory(t);
  for (let index = 0; index < FILES; index++)
    writeFileSync(join(directory, `s${index}.yaml`), serviceYaml(`s${index}`));
  // In CPU time: a core that is another's holds the loop up as well.
  let longest = 0;
  let last = process.cpuUsage();
  const ticker = setInterval(() => {
    const { user, system } = process.cpuUsage(last);
    longest = Math.max(longest, (user + system) / 1000);
    last = process.cpuUsage();
  }, 1);
  t.teardown(() => {
    clearInterval(ticker);
  });
  const began = performance.now();
  const rig = new ManifestRig(t, [directory]);
  await eventually(() => rig.writer.completed === 1, 'complete');
  t.comment(`loaded in ${Math.round(performance.now() - began)} ms, longest block ${Math.round(longest)} ms`);
  clearInterval(ticker);
  t.equal(rig.writer.commits.length, 1);
  t.equal([...rig.writer.store.snapshot.services()].length, FILES);
  t.ok(longest < 1000, `the loop was blocked for ${Math.round(longest)} ms`);
});
