// What the Dockerfile says, without a Docker engine: its sources exist, and the tree its last stage copies is all the program needs.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { builtinModules } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Test } from 'tap';
import t from 'tap';
import { copies, dockerStages, layOutImage, productionPackages } from '../support/deploy/image.js';
import { projectFile } from '../support/lab/agent.js';

interface Package {
  readonly scripts: Readonly<Record<string, string>>;
  readonly bin: Readonly<Record<string, string>>;
}

const PACKAGE = JSON.parse(readFileSync(projectFile('package.json'), 'utf8')) as Package;

t.test('stages and what is copied between them exist', (t) => {
  const stages = dockerStages();
  const names = stages.map(({ name }) => name);
  for (const [index, stage] of stages.entries()) {
    const own = names.slice(0, index).includes(stage.from);
    t.ok(own || /^(?:node:24|debian:)/.test(stage.from), `FROM ${stage.from}`);
    for (const { from, sources } of copies(stage)) {
      if (from !== null) t.ok(names.slice(0, index).includes(from), `COPY --from=${from}`);
      for (const source of sources.filter((path) => path !== '/usr/local/bin/node')) {
        t.ok(existsSync(projectFile(source.replace(/^\/pointsman\//, ''))), source);
      }
    }
    const text = stage.instructions.map((instruction) => instruction.text).join('\n');
    for (const [, script = ''] of text.matchAll(/npm run (\S+)/g)) t.hasProp(PACKAGE.scripts, script);
  }
  t.equal(names.at(-1), null, 'the last stage is what is built when none is named');
  t.end();
});

t.test('the build context holds what the build and the tests read, and nothing that is made', (t) => {
  const ignored = readFileSync(projectFile('.dockerignore'), 'utf8').trim().split('\n');
  t.ok(['node_modules', 'build', 'dist', '.build', '.git'].every((name) => ignored.includes(name)));
  for (const name of ['src', 'native', 'test', 'deploy', 'Dockerfile', 'binding.gyp', 'tsconfig.json']) {
    t.notOk(ignored.includes(name), name);
  }
  t.end();
});

t.test('the program imports packages only that are there in production', (t) => {
  const present = new Set(productionPackages().map((path) => path.replace('node_modules/', '')));
  t.notOk(present.has('@kubernetes/client-node'), 'the client is for types and tests');
  const dist = projectFile('dist');
  const files = readdirSync(dist, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.js'));
  const imported = new Set<string>();
  for (const file of files) {
    const text = readFileSync(join(dist, file), 'utf8');
    for (const [, name = '', dynamic = ''] of text.matchAll(
      /^(?:import|export)\b(?:[^;']*\bfrom)? '([^.'][^']*)'|\bimport\('([^.'][^']*)'\)/gm,
    ))
      imported.add(packageOf(name || dynamic));
  }
  const missing = [...imported].filter((name) => !present.has(name) && !builtinModules.includes(name));
  t.same(missing, []);
  t.ok(imported.has('pino'), 'and imports were found');
  t.end();
});

/** `node:fs/promises` → `fs`, `prom-client/lib/registry.js` → `prom-client`. */
function packageOf(specifier: string): string {
  const parts = specifier.replace(/^node:/, '').split('/');
  return parts.slice(0, specifier.startsWith('@') ? 2 : 1).join('/');
}

t.test('the image starts by both of its names', (t) => {
  const root = mkdtempSync(join(tmpdir(), 'image-'));
  t.teardown(() => {
    rmSync(root, { recursive: true });
  });
  layOutImage(root);
  for (const name of ['pointsman', 'kube-proxy']) {
    t.match(inside(root, [name, '--version']), { status: 0, stdout: /^Kubernetes v1\.36\.\d+\n$/ });
  }
  t.match(inside(root, ['pointsman', '--help']), { status: 0, stdout: /^Usage: pointsman / });
  const config =
    'apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\nmode: nftables\nbogus: 1\n';
  writeFileSync(join(root, 'tmp/config.conf'), config);
  t.match(inside(root, ['pointsman', '--config=/tmp/config.conf', '--write-config-to=/tmp/config']), {
    status: 0,
    stderr: /bogus: unknown field/,
  });
  t.match(readFileSync(join(root, 'tmp/config'), 'utf8'), /^mode: nftables$/m);
  t.match(inside(root, ['pointsman', '--proxy-mode=nftables', '--kubeconfig=/none', '--healthz-port=0']), {
    status: 1,
    stderr: /\/none/,
  });
  inEveryFormat(t, root);
  t.end();
});

/** Logging in JSON loads a package that text does not, and so does reading manifests. */
function inEveryFormat(t: Test, root: string): void {
  const arguments_ = ['pointsman', 'plan', '--proxy-mode=nftables', '--logging-format=json', '--manifests=/tmp/none'];
  const { stderr } = inside(root, arguments_);
  t.match(JSON.parse(stderr.split('\n')[0] ?? ''), { msg: String });
}

/** Runs a command in the image's root, in a mount namespace where the machine's system is below /.host. */
function inside(
  root: string,
  command: readonly string[],
): { readonly status: number | null; readonly stdout: string; readonly stderr: string } {
  const user = process.getuid?.() === 0 ? [] : ['--user', '--map-root-user'];
  // The test runner gives every process options that load files of its own.
  const script =
    'unset NODE_OPTIONS; for at in / /proc /dev; do to=$at; [ $at = / ] && to=/.host; mount --rbind $at "$0$to"; done; exec chroot "$0" "$@"';
  const PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';
  return spawnSync('unshare', [...user, '--mount', '--net', 'sh', '-c', script, root, ...command], {
    encoding: 'utf8',
    env: { PATH },
  });
}
