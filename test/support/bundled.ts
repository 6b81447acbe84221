// Runs one test file out of the folder that vm/bundle.ts has filled: bundled.js FOLDER FILE.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { Script } from 'node:vm';
import { TAP, TEST_FILES } from './bundle-names.js';

type Run = (module: { exports: unknown }, require: (name: string) => unknown, path: string, folder: string) => void;

// As if the file had been started itself: tap names tests by it.
const [, folder = ''] = process.argv.splice(1, 2);
const [, file = ''] = process.argv;
const require = createRequire(import.meta.url);

function load(name: string, requires: (name: string) => unknown): unknown {
  const filename = join(folder, name);
  const script = new Script(readFileSync(filename, 'utf8'), {
    filename,
    cachedData: readFileSync(`${filename}.cache`),
  });
  if (script.cachedDataRejected === true)
    throw new Error(`${name} was compiled by another Node, or with other options`);
  const module = { exports: {} as unknown };
  (script.runInThisContext() as Run)(module, requires, filename, folder);
  return module.exports;
}

const tap = load(TAP, require);
const { files } = load(TEST_FILES, (name) => (name === 'tap' ? tap : require(name))) as {
  readonly files: Readonly<Record<string, (() => Promise<unknown>) | undefined>>;
};
await files[file]?.();
