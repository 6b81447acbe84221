// What a process reads of the program's files: no module is in two of them, a mode is read where it is in force, and YAML goes when it has been read.
// needs: ip
import '../support/namespace.js';
import { execFileSync, spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import t from 'tap';
import { projectFile } from '../support/lab/agent.js';
import { PROGRAM } from '../support/program.js';

const DIST = projectFile('dist');
const CACHE = `.${process.arch}.cache`;
/** Files that the launcher runs, as what V8 compiled of them stands beside them. */
const FILES = readdirSync(DIST)
  .filter((name) => name.endsWith(CACHE))
  .map((name) => name.slice(0, -CACHE.length));

const folder = mkdtempSync(join(tmpdir(), 'parts-'));
t.teardown(() => {
  rmSync(folder, { recursive: true });
});
const OBJECTS = {
  Service: { spec: { clusterIP: '10.96.0.1', ports: [{ port: 80 }] } },
  EndpointSlice: {
    metadata: { name: 'web', namespace: 'default', labels: { 'kubernetes.io/service-name': 'web' } },
    addressType: 'IPv4',
    ports: [{ port: 80 }],
    endpoints: [{ addresses: ['10.244.0.1'] }],
  },
};
const manifest = join(folder, 'web.json');
writeFileSync(
  manifest,
  JSON.stringify({
    apiVersion: 'v1',
    kind: 'List',
    items: Object.entries(OBJECTS).map(([kind, fields]) => ({
      apiVersion: kind === 'Service' ? 'v1' : 'discovery.k8s.io/v1',
      kind,
      metadata: { name: 'web', namespace: 'default' },
      ...fields,
    })),
  }),
);
const FLAGS = [
  `--manifests=${manifest}`,
  '--hostname-override=me',
  '--cluster-cidr=10.244.0.0/16',
  '--conntrack-max-per-core=0',
  '--conntrack-tcp-timeout-established=0s',
  '--conntrack-tcp-timeout-close-wait=0s',
  '--status-socket=',
];

/** At its end a process says which of the files it has read, and of which V8 did not take what was compiled; asked by a signal, whether YAML is in its memory. */
const report = join(folder, 'report.cjs');
writeFileSync(
  report,
  `const fs = require('node:fs'), path = require('node:path'), vm = require('node:vm'), v8 = require('node:v8');
   const names = [], rejected = [];
   const { readFileSync } = fs;
   fs.readFileSync = (file, ...more) => {
     const [, name] = /^(.+)\\.js$/.exec(path.basename(String(file))) ?? [];
     if (name !== undefined && name !== 'main' && path.dirname(String(file)) === ${JSON.stringify(DIST)}) names.push(name);
     return readFileSync(file, ...more);
   };
   vm.Script = class extends vm.Script {
     constructor(text, options) {
       super(text, options);
       if (this.cachedDataRejected !== false) rejected.push(path.basename(options.filename));
     }
   };
   process.on('exit', () => console.error('READ ' + JSON.stringify({ names, rejected })));
   process.on('SIGUSR2', () => {
     const file = v8.writeHeapSnapshot(${JSON.stringify(join(folder, 'heap'))});
     const { snapshot: { meta }, nodes, strings } = JSON.parse(readFileSync(file, 'utf8'));
     const closure = meta.node_types[0].indexOf('closure'), name = strings.indexOf('YAMLException');
     let count = 0;
     for (let at = 0; at < nodes.length; at += meta.node_fields.length) if (nodes[at] === closure && nodes[at + 1] === name) count++;
     console.error('YAML ' + count);
   });`,
);

interface Read {
  readonly names: readonly string[];
  readonly rejected: readonly string[];
}

function readOf(stderr: string): Read {
  const [, text] = /^READ (.+)$/m.exec(stderr) ?? [];
  if (text === undefined) throw new Error(`nothing is told of what was read:\n${stderr}`);
  return JSON.parse(text) as Read;
}

function command(argv: readonly string[]): readonly string[] {
  return ['-r', report, PROGRAM, ...argv];
}

/** What a command reads that ends by itself. */
function readBy(...argv: readonly string[]): Read {
  const { status, stderr } = spawnSync(process.execPath, command(argv), { encoding: 'utf8' });
  if (status !== 0) throw new Error(stderr);
  return readOf(stderr);
}

/** A proxy in this namespace. */
class Running {
  private readonly child: ChildProcess;
  private output = '';

  constructor(...argv: readonly string[]) {
    this.child = spawn(process.execPath, command([...FLAGS, ...argv]), { stdio: ['ignore', 'inherit', 'pipe'] });
    this.child.stderr?.setEncoding('utf8').on('data', (text: string) => (this.output += text));
  }

  async reported(pattern: RegExp): Promise<RegExpExecArray> {
    for (;;) {
      const found = pattern.exec(this.output);
      if (found !== null) return found;
      if (this.child.exitCode !== null || this.child.stderr === null) throw new Error(this.output);
      await Promise.race([once(this.child.stderr, 'data'), once(this.child, 'exit')]);
    }
  }

  async synced(): Promise<void> {
    for (const family of ['IPv4', 'IPv6']) await this.reported(new RegExp(`"rules complete" family="${family}"`));
  }

  /** How much of YAML's library is in memory. */
  async yaml(): Promise<number> {
    this.output = '';
    this.child.kill('SIGUSR2');
    const [, count] = await this.reported(/^YAML (\d+)$/m);
    return Number(count);
  }

  async end(): Promise<Read> {
    const closed = once(this.child, 'close');
    this.child.kill('SIGTERM');
    await closed;
    return readOf(this.output);
  }
}

execFileSync('ip', ['link', 'set', 'lo', 'up']);

t.test('each source module is in exactly one bundle', (t) => {
  t.ok(FILES.length > 5);
  const homes = new Map<string, string>();
  for (const name of FILES) {
    const { sources } = JSON.parse(readFileSync(join(DIST, `${name}.js.map`), 'utf8')) as {
      readonly sources: readonly string[];
    };
    t.ok(sources.length > 0, name);
    for (const source of sources) {
      t.equal(homes.get(source), undefined, `${source} is in ${name} alone`);
      homes.set(source, name);
    }
  }
  for (const [source, name] of [
    ['src/plan/planner.ts', 'pointsman'],
    ['src/dataplane/removal/remove.ts', 'reconciler'],
    ['src/dataplane/nftables/driver.ts', 'nftables'],
    ['src/dataplane/nftables/listing.ts', 'nftables-table'],
    ['src/dataplane/iptables/driver.ts', 'iptables'],
    ['src/dataplane/xtables/chain-ledger.ts', 'xtables'],
    ['src/dataplane/reconciler.ts', 'reconciler'],
    ['src/dataplane/ipvs/driver.ts', 'ipvs'],
    ['src/dataplane/kernelspace/driver.ts', 'kernelspace'],
    ['src/sources/manifests/parse.ts', 'manifests'],
    ['src/cli/commands.ts', 'commands'],
    ['src/host/windows/host.ts', 'windows'],
  ] as const)
    t.equal(homes.get(`../${source}`), name, source);
  const libraries = [...homes].filter(([source]) => source.includes('/node_modules/'));
  for (const [source, name] of libraries)
    t.equal(source.includes('/js-yaml/'), name === 'yaml', `${source}: js-yaml is in yaml.js, and no other is`);
  t.end();
});

t.test('each command reads only the bundles that it needs', (t) => {
  const json = join(folder, 'config.json');
  const yaml = join(folder, 'config.yaml');
  const header = { apiVersion: 'kubeproxy.config.k8s.io/v1alpha1', kind: 'KubeProxyConfiguration' };
  writeFileSync(yaml, `apiVersion: ${header.apiVersion}\nkind: ${header.kind}\nclusterCIDR: 10.244.0.0/16\n`);
  writeFileSync(json, JSON.stringify({ ...header, clusterCIDR: '10.244.0.0/16' }));
  const objects = [`--manifests=${manifest}`, '--hostname-override=me'];
  for (const [argv, names] of [
    [['--version'], ['help']],
    [
      ['plan', ...objects],
      ['help', 'commands', 'manifests'],
    ],
    [
      ['plan', ...objects, `--config=${yaml}`],
      ['help', 'yaml', 'commands', 'manifests'],
    ],
    [
      ['plan', ...objects, `--config=${json}`],
      ['help', 'commands', 'manifests'],
    ],
    [
      ['render', ...objects, '--proxy-mode=nftables'],
      ['help', 'commands', 'manifests', 'nftables', 'reconciler', 'nftables-table'],
    ],
    [
      ['render', ...objects, '--proxy-mode=iptables'],
      ['help', 'commands', 'manifests', 'iptables', 'xtables', 'reconciler'],
    ],
    [
      ['render', ...objects, '--proxy-mode=ipvs'],
      ['help', 'commands', 'manifests', 'ipvs', 'xtables', 'reconciler'],
    ],
  ] as const)
    t.same(readBy(...argv), { names: ['pointsman', ...names], rejected: [] }, argv.join(' '));
  t.end();
});

t.test('a proxy loads only the configured mode, even when it removes rules of another mode', async (t) => {
  for (const [mode, names, left, namesForThat] of [
    ['nftables', ['nftables', 'reconciler', 'nftables-table'], null, []],
    // What was noted in the table concerns flows that are to end.
    [
      'iptables',
      ['iptables', 'xtables', 'reconciler'],
      /removed rules of another proxy mode" what="nftables: table ip6/,
      ['nftables-table'],
    ],
  ] as const) {
    const proxy = new Running(`--proxy-mode=${mode}`);
    await proxy.synced();
    if (left !== null) await proxy.reported(left);
    const { names: read, rejected } = await proxy.end();
    t.same(read, ['pointsman', ...names, 'manifests', ...namesForThat], mode);
    // V8 has the options of a proxy at work by then: of a source that few have it compiles what runs.
    t.same(rejected, ['manifests.js', ...namesForThat.map((name) => `${name}.js`)], mode);
  }
});

t.test('the YAML library is garbage-collected once the configuration has been read', async (t) => {
  const config = join(folder, 'proxy.yaml');
  writeFileSync(config, 'apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\nmode: nftables\n');
  const proxy = new Running(`--config=${config}`);
  await proxy.synced();
  t.equal(await proxy.yaml(), 0, 'none is kept');
  t.ok((await proxy.end()).names.includes('yaml'), 'though it was read');

  const yaml = join(folder, 'web.yaml');
  writeFileSync(yaml, '# YAML\n');
  const reading = new Running(`--manifests=${yaml}`, '--proxy-mode=nftables');
  await reading.synced();
  t.ok((await reading.yaml()) > 0, 'but where manifests are YAML');
  await reading.end();
});

t.test('a missing bundle of a mode is reported by name', (t) => {
  const copy = join(folder, 'dist');
  cpSync(DIST, copy, { recursive: true });
  rmSync(join(copy, 'ipvs.js'));
  const argv = ['render', `--manifests=${manifest}`, '--hostname-override=me', '--cluster-cidr=10.244.0.0/16'];
  const env = { ...process.env, POINTSMAN_ADDON: projectFile('build/Release/pointsman.node') };
  const render = (mode: string): ReturnType<typeof spawnSync> =>
    spawnSync(join(copy, 'main.js'), [...argv, `--proxy-mode=${mode}`], { encoding: 'utf8', env });
  t.match(render('ipvs'), { status: 2, stderr: /^mode ipvs cannot be loaded: ENOENT: [^\n]*ipvs\.js'\n$/ });
  t.match(render('nftables'), { status: 0, stderr: '' });
  t.end();
});

t.test('in nftables mode, V8 keeps little source text', (t) => {
  const size = ['pointsman', 'nftables', 'nftables-table'].reduce(
    (sum, name) => sum + statSync(join(DIST, `${name}.js`)).size,
    0,
  );
  t.ok(size < 930_000, `${size} bytes`);
  for (const name of FILES) t.equal(/[^\0-\x7f]/.exec(readFileSync(join(DIST, `${name}.js`), 'utf8')), null, name);
  t.end();
});

t.test('the code cache has only the functions that a proxy in nftables mode runs', (t) => {
  const all = join(folder, 'all.cache');
  let whole = 0;
  let kept = 0;
  for (const name of ['pointsman', 'nftables', 'nftables-table']) {
    execFileSync(process.execPath, [projectFile('bundle/compile.cjs'), join(DIST, `${name}.js`), all]);
    whole += statSync(all).size;
    kept += statSync(join(DIST, name + CACHE)).size;
  }
  t.ok(kept > whole * 0.5 && kept < whole * 0.78, `${kept} of ${whole} bytes`);
  t.end();
});
