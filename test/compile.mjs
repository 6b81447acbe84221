// Makes .build/ from src, packages, test and bench, file by file, in two seconds. Types are checked by `npm run types`, which takes twenty times as long.
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { build } from 'esbuild';

const project = fileURLToPath(new URL('..', import.meta.url));
const FOLDERS = ['src', 'packages', 'test', 'bench'];
/** The page in the browser: the bundle makes it. */
const BROWSER = /^page\/browser\//;

/** What libraries in a bundle that are no modules of ECMAScript load Node's by. */
const requireForCommonModules = {
  js: `import { createRequire as requireOf } from 'node:module'; const require = requireOf(import.meta.url);`,
};

/**
 * Each test process finds there what V8 compiled of the files that others loaded too (test/run.ts). What it starts is as without: the program's own speed and
 * memory are measured.
 */
const withoutCompiled = { js: `${requireForCommonModules.js} delete process.env['NODE_COMPILE_CACHE'];` };

/** A module in a bundle starts the thread that is a file beside it where that file is. */
const ownPlaces = {
  name: 'own-places',
  setup({ onLoad }) {
    onLoad({ filter: /-thread\.js$/ }, ({ path }) => ({
      contents: readFileSync(path, 'utf8').replaceAll('import.meta.url', JSON.stringify(pathToFileURL(path).href)),
    }));
  },
};

/** Where the compiled tests find tap before they look into the project's own node_modules. */
const tap = `${project}.build/node_modules/tap`;

rmSync(`${project}.build`, { recursive: true, force: true });
// In one file: each of the tests' processes loads it, and reading and linking its 260 modules takes 0.15 s of processor time.
await build({
  stdin: { contents: `export { default } from 'tap';`, resolveDir: project },
  bundle: true,
  outfile: `${tap}/index.js`,
  format: 'esm',
  platform: 'node',
  banner: withoutCompiled,
  logLevel: 'warning',
});
writeFileSync(`${tap}/package.json`, JSON.stringify({ type: 'module', main: 'index.js' }));
await build({
  absWorkingDir: project,
  entryPoints: FOLDERS.flatMap((folder) =>
    readdirSync(project + folder, { recursive: true })
      .filter((file) => file.endsWith('.ts') && !file.endsWith('.d.ts') && !BROWSER.test(file))
      .map((file) => `${folder}/${file}`),
  ),
  outbase: '.',
  outdir: '.build',
  format: 'esm',
  platform: 'node',
  tsconfig: 'test/tsconfig.json',
  logLevel: 'warning',
});
// In one file as well: each laboratory starts this process, and its 230 modules take it 0.25 s.
const inspector = `${project}.build/test/support/lab/inspector.js`;
await build({
  entryPoints: [inspector],
  bundle: true,
  outfile: inspector,
  allowOverwrite: true,
  format: 'esm',
  platform: 'node',
  plugins: [ownPlaces],
  banner: requireForCommonModules,
  logLevel: 'warning',
});
