import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { loadAddon } from '../../src/native/load.js';
import { SUBSYSTEM_PLATFORMS, SUBSYSTEMS, type Subsystem } from '../../src/native/subsystems.js';

const SUBSYSTEMS_HERE = (Object.keys(SUBSYSTEMS) as readonly Subsystem[]).filter(
  (name) => SUBSYSTEM_PLATFORMS[name] === process.platform,
);

function source(...path: readonly string[]): string {
  return readFileSync(join(process.cwd(), ...path), 'utf8');
}

function namesIn(text: string, pattern: RegExp): readonly string[] {
  return [...text.matchAll(pattern)].map((found) => found[1] ?? '');
}

t.test('every subsystem of the contract is there, with the same functions in the same order', (t) => {
  const declared = Object.entries(SUBSYSTEMS).map(([name, functions]) => [name, Object.keys(functions)] as const);
  const contract = namesIn(source('src', 'native', 'contract.ts'), /^ {2}readonly (\w+): \w+Addon;/gm);
  t.strictSame(
    declared.map(([name]) => name),
    contract,
  );
  for (const [name, functions] of declared) {
    const text = source('src', 'native', `${name}.ts`);
    t.strictSame(functions, namesIn(text.slice(text.indexOf('Addon {')), /^ {2}(\w+)[(<]/gm), name);
  }
  const addon = loadAddon();
  for (const name of SUBSYSTEMS_HERE) t.strictSame(Object.keys(addon[name]), Object.keys(SUBSYSTEMS[name]), name);
  t.end();
});

t.test('each function is known by its name', (t) => {
  const addon = loadAddon();
  for (const subsystem of SUBSYSTEMS_HERE)
    for (const [name, value] of Object.entries(addon[subsystem])) t.equal((value as { name: string }).name, name);
  t.end();
});

t.test('what is the same on every platform includes nothing of one', (t) => {
  const folder = join('native', 'addon');
  const files = readdirSync(folder).filter((name) => /\.(cc|h)$/.test(name));
  t.ok(files.length > 5);
  for (const file of files) {
    const included = namesIn(source(folder, file), /^#include [<"]([^>"]+)[>"]/gm);
    const allowed = /^(?:napi\.h|c?[a-z_]+|addon\/[a-z_]+\.h)$/;
    t.same(
      included.filter((name) => !allowed.test(name)),
      [],
      file,
    );
  }
  t.end();
});

t.test('the fields of errors are those of the contract', (t) => {
  const contract = source('src', 'native', 'errors.ts');
  const start = contract.indexOf('interface NativeErrorFields');
  const declared = namesIn(contract.slice(start, contract.indexOf('\n}', start)), /readonly (\w+):/g);
  const set = namesIn(source('native', 'addon', 'native_error.cc'), /object\.Set\("(\w+)"/g);
  t.strictSame(set, declared);
  t.end();
});
