// Makes .build/ from src, packages, test and bench, file by file, in two seconds. Types are checked by `npm run types`, which takes twenty times as long.
import { readdirSync, rmSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const project = fileURLToPath(new URL('..', import.meta.url));
const FOLDERS = ['src', 'packages', 'test', 'bench'];
/** The page in the browser: the bundle makes it. */
const BROWSER = /^page\/browser\//;

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
  banner: {
    js: `import { createRequire as requireOf } from 'node:module'; const require = requireOf(import.meta.url);`,
  },
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
