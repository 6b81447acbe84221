// The program as one file: it starts whatever became of what V8 compiled, and tells of the sources.
import { execFileSync, spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import t from 'tap';
import { readSourcePlaces, sourceStack } from '../../src/observe/source-places.js';
import { projectFile } from '../support/lab/agent.js';
import { PROGRAM } from '../support/program.js';

const CACHE = `pointsman.${process.arch}.cache`;
const BUNDLE = projectFile('dist/pointsman.js');
const MANIFEST = JSON.stringify({ apiVersion: 'v1', kind: 'Node', metadata: { name: 'me' } });

const folder = mkdtempSync(join(tmpdir(), 'bundle-'));
t.teardown(() => {
  rmSync(folder, { recursive: true });
});

t.test('V8 uses the code cache made at build time', (t) => {
  const script = `
    const { readFileSync } = require('node:fs');
    const script = new (require('node:vm').Script)(readFileSync('pointsman.js', 'utf8'), { cachedData: readFileSync('${CACHE}').subarray(32) });
    process.stdout.write(String(script.cachedDataRejected));`;
  const argv = ['-e', script];
  t.equal(execFileSync(process.execPath, argv, { cwd: projectFile('dist'), encoding: 'utf8' }), 'false');
  t.end();
});

t.test('the code cache does not contain the build folder', (t) => {
  const caches = readdirSync(projectFile('dist')).filter((name) => name.endsWith('.cache'));
  t.ok(caches.length > 5);
  for (const name of caches) t.notOk(readFileSync(join(projectFile('dist'), name)).includes(projectFile('')), name);
  t.end();
});

t.test('the program starts without a code cache, and with one of another V8', (t) => {
  const copy = join(folder, 'dist');
  cpSync(projectFile('dist'), copy, { recursive: true });
  const cache = join(copy, CACHE);
  const half = readFileSync(cache).subarray(0, statSync(cache).size / 2);
  for (const content of [half, Buffer.alloc(half.length), Buffer.alloc(0), null]) {
    if (content === null) rmSync(cache);
    else writeFileSync(cache, content);
    t.match(spawnSync(join(copy, 'main.js'), ['--version'], { encoding: 'utf8' }), {
      status: 0,
      stdout: /^Kubernetes v/,
      stderr: '',
    });
  }
  t.match(spawnSync(process.execPath, [PROGRAM, '--version'], { encoding: 'utf8' }), { status: 0, stderr: '' });
  t.end();
});

t.test('a code cache of another script of the same length is refused', (t) => {
  const copy = join(folder, 'changed');
  cpSync(projectFile('dist'), copy, { recursive: true });
  const script = join(copy, 'help.js');
  const text = readFileSync(script, 'latin1');
  const changed = text.replaceAll('Kubernetes ${', 'Kubernotes ${');
  t.same([changed.length, changed === text], [text.length, false]);
  writeFileSync(script, changed, 'latin1');
  // Code of the former text would print that.
  t.match(spawnSync(join(copy, 'main.js'), ['--version'], { encoding: 'utf8' }), {
    status: 0,
    stdout: /^Kubernotes v/,
    stderr: '',
  });
  t.end();
});

t.test('log lines name the source line', (t) => {
  const manifest = join(folder, 'node.json');
  writeFileSync(manifest, MANIFEST);
  const argv = ['plan', `--manifests=${manifest}`, '--hostname-override=me', '--v=1'];
  const { stderr } = spawnSync(PROGRAM, argv, { encoding: 'utf8' });
  const main = readFileSync(projectFile('src/main.ts'), 'utf8').split('\n');
  const [, line = ''] = / main\.ts:(\d+)\] "FLAG: --hostname-override=/.exec(stderr) ?? [];
  t.match(main[Number(line) - 1], /log\.info\(1, `FLAG/);
  for (const [pattern, reported] of [
    ['main', true],
    ['*/src/main', true],
    ['pointsman', false],
  ] as const) {
    const { stderr } = spawnSync(PROGRAM, [...argv, '--v=0', `--vmodule=${pattern}=1`], { encoding: 'utf8' });
    t.equal(stderr.includes('FLAG: '), reported, pattern);
  }

  const moved = join(folder, 'moved');
  cpSync(projectFile('dist'), moved, { recursive: true });
  t.match(
    spawnSync(join(moved, 'main.js'), argv, { encoding: 'utf8' }).stderr,
    ` main.ts:${line}] "FLAG: `,
    'elsewhere, too',
  );

  const known = new Set(
    Object.values(
      JSON.parse(readFileSync(projectFile('dist/callers.json'), 'utf8')) as Record<string, Record<string, unknown[]>>,
    )
      .flatMap((places) => Object.values(places))
      .map((place) => place.join(':')),
  );
  const files = ['src', 'packages'].flatMap((folder) =>
    readdirSync(projectFile(folder), { recursive: true, encoding: 'utf8' }).map((file) => join(folder, file)),
  );
  const calls = files
    .filter(
      (file) => file.endsWith('.ts') && !file.includes('/test/') && file !== 'src/sources/manifests/yaml-worker.ts',
    )
    .flatMap((file) =>
      readFileSync(projectFile(file), 'utf8')
        .split('\n')
        .flatMap((text, index) =>
          /\blog\.(?:info|warn|error|enabled)\(/.test(text) ? [`${file.slice(0, -'.ts'.length)}:${index + 1}`] : [],
        ),
    );
  t.ok(calls.length > 50);
  t.same(
    calls.filter((call) => !known.has(call)),
    [],
  );
  t.end();
});

t.test('stack traces name source lines', (t) => {
  const lines = readFileSync(BUNDLE, 'utf8').split('\n');
  const line = lines.findIndex((text) => text.includes('function writeConfig('));
  const column = (lines[line]?.indexOf('function writeConfig(') ?? -1) + 'function '.length;
  const place = `${line + 1}:${column + 1}`;
  const source = readFileSync(projectFile('src/main.ts'), 'utf8').split('\n');
  const wanted = source.findIndex((text) => text.includes('function writeConfig(')) + 1;
  t.match(
    sourceStack(`Error: no\n    at writeConfig (${BUNDLE}:${place})\n    at node:net:1:2`, BUNDLE),
    new RegExp(
      `^Error: no\n    at writeConfig \\(${projectFile('src/main.ts')}:${wanted}:\\d+\\)\n    at node:net:1:2$`,
    ),
  );
  const compiledElsewhere = `Error: no\n    at writeConfig (/elsewhere/pointsman.js:${place})`;
  t.match(sourceStack(compiledElsewhere, BUNDLE), `(${projectFile('src/main.ts')}:${wanted}:`);
  const foreign = `Error: no\n    at f (/elsewhere/other.js:${place})`;
  t.equal(sourceStack(foreign, BUNDLE), foreign);
  const ipvs = readFileSync(projectFile('dist/ipvs.js'), 'utf8').split('\n');
  const inMode = ipvs.findIndex((text) => text.includes('function sameDestinations('));
  const modeColumn = (ipvs[inMode]?.indexOf('function sameDestinations(') ?? -1) + 'function '.length;
  t.match(
    sourceStack(`Error: no\n    at f (${projectFile('dist/ipvs.js')}:${inMode + 1}:${modeColumn + 1})`, BUNDLE),
    `(${projectFile('src/dataplane/ipvs/destinations.ts')}:`,
    'of its other files, too',
  );
  const missing = join(folder, 'pointsman.js');
  t.same(readSourcePlaces(missing)({ file: missing, line: 1, column: 1 }), { file: missing, line: 1, column: 1 });
  t.end();
});

t.test('each command loads only the modules that it needs', (t) => {
  const report = join(folder, 'report.cjs');
  writeFileSync(report, "process.on('exit', () => console.error(process.moduleLoadList.join()));\n");
  const loaded = (...argv: readonly string[]): ReadonlySet<string> => {
    const { stderr } = spawnSync(process.execPath, ['-r', report, PROGRAM, ...argv], { encoding: 'utf8' });
    return new Set(stderr.trim().split('\n').at(-1)?.split(','));
  };
  const version = loaded('--version');
  t.ok(version.has('NativeModule vm'));
  // The launcher needs crypto.
  const large = ['child_process', 'http', 'http2', 'https', 'tls', 'worker_threads', 'zlib'];
  t.same(
    large.filter((name) => version.has(`NativeModule ${name}`)),
    [],
  );
  const plan = loaded('plan', '--manifests', join(process.cwd(), 'demo', 'manifests'));
  t.ok(plan.has('NativeModule worker_threads') || plan.has('NativeModule fs/promises'));
  t.same(
    ['http2', 'https', 'tls'].filter((name) => plan.has(`NativeModule ${name}`)),
    [],
    'manifests in files need no TLS',
  );
  t.end();
});

/** How often a file is loaded: by the program, and by the definitions of commands. */
const loads = (name: string): readonly number[] =>
  ['pointsman', 'help'].map(
    (by) => readFileSync(projectFile(`dist/${by}.js`), 'utf8').split(`require("./${name}.js")`).length - 1,
  );

t.test('access control of pages is a bundle of its own', (t) => {
  const text = readFileSync(BUNDLE, 'utf8');
  t.equal(text.split('require("./secured.js")').length, 2, 'one place loads it');
  const apart = readFileSync(projectFile('dist/secured.js'), 'utf8');
  for (const mark of ['serving.pem', 'ERR_JWKS_NO_MATCHING_KEY', 'homogeneousAggregateLiterals'])
    t.same([text.includes(mark), apart.includes(mark)], [false, true], mark);
  t.end();
});

t.test('the change log of the kernel is a bundle of its own', (t) => {
  const text = readFileSync(BUNDLE, 'utf8');
  t.equal(text.split('require("./change-log.js")').length, 2, 'one place loads it');
  t.notMatch(text, 'the disk is too slow');
  t.match(readFileSync(projectFile('dist/change-log.js'), 'utf8'), 'the disk is too slow');
  t.end();
});

t.test('requests for client certificates are a bundle of their own', (t) => {
  const text = readFileSync(BUNDLE, 'utf8');
  t.equal(text.split('require("./certificate.js")').length, 2, 'one place loads it');
  const apart = readFileSync(projectFile('dist/certificate.js'), 'utf8');
  for (const mark of ['kube-proxy-client', 'CERTIFICATE REQUEST', 'node-proxy-csr-'])
    t.same([text.includes(mark), apart.includes(mark)], [false, true], mark);
  t.notMatch(apart, 'createServer', 'and has no more of its own than it needs');
  t.end();
});

t.test('the command check is a bundle of its own, with its tables', (t) => {
  const text = readFileSync(BUNDLE, 'utf8');
  t.same(loads('check'), [0, 1], 'one place loads it');
  const apart = readFileSync(projectFile('dist/check.js'), 'utf8');
  for (const mark of ['is a kind that is not known here', 'system:bootstrappers', 'registry.example/team'])
    t.same([text.includes(mark), apart.includes(mark)], [false, true], mark);
  t.equal(apart.split('require("./check-cluster.js")').length, 2, 'and so is its way to a cluster');
  for (const mark of ['kubeadm-config', 'current-context: is required'])
    t.same([apart.includes(mark), text.includes('kubeadm-config')], [false, false], mark);
  t.match(readFileSync(projectFile('dist/check-cluster.js'), 'utf8'), 'kubeadm-config');
  t.end();
});

t.test('the command webhook is a bundle of its own, with the client’s informers', (t) => {
  const text = readFileSync(BUNDLE, 'utf8');
  t.same(loads('webhook'), [0, 1], 'one place loads it');
  const apart = readFileSync(projectFile('dist/webhook.js'), 'utf8');
  for (const mark of ['AdmissionReview', 'addOrUpdateItems', 'ServicePolicy'])
    t.same([text.includes(mark), apart.includes(mark)], [false, true], mark);
  t.ok(apart.length < 2_000_000, `${apart.length} bytes: of the client its informers alone`);
  t.end();
});

t.test('the command nodes is a bundle of its own', (t) => {
  const text = readFileSync(BUNDLE, 'utf8');
  t.same(loads('nodes'), [0, 3], 'the command, explain and bugreport --node');
  const apart = readFileSync(projectFile('dist/nodes.js'), 'utf8');
  for (const mark of ['NO ANSWER', 'pointsman-nodes'])
    t.same([text.includes(mark), apart.includes(mark)], [false, true], mark);
  t.end();
});

for (const [folder, entry] of [
  ['ui', 'main'],
  ['nodes-ui', 'nodes'],
] as const)
  t.test(
    `the page of ${folder} is small, and one script, one style sheet, one icon and the HTML that names them`,
    (t) => {
      const names = readdirSync(projectFile(`dist/${folder}`));
      t.same(names.map((name) => name.replace(/-\w{8}\./, '-HASH.')).sort(), [
        'icon-HASH.svg',
        'index.html',
        `${entry}-HASH.css`,
        `${entry}-HASH.js`,
      ]);
      const html = readFileSync(projectFile(`dist/${folder}/index.html`), 'utf8');
      for (const name of names.filter((each) => each !== 'index.html')) t.match(html, `"./${name}"`);
      const sizes = names.map((name) => gzipSync(readFileSync(projectFile(`dist/${folder}/${name}`))).length);
      const compressed = sizes.reduce((sum, size) => sum + size);
      t.ok(compressed < 40_000, `${compressed} bytes compressed`);
      t.end();
    },
  );

t.test('tracing is a bundle of its own, which a process with tracing loads', (t) => {
  const text = readFileSync(BUNDLE, 'utf8');
  t.equal(text.split('require("./tracing.js")').length, 2, 'one place loads it');
  const apart = readFileSync(projectFile('dist/tracing.js'), 'utf8');
  for (const mark of ['samplingRatePerMillion', 'opentelemetry.proto.collector', 'grpc-status'])
    t.same([text.includes(mark), apart.includes(mark)], [false, true], mark);
  t.end();
});

t.test('telemetry of Services is a bundle of its own', (t) => {
  const text = readFileSync(BUNDLE, 'utf8');
  t.equal(text.split('require("./telemetry.js")').length, 2, 'one place loads it');
  const apart = readFileSync(projectFile('dist/telemetry.js'), 'utf8');
  for (const mark of ['conntrackCount(', 'pointsman_service_endpoint', 'cannot count flows'])
    t.same([text.includes(mark), apart.includes(mark)], [false, true], mark);
  t.end();
});

t.test('counts of refused packets are a bundle of its own for each mode', (t) => {
  const text = readFileSync(BUNDLE, 'utf8');
  for (const [name, mark] of [
    ['rule-refusals', 'iptablesCounts'],
    ['set-refusals', 'elementPackets'],
  ] as const) {
    const [mode, ...others] = [
      text,
      ...['iptables', 'ipvs'].map((each) => readFileSync(projectFile(`dist/${each}.js`), 'utf8')),
    ].filter((each) => each.includes(`require("./${name}.js")`));
    t.equal(mode?.split(`require("./${name}.js")`).length, 2, 'one place loads it');
    t.same(others, []);
    t.match(readFileSync(projectFile(`dist/${name}.js`), 'utf8'), mark);
  }
  t.notMatch(text, 'elementPackets');
  t.end();
});

t.test('the egress selection is a bundle of its own', (t) => {
  const text = readFileSync(BUNDLE, 'utf8');
  t.equal(text.split('require("./egress.js")').length, 2, 'one place loads it');
  t.notMatch(text, 'EgressSelectorConfiguration"');
  t.match(readFileSync(projectFile('dist/egress.js'), 'utf8'), 'EgressSelectorConfiguration"');
  t.end();
});

t.test('the event rate limit is a bundle of its own', (t) => {
  const text = readFileSync(BUNDLE, 'utf8');
  t.equal(text.split('require("./event-limit.js")').length, 2, 'one place loads it');
  t.notMatch(text, 'SourceAndObject');
  t.match(readFileSync(projectFile('dist/event-limit.js'), 'utf8'), 'SourceAndObject');
  const flags = ['--event-rate-limit-config=/none', '--master=http://127.0.0.1:1'];
  t.match(spawnSync(PROGRAM, flags, { encoding: 'utf8' }), {
    status: 1,
    stderr: /^--event-rate-limit-config: \/none: ENOENT/m,
  });
  t.end();
});

t.test('the JSON log is a bundle of its own', (t) => {
  const text = readFileSync(BUNDLE, 'utf8');
  t.equal(text.split('require("./pino.js")').length, 2, 'one place loads it');
  t.notMatch(text, 'thread-stream');
  t.match(readFileSync(projectFile('dist/pino.js'), 'utf8'), 'thread-stream');
  t.end();
});

t.test('regular expressions of the configuration are a bundle of their own', (t) => {
  t.notMatch(readFileSync(BUNDLE, 'utf8'), 're2js.js');
  for (const name of ['secured', 'check']) {
    const text = readFileSync(projectFile(`dist/${name}.js`), 'utf8');
    t.equal(text.split('require("./re2js.js")').length, 2, `one place of ${name}.js loads it`);
    t.notMatch(text, 'RE2JSSyntaxException');
  }
  t.match(readFileSync(projectFile('dist/re2js.js'), 'utf8'), 'RE2JSSyntaxException');
  t.end();
});

t.test('profiling is a bundle of its own', (t) => {
  t.notMatch(readFileSync(BUNDLE, 'utf8'), 'dropFrames');
  t.match(readFileSync(projectFile('dist/v8-profile.js'), 'utf8'), 'dropFrames');
  t.end();
});

t.test('the page and explain are bundles of their own', (t) => {
  const text = readFileSync(BUNDLE, 'utf8');
  t.equal(text.split('require("./ui.js")').length, 2, 'the process loads it');
  t.equal(text.split('require("./explain.js")').length, 2, 'so with the other');
  for (const [file, mark] of [
    ['ui.js', 'frame-ancestors'],
    ['explain.js', 'so it holds what it held before'],
  ] as const) {
    t.notMatch(text, mark);
    t.match(readFileSync(projectFile(`dist/${file}`), 'utf8'), mark);
  }
  t.end();
});

t.test('the bundle is small, and ASCII only, so that V8 stores a character in a byte', (t) => {
  t.ok(statSync(BUNDLE).size < 780_000, `${statSync(BUNDLE).size} bytes`);
  t.equal(/[^\0-\x7f]/.exec(readFileSync(BUNDLE, 'utf8')), null);
  t.end();
});

t.test('help is printed where the output has no colours, and a wrong flag is refused', (t) => {
  const run = (...words: readonly string[]): object =>
    spawnSync(process.execPath, [PROGRAM, ...words], { encoding: 'utf8' });
  t.match(run('--help'), { status: 0, stdout: /--config/, stderr: '' });
  t.match(run('status', '--help'), { status: 0, stdout: /--output/, stderr: '' });
  t.match(run('--helf'), { status: 1, stdout: '', stderr: /unknown flag: --helf/ });
  t.end();
});
