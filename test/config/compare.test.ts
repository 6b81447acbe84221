import t from 'tap';
import { changesMode, compareConfigs, printChange } from '../../src/config/compare.js';
import type { Config } from '../../src/config/config.js';
import { fromFile, loaded, WINDOWS } from './load-from.js';

function changes(before: string, after: string, argv: readonly string[] = []): readonly string[] {
  const found = compareConfigs(fromFile(before, argv).config, fromFile(after, argv).config);
  return found.map(printChange);
}

t.test('a change of the health check port changes the mode only with forwardHealthCheckVip', (t) => {
  const edited = (winkernel: string) => {
    const config = (port: number): Config =>
      fromFile(`winkernel: {networkName: a, ${winkernel}}\nhealthzBindAddress: 0.0.0.0:${port}`, [], WINDOWS).config;
    return compareConfigs(config(99), config(98));
  };
  t.equal(changesMode(edited('forwardHealthCheckVip: true')), true);
  t.equal(changesMode(edited('')), false);
  t.end();
});

t.test('differences between two configurations name their fields', (t) => {
  const rows: readonly (readonly [string, readonly string[]])[] = [
    ['nftables: {syncPeriod: 1m}', ['syncPeriod: 30000 → 60000']],
    ['nftables: {minSyncPeriod: 2s}', ['minSyncPeriod: 0 → 2000']],
    ['nftables: {masqueradeAll: true}', ['masqueradeAll: false → true']],
    ['nftables: {masqueradeBit: 5}', ['masqueradeBit: 14 → 5']],
    ['clusterCIDR: 10.0.0.0/8', ['localDetection.prefixes: [] → ["10.0.0.0/8"]']],
    ['detectLocalMode: NodeCIDR', ['localDetection: {"type":"ClusterCIDR","prefixes":[]} → {"type":"NodeCIDR"}']],
    ['nodePortAddresses: [10.0.0.0/8]', ['nodePortAddresses: ["primary"] → ["10.0.0.0/8"]']],
    ['featureGates: {AllowServiceExternalIPs: false}', ['allowExternalIPs: true → false']],
    ['conntrack: {min: 1, udpTimeout: 1s}', ['conntrack.min: 131072 → 1', 'conntrack.udpTimeout: 0 → 1000']],
    ['oomScoreAdj: 0', ['oomScoreAdj: -999 → 0']],
    ['logging: {verbosity: 4}', ['logging.verbosity: 0 → 4']],
    ['logging: {format: json}', ['logging.format: "text" → "json"']],
    [
      'logging: {vmodule: [{filePattern: a, verbosity: 1}]}',
      ['logging.vmodule: [] → [{"filePattern":"a","verbosity":1}]'],
    ],
    ['healthzBindAddress: 0.0.0.0:99', ['healthz.port: 10256 → 99']],
    ['metricsBindAddress: 0.0.0.0', ['metrics.address: "127.0.0.1" → "0.0.0.0"']],
    ['hostnameOverride: b', ['nodeName: "worker-1.example" → "b"']],
    ['bindAddress: 10.0.0.1', ['bindAddress: "0.0.0.0" → "10.0.0.1"']],
    ['enableProfiling: true', ['profiling: false → true']],
    ['bindAddressHardFail: true', ['bindAddressHardFail: false → true']],
    ['featureGates: {ComponentFlagz: false}', ['flagz: true → false']],
    ['featureGates: {AllAlpha: true}', ['localhostNodePorts: false → true']],
    ['showHiddenMetricsForVersion: "1.36"', []],
    ['iptables: {localhostNodePorts: false}', []],
    ['logging: {flushFrequency: 1s}', []],
    ['featureGates: {ContextualLogging: false, WatchListClient: false}', []],
    ['', []],
    ['iptables: {syncPeriod: 1m}\nipvs: {scheduler: sh}\nportRange: x\nfeatureGates: {ContextualLogging: false}', []],
    ['oomScoreAdj: 0\nhostnameOverride: b', ['nodeName: "worker-1.example" → "b"', 'oomScoreAdj: -999 → 0']],
  ];
  for (const [body, expected] of rows) t.same(changes('mode: nftables\n', `mode: nftables\n${body}`), expected, body);
  const iptables: typeof rows = [
    ['iptables: {syncPeriod: 1m}', ['syncPeriod: 30000 → 60000']],
    ['iptables: {masqueradeAll: true}', ['masqueradeAll: false → true']],
    ['iptables: {masqueradeBit: 5}', ['masqueradeBit: 14 → 5']],
    ['iptables: {localhostNodePorts: false}', ['localhostNodePorts: true → false']],
    ['nftables: {syncPeriod: 1m}', []],
  ];
  for (const [body, expected] of iptables) t.same(changes('', body), expected, body);
  const ipvs: typeof rows = [
    ['ipvs: {scheduler: sh, strictARP: true}', ['ipvs.scheduler: "rr" → "sh"', 'ipvs.strictARP: false → true']],
    ['ipvs: {scheduler: rr}', []],
    ['ipvs: {excludeCIDRs: [192.0.2.1/24]}', ['ipvs.excludeCIDRs: [] → ["192.0.2.0/24"]']],
    ['ipvs: {syncPeriod: 1m, minSyncPeriod: 1s}', ['syncPeriod: 30000 → 60000', 'minSyncPeriod: 0 → 1000']],
    ['iptables: {masqueradeBit: 5, syncPeriod: 1m, localhostNodePorts: false}', ['masqueradeBit: 14 → 5']],
  ];
  for (const [body, expected] of ipvs) t.same(changes('mode: ipvs\n', `mode: ipvs\n${body}`), expected, body);
  t.end();
});

t.test('differences of the API server client name their fields', (t) => {
  const before = 'clientConnection: {kubeconfig: /k}';
  t.same(changes(before, 'clientConnection: {kubeconfig: /l, qps: 7}\nconfigSyncPeriod: 1m'), [
    'kubernetes.kubeconfig: "/k" → "/l"',
    'kubernetes.qps: 5 → 7',
    'kubernetes.configSyncPeriod: 900000 → 60000',
  ]);
  t.end();
});

t.test('every field of the configuration is compared, and credentials are not shown', (t) => {
  const { config } = loaded([]);
  for (const field of Object.keys(config)) {
    const other: Config = {
      ...config,
      [field]: field === 'manifests' ? [{ headers: [{ name: 'A', value: 'secret' }] }] : 'x',
    };
    const found = compareConfigs(config, other);
    t.equal(found.length, 1, field);
    t.equal(found[0]?.field, field);
    t.notMatch(JSON.stringify(found), 'secret');
    t.same(compareConfigs(other, other), []);
  }
  t.end();
});
