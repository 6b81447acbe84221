// Makes dist/, the program as it is shipped, from src/ and packages/:
//   main.js         starts it, see launch.cjs
//   pointsman.js    all of it in one file, libraries too, but what follows: reading and linking hundreds of modules costs more than running them
//   nftables.js, yaml.js and others  what of it only some processes need, with which it shares modules, see parts.mjs
//   pointsman.ARCH.cache and the same of those  what V8 compiled of each
//   secured.js      the access control of a metrics address that is not public; loaded where flags ask for it
//   certificate.js  what has the client certificate of a kubeconfig made and renewed; loaded where flags ask for it
//   check.js        the command that reads configuration files, with its tables; loaded by that command only
//   check-cluster.js what reads a running cluster for it; loaded where a flag asks for it
//   webhook.js      the command that answers an API server, with informers of the Kubernetes client; loaded by that command only
//   nodes.js        the command that asks the proxies of all nodes, with the client of the API server; loaded by that command, and by explain --node
//   ui/             the page in the browser, see page.mjs
//   nodes-ui/       the same of all nodes, for the command nodes
//   tracing.js      what follows changes on their way and reports them to a collector; loaded where a flag asks for it
//   telemetry.js    what counts connections of Services; loaded where a flag asks for it
//   rule-refusals.js, set-refusals.js what reads refused packets in mode iptables and ipvs; loaded by the former
//   egress.js       what reads how the API server is reached; loaded where a flag names a file of that
//   event-limit.js  what reads limits of events; loaded where a flag names a file of them
//   pino.js         the library that writes the log as JSON; loaded where the configuration asks for that
//   re2js.js        regular expressions as CEL means them; loaded where an expression of the configuration has one
//   v8-profile.js  what makes profiles of V8's samples; loaded when one is asked for
//   explain.js      what becomes of a packet; loaded on request
//   ui.js           what answers the page, and `pointsman ui`; loaded on the first request
//   change-log.js   writes down what is changed in the kernel; loaded where a flag asks for it
//   callers.json    where calls of the logger stand in the sources
//   *.map           for readers of a stack or a profile
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { chmodSync, copyFileSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { basename } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { buildInfo } from './build-info.mjs';
import { callersOf } from './callers.mjs';
import { buildPage } from './page.mjs';
import { buildParts, PART_NAMES, PROGRAM } from './parts.mjs';
import { canRehearse, rehearse } from './rehearse.mjs';

const project = fileURLToPath(new URL('..', import.meta.url));
const dist = `${project}dist`;
const fileOf = (name) => `${dist}/${name}.js`;
/** What launch.cjs runs, each with what V8 compiled of it. */
const functions = [PROGRAM, ...PART_NAMES].map(fileOf);
const main = `${dist}/main.js`;

/** Commander starts programs by it, of which we have none; to load it takes longer than to read the flags. */
const withoutPrograms = {
  name: 'without-programs',
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /^node:child_process$/ }, ({ importer }) =>
      importer.includes('/node_modules/commander/') ? { path: 'child_process', namespace: 'nothing' } : undefined,
    );
    onLoad({ filter: /./, namespace: 'nothing' }, () => ({ contents: 'module.exports = {};' }));
  },
};

/** What is a file of its own, so that nothing of it is in memory where it is not used. */
const secured = `${dist}/secured.js`;
const certificate = `${dist}/certificate.js`;
const check = `${dist}/check.js`;
const checkCluster = `${dist}/check-cluster.js`;
const webhook = `${dist}/webhook.js`;
const nodes = `${dist}/nodes.js`;
const tracing = `${dist}/tracing.js`;
const telemetry = `${dist}/telemetry.js`;
const ruleRefusals = `${dist}/rule-refusals.js`;
const setRefusals = `${dist}/set-refusals.js`;
const egress = `${dist}/egress.js`;
const eventLimit = `${dist}/event-limit.js`;
const pino = `${dist}/pino.js`;
const regularExpressions = `${dist}/re2js.js`;
const profiles = `${dist}/v8-profile.js`;
const ui = `${dist}/ui.js`;
const explain = `${dist}/explain.js`;
const changeLog = `${dist}/change-log.js`;
const apart = {
  name: 'apart',
  setup({ onResolve }) {
    for (const [filter, file] of [
      [/\/secured\/src\/access-control\.js$/, secured],
      [/\/certificate\/connect\.js$/, certificate],
      [/\/check\/src\/command\.js$/, check],
      [/^\.\/cluster\.js$/, checkCluster],
      [/\/webhook\/src\/command\.js$/, webhook],
      [/\/nodes\/src\/command\.js$/, nodes],
      [/^\.\/tracing\.js$/, tracing],
      [/^\.\/telemetry\.js$/, telemetry],
      [/^\.\/rule-refusals\.js$/, ruleRefusals],
      [/^\.\/set-refusals\.js$/, setRefusals],
      [/^\.\/egress\.js$/, egress],
      [/\/control\/event-limit\.js$/, eventLimit],
      [/^pino$/, pino],
      [/^re2js$/, regularExpressions],
      [/^\.\/profile-answer\.js$/, profiles],
      [/\/page\/src\/entry\.js$/, ui],
      [/\/explain-packet\.js$/, explain],
      [/\/observe\/change-log\.js$/, changeLog],
    ])
      onResolve({ filter }, ({ kind }) =>
        kind === 'dynamic-import' ? { path: `./${basename(file)}`, external: true } : undefined,
      );
  },
};

