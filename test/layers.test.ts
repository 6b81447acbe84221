import { readdirSync, readFileSync } from 'node:fs';
import { join, resolve, sep } from 'node:path';
import t from 'tap';
import { layerViolations } from './support/layers.js';

/** Violations of made-up sources. */
function check(sources: Readonly<Record<string, string>>): readonly string[] {
  return layerViolations(new Map(Object.entries(sources)));
}

/** Paths of all that is below folders of the project, which is where the tests are started. */
function pathsBelow(...folders: readonly string[]): readonly string[] {
  return folders.flatMap((folder) =>
    readdirSync(folder, { recursive: true, encoding: 'utf8' }).map((path) => join(folder, path)),
  );
}

/** All sources of the project: by their paths below src, those of packages by theirs in the project. */
function projectSources(): ReadonlyMap<string, string> {
  const packages = readdirSync('packages').map((name) => join('packages', name, 'src'));
  const paths = pathsBelow('src', ...packages).filter((path) => /\.[cm]?[jt]s$/.test(path));
  return new Map(
    paths.map((path) => [
      path
        .split(sep)
        .join('/')
        .replace(/^src\//, ''),
      readFileSync(path, 'utf8'),
    ]),
  );
}

t.test('every import keeps to the layers', (t) => {
  const sources = projectSources();
  for (const contract of [
    'base/ip.ts',
    'state/rows.ts',
    'plan/types.ts',
    'dataplane/contract.ts',
    'native/contract.ts',
    'packages/check/src/command.ts',
  ]) {
    t.ok(sources.has(contract), contract);
  }
  t.same(layerViolations(sources), []);
  t.end();
});

t.test('ids of behaviour that sources name are in docs/develop/behaviour.md', (t) => {
  const rows = readFileSync(resolve('docs/develop/behaviour.md'), 'utf8').match(/^\| [A-Z]{2}-[^|]*/gm) ?? [];
  const ids = new Set(rows.flatMap((row) => row.match(/[A-Z]{2}-\d+/g) ?? []));
  const topics = [...new Set([...ids].map((id) => id.slice(0, 2)))].join('|');
  const named = new RegExp(`\\b(?:${topics})-\\d+`, 'g');
  const missing = [...projectSources()].flatMap(([path, text]) =>
    (text.match(named) ?? []).filter((id) => !ids.has(id)).map((id) => `${path}: ${id}`),
  );
  t.ok(ids.size > 0);
  t.same(missing, []);
  t.end();
});

/** As ESLint allows of what it reads. */
const LONGEST_FILE = 600;

t.test('no file that ESLint ignores is longer than 600 lines', (t) => {
  const long = pathsBelow('bench', 'bundle', 'demo', 'deploy', 'native', 'packages', 'src', 'test')
    .filter((path) => /\.(?:css|cc|h|py|sh)$/.test(path))
    .map((path) => ({ path, lines: readFileSync(path, 'utf8').split('\n').length - 1 }))
    .filter(({ lines }) => lines > LONGEST_FILE)
    .map(({ path, lines }) => `${path}: ${lines} lines`);
  t.same(long, []);
  t.end();
});

t.test('the layer check finds an import added on purpose', (t) => {
  const sources = new Map(projectSources());
  sources.set('plan/types.ts', `${sources.get('plan/types.ts') ?? ''}\nexport * from '../dataplane/contract.js';\n`);
  const violations = layerViolations(sources);
  t.equal(violations.length, 2);
  t.match(violations[0], /^cycle: .*dataplane\/contract, .*plan\/types/);
  t.match(violations[1], /^plan\/types\.ts:\d+ imports dataplane\/contract$/);
  t.end();
});

t.test('allowed imports pass the layer check', (t) => {
  t.same(
    check({
      'base/ip.ts': "import { isIP } from 'node:net';",
      'config/config.ts': "import { parseAddress } from '../base/ip.js';\nimport { a } from './other.js';",
      'state/store.ts': "import { parseAddress } from '../base/ip.js';\nimport { objectKey } from './rows.js';",
      'plan/service.ts':
        "import { READY } from '../state/rows.js';\nimport type { Snapshot } from '../state/snapshot.js';\nimport { x } from '../base/ip.js';",
      'sources/manifests/watch.ts':
        "import type { Config } from '../../config/config.js';\nimport type { Writer } from '../../state/writer.js';\n" +
        "import { objectKey } from '../../state/rows.js';\nimport type { NativeAddon } from '../../native/contract.js';\nimport '../translate/a.js';",
      'dataplane/nftables/render.ts':
        "import type { FrontendPlan } from '../../plan/types.js';\nimport { k } from '../../plan/frontend-key.js';\nimport { p } from '../../plan/text.js';\n" +
        "import { FLOW_RECORD } from '../../native/contract.js';\nimport { NativeError } from '../../native/errors.js';\nimport '../contract.js';\nimport './ops.js';",
      'native/addon.ts':
        "import { createRequire } from 'node:module';\nimport '../base/ip.js';\nexport const addon = createRequire(import.meta.url)('../build/pointsman.node');",
      'observe/health.ts':
        "import type { Clock } from '../base/clock.js';\nimport type { A } from '../record/health.js';\nimport { x } from '../base/ip.js';\nimport { y } from '../plan/text.js';",
      'control/loop.ts': "import '../base/clock.js';\nimport { x } from 'node:timers';",
      'dataplane/ipvs/driver.ts': "import '../xtables/rules.js';\nimport './footprint.js';",
      'dataplane/modes.ts': "import './nftables/render.js';\nimport './iptables/mode.js';",
      'main.ts':
        "import './dataplane/modes.js';\nimport './control/loop.js';\nconst mode = await import('./dataplane/' + name);\nimport '../package.json';",
    }),
    [],
  );
  t.end();
});

t.test('forbidden imports fail the layer check', (t) => {
  const cases: readonly (readonly [file: string, source: string, violation: string])[] = [
    ['base/ip.ts', "import '../state/rows.js';", 'imports state/rows'],
    ['base/ip.ts', "import type { Row } from '../state/rows.js';", 'imports state/rows'],
    ['config/config.ts', "import { a } from '../state/rows.js';", 'imports state/rows'],
    ['config/config.ts', "import { a } from '../plan/types.js';", 'imports plan/types'],
    ['state/store.ts', "import type { A } from '../plan/types.js';", 'imports plan/types'],
    ['state/store.ts', "import type { A } from '../config/config.js';", 'imports config/config'],
    ['plan/a.ts', "import { Store } from '../state/store.js';", 'imports more than types from state/store'],
    ['plan/a.ts', "import { type Store } from '../state/store.js';", 'imports more than types from state/store'],
    ['plan/a.ts', "import type { Config } from '../config/config.js';", 'imports config/config'],
    ['plan/a.ts', "import type { Loop } from '../control/loop.js';", 'imports control/loop'],
    ['sources/a.ts', "import { load } from '../config/config.js';", 'imports more than types from config/config'],
    ['sources/a.ts', "import type { Store } from '../state/store.js';", 'imports state/store'],
    ['sources/a.ts', "import { addon } from '../native/contract.js';", 'imports more than types from native/contract'],
    ['sources/a.ts', "import type { E } from '../native/errors.js';", 'imports native/errors'],
    ['sources/a.ts', "import type { A } from '../plan/types.js';", 'imports plan/types'],
    ['dataplane/delta.ts', "import { a } from '../plan/forwarding-table.js';", 'imports plan/forwarding-table'],
    ['dataplane/delta.ts', "import type { Row } from '../state/rows.js';", 'imports state/rows'],
    ['dataplane/delta.ts', "import { addon } from '../native/addon.js';", 'imports native/addon'],
    ['dataplane/nftables/a.ts', "import '../iptables/b.js';", 'imports mode iptables'],
    ['dataplane/nftables/a.ts', "import type { B } from '../ipvs/deep/b.js';", 'imports mode ipvs'],
    ['dataplane/conntrack/a.ts', "import '../nftables/b.js';", 'imports mode nftables'],
    ['dataplane/delta.ts', "import './nftables/b.js';", 'imports mode nftables'],
    ['dataplane/xtables/a.ts', "import '../iptables/b.js';", 'imports mode iptables'],
    ['native/addon.ts', "import type { A } from '../dataplane/contract.js';", 'imports dataplane/contract'],
    ['control/loop.ts', "import type { A } from '../cli/commands.js';", 'imports cli/commands'],
    ['control/loop.ts', "import type { A } from '../serve/listener.js';", 'imports serve/listener'],
    ['serve/a.ts', "import { A } from '../state/store.js';", 'imports more than types from state/store'],
    ['host/a.ts', "import type { A } from '../config/config.js';", 'imports config/config'],
    ['cli/a.ts', "import type { A } from '../host/linux/b.js';", "imports the platform's host/linux/b"],
    ['control/a.ts', "import { A } from '../host/host.js';", 'imports more than types from host/host'],
    ['observe/a.ts', "import type { Loop } from '../control/loop.js';", 'imports control/loop'],
    ['record/a.ts', "import type { Log } from '../observe/log.js';", 'imports observe/log'],
    ['observe/a.ts', "import type { A } from '../main.js';", 'imports main'],
    [
      'observe/a.ts',
      "import { plan } from '../plan/service-plan.js';",
      'imports more than types from plan/service-plan',
    ],
    ['plan/a.ts', "import '../main.js';", 'imports main'],
    ['base/ip.ts', "import '../../test/support/fake.js';", 'imports ../../test/support/fake.js, outside src'],
  ];
  for (const [file, source, violation] of cases) t.same(check({ [file]: source }), [`${file}:1 ${violation}`], source);
  t.end();
});

t.test('packages import src, which loads them in the places that assemble the program', (t) => {
  const accessControl = 'packages/secured/src/access-control.ts';
  const loads = "const { openAccessControl } = await import('../../packages/secured/src/access-control.js');";
  t.same(
    check({
      [accessControl]:
        "import type { AccessControl } from '../../../src/serve/access-control.js';\nimport './gate.js';",
      'packages/webhook/src/command.ts': "import { openAccessControl } from '../../secured/src/access-control.js';",
      'cli/packages.ts': loads,
      'commands/table.ts': loads,
    }),
    [],
  );
  const cases: readonly (readonly [file: string, source: string, violation: string])[] = [
    ['serve/listeners.ts', loads, 'imports package packages/secured/src/access-control'],
    ['cli/run.ts', loads, 'imports package packages/secured/src/access-control'],
    [
      'cli/packages.ts',
      "import '../../packages/secured/src/access-control.js';",
      'imports package packages/secured/src/access-control',
    ],
    ['cli/a.ts', "import type { A } from '../../packages/page/src/api.js';", 'imports package packages/page/src/api'],
    [accessControl, "import { loop } from '../../../src/control/loop.js';", 'imports control/loop'],
    [accessControl, "import { main } from '../../../src/main.js';", 'imports main'],
    [accessControl, "import { look } from '../../nodes/src/look.js';", 'imports packages/nodes/src/look'],
    [accessControl, "import { t } from '../test/scene.js';", 'imports ../test/scene.js, which is no source'],
  ];
  for (const [file, source, violation] of cases) t.same(check({ [file]: source }), [`${file}:1 ${violation}`], source);
  t.same(check({ 'packages/other/src/a.ts': '' }), ['packages/other/src/a.ts belongs to no layer']);
  t.end();
});

t.test('the layer check finds every kind of import', (t) => {
  const violation = ['base/a.ts:2 imports plan/ip'];
  for (const source of [
    "import '../plan/ip.js';",
    "import ip from '../plan/ip.js';",
    "import * as ip from '../plan/ip.js';",
    "import type * as ip from '../plan/ip.js';",
    "import ip = require('../plan/ip.js');",
    "export * from '../plan/ip.js';",
    "export * as ip from '../plan/ip.js';",
    "export { parseAddress } from '../plan/ip.js';",
    "export type { Family } from '../plan/ip.js';",
    "const ip = await import('../plan/ip.js');",
    'const ip = await import(`../plan/ip.js`);',
    "const family: import('../plan/ip.js').Family = 'IPv4';",
    "type Ip = typeof import('../plan/ip.js');",
    "const ip = require('../plan/ip.js');",
    "function f() { if (true) { return () => import('../plan/ip.js'); } }",
  ]) {
    t.same(check({ 'base/a.ts': `// first line\n${source}` }), violation, source);
  }
  t.same(check({ 'base/a.ts': 'const ip = await import(name);' }), ['base/a.ts:1 imports something computed']);
  t.same(
    check({ 'base/a.ts': "// import '../plan/ip.js';\nconst s = \"import '../plan/ip.js'\";" }),
    [],
    'text is no import',
  );
  t.end();
});

t.test('a folder or file without a layer fails the layer check', (t) => {
  t.same(check({ 'utils/a.ts': '', 'unexpected.ts': '' }), [
    'unexpected.ts belongs to no layer',
    'utils/a.ts belongs to no layer',
  ]);
  t.end();
});

t.test('only native and main load the addon', (t) => {
  for (const source of [
    "import { createRequire } from 'node:module';",
    'process.dlopen(module, path);',
    "const path = '../build/Release/pointsman.node';",
  ]) {
    t.same(check({ 'sources/a.ts': source }), ['sources/a.ts:1 loads an addon'], source);
    t.same(check({ 'native/a.ts': source, 'main.ts': source }), []);
  }
  t.end();
});

t.test('the check for names of modes ignores other texts', (t) => {
  for (const source of [
    "const mode = 'nftables';",
    'const iptablesRules = 1;',
    'const x = `${a} IPVS ${b}`;',
    'const x = /nftables/;',
    'class A { #ipvs = 1; }',
    'interface A { readonly nftables: boolean }',
  ]) {
    for (const file of [
      'plan/a.ts',
      'state/a.ts',
      'observe/a.ts',
      'control/a.ts',
      'serve/a.ts',
      'packages/check/src/a.ts',
      'cli/a.ts',
    ])
      t.same(check({ [file]: source }), [`${file}:1 names a mode`], source);
    t.same(check({ 'config/a.ts': source, 'packages/check/src/tables/a.ts': source }), []);
  }
  t.same(check({ 'plan/ipvs.ts': '' }), ['plan/ipvs.ts is named after a mode']);
  t.same(check({ 'plan/a.ts': '/** As in iptables. */\nconst x = 1; // ipvs' }), [], 'comments may');
  t.end();
});

t.test('import cycles are found, in a folder and between folders', (t) => {
  const found = check({
    'sources/manifests/a.ts': "import '../translate/b.js';",
    'sources/translate/b.ts': "import './c.js';",
    'sources/translate/c.ts': "import type { A } from '../manifests/a.js';",
    'sources/translate/d.ts': "import './b.js';\nimport './e.js';",
    'sources/translate/e.ts': "import './d.js';",
  });
  t.same(found, [
    'cycle: sources/manifests/a, sources/translate/b, sources/translate/c',
    'cycle: sources/translate/d, sources/translate/e',
  ]);
  t.end();
});

/** What Debian's smallest installation has of what tests start in a laboratory, the README names, or test/support/programs.ts gets. */
const PROGRAMS_OF_LABS =
  /^(?:cat|env|grep|sh|sleep|tar|unshare|node|python3|conntrack|curl|ip|ipset|ip6?tables(?:-nft|-legacy)?(?:-restore|-save)?|nft)$/;

t.test('tests start no program in a laboratory that a fresh machine lacks', (t) => {
  const started = /\blab\.(?:output|run|spawn)\(\s*[^,()]+,\s*\[\s*'([\w.-]+)'/g;
  const files = pathsBelow('test').filter((path) => path.endsWith('.ts'));
  const missing = files.flatMap((path) => {
    // The kernels of User Mode Linux and of virtual machines come with ipvsadm.
    const text = readFileSync(path, 'utf8');
    return [...text.matchAll(started)]
      .map(([, program = '']) => program)
      .filter((program) => !PROGRAMS_OF_LABS.test(program) && program !== 'ipvsadm')
      .map((program) => `${path}: ${program}`);
  });
  t.same(missing, []);
  t.end();
});
