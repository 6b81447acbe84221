// Rules of other programs in the tables of iptables that iptables-save cannot list: native ones of nf_tables, and those with an extension that is not
// installed. Start, change, repair, restart, change of mode and cleanup do what they do on a clean node, and leave them as they are.
// needs: nft, iptables
import { existsSync, mkdtempSync, readdirSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { usually } from '../support/extent.js';
import { eventually, Lab } from '../support/lab/lab.js';
import { MODE_VARIABLE } from '../support/lab/mode.js';
import { dualStack } from '../support/lab/packet-table.js';
import { Proxy } from '../support/lab/proxy.js';
import { newerPrograms } from '../support/newer-programs.js';
import { PROGRAM } from '../support/program.js';
import { jumpOf } from './jump.js';

/** iptables-nft-save leaves out tables with these, fails at them, or takes conditions away from them. */
const FOREIGN: Readonly<Record<string, string>> = {
  nat: `set peers { type ADDRESS; elements = { PEER }; };
    chain PREROUTING { type nat hook prerouting priority -100; meta mark set 0x5 counter; FAMILY daddr @peers accept; };
    chain vpn { type nat hook postrouting priority 110; oifname "vpn0" masquerade; };`,
  filter: `chain FORWARD { type filter hook forward priority 0; ct state invalid counter; FAMILY daddr { PEER } accept; };
    chain input { type filter hook input priority 0; tcp dport 9 drop; };`,
  mangle: 'chain PREROUTING { type filter hook prerouting priority -150; ct mark set 0x7; };',
  raw: 'chain PREROUTING { type filter hook prerouting priority -300; FAMILY daddr PEER notrack; };',
};
const FAMILIES = [
  ['ip', '203.0.113.7', 'ipv4_addr'],
  ['ip6', '2001:db8::7', 'ipv6_addr'],
] as const;
const RULES = FAMILIES.map(([family, peer, type]) =>
  Object.entries(FOREIGN)
    .map(([table, text]) => `table ${family} ${table} { ${text} };\n`)
    .join('')
    .replaceAll('FAMILY', family)
    .replaceAll('PEER', peer)
    .replaceAll('ADDRESS', type),
).join('');
/** Traces of them in a listing. */
const THEIRS = /203\.0\.113\.7|2001:db8::7|vpn|meta mark set 0x00000005|ct state invalid counter$|dport 9 |ct mark set/;

/** Folders with the extensions of iptables, as Debian installs them. */
const EXTENSIONS = ['/usr/lib/x86_64-linux-gnu/xtables', '/usr/lib/aarch64-linux-gnu/xtables'];

const service = (number: number): ReturnType<typeof dualStack> =>
  dualStack(`web-${number}`, { number, ports: [{ port: 80, targetPort: 8080 }], endpoints: ['pod-a'] });
const of = (number: number): readonly string[] => [`10.96.0.${number}:80`, `[fd00:10:96::${number}]:80`];
const UNLISTED = /other programs' rules keep iptables-nft-save from listing table (nat|filter|mangle|raw)/;

const newer = newerPrograms();
for (const [isBefore, programs] of process.env[MODE_VARIABLE] === undefined
  ? ([[true, null], [false, null], ...usually([], newer === null ? [] : [[true, newer] as const])] as const)
  : [])
  t.test(
    `Services work beside native nft rules that come ${isBefore ? 'before' : 'after'} the start${programs === null ? '' : ', newer iptables'}`,
    async (t) => {
      const lab = await Lab.start(t);
      await lab.serveAll(['pod-a'], [[8080, 'TCP']]);
      const nft = (...words: readonly string[]): Promise<string> => lab.output('node', ['nft', ...words]);
      const theirs = async (): Promise<readonly string[]> => {
        const lines = (await nft('-s', 'list', 'ruleset')).split('\n');
        return lines
          .map((line) => line.trim().replace(/ packets \d+ bytes \d+/, ''))
          .filter((line) => THEIRS.test(line));
      };
      const answers = async (what: string, ...numbers: readonly number[]): Promise<void> => {
        for (const to of numbers.flatMap(of))
          t.match(await lab.request({ from: 'pod-b', to, timeoutMs: 3000 }), { name: 'pod-a' }, `${what}: ${to}`);
      };
      // A loss is logged before the rules are written.
      const repairedFor = async (what: string, number: number): Promise<void> => {
        for (const to of of(number))
          await eventually(`an answer of ${to} after ${what}`, async () =>
            'name' in (await lab.request({ from: 'pod-b', to, timeoutMs: 300 })) ? true : null,
          );
      };
      const isSilent = async (what: string, number: number): Promise<void> => {
        for (const to of of(number))
          t.notOk('at' in (await lab.request({ from: 'pod-b', to, timeoutMs: 300 })), `${what}: ${to}`);
      };

      if (isBefore) await lab.output('node', ['nft', '-f', '-'], RULES);
      const env = programs === null ? {} : { PATH: `${programs}:${process.env['PATH'] ?? ''}` };
      const config = { iptables: { syncPeriod: '1h' } };
      const proxy = await Proxy.start(t, lab, {
        objects: service(41),
        mode: 'iptables-nft',
        config,
        unlisted: true,
        env,
      });
      if (!isBefore) await lab.output('node', ['nft', '-f', '-'], RULES);
      const before = await theirs();
      t.equal(before.length, FAMILIES.length * 9);
      await answers('start', 41);
      await proxy.apply([...service(41), ...service(42)]);
      await answers('change', 41, 42);

      await eventually('a word in the log', () => Promise.resolve(UNLISTED.test(proxy.log) || null));
      await eventually('a word of each table in the status', async () => {
        const { families } = await proxy.status();
        return (
          families.every(({ limitations }) => limitations.filter((text) => UNLISTED.test(text)).length >= 3) || null
        );
      });
      const get = async (url: string): Promise<string> => JSON.stringify(await lab.http('node', url));
      t.match(await get('http://127.0.0.1:10256/healthz?verbose'), /unlisted.*table raw/);
      t.match(await get('http://127.0.0.1:10249/metrics'), /pointsman_unlisted_tables\{ip_family=\\"IPv6\\"\} [34]/);

      for (const [title, table, chain, repaired] of [
        ['a chain that was emptied', 'nat', 'KUBE-SERVICES', 'chain nat KUBE-SERVICES'],
        ['a native rule in a chain of ours', 'nat', 'KUBE-POSTROUTING', 'chain nat KUBE-POSTROUTING'],
        ['a jump that was deleted', 'nat', 'PREROUTING', 'rule of nat PREROUTING'],
        ['a jump that was deleted', 'filter', 'FORWARD', 'rule of filter FORWARD'],
      ] as const)
        for (const [family] of FAMILIES) {
          const from = proxy.log.length;
          if (chain === 'KUBE-SERVICES') await nft('flush', 'chain', family, table, chain);
          else if (chain === 'KUBE-POSTROUTING')
            await nft('add', 'rule', family, table, chain, 'ct', 'mark', 'set', '0x9');
          else
            await nft('delete', 'rule', family, table, chain, 'handle', await handleOfJump(nft, family, table, chain));
          await eventually(`repair of ${title} of ${family} ${table}`, () =>
            Promise.resolve(proxy.log.slice(from).includes(repaired) || null),
          );
          await repairedFor(title, 41);
        }
      await proxy.consistent();
      const quiet = proxy.log.length;
      await proxy.restart();
      await answers('restart', 41, 42);
      t.notMatch(proxy.log.slice(quiet), /could not be listed/);
      t.same(await theirs(), before, 'rules of others, after all that');

      await proxy.useMode('nftables');
      await proxy.apply(service(42));
      await eventually(
        'no rule of mode iptables',
        async () => !(await nft('list', 'ruleset')).includes('KUBE-') || null,
      );
      await answers('mode nftables', 42);
      await isSilent('a Service that was deleted after the change of mode', 41);
      await proxy.useMode('iptables-nft');
      await proxy.apply(service(41));
      await answers('mode iptables again', 41);
      await eventually(
        'no table of mode nftables',
        async () => !(await nft('list', 'tables')).includes('kube-proxy') || null,
      );
      await isSilent('a Service that was deleted meanwhile', 42);

      await proxy.stop();
      const { status, stderr } = await proxy.run(null, ['--cleanup']);
      t.equal(status, 0, stderr);
      t.notMatch(await nft('list', 'ruleset'), /KUBE-(?!FIREWALL)/);
      await isSilent('cleanup', 41);
      t.same(await theirs(), before, 'rules of others, after the cleanup');

      await proxy.useMode('nftables');
      await proxy.restart();
      await answers('start in mode nftables', 41);
      await proxy.apply(service(42));
      await answers('change in mode nftables', 42);
      await isSilent('a Service that was deleted in mode nftables', 41);
      for (const [family] of FAMILIES) await nft('flush', 'chain', family, 'kube-proxy', 'dispatch');
      await repairedFor('repair in mode nftables', 42);
      await proxy.consistent();
      await proxy.stop();
      t.equal((await proxy.run(null, ['--cleanup'])).status, 0);
      t.notMatch(await nft('list', 'tables'), /kube-proxy/);
      t.same(await theirs(), before, 'rules of others, after the cleanup in mode nftables');
    },
  );

/** For the proxy alone, the extensions are without that of a rule that another program has. */
function withoutExtension(t: Test, name: string): string {
  const folder = mkdtempSync(join(tmpdir(), 'extensions-'));
  t.teardown(() => {
    rmSync(folder, { recursive: true });
  });
  for (const installed of EXTENSIONS)
    for (const file of existsSync(installed) ? readdirSync(installed) : [])
      if (!existsSync(join(folder, file)) && file !== `libxt_${name}.so`)
        symlinkSync(join(installed, file), join(folder, file));
  return folder;
}

// Fetched programs have a folder of their own.
const flavors = EXTENSIONS.some((folder) => existsSync(folder)) ? (['nft', 'legacy'] as const) : [];
for (const flavor of process.env[MODE_VARIABLE] === undefined ? flavors : [])
  t.test(`Services work beside rules with an extension that is not installed, flavour ${flavor}`, async (t) => {
    const lab = await Lab.start(t);
    await lab.serveAll(['pod-a'], [[8080, 'TCP']]);
    const mode = `iptables-${flavor}` as const;
    const programs = [mode, `ip6tables-${flavor}`];
    const others = ['-m', 'time', '--weekdays', 'Mo', '-j', 'RETURN'];
    const each = async (...words: readonly string[]): Promise<void> => {
      for (const program of programs) await lab.output('node', [program, '-w', ...words]);
    };
    const theirs = async (): Promise<number> =>
      (await Promise.all(programs.map((program) => lab.output('node', [`${program}-save`])))).join('').split('-m time ')
        .length - 1;
    for (const [table, chain] of [
      ['nat', 'PREROUTING'],
      ['filter', 'FORWARD'],
      ['filter', 'INPUT'],
    ] as const)
      await each('-t', table, '-A', chain, ...others);
    const config = { iptables: { syncPeriod: '1h' } };
    const env = { XTABLES_LIBDIR: withoutExtension(t, 'time') };
    const proxy = await Proxy.start(t, lab, { objects: service(41), mode, config, env });
    const answers = async (what: string, ...numbers: readonly number[]): Promise<void> => {
      for (const to of numbers.flatMap(of))
        t.match(await lab.request({ from: 'pod-b', to, timeoutMs: 3000 }), { name: 'pod-a' }, `${what}: ${to}`);
    };
    await answers('start', 41);
    await proxy.apply([...service(41), ...service(42)]);
    await answers('change', 41, 42);
    t.match(proxy.log, /keep iptables-\w+-save from listing table nat/);

    const from = proxy.log.length;
    await each('-t', 'nat', '-F', 'KUBE-SERVICES');
    await eventually('repair of an emptied chain', () =>
      Promise.resolve(proxy.log.slice(from).split('chain nat KUBE-SERVICES').length > 2 || null),
    );
    const later = proxy.log.length;
    await each('-t', 'nat', '-I', 'PREROUTING', ...others);
    const saved = await lab.output('node', [`${mode}-save`, '-t', 'nat']);
    await each(...jumpOf(saved, 'PREROUTING'));
    await eventually('repair of a deleted jump', () =>
      Promise.resolve(proxy.log.slice(later).split('rule of nat PREROUTING').length > 2 || null),
    );
    // A loss is logged before the rules are written.
    for (const to of [41, 42].flatMap(of))
      await eventually(`an answer of ${to} after the repair`, async () =>
        'name' in (await lab.request({ from: 'pod-b', to, timeoutMs: 3000 })) ? true : null,
      );
    await proxy.restart();
    await proxy.consistent();
    await answers('restart', 41, 42);
    t.equal(await theirs(), 2 * 4);

    await proxy.stop();
    const started = ['sh', '-c', 'XTABLES_LIBDIR=$0 exec "$@"', env.XTABLES_LIBDIR, PROGRAM];
    await lab.output('node', [...started, '--cleanup', '--config', proxy.configFile]);
    for (const program of programs)
      t.notMatch(await lab.output('node', [`${program}-save`]), /KUBE-(?!FIREWALL)/, `${program}, after a cleanup`);
    t.equal(await theirs(), 2 * 4);
  });

/** The handle of the first rule of a built-in chain that leads to KUBE-SERVICES. */
async function handleOfJump(
  nft: (...words: readonly string[]) => Promise<string>,
  family: string,
  table: string,
  chain: string,
): Promise<string> {
  const listed = await nft('-a', 'list', 'chain', family, table, chain);
  return /jump KUBE-SERVICES # handle (\d+)/.exec(listed)?.[1] ?? 'none';
}
