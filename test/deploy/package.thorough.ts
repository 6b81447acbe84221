// The package as npm packs and installs it, where there is no compiler and no network.
import { spawnSync } from 'node:child_process';
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import t from 'tap';
import { projectFile } from '../support/lab/agent.js';

interface Package {
  readonly files: readonly string[];
  readonly bundleDependencies: readonly string[];
}

const folder = mkdtempSync(join(tmpdir(), 'package-'));
t.teardown(() => {
  rmSync(folder, { recursive: true });
});
const bin = join(folder, 'bin');
const prefix = join(folder, 'prefix');
const installed = join(prefix, 'lib/node_modules/pointsman');
const PREBUILT = `prebuilds/linux-${process.arch}/pointsman.node`;

interface Outcome {
  readonly status: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs a program that finds no others than a few, of which none compiles. */
function run(program: string, args: readonly string[], cwd = folder): Outcome {
  const env = { PATH: bin, HOME: folder };
  const { status, stdout, stderr } = spawnSync(program, args, { cwd, env, encoding: 'utf8' });
  return { status, stdout, stderr };
}

/** A path in the folders of PATH. */
function found(name: string): string {
  const path = (process.env['PATH'] ?? '').split(':').find((each) => each !== '' && existsSync(join(each, name)));
  if (path === undefined) throw new Error(`there is no ${name}`);
  return realpathSync(join(path, name));
}

t.before(() => {
  mkdirSync(bin);
  for (const name of ['npm', 'sh', 'dirname', 'mktemp', 'cat', 'rm']) symlinkSync(found(name), join(bin, name));
  symlinkSync(process.execPath, join(bin, 'node'));
});

t.test('the npm package runs on a machine without a compiler', (t) => {
  const project = join(folder, 'project');
  const { files, bundleDependencies } = JSON.parse(readFileSync(projectFile('package.json'), 'utf8')) as Package;
  const paths = files.filter((path) => !path.startsWith('!') && path !== 'prebuilds');
  for (const path of [
    'package.json',
    'src/main.ts',
    ...paths,
    ...bundleDependencies.map((name) => `node_modules/${name}`),
  ])
    cpSync(projectFile(path), join(project, path), { recursive: true });
  cpSync(projectFile('build/Release/pointsman.node'), join(project, PREBUILT));

  const packed = run('npm', ['pack', '--ignore-scripts', '--json'], project);
  t.match(packed, { status: 0 }, packed.stderr);
  const [{ filename, files: listed }] = JSON.parse(packed.stdout) as [
    { readonly filename: string; readonly files: readonly { readonly path: string }[] },
  ];
  const names = listed.map(({ path }) => path);
  for (const name of [
    'dist/main.js',
    PREBUILT,
    'binding.gyp',
    'native/addon/module.cc',
    'node_modules/node-addon-api/napi.h',
    'node_modules/node-api-headers/include/node_api.h',
  ])
    t.ok(names.includes(name), name);
  t.same(
    names.filter((name) => /^(?:src|test|native\/test)\//.test(name)),
    [],
  );

  const install = run('npm', [
    'install',
    '--global',
    '--offline',
    '--foreground-scripts',
    `--prefix=${prefix}`,
    join(project, filename),
  ]);
  t.match(install, { status: 0, stdout: /added 1 package\b/ }, install.stderr);
  const program = join(prefix, 'bin/pointsman');
  t.match(run(program, ['--version']), { status: 0, stdout: /^Kubernetes v1\./ });
  const plan = run(program, [
    'plan',
    `--config=${projectFile('demo/config.yaml')}`,
    `--manifests=${projectFile('demo/manifests')}`,
  ]);
  t.match(plan, { status: 0, stdout: /^IPv4 frontend 10\.96\.0\.10:80\/TCP endpoint /m });
  const plugin = join(prefix, 'bin/kubectl-pointsman');
  t.match(
    run(plugin, ['help', 'nodes']),
    { status: 0, stdout: /^Usage: pointsman nodes / },
    'kubectl finds its plugin',
  );
  t.end();
});

t.test('the npm package compiles the addon if the prebuilt one does not load', (t) => {
  const script = join(installed, 'bundle/install.sh');
  const reported = join(folder, 'told');
  const compiler = (end: string): void => {
    writeFileSync(join(bin, 'node-gyp'), `#!/bin/sh\necho "$*" | cat > ${reported}\n${end}\n`, { mode: 0o755 });
  };
  compiler('echo compiling');
  t.match(run('sh', [script]), { status: 0, stdout: '' });
  t.notOk(existsSync(reported));
  writeFileSync(join(installed, PREBUILT), 'of another machine');
  t.same(run('sh', [script]), { status: 0, stdout: '', stderr: '' }, 'without a word where it goes well');
  // A folder of the package: with headers of Node, or without, nothing is downloaded.
  const nodedir = /^configure build .*--nodedir=(.*)$/m.exec(readFileSync(reported, 'utf8'))?.[1] ?? '';
  t.ok(existsSync(join(nodedir, 'include/node/common.gypi')), nodedir);
  t.equal(realpathSync(join(nodedir, '../..')), realpathSync(installed));
  compiler('echo "make: g++: No such file or directory"; exit 3');
  t.match(run('sh', [script]), { status: 3, stderr: /g\+\+: No such file[^]*the addon was not built/ });
  mkdirSync(join(installed, 'src'));
  t.match(run('sh', [script]), { status: 0, stdout: '' }, 'a checkout is left alone');
  t.end();
});
