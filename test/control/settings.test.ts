import t from 'tap';
import type { Sysctl } from '../../src/base/sysctl.js';
import { kernelSettings, planSettings } from '../../src/control/settings.js';
import { fromFile } from '../config/load-from.js';

t.test('ST-44: route_localnet is set after its guard, where node ports answer on loopback', (t) => {
  const rows: readonly (readonly [string, boolean])[] = [
    ['', true],
    ['mode: nftables', false],
    ['iptables: {localhostNodePorts: false}', false],
    ['nodePortAddresses: ["10.0.0.0/8"]', false],
    ['nodePortAddresses: ["2001:db8::/64"]', true],
    ['nodePortAddresses: ["10.0.0.0/8", "127.0.0.0/8"]', true],
    ['nodePortAddresses: ["127.0.0.1/32"]', true],
    ['nodePortAddresses: ["0.0.0.0/0"]', true],
    ['nodePortAddresses: [primary]', false],
  ];
  for (const [body, expected] of rows) {
    const { config } = fromFile(body);
    t.equal(kernelSettings(config, planSettings(config)).opensLoopback, expected, body);
    t.notOk(kernelSettings(config, null).opensLoopback, 'not before the rules are there');
    const before = planSettings(fromFile('nodePortAddresses: [primary]').config);
    t.notOk(kernelSettings(config, before).opensLoopback, 'nor before those of this configuration are');
  }
  t.end();
});

t.test('ST-46: sysctls of ipvs mode are set in that mode only', (t) => {
  const sysctls = (body: string): readonly Sysctl[] => kernelSettings(fromFile(body).config, null).sysctls;
  const set = (body: string): readonly string[] => sysctls(body).map(({ name, value }) => `${name}=${value}`);
  const always = [
    'net.ipv4.vs.conntrack=1',
    'net.ipv4.vs.conn_reuse_mode=0',
    'net.ipv4.vs.expire_nodest_conn=1',
    'net.ipv4.vs.expire_quiescent_template=1',
    'net.ipv4.ip_forward=1',
  ];
  const strict = ['net.ipv4.conf.all.arp_ignore=1', 'net.ipv4.conf.all.arp_announce=2'];
  t.same(set('mode: ipvs'), always);
  t.same(set('mode: ipvs\nipvs: {strictARP: true}'), [...always, ...strict]);
  t.same(
    sysctls('mode: ipvs')
      .filter(({ kernels }) => kernels !== undefined)
      .map(({ name }) => name),
    ['net.ipv4.vs.conn_reuse_mode'],
  );
  for (const body of ['', 'mode: nftables\nipvs: {strictARP: true}']) t.same(set(body), [], body);
  t.end();
});

t.test('nf_conntrack_acct is set with --service-telemetry', (t) => {
  for (const [mode, own] of [
    ['nftables', 0],
    ['ipvs', 5],
  ] as const) {
    const { config } = fromFile(`mode: ${mode}`, ['--service-telemetry']);
    const names = kernelSettings(config, null).sysctls.map(({ name, value }) => `${name}=${value}`);
    t.same(names.slice(own), ['net.netfilter.nf_conntrack_acct=1'], mode);
  }
  t.end();
});
