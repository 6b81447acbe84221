// What the Dockerfile says, without a Docker engine: its sources exist, and the root that its script makes is all the program needs.
import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { isBuiltin } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import t, { type Test } from 'tap';
import { copies, dockerStages, layOutImage, shellsIn } from '../support/deploy/image.js';
import { run, start } from '../support/deploy/first-process.js';
import { build, items, podSpec } from '../support/deploy/kustomize.js';
import { projectFile } from '../support/lab/agent.js';
import { eventually } from '../support/manifests.js';
import { needs } from '../support/needs.js';

const CONFIG = 'apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\n';

interface Package {
  readonly scripts: Readonly<Record<string, string>>;
  readonly dependencies: Readonly<Record<string, string>>;
  readonly devDependencies: Readonly<Record<string, string>>;
}

/** Nothing, or an image named by its full version, Debian's release and its digest, as deploy/release.sh makes it. */
const EXACT_BASE = /^(?:scratch|node:\d+\.\d+\.\d+-bookworm-slim@sha256:[0-9a-f]{64})$/;
/** What the program loads of its own when it is asked for. */
const APART = [
  './secured.js',
  './certificate.js',
  './check.js',
  './check-cluster.js',
  './webhook.js',
  './nodes.js',
  './change-log.js',
  './tracing.js',
  './telemetry.js',
  './rule-refusals.js',
  './set-refusals.js',
  './egress.js',
  './event-limit.js',
  './pino.js',
  './re2js.js',
  './v8-profile.js',
  './explain.js',
  './ui.js',
];
const PACKAGE = JSON.parse(readFileSync(projectFile('package.json'), 'utf8')) as Package;

t.test("the Dockerfile's stages, and the files copied between them, exist", (t) => {
  const stages = dockerStages();
  const names = stages.map(({ name }) => name);
  for (const [index, stage] of stages.entries()) {
    const own = names.slice(0, index).includes(stage.from);
    t.ok(own || EXACT_BASE.test(stage.from), `FROM ${stage.from}`);
    for (const { from, sources } of copies(stage)) {
      if (from !== null) t.ok(names.slice(0, index).includes(from), `COPY --from=${from}`);
      else for (const source of sources) t.ok(existsSync(projectFile(source)), source);
    }
    const text = stage.instructions.map((instruction) => instruction.text).join('\n');
    for (const [, script = ''] of text.matchAll(/npm run ([\w:]+)/g)) t.hasProp(PACKAGE.scripts, script);
  }
  const { node, debian } = JSON.parse(readFileSync(projectFile('deploy/pins.json'), 'utf8')) as {
    readonly node: { readonly version: string };
    readonly debian: { readonly release: string };
  };
  t.match(stages[0]?.from, `node:${node.version}-${debian.release}-slim`, 'the image has the Node that builds it');
  t.equal(names.at(-1), null, 'the last stage is what is built when none is named');
  t.end();
});

t.test('the build context contains what build and tests read, and no build output', (t) => {
  const ignored = readFileSync(projectFile('.dockerignore'), 'utf8').trim().split('\n');
  t.ok(['node_modules', 'build', 'prebuilds', 'dist', '.build', '.git'].every((name) => ignored.includes(name)));
  for (const name of ['src', 'native', 'test', 'deploy', 'Dockerfile', 'binding.gyp', 'tsconfig.json']) {
    t.notOk(ignored.includes(name), name);
  }
  t.end();
});

