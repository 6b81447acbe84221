// needs: iptables, nft, ip
import '../support/namespace.js';

import { spawn, spawnSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import t from 'tap';
import type { NativeError } from '../../src/native/errors.js';
import { isNativeError } from '../../src/native/errors.js';
import type {
  IptablesChainListing,
  IptablesChainOperation,
  IptablesEndpointRules,
  IptablesFamily,
  IptablesFlavor,
  IptablesOperation,
  IptablesTextRule,
} from '../../src/native/contract.js';
import { loadAddon } from '../../src/native/load.js';
import { eventually } from '../support/lab/lab.js';
import { needs } from '../support/needs.js';
import { EndpointList } from '../../src/base/endpoint-list.js';
import { addressFromBytes, addressLength, type IPAddress } from '../../src/base/ip.js';

const addon = loadAddon().iptables;

const FLAVORS = ['legacy', 'nft'] as const;
const FAMILIES = ['IPv4', 'IPv6'] as const;

const text = (rule: string): IptablesTextRule => ({ type: 'text', text: rule });

function chain(
  name: string,
  rules: IptablesChainOperation['rules'],
  owner: string | null = null,
): IptablesChainOperation {
  return { type: 'chain', table: 'nat', chain: name, rules, owner };
}

function endpoints(
  family: IptablesFamily,
  count: number,
  affinitySeconds: number | null = null,
  protocol: IptablesEndpointRules['protocol'] = 'tcp',
): IptablesEndpointRules {
  const address = (index: number): IPAddress => {
    const bytes = new Uint8Array(addressLength(family));
    bytes[0] = family === 'IPv4' ? 10 : 0xfd;
    bytes[bytes.length - 2] = index >> 8;
    bytes[bytes.length - 1] = index & 255;
    return addressFromBytes(bytes);
  };
  const list = EndpointList.of(
    family,
    Array.from({ length: count }, (_, index) => ({ address: address(index), port: 8080 })),
  );
  const lists = Array.from({ length: count }, (_, index) => `KUBE-SEP-${family}-${count}-${index}`);
  return {
    type: 'endpoints',
    protocol,
    endpoints: list.packed,
    affinity: affinitySeconds === null ? null : { seconds: affinitySeconds, lists },
  };
}

/** One of each kind of rule a proxy writes, as iptables-save spells it. */
function sampleRules(family: IptablesFamily): readonly IptablesTextRule[] {
  const v4 = family === 'IPv4';
  return [
    `-d ${v4 ? '10.96.0.1/32' : 'fd00:96::1/128'} -p tcp -m comment --comment "default/kubernetes:https cluster IP" -m tcp --dport 443 -j T-B`,
    `! -s ${v4 ? '10.244.0.0/16' : 'fd00:244::/32'} -m comment --comment plain -j T-C`,
    `-m comment --comment "with \\"quotes\\" and \\\\" -m addrtype --dst-type LOCAL -j T-B`,
    '-m mark ! --mark 0x4000/0x4000 -j RETURN',
    '-j MARK --set-xmark 0x4000/0x0',
    '-m conntrack --ctstate NEW -j T-B',
    '-m comment --comment "kubernetes service traffic requiring SNAT" -j MASQUERADE --random-fully',
    '-p sctp -m sctp --dport 9 -j RETURN',
  ].map(text);
}

const restore = (family: IptablesFamily, flavor: IptablesFlavor, ...operations: readonly IptablesOperation[]) =>
  addon.iptablesRestore({ family, flavor, operations });

async function listed(
  family: IptablesFamily,
  flavor: IptablesFlavor,
  name: string,
): Promise<IptablesChainListing | undefined> {
  const chains = await addon.iptablesList(family, flavor, ['nat'], ['T-']);
  return chains.find((each) => each.name === name);
}

async function failure(call: Promise<unknown>): Promise<NativeError> {
  try {
    await call;
  } catch (error) {
    if (isNativeError(error)) return error;
    throw error;
  }
  throw new Error('it did not fail');
}

t.test('both iptables flavours are found, with their versions', async (t) => {
  // Whoever asks for a legacy table makes the kernel load what legacy needs.
  spawnSync('iptables-legacy', ['-t', 'nat', '-S']);
  spawnSync('ip6tables-legacy', ['-t', 'nat', '-S']);
  for (const family of FAMILIES) {
    const found = await addon.iptablesFlavors(family);
    t.strictSame(
      found.map(({ flavor }) => flavor),
      ['nft', 'legacy'],
    );
    for (const { version } of found) t.match(version, /^1\.\d+\.\d+$/);
  }
});

t.test('a listing does not create an unused iptables table', async (t) => {
  t.strictSame(await addon.iptablesList('IPv4', 'legacy', ['mangle'], []), []);
  t.notMatch(await addon.iptablesSizes('IPv4'), 'mangle');
  const { stdout } = spawnSync('cat', ['/proc/net/ip_tables_names'], { encoding: 'utf8' });
  t.notMatch(stdout, 'mangle');
  await addon.iptablesList('IPv4', 'nft', ['mangle'], []);
  t.equal(spawnSync('nft', ['list', 'table', 'ip', 'mangle']).status, 1);
});

for (const [family, program] of [
  ['IPv4', 'iptables-legacy'],
  ['IPv6', 'ip6tables-legacy'],
] as const)
  t.test(`${family}: sizes of legacy tables change with their rules`, async (t) => {
    const change = (...parameters: readonly string[]): unknown =>
      spawnSync(program, ['-w', '-t', 'nat', ...parameters]).status;
    change('-S');
    const before = await addon.iptablesSizes(family);
    t.match(before, /^nat \d+ \d+ /m);
    t.equal(await addon.iptablesSizes(family), before);
    t.equal(change('-I', 'PREROUTING', '-p', 'tcp', '-j', 'RETURN'), 0);
    const held = await addon.iptablesSizes(family);
    t.not(held, before);
    t.equal(change('-I', 'OUTPUT', '-p', 'tcp', '-j', 'RETURN'), 0);
    t.equal(change('-D', 'PREROUTING', '1'), 0);
    t.not(await addon.iptablesSizes(family), held, 'to another built-in chain, too');
    let calls = 0;
    const stop = addon.iptablesSizesWatch(family, await addon.iptablesSizes(family), 5, () => calls++);
    await pause(50);
    t.equal(calls, 0);
    t.equal(change('-D', 'OUTPUT', '1'), 0);
    await eventually('a call', () => Promise.resolve(calls || null));
    stop();
    t.equal(calls, 1);
    t.equal(await addon.iptablesSizes(family), before);
  });

for (const flavor of FLAVORS) {
  for (const family of FAMILIES) {
    t.test(`${flavor} ${family}: rules are listed as they were rendered, and with the same digest`, async (t) => {
      const operations = [
        chain('T-A', sampleRules(family)),
        chain('T-B', [endpoints(family, 1)]),
        chain('T-C', [endpoints(family, 7, null, 'udp')]),
        chain('T-D', [text('-p tcp -j RETURN'), endpoints(family, 3, 10_800)]),
        chain('T-E', [endpoints(family, 5, 60, 'sctp')]),
        chain('T-F', []),
      ];
      const transaction = { family, flavor, operations };
      const stream = addon.iptablesEncode(transaction);
      const ack = await addon.iptablesRestore(transaction);
      t.strictSame(ack, {
        bytes: Buffer.byteLength(stream),
        rules: stream.split('\n').filter((line) => line.startsWith('-A')).length,
      });
      const digests = await addon.iptablesDigests(transaction);
      for (const [index, { chain: name }] of operations.entries()) {
        const found = await listed(family, flavor, name);
        const rendered = stream.split('\n').filter((line) => line.startsWith(`-A ${name} `));
        t.strictSame(
          found?.rules?.map((rule) => `-A ${name} ${rule}`),
          rendered,
          name,
        );
        t.equal(found?.digest, digests[index], name);
        t.equal(found?.ruleCount, rendered.length, name);
        t.equal(found?.policy, null);
      }
      t.equal(new Set(digests).size, operations.length);
    });

    t.test(`${flavor} ${family}: rules in built-in chains come and go, chains are flushed and removed`, async (t) => {
      const jump = {
        type: 'rule',
        table: 'nat',
        chain: 'OUTPUT',
        text: '-m comment --comment "to ours" -j T-A',
      } as const;
      await restore(family, flavor, chain('T-A', [text('-j RETURN')]), { ...jump, verb: 'insert' });
      t.strictSame(await listed(family, flavor, 'OUTPUT').then((found) => [found?.policy, found?.rules]), [
        'ACCEPT',
        [jump.text],
      ]);
      await restore(family, flavor, chain('T-A', []));
      t.equal((await listed(family, flavor, 'T-A'))?.ruleCount, 0);
      const remove = ['T-A', 'T-B', 'T-C', 'T-D', 'T-E', 'T-F', 'T-MISSING'].map(
        (name) => ({ type: 'delete-chain', table: 'nat', chain: name }) as const,
      );
      const inUse = await failure(restore(family, flavor, ...remove));
      t.equal(inUse.code, 'ERR_IPTABLES');
      t.match(inUse.object ?? '', /^nat: (-X T-A|COMMIT)/);
      await restore(family, flavor, ...remove, { ...jump, verb: 'delete' });
      t.strictSame((await listed(family, flavor, 'OUTPUT'))?.rules, []);
      t.equal(await listed(family, flavor, 'T-A'), undefined);
    });
  }

  // A message as long as iptables-nft's asks for a buffer that root of the machine alone is given (SO_SNDBUFFORCE).
  t.test(
    `${flavor}: 10,000 endpoints fit in one chain`,
    needs(...(flavor === 'nft' ? (['root'] as const) : [])),
    async (t) => {
      const operations = [chain('T-BIG', [endpoints('IPv4', 10_000)], 'default/big')];
      const transaction = { family: 'IPv4', flavor, operations } as const;
      t.equal((await addon.iptablesRestore(transaction)).rules, 10_000);
      const found = (await addon.iptablesList('IPv4', flavor, ['nat'], [])).find(({ name }) => name === 'T-BIG');
      t.equal(found?.ruleCount, 10_000);
      t.equal(found?.rules, null);
      t.strictSame([found?.digest], await addon.iptablesDigests(transaction));
      await restore('IPv4', flavor, { type: 'delete-chain', table: 'nat', chain: 'T-BIG' });
    },
  );

  t.test(
    `${flavor}: an iptables error names the program, its exit code and message, the rule and its owner`,
    async (t) => {
      const bad = await failure(
        restore(
          'IPv4',
          flavor,
          chain('T-A', [text('-j RETURN')]),
          chain('T-B', [endpoints('IPv4', 3), text('-p tcp -m tcp --dport 99999 -j RETURN')], 'default/web'),
        ),
      );
      t.match(bad.message, `ables-`);
      t.match(bad.message, `exit code 2: `);
      t.match(bad.message, "invalid port/service `99999' specified");
      t.match(bad, {
        code: 'ERR_IPTABLES',
        operation: 'iptables restore',
        object: 'nat: -A T-B -p tcp -m tcp --dport 99999 -j RETURN (default/web)',
        index: 1,
        errno: null,
      });
      const missing = await failure(
        restore('IPv4', flavor, chain('T-A', []), {
          type: 'rule',
          verb: 'delete',
          table: 'nat',
          chain: 'T-A',
          text: '-j RETURN',
        }),
      );
      t.match(missing, { object: 'nat: -D T-A -j RETURN', index: 1 });
      t.equal(await listed('IPv4', flavor, 'T-A'), undefined, 'nothing of the table happened');
      t.strictSame(await restore('IPv4', flavor), { bytes: 0, rules: 0 });
    },
  );

  t.test(`${flavor}: a refusal names the chain that cannot be removed because a rule leads to it`, async (t) => {
    const [removal, other] = ['T-USED', 'T-UNUSED'].map((name): IptablesOperation => ({
      type: 'delete-chain',
      table: 'nat',
      chain: name,
    })) as [IptablesOperation, IptablesOperation];
    const chains = [chain('T-USED', []), chain('T-UNUSED', []), chain('T-FOREIGN', [text('-j T-USED')])];
    await restore('IPv4', flavor, ...chains);
    t.match(await failure(restore('IPv4', flavor, other, removal)), { object: 'nat: -X T-USED', errno: null });
    t.ok(await listed('IPv4', flavor, 'T-UNUSED'), 'nothing of the table happened');
    await restore('IPv4', flavor, chain('T-FOREIGN', []), other, removal);
    t.equal(await listed('IPv4', flavor, 'T-USED'), undefined);
  });
}

t.test('iptables-nft: a table that the program cannot list is listed chain by chain', async (t) => {
  const family = 'IPv4';
  const operations = [
    {
      type: 'chain',
      table: 'mangle',
      chain: 'T-OWN',
      rules: [{ type: 'text', text: '-p tcp -j RETURN' }],
      owner: null,
    },
    { type: 'rule', verb: 'insert', table: 'mangle', chain: 'FORWARD', text: '-m comment --comment "a b" -j T-OWN' },
  ] as const;
  await addon.iptablesRestore({ family, flavor: 'nft', operations });
  const [own] = await addon.iptablesDigests({ family, flavor: 'nft', operations });
  const list = async (): Promise<readonly unknown[]> =>
    (await addon.iptablesList(family, 'nft', ['mangle'], ['T-']))
      .filter(({ name }) => ['FORWARD', 'T-OWN', 't-others', 'others'].includes(name))
      .map(({ name, policy, digest, rules }) => [name, policy, digest, rules])
      .sort();
  const foreign = '(not of iptables)';
  const commands = [
    'insert rule ip mangle FORWARD meta mark set 1',
    'add rule ip mangle FORWARD ip daddr { 192.0.2.1 } accept',
    'add chain ip mangle others { type filter hook forward priority -5; policy drop; }',
    'add rule ip mangle others ct state new counter jump T-OWN',
  ];
  t.equal(spawnSync('nft', [commands.join('; ')]).status, 0);
  const jump = '-m comment --comment "a b" -j T-OWN';
  const builtIn = ['FORWARD', 'ACCEPT', null, [foreign, jump, `${foreign} -j ACCEPT`]];
  t.same(await list(), [
    builtIn,
    ['T-OWN', null, own, ['-p tcp -j RETURN']],
    ['others', 'DROP', null, [`${foreign} -j T-OWN`]],
  ]);
  t.equal(spawnSync('nft', ['add rule ip mangle T-OWN ct mark set 1']).status, 0);
  t.match(await list(), [builtIn, ['T-OWN', null, null, [`${foreign} -j RETURN`, foreign]], ['others']]);

  const removal = [
    { ...operations[1], verb: 'delete' },
    { type: 'delete-chain', table: 'mangle', chain: 'T-OWN' },
  ] as const;
  t.equal(spawnSync('nft', ['flush chain ip mangle others']).status, 0);
  await addon.iptablesRestore({ family, flavor: 'nft', operations: removal });
  t.match(await list(), [['FORWARD', 'ACCEPT', null, [foreign, `${foreign} -j ACCEPT`]], ['others']]);
  const refused = await failure(addon.iptablesRestore({ family, flavor: 'nft', operations: removal.slice(0, 1) }));
  t.match(refused, { code: 'ERR_IPTABLES', message: /rule is not there/ });
  spawnSync('nft', ['delete table ip mangle']);
});

t.test('iptables-nft: a condition on a set is not left out of a rule that ends the way of packets', async (t) => {
  const commands = 'add table ip raw; add chain ip raw OUTPUT { type filter hook output priority -300; }';
  const rules =
    'add rule ip raw OUTPUT ip daddr { 192.0.2.1, 192.0.2.2 } accept; add rule ip raw OUTPUT counter accept';
  t.equal(spawnSync('nft', [`${commands}; ${rules}`]).status, 0);
  const chain = (await addon.iptablesList('IPv4', 'nft', ['raw'], [])).find(({ name }) => name === 'OUTPUT');
  t.match(chain, { name: 'OUTPUT', digest: /^[0-9a-f]{16}$/, rules: ['(not of iptables) -j ACCEPT', '-j ACCEPT'] });
  spawnSync('nft', ['delete table ip raw']);
});

t.test('iptables waits for the legacy lock', async (t) => {
  const lock = `${t.testdir()}/lock`;
  process.env['XTABLES_LOCKFILE'] = lock;
  const holder = spawn('flock', [lock, 'sh', '-c', 'echo held; read -r line'], { stdio: ['pipe', 'pipe', 'inherit'] });
  // Or a failure would wait for it.
  t.teardown(() => holder.kill());
  await new Promise((resolve) => holder.stdout.once('data', resolve));
  let done = false;
  const restored = restore('IPv4', 'legacy', chain('T-L', [])).then(() => (done = true));
  // The others go on meanwhile.
  await restore('IPv4', 'nft', chain('T-L', []));
  await new Promise((resolve) => setTimeout(resolve, 1500));
  t.equal(done, false);
  holder.stdin.end('\n');
  await restored;
  t.ok(await listed('IPv4', 'legacy', 'T-L'));
  delete process.env['XTABLES_LOCKFILE'];
});

t.test('iptables programs are found by flavour, and a missing one is reported', async (t) => {
  const path = process.env['PATH'];
  const bin = t.testdir({
    'iptables-nft-save': '#!/bin/sh\necho garbage\n',
    'iptables-legacy-save': '#!/bin/sh\nprintf "*nat\\n:PREROUTING ACCEPT [0:0]\\n"\n',
  });
  spawnSync('chmod', ['+x', `${bin}/iptables-nft-save`, `${bin}/iptables-legacy-save`]);
  process.env['PATH'] = `${bin}:${path ?? ''}`;
  t.match(
    (await failure(addon.iptablesList('IPv4', 'nft', ['nat'], []))).message,
    'line 1 of the listing stands outside of a table: garbage',
  );
  t.match((await failure(addon.iptablesList('IPv4', 'legacy', ['nat'], []))).message, 'before COMMIT');
  process.env['PATH'] = path;
});

t.test(
  'iptables-nft: the programs read all rules in every run, so there is one for all tables and none to find the flavour',
  async (t) => {
    const path = process.env['PATH'];
    const dir = t.testdir();
    const save = spawnSync('sh', ['-c', 'command -v iptables-nft-save'], { encoding: 'utf8' }).stdout.trim();
    writeFileSync(`${dir}/iptables-nft-save`, `#!/bin/sh\necho "run $*" >>${dir}/runs\nexec ${save} "$@"\n`, {
      mode: 0o755,
    });
    await restore(
      'IPv4',
      'nft',
      ...(['raw', 'nat', 'filter'] as const).map((table) => ({ ...chain('T-ALL', [text('-j RETURN')]), table })),
    );
    process.env['PATH'] = `${dir}:${path ?? ''}`;
    t.match(await addon.iptablesFlavors('IPv4'), [{ flavor: 'nft' }]);
    t.notOk(existsSync(`${dir}/runs`), 'nothing is listed to find the flavour');
    const listing = await addon.iptablesList('IPv4', 'nft', ['filter', 'nat', 'mangle', 'raw'], ['T-ALL']);
    await addon.iptablesList('IPv4', 'nft', ['nat'], []);
    process.env['PATH'] = path;
    t.same(readFileSync(`${dir}/runs`, 'utf8').split('\n'), ['run ', 'run -t nat', '']);
    t.same(
      listing.filter(({ name }) => name === 'T-ALL').map(({ table, rules }) => [table, rules]),
      ['filter', 'nat', 'raw'].map((table) => [table, ['-j RETURN']]),
    );
  },
);

t.test('iptables-nft: a listing makes way for a stream, and begins again after it', async (t) => {
  const path = process.env['PATH'];
  const dir = t.testdir();
  const save = spawnSync('sh', ['-c', 'command -v iptables-nft-save'], { encoding: 'utf8' }).stdout.trim();
  // The first run reads for ever, as beside one commit after the other.
  writeFileSync(
    `${dir}/iptables-nft-save`,
    `#!/bin/sh\necho run >>${dir}/runs\n[ "$(wc -l <${dir}/runs)" -gt 1 ] || sleep 1000\nexec ${save} "$@"\n`,
    { mode: 0o755 },
  );
  process.env['PATH'] = `${dir}:${path ?? ''}`;
  const listing = addon.iptablesList('IPv4', 'nft', ['filter', 'nat'], ['T-WAY']);
  while (!existsSync(`${dir}/runs`)) await new Promise((resolve) => setTimeout(resolve, 5));
  await restore('IPv4', 'nft', chain('T-WAY', [text('-j RETURN')]));
  const listed = (await listing).find(({ name }) => name === 'T-WAY');
  process.env['PATH'] = path;
  t.same(listed?.rules, ['-j RETURN'], 'it shows what the stream wrote');
  t.equal(readFileSync(`${dir}/runs`, 'utf8'), 'run\nrun\n');
});

t.test('iptables-nft: a listing ends although there is always another stream', async (t) => {
  const path = process.env['PATH'];
  const dir = t.testdir();
  const save = spawnSync('sh', ['-c', 'command -v iptables-nft-save'], { encoding: 'utf8' }).stdout.trim();
  // It takes longer than the pauses between the streams.
  writeFileSync(`${dir}/iptables-nft-save`, `#!/bin/sh\nsleep 1\nexec ${save} "$@"\n`, { mode: 0o755 });
  process.env['PATH'] = `${dir}:${path ?? ''}`;
  const listing = addon.iptablesList('IPv4', 'nft', ['filter', 'nat'], ['T-BUSY']);
  let streams = 0;
  while ((await Promise.race([listing, pause(100, 'goes on')])) === 'goes on')
    await restore('IPv4', 'nft', chain('T-BUSY', [text(`-m comment --comment ${streams++} -j RETURN`)]));
  process.env['PATH'] = path;
  t.ok((await listing).some(({ name }) => name === 'T-BUSY'));
  t.ok(streams > 1, 'it made way at first');
});

t.test('iptables: the cost of a listing is processor time, without waiting', async (t) => {
  const path = process.env['PATH'];
  const dir = t.testdir();
  const waitMs = 1000;
  const save = spawnSync('sh', ['-c', 'command -v iptables-nft-save'], { encoding: 'utf8' }).stdout.trim();
  writeFileSync(`${dir}/iptables-nft-save`, `#!/bin/sh\nsleep ${waitMs / 1000}\nexec ${save} "$@"\n`, { mode: 0o755 });
  process.env['PATH'] = `${dir}:${path ?? ''}`;
  const [startedAt, before] = [performance.now(), addon.iptablesListingMs()];
  await addon.iptablesList('IPv4', 'nft', ['nat'], []);
  process.env['PATH'] = path;
  const [took, cost] = [performance.now() - startedAt, addon.iptablesListingMs() - before];
  t.ok(cost > 0 && cost < took - waitMs / 2, `${cost} of ${took} ms`);
});

t.test('iptables matches of the kernel are listed without any change', async (t) => {
  for (const family of ['IPv4', 'IPv6'] as const) {
    const answers = ['conntrack', 'addrtype', 'nonsense'].map((name) => addon.iptablesMatch(family, name));
    t.same(await Promise.all(answers), [true, true, false], family);
  }
});

t.test('iptables: wrong fields are named', (t) => {
  const method: unknown = Reflect.get(addon, 'iptablesEncode');
  const encode = (operation: unknown): unknown =>
    Reflect.apply(method as (value: unknown) => unknown, undefined, [
      { family: 'IPv4', flavor: 'nft', operations: [operation] },
    ]);
  const rows: readonly (readonly [string, unknown])[] = [
    ['operations[0].type: expected "chain", "delete-chain" or "rule", found "other"', { type: 'other' }],
    [
      'operations[0].table: expected "filter", "nat", "mangle", "raw" or "security", found "other"',
      { ...chain('C', []), table: 'other' },
    ],
    ['operations[0].chain: expected a string of 1 to 28 bytes without NUL, found ""', chain('', [])],
    [
      'operations[0].chain: expected a name without spaces, quotes and control characters, found "a b"',
      chain('a b', []),
    ],
    [
      'operations[0].rules[0].text: expected a rule without control characters, found "a\nCOMMIT"',
      chain('C', [text('a\nCOMMIT')]),
    ],
    [
      'operations[0].rules[0].endpoints: expected whole endpoints of 6 bytes, found a typed array of 7 bytes',
      chain('C', [{ ...endpoints('IPv4', 0), endpoints: new Uint8Array(7) }]),
    ],
    [
      'operations[0].rules[0].affinity.lists: expected one list for each of 2 endpoints, found an array of 1',
      chain('C', [{ ...endpoints('IPv4', 2), affinity: { seconds: 1, lists: ['a'] } }]),
    ],
  ];
  for (const [message, operation] of rows) t.throws(() => encode(operation), new TypeError(message));
  t.end();
});
