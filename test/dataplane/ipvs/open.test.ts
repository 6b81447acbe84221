import t from 'tap';
import { FAMILIES, type Family } from '../../../src/base/ip.js';
import type { Config } from '../../../src/config/config.js';
import { modeParts, modeProblems } from '../../../src/control/mode.js';
import type { FamilyDataplane, SyncReport } from '../../../src/dataplane/contract.js';
import { IPVS } from '../../../src/dataplane/ipvs/mode.js';
import { LINK } from '../../../src/dataplane/ipvs/names.js';
import { ModeError, type ModeParts } from '../../../src/dataplane/mode.js';
import { LINUX_HOST } from '../../../src/host/linux/host.js';
import type { NativeAddon } from '../../../src/native/contract.js';
import { fromFile } from '../../config/load-from.js';
import { KernelError } from '../../support/fake-kernel/kernel-error.js';
import { IpvsWorld } from '../../support/fake-ipvs/world.js';
import { RecordingLog } from '../../support/recording-log.js';
import { service } from '../../support/rows.js';
import { NODE_ROWS, OWN, Rig } from './rig.js';

/** What the mode finds out before it is in force. */

function configOf(body: string): Config {
  return fromFile(`mode: ipvs\n${body}`, ['--iptables-flavor=nft']).config;
}

function parts(addon: NativeAddon, body: string): ModeParts {
  return modeParts(configOf(body), { host: LINUX_HOST, addon }, new RecordingLog());
}

function problems(addon: NativeAddon, body = ''): Promise<readonly string[]> {
  return modeProblems(configOf(body), { host: LINUX_HOST, addon }, FAMILIES, new RecordingLog());
}

t.test('ST-36: a trial of the kernel leaves it as it was, if it has everything', async (t) => {
  const { addon } = new IpvsWorld(OWN);
  t.same(await problems(addon, 'ipvs: {scheduler: mh, tcpTimeout: 10m}'), []);
  t.equal(addon.ipvs.services.size, 0);
  t.equal(addon.ipset.sets.size, 0);
  t.same([...addon.route.links.keys()], ['eth0']);
  t.equal(addon.ipvs.timeouts.tcp, 900, 'timeouts are for when the mode is in force');
});

t.test('ST-36: a trial of the kernel does not disturb a running proxy', async (t) => {
  const rig = new Rig();
  rig.commit(NODE_ROWS);
  await rig.sync();
  rig.commit([service('web', { clusterIPs: ['10.96.0.1'] })]);
  await rig.sync();
  const before = rig.kernel.contents();
  const { addon } = rig.kernel;
  const { length } = addon.ipvs.committed;
  const tried = (): readonly string[] =>
    addon.ipvs.committed
      .slice(length)
      .flat()
      .flatMap((operation) =>
        operation.type === 'service' && operation.verb === 'new' ? [operation.state.scheduler] : [],
      );
  t.same(await problems(addon, 'ipvs: {scheduler: rr}'), []);
  t.same(tried(), ['mh', 'wrr'], 'a scheduler that is in use is there; those that Services may ask for are tried');
  t.same(await problems(addon, 'ipvs: {scheduler: lc}'), []);
  t.same(tried().slice(2), ['lc', 'mh', 'wlc'], 'another is tried');
  t.same(rig.kernel.contents(), before);
});

t.test('ST-36: leftovers of a killed trial are removed, and do not count as the scheduler', async (t) => {
  const { addon } = new IpvsWorld(OWN);
  const { ipvs } = addon;
  const left = { family: 'IPv4', protocol: 6, address: Uint8Array.of(198, 51, 100, 0), port: 20_000, mark: 0 } as const;
  const state = { scheduler: 'lc', flags: 0, timeoutSeconds: 0, prefixLength: 32 };
  for (const [scheduler, reported] of [
    ['rr', /^$/],
    ['dh', /this kernel has no scheduler "dh"$/],
  ] as const) {
    await ipvs.ipvsApply([{ type: 'service', verb: 'new', service: left, state }]);
    t.match((await problems(addon, `ipvs: {scheduler: ${scheduler}}`)).join(), reported);
    t.equal(ipvs.services.size, 0);
  }
  addon.mishaps.planned.push({ errno: 'EEXIST', object: 1 });
  t.same(await problems(addon), [], 'that another process tries at this moment is no reason to end');
});