t.test("a release names images by the digests in the registry's answer", (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'release-'));
  t.teardown(() => {
    rmSync(folder, { recursive: true });
  });
  for (const path of ['deploy', 'Dockerfile', '.github'])
    cpSync(projectFile(path), join(folder, path), { recursive: true });
  const text = (path: string): string => readFileSync(join(folder, path), 'utf8');
  const [given, asked] = [`sha256:${'1'.repeat(64)}`, `sha256:${'2'.repeat(64)}`];
  mkdirSync(join(folder, 'bin'));
  const registry = (answer: string): void => {
    writeFileSync(join(folder, 'bin/skopeo'), `#!/bin/sh\n${answer}\n`, { mode: 0o755 });
  };
  const release = (...words: readonly string[]): { readonly status: number | null; readonly stderr: string } => {
    const env = { PATH: `${join(folder, 'bin')}:${process.env['PATH'] ?? ''}` };
    return spawnSync('sh', [join(folder, 'deploy/release.sh'), ...words], { encoding: 'utf8', env });
  };
  const [, base = ''] = /^FROM (?:--platform=\S+ )?([^@ ]+)/m.exec(text('Dockerfile')) ?? [];

  const [, container = ''] = /^ {4}container: ([^@\s]+)/m.exec(text('.github/workflows/release.yml')) ?? [];
  t.match(release('base', `${base}@${given}`, `${container}@${given}`), { status: 0, stderr: '' });
  t.match(text('Dockerfile'), ` ${base}@${given} AS build\n`);
  registry(`case $4 in docker://${base} | docker://${container}) echo ${asked} ;; *) exit 1 ;; esac`);
  t.match(release('base'), { status: 0 });
  t.match(text('Dockerfile'), ` ${base}@${asked} AS build\n`, 'and another release another one');
  const workflow = '.github/workflows/release.yml';
  t.match(text(workflow), /^ {4}container: node:[^ @]+@sha256:2{64}$/m);

  const image = 'registry.example:5000/team/pointsman';
  for (let time = 0; time < 2; time++) t.match(release('image', `${image}:1.2@${given}`), { status: 0 });
  for (const overlay of ['base', 'overlays/kubeadm', 'overlays/one-node']) {
    const daemonSet = build(join(folder, 'deploy', overlay)).find(({ kind }) => kind === 'DaemonSet') ?? {};
    t.equal(items(podSpec(daemonSet)['containers'])[0]?.['image'], `${image}@${given}`, overlay);
    t.equal(text(`deploy/${overlay}/kustomization.yaml`).match(/digest: /g)?.length, 1);
  }

  const docker = (last: string): void => {
    const script = `#!/bin/sh\n[ "$*" = "buildx build --platform linux/amd64,linux/arm64 --target sbom --output out ." ] || exit 1\n${last}\n`;
    writeFileSync(join(folder, 'bin/docker'), script, { mode: 0o755 });
  };
  docker('for each in amd64 arm64; do mkdir -p out/linux_$each && echo {} > out/linux_$each/pointsman.cdx.json; done');
  t.match(release('sbom', 'out'), { status: 0, stderr: '' });
  docker('rm out/linux_arm64/pointsman.cdx.json');
  t.match(release('sbom', 'out'), { status: 1, stderr: /has written no out\/linux_arm64\/pointsman\.cdx\.json/ });

  const before = text('Dockerfile');
  registry('echo no such image; exit 1');
  t.match(release('base'), { status: 1, stderr: /the registry did not tell/ });
  registry('echo latest');
  t.match(release('base'), { status: 1, stderr: /"latest" is no sha256 digest/ });
  t.match(release('base', `debian:12@${given}`), { status: 1, stderr: /nothing is built from debian:12/ });
  t.match(release('image', `${image}@${given}`), { status: 1, stderr: /names no tag/ });
  t.match(release(), { status: 1, stderr: /wants/ });
  t.equal(text('Dockerfile'), before, 'what is refused changes nothing');
  t.end();
});

t.test('the bundled program needs only Node', (t) => {
  const functions = readdirSync(projectFile('dist'))
    .filter((name) => name.endsWith('.cache'))
    .map((name) => name.replace(`.${process.arch}.cache`, '.js'));
  for (const file of [
    'main.js',
    ...functions,
    'secured.js',
    'certificate.js',
    'check.js',
    'check-cluster.js',
    'webhook.js',
    'nodes.js',
    'explain.js',
    'change-log.js',
    'tracing.js',
    'telemetry.js',
    'rule-refusals.js',
    'set-refusals.js',
    'egress.js',
    'event-limit.js',
    'ui.js',
    'pino.js',
    're2js.js',
    'v8-profile.js',
    'yaml-worker.js',
  ]) {
    const wanted = [
      ...readFileSync(projectFile(`dist/${file}`), 'utf8').matchAll(/\brequire\(["']([^"']+)["']\)/g),
    ].map(([, name = '']) => name);
    t.same(
      wanted.filter(
        (name) =>
          !isBuiltin(name) && !APART.includes(name) && !functions.includes(/^\.\/(.+\.js):/.exec(name)?.[1] ?? ''),
      ),
      [],
      file,
    );
    t.ok(wanted.includes('node:vm') || wanted.includes('node:url'), 'and something was found');
  }
  t.end();
});

