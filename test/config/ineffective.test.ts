import t from 'tap';
import { fromFile } from './load-from.js';

t.test('settings that do nothing are named, and only when set', (t) => {
  const field = (body: string): string => body.replace(/: \{(\w+).*/, '.$1').replace(/: .*/, '');
  const otherModes = [
    'iptables: {masqueradeAll: true}',
    'iptables: {masqueradeBit: 1}',
    'iptables: {localhostNodePorts: false}',
    'iptables: {syncPeriod: 1m}',
    'iptables: {minSyncPeriod: 2s}',
    'ipvs: {scheduler: rr}',
    'ipvs: {excludeCIDRs: [a]}',
    'ipvs: {strictARP: true}',
    'ipvs: {tcpTimeout: 1s}',
    'winkernel: {networkName: a}',
    'winkernel: {enableDSR: true}',
  ];
  for (const body of otherModes) {
    t.same(fromFile(`mode: nftables\n${body}`).warnings, [
      `KubeProxyConfiguration.${field(body)}: has no effect in mode nftables`,
    ]);
  }
  const silent = [
    'clientConnection: {qps: 5, burst: 0, kubeconfig: null}',
    'metricsBindAddress: 0.0.0.0',
    'clientConnection: {kubeconfig: /k, qps: 6, burst: 7, contentType: a, acceptContentTypes: b}',
    'enableProfiling: true\nconfigSyncPeriod: 1m',
    'featureGates: {LoggingAlphaOptions: true}\nlogging: {flushFrequency: 1s, options: {text: {splitStream: true, infoBufferSize: 1}}}',
    'bindAddress: "::1"',
    'iptables: {masqueradeAll: false, masqueradeBit: null, syncPeriod: 0s, minSyncPeriod: 0s}',
    'ipvs: {excludeCIDRs: []}',
    'portRange: 1-2',
    'logging: {flushFrequency: 5000000000}',
    'featureGates: {AllAlpha: false, AllBeta: true, NFTablesProxyMode: true, WatchListClient: true}',
  ];
  for (const body of silent) t.same(fromFile(`mode: nftables\n${body}`).warnings, [], body);
  t.same(fromFile('mode: nftables\nlogging: {flushFrequency: 1s}').warnings, [
    'KubeProxyConfiguration.logging.flushFrequency: has no effect, log lines are written unbuffered',
  ]);
  t.same(fromFile('mode: nftables\nshowHiddenMetricsForVersion: "1.35"').warnings, [
    'KubeProxyConfiguration.showHiddenMetricsForVersion: has no effect, no metric was hidden since then',
  ]);
  t.same(fromFile('mode: nftables\nfeatureGates: {SomethingElse: true}').warnings, [
    'KubeProxyConfiguration.featureGates: unknown gates have no effect: SomethingElse',
  ]);
  t.same(fromFile('mode: nftables\nfeatureGates: {WatchListClient: false, ClientsAllowCBOR: true}').warnings, [
    'KubeProxyConfiguration.featureGates: not supported, no effect: [WatchListClient=false, ClientsAllowCBOR=true]',
  ]);
  t.same(
    fromFile(
      'mode: nftables\nfeatureGates: {LoggingAlphaOptions: true}\nlogging: {options: {text: {infoBufferSize: 1Ki}, json: {splitStream: true, infoBufferSize: 1Ki}}}',
    ).warnings,
    [
      'KubeProxyConfiguration.logging.options.json.splitStream: has no effect in format text',
      'KubeProxyConfiguration.logging.options.json.infoBufferSize: has no effect in format text',
      'KubeProxyConfiguration.logging.options.text.infoBufferSize: has no effect without splitStream',
    ],
  );
  t.same(fromFile('mode: nftables\nclientConnection: {kubeconfig: /k, qps: 0, burst: 0}').warnings, [
    'KubeProxyConfiguration.clientConnection.qps: 0 means the default, 5',
    'KubeProxyConfiguration.clientConnection.burst: 0 means the default, 10',
  ]);
  t.same(fromFile('mode: nftables\nwindowsRunAsService: true').warnings, [
    'KubeProxyConfiguration.windowsRunAsService: has no effect on Linux',
  ]);
  t.end();
});

t.test('floods of what is passed over stay short warnings', (t) => {
  const names = Array.from({ length: 5000 }, (_, index) => `field${index}`);
  const bodies = [
    names.map((name) => `${name}: 1\n`).join(''),
    `featureGates: {${names.map((name) => `${name}: true`).join(',')}}`,
    `mode: nftables\n${names.map(() => '---\na: 1\n').join('')}`,
    `${'x'.repeat(100_000)}: 1`,
  ];
  for (const body of bodies) t.ok(fromFile(body).warnings.join().length < 6000);
  t.end();
});