/** The Kubernetes client has every kind of its API, which take megabytes, and its own client keeps answers in a database: what watches needs neither. */
const withoutModels = {
  name: 'without-models',
  setup({ onResolve }) {
    onResolve({ filter: /^node:sqlite$/ }, () => ({ path: 'sqlite', namespace: 'nothing' }));
    onResolve({ filter: /^\.\/(?:gen\/index|serializer)\.js$/ }, ({ importer }) =>
      importer.includes('/@kubernetes/client-node/dist/') ? { path: 'models', namespace: 'nothing' } : undefined,
    );
  },
};

/** Libraries write such characters into regular expressions, which esbuild leaves as they are. */
const escaped = {
  name: 'escaped',
  setup({ onLoad }) {
    onLoad({ filter: /\/node_modules\/@marcbachmann\/cel-js\/.*\.js$/ }, ({ path }) => ({
      contents: readFileSync(path, 'utf8').replace(
        /[^\0-\x7f]/g,
        (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`,
      ),
    }));
  },
};

const definitions = ({ commit, date }) => ({
  POINTSMAN_COMMIT: JSON.stringify(commit),
  POINTSMAN_DATE: JSON.stringify(date),
});
const { compilerOptions } = JSON.parse(readFileSync(`${project}tsconfig.json`, 'utf8'));
const options = {
  bundle: true,
  platform: 'node',
  target: 'node20',
  format: 'cjs',
  // A script that is no module has no import().
  supported: { 'dynamic-import': false },
  plugins: [withoutPrograms, withoutModels, apart, escaped],
  // The banner of each file makes all of it strict.
  tsconfigRaw: { compilerOptions: { ...compilerOptions, alwaysStrict: false } },
  define: { 'import.meta.url': '__moduleUrl', ...definitions(buildInfo(project)) },
  minifySyntax: true,
  minifyWhitespace: true,
  sourcemap: 'external',
  sourcesContent: false,
  legalComments: 'eof',
  absWorkingDir: project,
  logLevel: 'warning',
};
// Before anything that is no directive.
const moduleUrl = "'use strict';const __moduleUrl=require('node:url').pathToFileURL(__filename).href;";

rmSync(dist, { recursive: true, force: true });
mkdirSync(dist);
// The function that launch.cjs calls, as a module of CommonJS is one.
await buildParts(options, (name) => ({
  outfile: fileOf(name),
  banner: { js: `(function(exports,require,module,__filename,__dirname){${moduleUrl}` },
  footer: { js: '})' },
}));
for (const [source, outfile] of [
  ['src/sources/manifests/yaml-worker.ts', `${dist}/yaml-worker.js`],
  ['packages/secured/src/access-control.ts', secured],
  ['src/sources/kubernetes/certificate/connect.ts', certificate],
  ['packages/check/src/command.ts', check],
  ['packages/check/src/cluster.ts', checkCluster],
  ['packages/webhook/src/command.ts', webhook],
  ['packages/nodes/src/command.ts', nodes],
  ['src/cli/tracing.ts', tracing],
  ['src/cli/telemetry.ts', telemetry],
  ['src/dataplane/iptables/rule-refusals.ts', ruleRefusals],
  ['src/dataplane/ipvs/set-refusals.ts', setRefusals],
  ['src/control/egress.ts', egress],
  ['src/control/event-limit.ts', eventLimit],
  ['node_modules/pino/pino.js', pino],
  ['node_modules/re2js/build/index.js', regularExpressions],
  ['src/serve/profile-answer.ts', profiles],
  ['packages/page/src/entry.ts', ui],
  ['src/serve/explain-packet.ts', explain],
  ['src/observe/change-log.ts', changeLog],
])
  await build({ ...options, entryPoints: [source], outfile, banner: { js: moduleUrl } });
await buildPage(project, 'main', `${dist}/ui`);
await buildPage(project, 'nodes', `${dist}/nodes-ui`);
// V8 keeps the text in memory, with one character of another kind at twice the size; and the program is read as such.
for (const file of functions) {
  const [other] = /[^\0-\x7f]/.exec(readFileSync(file, 'utf8')) ?? [];
  if (other !== undefined)
    throw new Error(`${basename(file)} holds ${other}: write it as an escape in regular expressions`);
}
writeFileSync(`${dist}/package.json`, '{ "type": "commonjs" }\n');
writeFileSync(
  `${dist}/callers.json`,
  JSON.stringify(
    Object.fromEntries(
      [...functions, secured, certificate, tracing, telemetry, webhook, egress, eventLimit, ui, changeLog].map(
        (file) => [basename(file), callersOf(file)],
      ),
    ),
  ),
);
copyFileSync(`${project}bundle/launch.cjs`, main);
chmodSync(main, 0o755);

// What a proxy in mode nftables needs of its files; of the others, all.
if (canRehearse(project)) await rehearse(project, main);
for (const file of functions) {
  const cache = file.replace(/js$/, `${process.arch}.cache`);
  if (!existsSync(cache))
    execFileSync(process.execPath, ['--random-seed=1', `${project}bundle/compile.cjs`, file, cache]);
  // launch.cjs compares it.
  const digest = createHash('sha256').update(process.version).update(readFileSync(file)).digest();
  writeFileSync(cache, Buffer.concat([digest, readFileSync(cache)]));
}