t.test('ST-36: missing kernel features are named', async (t) => {
  const start = 'the kernel or the privileges of this process are not enough for mode ipvs: ';
  const { addon } = new IpvsWorld(OWN);
  const unknown = 'ipvs.scheduler: this kernel has no scheduler "dh"';
  await t.rejects(IPVS.open(parts(addon, 'ipvs: {scheduler: dh}'), FAMILIES), new ModeError(unknown));
  t.same(await problems(addon, 'ipvs: {scheduler: dh}'), [start + unknown]);

  const { addon: other, programs } = new IpvsWorld(OWN);
  programs.missingMatches.add('set').add('ipvs');
  const matches = 'xt_set (IPv4), xt_ipvs (IPv4), xt_set (IPv6), xt_ipvs (IPv6)';
  const lacking = `this kernel has no match for rules to look at ip_vs and sets with: ${matches} (modprobe -a ip_vs xt_ipvs xt_set, or use mode nftables)`;
  await t.rejects(IPVS.open(parts(other, ''), FAMILIES), new ModeError(lacking));
  t.same(await problems(other), [start + lacking]);

  const noSet = new KernelError('EOPNOTSUPP', 'ipset apply', { object: 'KUBE-TRIAL', index: 0, element: null });
  const neither = new KernelError('ENOENT', 'ipset apply', { object: 'KUBE-TRIAL', index: 1, element: null });
  const noLink = new KernelError('EOPNOTSUPP', 'link ensure dummy', { object: LINK, index: null, element: null });
  addon.ipset.ipsetApply = () => Promise.resolve({ refused: [noSet, neither], bytes: 0 });
  addon.route.linkEnsureDummy = () => Promise.reject(noLink);
  t.same(await problems(addon), [start + noSet.message, start + noLink.message]);

  const none = new KernelError('ENOENT', 'ipvs apply', { object: null, index: null, element: null });
  addon.ipvs.ipvsApply = () => Promise.reject(none);
  const advice = '(before 5.16 a kernel does not load it by itself: have the node load the module ip_vs as it boots)';
  t.same(await problems(addon), [`${start}ip_vs cannot be used: ${none.message} ${advice}`]);
});

t.test('ST-32: excluded prefixes of a family that is not served are reported', async (t) => {
  const { addon } = new IpvsWorld(OWN);
  const warnings = async (prefix: string, families: readonly Family[]): Promise<readonly string[]> => {
    const log = new RecordingLog();
    await IPVS.open({ ...parts(addon, `ipvs: {excludeCIDRs: ["${prefix}"]}`), log }, families);
    return log.lines.filter((line) => line.startsWith('warn'));
  };
  t.same(await warnings('fd00::/64', FAMILIES), []);
  t.same(await warnings('192.0.2.0/24', ['IPv4']), []);
  t.same(await warnings('fd00::/64', ['IPv4']), [
    'warn ipvs.excludeCIDRs has nothing of IPv4, and this node is IPv4-only',
  ]);
});

t.test('ST-46: timeouts are set by the first sync, and again after an external change', async (t) => {
  const { kernel, family, ...rig } = new Rig();
  const { ipvs } = kernel.addon;
  const lines: string[] = [];
  const received = (print: () => readonly string[]): void => {
    lines.push(...print());
  };
  const timeouts = 'ipvs: {tcpTimeout: 10m, udpTimeout: 1500ms}';
  const { dataplane } = await IPVS.open({ ...parts(kernel.addon, timeouts), onTransaction: received }, FAMILIES);
  const [first, second] = [dataplane(family), dataplane('IPv6')];
  const sync = (one: FamilyDataplane): Promise<SyncReport> =>
    one.apply(rig.table, rig.table.takeChange(), { full: true });
  t.same((await sync(first)).repairs, []);
  t.same(ipvs.timeouts, { tcp: 600, tcpFin: 120, udp: 1 });
  await sync(second);
  t.same(
    lines.filter((line) => line.startsWith('ipvsadm --set')),
    ['ipvsadm --set 600 0 1'],
  );
  ipvs.timeouts = { tcp: 7, tcpFin: 8, udp: 1 };
  t.same((await sync(first)).repairs, ['timeout tcp was 7 s']);
  t.same(ipvs.timeouts, { tcp: 600, tcpFin: 8, udp: 1 });
  lines.length = 0;
  ipvs.timeouts = { tcp: 7, tcpFin: 8, udp: 1 };
  const reports = await Promise.all([sync(second), sync(first)]);
  const [repair] = reports.map(({ repairs }) => repairs.filter((line) => line.startsWith('timeout')));
  t.same(repair, [], 'there is one set for both families, and one of them sees to it');
  t.equal(lines.filter((line) => line.startsWith('ipvsadm --set')).length, 1);
  ipvs.ipvsTimeouts = () => Promise.reject(new Error('EPERM'));
  t.same((await sync(first)).problems, ['cannot set the timeouts of ip_vs: EPERM']);
});