/** Everything that somebody else made is in the list beside the image. */
function tellsItsParts(t: Test, root: string): void {
  const text = readFileSync(`${root}.cdx.json`, 'utf8');
  const { metadata, components } = JSON.parse(text) as {
    readonly metadata: { readonly component: { readonly properties: readonly { readonly value: string }[] } };
    readonly components: readonly { readonly name: string; readonly version: string; readonly purl: string }[];
  };
  const versions = new Map(components.map(({ purl, version }) => [purl.replace(/@[^@]*$/, ''), version]));
  t.equal(versions.get('pkg:generic/node'), process.versions.node);
  for (const name of ['commander', 'pino', 'preact', 'node-addon-api'])
    t.equal(versions.get(`pkg:npm/${name}`), PACKAGE.devDependencies[name] ?? PACKAGE.dependencies[name], name);
  for (const name of ['iptables', 'kmod', 'libc6', 'libxtables12'])
    t.match(
      readFileSync(join(root, 'var/lib/dpkg/status.d', name), 'utf8'),
      `Version: ${versions.get(`pkg:deb/debian/${name}`)}\n`,
    );
  t.notOk(versions.has('pkg:npm/tap'), 'and nothing else');
  const architecture = metadata.component.properties[0]?.value ?? '';
  const argv = [projectFile('deploy/sbom.mjs'), projectFile(''), root, architecture, process.versions.node];
  const again = spawnSync(process.execPath, argv, { encoding: 'utf8' });
  t.equal(again.stdout, text, 'the same image gives the same bytes');
}

t.test('the container image has no shell, and its program runs', needs('image'), async (t) => {
  const root = join(mkdtempSync(join(tmpdir(), 'image-')), 'root');
  t.teardown(() => {
    rmSync(dirname(root), { recursive: true });
  });
  layOutImage(root);
  t.same(shellsIn(root), [], 'has no shell and no other interpreter but Node');
  tellsItsParts(t, root);

  for (const name of ['pointsman', 'kube-proxy']) {
    t.match(await run(root, [name, '--version']), {
      status: 0,
      output: /^Kubernetes v1\.37\.\d+ \(pointsman \d.*\)\n$/,
    });
  }
  t.match(await run(root, ['pointsman', '--help']), { status: 0, output: /^Usage: pointsman / });
  for (const program of ['iptables-nft-restore', 'ip6tables-legacy-save']) {
    t.match(await run(root, [program, '--version']), { status: 0, output: /^ip6?tables-\S+ v1\./ });
  }
  writeFileSync(join(root, 'config.conf'), `${CONFIG}mode: nftables\nbogus: 1\n`);
  const plan = await run(root, [
    'pointsman',
    'plan',
    '--config=/config.conf',
    '--manifests=/none',
    '--logging-format=json',
  ]);
  t.match(plan, { status: 1, output: /bogus: unknown field/ }, 'what is loaded for JSON and for manifests is there');

  writeFileSync(join(root, 'config.conf'), `${CONFIG}mode: [\n`);
  t.match(
    await run(root, ['kube-proxy', '--config=/config.conf']),
    { status: 1 },
    'a configuration that cannot be read',
  );
  // An address that answers nobody, so that it waits: the network namespace has no routes but loopback's.
  const waiting = ['pointsman', '--init-only', '--proxy-mode=nftables', '--master=http://127.0.0.1:1'];
  const interrupted = start(root, waiting);
  await interrupted.reported(/warn|127\.0\.0\.1:1/i);
  t.equal(await interrupted.end('SIGTERM'), 143, 'waiting, it ends by SIGTERM, though the first process');

  mkdirSync(join(root, 'manifests'));
  for (const [signal, mode] of [
    ['SIGTERM', 'nftables'],
    ['SIGINT', 'iptables'],
  ] as const) {
    const flags = [
      `--proxy-mode=${mode}`,
      '--manifests=/manifests',
      '--conntrack-max-per-core=0',
      '--conntrack-tcp-timeout-established=0s',
      '--conntrack-tcp-timeout-close-wait=0s',
    ];
    const proxy = start(root, ['kube-proxy', ...flags]);
    await proxy.reported(/"rules complete" family="IPv6"/);
    // One that has just ended is there for a moment.
    const seen = new Set(proxy.zombies());
    await eventually(() => !proxy.zombies().some((pid) => seen.has(pid)), 'programs that have ended are waited for');
    t.equal(await proxy.end(signal), 0, signal);
    t.notMatch(proxy.output(), /^E|EROFS/m, 'nothing is missed on a read-only root');
  }
});
