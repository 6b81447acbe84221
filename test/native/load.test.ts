import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import t from 'tap';
import { isNativeError } from '../../src/native/errors.js';
import { loadAddon, openAddon } from '../../src/native/load.js';
import { readOnly } from '../../src/native/read-only.js';
import { traced } from '../../src/native/trace.js';

const COMPILED = join(dirname(fileURLToPath(import.meta.url)), '..', '..', 'src');

/** Loads the addon in another process from a copy, at `folder`, of the module and of what it imports. */
function load(
  folder: string,
  env: Readonly<Record<string, string>>,
): { readonly status: number | null; readonly output: string } {
  mkdirSync(folder, { recursive: true });
  for (const each of ['native', 'base']) cpSync(join(COMPILED, each), join(folder, each), { recursive: true });
  writeFileSync(join(folder, 'package.json'), '{"type":"module"}');
  const code = `const { loadAddon } = await import('${join(folder, 'native', 'load.js')}'); console.log(loadAddon().nftables.nftMaxBatch() > 0);`;
  const clean = Object.fromEntries(Object.entries(process.env).filter(([name]) => name !== 'POINTSMAN_ADDON'));
  const { status, stdout, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', code], {
    encoding: 'utf8',
    env: { ...clean, ...env },
  });
  return { status, output: stdout + stderr };
}

t.test('the addon is found in its places', (t) => {
  const root = mkdtempSync(join(tmpdir(), 'pointsman-load-'));
  t.teardown(() => {
    rmSync(root, { recursive: true });
  });
  const inside = join(process.cwd(), 'node_modules', '.cache', `load-test-${process.pid}`);
  t.teardown(() => {
    rmSync(inside, { recursive: true });
  });
  const addon = join(process.cwd(), 'build', 'Release', 'pointsman.node');
  t.match(load(join(inside, 'deep'), {}), { status: 0, output: 'true\n' }, 'from a folder of the package');
  cpSync(addon, join(root, 'near', 'prebuilds', `linux-${process.arch}`, 'pointsman.node'));
  t.match(load(join(root, 'near', 'deep'), {}), { status: 0, output: 'true\n' }, 'where the package has it');
  t.match(
    load(join(root, 'far'), { POINTSMAN_ADDON: addon }),
    { status: 0, output: 'true\n' },
    'where POINTSMAN_ADDON says',
  );
  const missing = load(join(root, 'far'), {});
  t.equal(missing.status, 1);
  t.match(
    missing.output,
    /neither build\/Release\/pointsman\.node nor prebuilds\/linux-\w+\/pointsman\.node is in any folder above .*npm run build:native/,
  );
  t.match(
    load(join(root, 'far'), { POINTSMAN_ADDON: '/nowhere.node' }).output,
    'POINTSMAN_ADDON: there is no file /nowhere.node',
  );
  t.match(
    load(join(root, 'far'), { POINTSMAN_ADDON: addon, POINTSMAN_TRACE_NATIVE: '1' }).output,
    /native nftMaxBatch\(\) = \d+ [\d.]+ms\n/,
  );
  t.end();
});

t.test('a platform has some subsystems, and another one is a clear error', async (t) => {
  const { conntrack, nftables } = loadAddon();
  const addon = openAddon({ conntrack }, 'x.node', null);
  t.equal(addon.conntrack, conntrack);
  const absent = { message: `the addon has no nftables on this platform (${process.platform}); it is for linux` };
  t.throws(() => addon.nftables, absent);
  t.throws(() => addon.nftables, absent, 'as often as it is asked for');
  t.throws(() => loadAddon().hcn, { message: 'the addon has no hcn on this platform (linux); it is for win32' });
  const trial = readOnly(addon);
  t.same(await trial.conntrack.conntrackDelete('ip', new Uint8Array(0)), { deleted: 0, missing: 0 });
  t.throws(() => trial.nftables, absent);
  const other = { message: /^x\.node is not pointsman's addon of this version; run/ };
  for (const exported of [null, {}, { ...nftables }, { conntrack, nftables: { nftMaxBatch: 1 } }, { conntrack: 1 }])
    t.throws(() => openAddon(exported, 'x.node', null), other);
  const lines: string[] = [];
  openAddon({ nftables }, 'x.node', (line) => lines.push(line)).nftables.nftCompile('ip', 't', []);
  t.match(lines, [/^native nftCompile\(/]);
});

t.test('calls of the addon are traced', async (t) => {
  const lines: string[] = [];
  const addon = traced(loadAddon().nftables, (line) => lines.push(line));
  const nothing = { family: 'ip', table: 't', operations: [] } as const;
  addon.nftCompile('ip', 't', []);
  addon.nftEncode(nothing);
  await addon.nftTransact(nothing);
  t.throws(() => addon.nftCompile('ip', 't', [{}]));
  await addon.nftList('ip', 'no/such', null).catch(() => undefined);
  t.match(lines, [
    /^native nftCompile\(ip, t, \[0\]\) = \{chains: \[0\], sets: \[0\], objects: \[0\]\} [\d.]+ms\n$/,
    /^native nftEncode\(\{family: ip, table: t, operations: \[0\]\}\) = 40 bytes [\d.]+ms\n$/,
    /^native nftTransact\(\{family: ip, table: t, operations: \[0\]\}\) = \{messages: 0, bytes: 0\} [\d.]+ms\n$/,
    /^native nftCompile\(ip, t, \[1\]\) failed: nft compile: commands\[0\].* [\d.]+ms\n$/,
    /^native nftList\(ip, no\/such, null\) (?:= null|failed: .*) [\d.]+ms\n$/,
  ]);
  t.equal(lines.length, 5);
});

t.test('native errors are distinguished from others', (t) => {
  const fields = { operation: 'nft transaction', kernelMessage: null, object: null, index: null, element: null };
  const native = (code: string, errno: string | null): Error =>
    Object.assign(new Error('x'), { ...fields, code, errno });
  t.ok(isNativeError(native('ERR_NETLINK', 'EEXIST')));
  t.notOk(isNativeError(native('ENOENT', 'ENOENT')));
  t.notOk(isNativeError(new TypeError('x')));
  t.notOk(isNativeError({ code: 'ERR_NETLINK', operation: 'nft list' }));
  t.end();
});
