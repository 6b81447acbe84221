// A release of this commit, made twice: it has the same bytes, and a container of its image starts as a pod's does. Needs Debian's bookworm, git and a network.
// needs: namespaces, ip
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { run, start } from '../support/deploy/first-process.js';
import { projectFile } from '../support/lab/agent.js';

interface Descriptor {
  readonly digest: string;
}

function missing(): string | null {
  if (!/^VERSION_CODENAME=bookworm$/m.test(readFileSync('/etc/os-release', 'utf8'))) return 'not Debian bookworm';
  if (process.arch !== 'x64') return 'not an x64 machine';
  const { status } = spawnSync('git', ['rev-parse', 'HEAD'], { cwd: projectFile('') });
  return status === 0 ? null : 'no git, or no checkout';
}

/** Makes a release, and tells meanwhile that it goes on. */
async function make(t: Test, folder: string, ...more: readonly string[]): Promise<void> {
  const argv = ['deploy/release.sh', 'make', folder, '--arch', 'amd64', '--commit', 'HEAD', ...more];
  const making = spawn('sh', argv, { cwd: projectFile(''), stdio: ['ignore', 'ignore', 'pipe'] });
  let complaints = '';
  making.stderr.setEncoding('utf8').on('data', (text: string) => (complaints += text));
  const ticking = setInterval(() => {
    t.comment('the release is being made');
  }, 60_000);
  await once(making, 'close');
  clearInterval(ticking);
  t.equal(making.exitCode, 0, complaints);
}

/** Lays out the root of the only image in a layout. */
function unpack(layoutArchive: string, folder: string): string {
  const layout = join(folder, 'layout');
  const root = join(folder, 'root');
  mkdirSync(layout);
  mkdirSync(root);
  execFileSync('tar', ['-xf', layoutArchive, '-C', layout]);
  const blob = ({ digest }: Descriptor): string => join(layout, 'blobs', digest.replace(':', '/'));
  const parse = (path: string): unknown => JSON.parse(readFileSync(path, 'utf8'));
  const { manifests } = parse(join(layout, 'index.json')) as { readonly manifests: readonly [Descriptor] };
  const index = parse(blob(manifests[0])) as { readonly manifests: readonly [Descriptor] };
  const { layers } = parse(blob(index.manifests[0])) as { readonly layers: readonly [Descriptor] };
  execFileSync('tar', ['-xpf', blob(layers[0]), '-C', root]);
  return root;
}

const reason = missing();
t.test(
  'a release is reproducible: the same checksums twice, and its image runs',
  reason === null ? {} : { skip: reason },
  async (t) => {
    const folder = mkdtempSync(join(tmpdir(), 'releases-'));
    t.teardown(() => {
      rmSync(folder, { recursive: true });
    });
    const [first, second] = [join(folder, 'first'), join(folder, 'second')];
    await make(t, first);
    await make(t, second, '--v8-cache', join(first, 'v8-cache.tar.gz'));
    const sums = readFileSync(join(first, 'SHA256SUMS'), 'utf8');
    t.equal(readFileSync(join(second, 'SHA256SUMS'), 'utf8'), sums);
    t.equal(spawnSync('sha256sum', ['--check', '--strict', 'SHA256SUMS'], { cwd: first }).status, 0);
    for (const name of ['-image.tar', 'npm/', 'chart/', 'manifests/base.yaml', '.spdx.json', 'provenance.json'])
      t.ok(sums.includes(name), name);
    t.equal(spawnSync('grep', ['-rlF', projectFile(''), first]).status, 1, 'no file names the folder of the checkout');

    const [, image = ''] = / {2}(\S+-image\.tar)$/m.exec(sums) ?? [];
    const root = unpack(join(first, image), folder);
    const commit = execFileSync('git', ['rev-parse', 'HEAD'], { cwd: projectFile(''), encoding: 'utf8' }).slice(0, 12);
    t.match(await run(root, ['kube-proxy', '--version']), {
      status: 0,
      output: new RegExp(`^Kubernetes v1\\.\\d+\\.\\d+ \\(pointsman \\S+, commit ${commit}, .*\\)\\n$`),
    });
    mkdirSync(join(root, 'manifests'));
    writeFileSync(
      join(root, 'manifests/node.json'),
      JSON.stringify({ apiVersion: 'v1', kind: 'Node', metadata: { name: 'me' } }),
    );
    const proxy = start(root, [
      'kube-proxy',
      '--proxy-mode=nftables',
      '--hostname-override=me',
      '--manifests=/manifests',
      '--conntrack-max-per-core=0',
      '--conntrack-tcp-timeout-established=0s',
      '--conntrack-tcp-timeout-close-wait=0s',
    ]);
    await proxy.reported(/"rules complete" family="IPv6"/);
    t.equal(await proxy.end('SIGTERM'), 0);
    t.notMatch(proxy.output(), /^E/m);
  },
);
