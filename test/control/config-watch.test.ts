import { chmodSync, mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import t, { type Test } from 'tap';
import { systemFiles } from '../../src/config/files.js';
import { loadConfig, type Loaded } from '../../src/config/load.js';
import { ConfigWatch, type ConfigOutcome } from '../../src/control/config-watch.js';

const HEADER = 'apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\nmode: nftables\n';

// Nearly all of it is waiting.
t.jobs = 9;

/** An outcome in a line. */
function print(outcome: ConfigOutcome): string {
  switch (outcome.type) {
    case 'unchanged':
      return 'unchanged';
    case 'refused':
      return `refused ${outcome.error.message}`;
    case 'apply':
      return `${outcome.type} ${outcome.changes.map(({ field, after }) => `${field}=${after}`).join(' ')}`;
  }
}

class Scene {
  readonly root: string;
  readonly outcomes: ConfigOutcome[] = [];
  /** How many of the next outcomes cannot be dealt with. */
  obstacles = 0;
  private watch: ConfigWatch | null = null;

  constructor(
    private readonly t: Test,
    private readonly pollMs = 100,
    private readonly watchedPollMs = 600_000,
  ) {
    this.root = mkdtempSync(join(tmpdir(), 'pointsman-config-watch-'));
    t.teardown(() => {
      this.watch?.stop();
      rmSync(this.root, { recursive: true });
    });
  }

  path(name: string): string {
    return join(this.root, name);
  }

  write(name: string, body: string, mode = 'nftables'): void {
    writeFileSync(this.path(name), HEADER.replace('nftables', mode) + body);
  }

  /** Starts to watch, with flags that name files relative to the scene. */
  async start(flags: readonly (readonly [name: string, path: string])[], settleMs = 60): Promise<void> {
    const argv = ['--manifests=/none', ...flags.map(([name, path]) => `--${name}=${this.path(path)}`)];
    const current = loadConfig(argv, systemFiles);
    if (!('config' in current)) throw new Error(current.command);
    let inForce: Loaded = current;
    this.watch = new ConfigWatch({
      argv,
      inForce: () => inForce,
      onOutcome: (outcome) => {
        this.outcomes.push(outcome);
        const isDealtWith = this.obstacles-- <= 0;
        if (isDealtWith && (outcome.type === 'apply' || outcome.type === 'unchanged')) inForce = outcome;
        return Promise.resolve(isDealtWith);
      },
      timing: { pollMs: this.pollMs, watchedPollMs: this.watchedPollMs, settleMs, retryMs: 20 },
    });
    await this.quiet();
  }

  /** The outcomes until now, each of which is told once. */
  take(): readonly string[] {
    return this.outcomes.splice(0).map((outcome) => print(outcome).replaceAll(this.root, ''));
  }

  async expect(expected: readonly (string | RegExp)[], message: string): Promise<void> {
    const until = performance.now() + 60_000;
    while (this.outcomes.length < expected.length && performance.now() < until) await delay(20);
    await this.quiet();
    const found = this.take();
    this.t.equal(found.length, expected.length, `${message}: ${found.join()}`);
    for (const [index, text] of expected.entries()) this.t.match(found[index], text, message);
  }

  /** Long enough for the watch to have looked, waited and looked again: in steps, as each of its own timers may be late. */
  private async quiet(): Promise<void> {
    for (let step = 0; step < 14; step++) await delay(25);
  }
}

t.test('a configuration file that is written in place is applied', async (t) => {
  const scene = new Scene(t);
  scene.write('c', 'oomScoreAdj: 1');
  await scene.start([['config', 'c']]);
  await scene.expect([], 'nothing happened');
  scene.write('c', 'oomScoreAdj: 2');
  await scene.expect(['apply oomScoreAdj=2'], 'written');
  chmodSync(scene.path('c'), 0o600);
  utimesSync(scene.path('c'), 1, 1);
  await scene.expect([], 'chmod and touch');
  scene.write('c', 'oomScoreAdj: 2 # a comment');
  await scene.expect(['unchanged'], 'a comment');
  scene.write('c', 'oomScoreAdj: 2', 'iptables');
  await scene.expect([/^apply mode="iptables" (?!.*oomScoreAdj)/], 'another mode');
  scene.write('c', 'oomScoreAdj: 3', 'iptables');
  await scene.expect(['apply oomScoreAdj=3'], 'compared with what is in force');
  scene.write('c', 'oomScoreAdj: 3');
  await scene.expect([/^apply mode="nftables" (?!.*oomScoreAdj)/], 'taken back');
});

t.test('a refused configuration leaves the active one, and is reported once', async (t) => {
  const scene = new Scene(t);
  scene.write('c', 'oomScoreAdj: 1');
  await scene.start([['config', 'c']]);
  scene.write('c', 'oomScoreAdj: 5000');
  await scene.expect([/^refused failed validate: KubeProxyConfiguration\.oomScoreAdj: Invalid value: 5000/], 'invalid');
  utimesSync(scene.path('c'), 1, 1);
  await scene.expect([], 'still the same');
  scene.write('c', 'a: [');
  await scene.expect([/^refused failed complete: failed to decode: \/c: line/], 'no YAML');
  rmSync(scene.path('c'));
  await scene.expect([/^refused failed complete: could not read configuration file "\/c": ENOENT/], 'removed');
  scene.write('c', 'oomScoreAdj: 1');
  await scene.expect(['unchanged'], 'as it was');
  scene.write('c', 'oomScoreAdj: 2');
  await scene.expect(['apply oomScoreAdj=2'], 'and still followed');
});

t.test('a configuration that could not be applied is tried again', async (t) => {
  const scene = new Scene(t, 20);
  scene.write('c', 'oomScoreAdj: 1');
  await scene.start([['config', 'c']]);
  scene.obstacles = 3;
  scene.write('c', 'oomScoreAdj: 2');
  await scene.expect(
    Array.from({ length: 4 }, () => 'apply oomScoreAdj=2'),
    'three times in vain',
  );
  await scene.expect([], 'and no more');
});

t.test('a configuration file is applied when it is replaced by rename, or written slowly in pieces', async (t) => {
  const scene = new Scene(t);
  scene.write('c', 'oomScoreAdj: 1');
  // However long this process waits for a processor between two writes.
  await scene.start([['config', 'c']], 1500);
  scene.write('new', 'oomScoreAdj: 2');
  renameSync(scene.path('new'), scene.path('c'));
  await scene.expect(['apply oomScoreAdj=2'], 'renamed over');
  for (const text of ['', HEADER.slice(0, 40), HEADER, `${HEADER}oomScoreAdj: 3`]) {
    writeFileSync(scene.path('c'), text);
    await delay(40);
  }
  await scene.expect(['apply oomScoreAdj=3'], 'nothing of the half-written file');
});

t.test('a ConfigMap volume: the link ..data is swapped', async (t) => {
  const scene = new Scene(t);
  const publish = (name: string, files: Readonly<Record<string, string>>): void => {
    mkdirSync(scene.path(name), { recursive: true });
    for (const [file, body] of Object.entries(files)) scene.write(`${name}/${file}`, body);
    symlinkSync(name, scene.path('..tmp'));
    renameSync(scene.path('..tmp'), scene.path('..data'));
  };
  publish('..1', { 'config.conf': 'oomScoreAdj: 1', other: 'x: 1' });
  symlinkSync('..data/config.conf', scene.path('config.conf'));
  await scene.start([['config', 'config.conf']]);
  publish('..2', { 'config.conf': 'oomScoreAdj: 2' });
  rmSync(scene.path('..1'), { recursive: true });
  await scene.expect(['apply oomScoreAdj=2'], 'swapped');
  publish('..3', { 'config.conf': 'oomScoreAdj: 2' });
  await scene.expect([], 'swapped to the same content');
  publish('..4', { 'config.conf': 'logging: {verbosity: 3}' });
  await scene.expect(['apply oomScoreAdj=-999 logging.verbosity=3'], 'and again');
});

t.test('a ConfigMap volume as drop-in directory is applied, together with --config', async (t) => {
  const scene = new Scene(t);
  scene.write('c', 'oomScoreAdj: 1\nconntrack: {min: 5}');
  mkdirSync(scene.path('d'));
  await scene.start([
    ['config', 'c'],
    ['config-dir', 'd'],
  ]);
  scene.write('d/10.yaml', 'oomScoreAdj: 2');
  await scene.expect(['apply oomScoreAdj=2'], 'added');
  scene.write('d/20.yaml', 'oomScoreAdj: 3\nconntrack: {min: 6}');
  await scene.expect(['apply conntrack.min=6 oomScoreAdj=3'], 'another on top');
  scene.write('d/readme.txt', 'anything');
  await scene.expect([], 'no drop-in');
  renameSync(scene.path('d/20.yaml'), scene.path('d/05.yaml'));
  await scene.expect(['apply oomScoreAdj=2'], 'another order');
  scene.write('d/10.yaml', 'oomScoreAdj: x');
  await scene.expect([/^refused failed complete: failed to decode: \/d\/10\.yaml: /], 'broken');
  rmSync(scene.path('d/10.yaml'));
  await scene.expect(['apply oomScoreAdj=3'], 'removed');
  rmSync(scene.path('d'), { recursive: true });
  await scene.expect([/^refused failed complete: could not read configuration directory/], 'directory gone');
  mkdirSync(scene.path('d'));
  scene.write('d/a.yaml', 'oomScoreAdj: 4');
  await scene.expect(['apply conntrack.min=5 oomScoreAdj=4'], 'and back, as another one');
  scene.write('d/a.yaml', 'oomScoreAdj: 5');
  await scene.expect(['apply oomScoreAdj=5'], 'and followed');
});

t.test('a configuration change without an inotify event is found by the poll', async (t) => {
  const scene = new Scene(t);
  mkdirSync(scene.path('elsewhere'));
  scene.write('elsewhere/c', 'oomScoreAdj: 1');
  symlinkSync('elsewhere/c', scene.path('c'));
  await scene.start([['config', 'c']]);
  scene.write('elsewhere/c', 'oomScoreAdj: 2');
  await scene.expect(['apply oomScoreAdj=2'], 'behind a link');
});

t.test('a watched configuration directory that is replaced is watched again', async (t) => {
  const scene = new Scene(t);
  mkdirSync(scene.path('d'));
  scene.write('d/c', 'oomScoreAdj: 1');
  await scene.start([['config', 'd/c']]);
  mkdirSync(scene.path('e'));
  scene.write('e/c', 'oomScoreAdj: 2');
  renameSync(scene.path('d'), scene.path('old'));
  renameSync(scene.path('e'), scene.path('d'));
  await scene.expect(['apply oomScoreAdj=2'], 'by its own event');
});

t.test('the poll finds that a parent directory was replaced, which gives no event', async (t) => {
  const scene = new Scene(t, 100, 100);
  mkdirSync(scene.path('above/d'), { recursive: true });
  scene.write('above/d/c', 'oomScoreAdj: 1');
  await scene.start([['config', 'above/d/c']]);
  mkdirSync(scene.path('new/d'), { recursive: true });
  scene.write('new/d/c', 'oomScoreAdj: 2');
  renameSync(scene.path('above'), scene.path('old'));
  renameSync(scene.path('new'), scene.path('above'));
  await scene.expect(['apply oomScoreAdj=2'], 'by the poll of watched files');
});

t.test('events of other files in the folder do not cause a check', async (t) => {
  const scene = new Scene(t, 60_000);
  mkdirSync(scene.path('elsewhere'));
  scene.write('elsewhere/c', 'oomScoreAdj: 1');
  symlinkSync('elsewhere/c', scene.path('c'));
  await scene.start([['config', 'c']]);
  // No event tells of it, so that a look shows.
  scene.write('elsewhere/c', 'oomScoreAdj: 2');
  for (let count = 0; count < 20; count++) {
    writeFileSync(scene.path('other'), `${count}`);
    await delay(10);
  }
  t.same(scene.outcomes, []);
  symlinkSync('elsewhere/c', scene.path('new'));
  renameSync(scene.path('new'), scene.path('c'));
  await scene.expect(['apply oomScoreAdj=2'], 'an event of the file');
});

t.test('an inotify event applies a change before the poll', async (t) => {
  const scene = new Scene(t, 60_000);
  scene.write('c', 'oomScoreAdj: 1');
  await scene.start([['config', 'c']]);
  scene.write('c', 'oomScoreAdj: 2');
  await scene.expect(['apply oomScoreAdj=2'], 'event');
});

t.test('a change between the first read and the first check is not lost', async (t) => {
  const scene = new Scene(t);
  scene.write('c', 'oomScoreAdj: 1');
  const started = scene.start([['config', 'c']]);
  scene.write('c', 'oomScoreAdj: 2');
  await started;
  await scene.expect(['apply oomScoreAdj=2'], 'early');
});

t.test('without files nothing is watched, and stop() ends all reports', async (t) => {
  const current = loadConfig([], systemFiles, () => 'n');
  if (!('config' in current)) throw new Error(current.command);
  const reported = (): Promise<boolean> => Promise.resolve(t.fail('told'));
  const none = new ConfigWatch({ argv: [], inForce: () => current, onOutcome: reported });
  none.stop();
  const scene = new Scene(t);
  scene.write('c', 'oomScoreAdj: 1');
  const argv = [`--config=${scene.path('c')}`];
  const loaded = loadConfig(argv, systemFiles);
  if (!('config' in loaded)) throw new Error(loaded.command);
  const timing = { pollMs: 20, watchedPollMs: 20, settleMs: 0, retryMs: 20 };
  const watch = new ConfigWatch({ argv, inForce: () => loaded, onOutcome: reported, timing });
  await delay(60);
  scene.write('c', 'oomScoreAdj: 2');
  watch.stop();
  await delay(100);
});
