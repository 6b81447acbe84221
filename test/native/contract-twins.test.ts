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

interface Target {
  readonly conditions: readonly (readonly [condition: string, { readonly sources: readonly string[] }])[];
}

/** Of C++ itself, of Node-API and of the Windows SDK: mingw-w64 has some of POSIX' too. */
const WINDOWS_HEADERS = /^(?:c?[a-z_]+|napi\.h|windows\.h|objbase\.h|computenetwork\.h)$/;

t.test('the addon has every subsystem of the contract, with the same functions in the same order', (t) => {
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

t.test('each function of the addon has its name', (t) => {
  const addon = loadAddon();
  for (const subsystem of SUBSYSTEMS_HERE)
    for (const [name, value] of Object.entries(addon[subsystem])) t.equal((value as { name: string }).name, name);
  t.end();
});

t.test('platform-neutral native code includes no platform header', (t) => {
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

t.test('native code for Windows uses nothing that MSVC lacks', (t) => {
  const [target] = (JSON.parse(source('binding.gyp')) as { targets: readonly Target[] }).targets;
  const listed = target?.conditions.find(([condition]) => condition === "OS=='win'")?.[1].sources ?? [];
  const folders = ['addon', 'addon/windows', 'hcn', 'hcn/windows', 'service'];
  const there = folders.flatMap((folder) =>
    readdirSync(join('native', folder)).flatMap((name) => (name.endsWith('.cc') ? [`native/${folder}/${name}`] : [])),
  );
  t.same([...listed].sort(), there.sort(), 'all sources are in binding.gyp');
  const files = new Set(listed);
  const wrong: string[] = [];
  // A set goes on with what is added to it meanwhile.
  for (const file of files) {
    const text = source(file);
    for (const own of namesIn(text, /^#include "([^"]+)"/gm)) files.add(`native/${own}`);
    const others = namesIn(text, /^#include <([^>]+)>/gm).filter((name) => !WINDOWS_HEADERS.test(name));
    // Of GCC, Clang and POSIX, by whatever header.
    const words = namesIn(text, /\b(__attribute__|__builtin_\w+|__typeof__|ssize_t|pid_t|strerror_r)\b/g);
    wrong.push(...[...others, ...words].map((name) => `${file}: ${name}`));
  }
  t.ok(files.size > listed.length + 5);
  t.same(wrong, []);
  t.end();
});

t.test('errors of the addon have the fields of the contract', (t) => {
  const contract = source('src', 'native', 'errors.ts');
  const start = contract.indexOf('interface NativeErrorFields');
  const declared = namesIn(contract.slice(start, contract.indexOf('\n}', start)), /readonly (\w+):/g);
  const set = namesIn(source('native', 'addon', 'native_error.cc'), /object\.Set\("(\w+)"/g);
  t.strictSame(set, declared);
  t.end();
});
