import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { build, type BuildOptions, type Plugin } from 'esbuild';
import { projectFile } from '../support/lab/agent.js';
import { TAP, TEST_FILES } from '../support/bundle-names.js';
import { TESTS } from '../support/test-files.js';

/** What the program loads only where it is told to, with large libraries some of it: packet tests never tell it. */
const LEFT_OUT =
  /\/(?:tracing|egress|event-limit|profile-answer|change-log|webhook|access-control|command|page\/src\/entry|certificate\/connect)\.js$|^pino$/;

/** Every module finds its neighbours in the file system where they are. */
const ownPlaces: Plugin = {
  name: 'own-places',
  setup(hooks) {
    hooks.onLoad({ filter: /\.m?js$/ }, ({ path }) => ({
      contents: readFileSync(path, 'utf8')
        .replaceAll('import.meta.url', JSON.stringify(pathToFileURL(path).href))
        .replaceAll('import.meta.dirname', JSON.stringify(dirname(path))),
    }));
  },
};

const withoutParts: Plugin = {
  name: 'without-parts',
  setup(hooks) {
    hooks.onResolve({ filter: LEFT_OUT }, ({ kind, path }) =>
      kind === 'dynamic-import' ? { path, namespace: 'left-out' } : undefined,
    );
    hooks.onLoad({ filter: /./, namespace: 'left-out' }, ({ path }) => ({
      contents: `throw new Error(${JSON.stringify(`${path} is left out of the bundle`)});`,
    }));
  },
};

const OPTIONS: BuildOptions = {
  bundle: true,
  platform: 'node',
  target: 'node20',
  format: 'cjs',
  // A script that is no module has no import().
  supported: { 'dynamic-import': false },
  plugins: [withoutParts, ownPlaces],
  banner: { js: '(function(module,require,__filename,__dirname){' },
  footer: { js: '})' },
  logLevel: 'warning',
};

/**
 * Puts test files with all that they import into two scripts, one of them tap, which leaves its own frames out of stacks by their path; beside each what V8
 * compiled of it. support/bundled.js runs them. Where a machine is emulated it takes tap alone 12 s to be found, read, compiled and linked by its modules.
 *
 * @param options Node's, of the processes that will run it: V8 takes what it compiled with the same ones alone.
 */
export async function bundleTests(folder: string, files: readonly string[], options: readonly string[]): Promise<void> {
  const entries = files.map((file) => `${JSON.stringify(file)}: () => import(${JSON.stringify(file)}),\n`);
  const scripts = [
    // The one export, as a module of CommonJS has it: what imports it are modules of Node.
    { outfile: join(folder, TAP), contents: "import t from 'tap';\nmodule.exports = t;\n", external: [] },
    {
      outfile: join(folder, TEST_FILES),
      contents: `export const files = {\n${entries.join('')}};\n`,
      external: ['tap'],
    },
  ];
  for (const { outfile, contents, external } of scripts) {
    await build({ ...OPTIONS, outfile, stdin: { contents, resolveDir: TESTS }, external });
    execFileSync(process.execPath, [...options, projectFile('bundle/compile.cjs'), outfile, `${outfile}.cache`]);
  }
}
