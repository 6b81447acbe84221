import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { ADDON_FUNCTIONS } from '../../src/native/addon-functions.js';
import { loadAddon } from '../../src/native/load.js';

function source(...path: readonly string[]): string {
  return readFileSync(join(process.cwd(), ...path), 'utf8');
}

function namesIn(text: string, pattern: RegExp): readonly string[] {
  return [...text.matchAll(pattern)].map((found) => found[1] ?? '');
}

t.test('the contract, the addon and its source export the same names in the same order', (t) => {
  const contract = source('src', 'native', 'contract.ts');
  const iptables = source('src', 'native', 'iptables-contract.ts');
  const ipvs = source('src', 'native', 'ipvs-contract.ts');
  const declared = [
    ...namesIn(contract.slice(contract.indexOf('interface NativeAddon')), /^ {2}(\w+)\(/gm),
    ...namesIn(iptables.slice(iptables.indexOf('interface IptablesAddon')), /^ {2}(\w+)\(/gm),
    ...namesIn(ipvs.slice(ipvs.indexOf('interface IpvsAddon')), /^ {2}(\w+)\(/gm),
  ];
  t.ok(declared.length > 5);
  t.strictSame(namesIn(source('native', 'addon', 'exports.cc'), /exports\.Set\("(\w+)"/g), declared);
  t.strictSame(Object.keys(loadAddon()), declared);
  t.strictSame([...ADDON_FUNCTIONS], declared);
  t.end();
});

t.test('each function is known by its name', (t) => {
  for (const [name, value] of Object.entries(loadAddon())) t.equal((value as { name: string }).name, name);
  t.end();
});

t.test('the fields of errors are those of the contract', (t) => {
  const contract = source('src', 'native', 'contract.ts');
  const start = contract.indexOf('interface NativeErrorFields');
  const declared = namesIn(contract.slice(start, contract.indexOf('\n}', start)), /readonly (\w+):/g);
  const set = namesIn(source('native', 'addon', 'native_error.cc'), /object\.Set\("(\w+)"/g);
  t.strictSame(set, declared);
  t.end();
});
