// Makes .build/ from src, packages, test and bench, file by file, in two seconds. Types are checked by `npm run types`, which takes twenty times as long.
import { readdirSync, rmSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const project = fileURLToPath(new URL('..', import.meta.url));
const FOLDERS = ['src', 'packages', 'test', 'bench'];
/** The page in the browser: the bundle makes it. */
const BROWSER = /^page\/browser\//;

rmSync(`${project}.build`, { recursive: true, force: true });
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
