import t from 'tap';
import { fromFile, HEADER, KUBEADM, LINUX, loaded, WINDOWS } from './load-from.js';

function written(argv: readonly string[], files: Readonly<Record<string, string>> = {}, target = LINUX): string {
  const result = loaded(['--write-config-to=out', ...argv], files, target);
  if (result.command !== 'write-config') throw new Error(result.command);
  return result.text;
}

t.test('CL-50: --write-config-to writes the configuration as kube-proxy does', (t) => {
  t.match(loaded(['--write-config-to=out']), { command: 'write-config', path: 'out' });
  t.equal(
    written(['--mode=nftables']),
    `apiVersion: kubeproxy.config.k8s.io/v1alpha1
bindAddress: 0.0.0.0
bindAddressHardFail: false
clientConnection:
  acceptContentTypes: ""
  burst: 10
  contentType: application/vnd.kubernetes.protobuf
  kubeconfig: ""
  qps: 5
clusterCIDR: ""
configSyncPeriod: 15m0s
conntrack:
  maxPerCore: 32768
  min: 131072
  tcpBeLiberal: false
  tcpCloseWaitTimeout: 1h0m0s
  tcpEstablishedTimeout: 24h0m0s
  udpStreamTimeout: 0s
  udpTimeout: 0s
detectLocal:
  bridgeInterface: ""
  interfaceNamePrefix: ""
detectLocalMode: ClusterCIDR
enableProfiling: false
healthzBindAddress: 0.0.0.0:10256
hostnameOverride: ""
iptables:
  localhostNodePorts: true
  masqueradeAll: false
  masqueradeBit: 14
  minSyncPeriod: 0s
  syncPeriod: 30s
ipvs:
  excludeCIDRs: null
  minSyncPeriod: 0s
  scheduler: ""
  strictARP: false
  syncPeriod: 30s
  tcpFinTimeout: 0s
  tcpTimeout: 0s
  udpTimeout: 0s
kind: KubeProxyConfiguration
logging:
  flushFrequency: 5s
  format: text
  options:
    json:
      infoBufferSize: "0"
    text:
      infoBufferSize: "0"
  verbosity: 0
metricsBindAddress: 127.0.0.1:10249
mode: nftables
nftables:
  masqueradeAll: false
  masqueradeBit: 14
  minSyncPeriod: 0s
  syncPeriod: 30s
nodePortAddresses:
- primary
oomScoreAdj: -999
portRange: ""
showHiddenMetricsForVersion: ""
winkernel:
  enableDSR: false
  forwardHealthCheckVip: false
  networkName: ""
  rootHnsEndpointName: ""
  sourceVip: ""
`,
  );
  t.end();
});

t.test('CL-50: the written file quotes strings as kube-proxy does', (t) => {
  const lines = written(['--config=in'], {
    in: `${HEADER}bindAddress: "::"\nhostnameOverride: "010"\nclusterCIDR: "::/0"`,
  });
  for (const line of [
    "bindAddress: '::'",
    "healthzBindAddress: '[::]:10256'",
    "metricsBindAddress: '[::1]:10249'",
    'hostnameOverride: "010"',
    'clusterCIDR: ::/0',
    'portRange: ""',
  ])
    t.match(lines, `\n${line}\n`);
  t.end();
});

t.test('CL-50: periods and masqueradeAll are written only for their mode', (t) => {
  const body = ['iptables', 'ipvs', 'nftables']
    .map((section) => `${section}: {syncPeriod: 7s, minSyncPeriod: 3s}\n`)
    .join('');
  const rows: readonly (readonly [string, string, string])[] = [
    ['nftables', 'nftables', 'nftables'],
    ['iptables', 'iptables', 'iptables'],
    ['ipvs', 'ipvs', 'iptables'],
  ];
  const all =
    'iptables: {masqueradeAll: true, syncPeriod: 7s, minSyncPeriod: 3s}\nnftables: {masqueradeAll: true, syncPeriod: 7s, minSyncPeriod: 3s}\nipvs: {syncPeriod: 7s, minSyncPeriod: 3s}\n';
  for (const [mode, active, masquerading] of rows) {
    const { document, config } = fromFile(`mode: ${mode}\n${all}`, ['--write-config-to=x']);
    for (const section of ['iptables', 'ipvs', 'nftables'] as const) {
      t.equal(document[section].syncPeriod, section === active ? '7s' : '30s', `${mode}: ${section}.syncPeriod`);
      t.equal(document[section].minSyncPeriod, section === active ? '3s' : '0s', `${mode}: ${section}.minSyncPeriod`);
    }
    for (const section of ['iptables', 'nftables'] as const)
      t.equal(document[section].masqueradeAll, section === masquerading, `${mode}: ${section}.masqueradeAll`);
    t.strictSame([config.syncPeriod, config.minSyncPeriod, config.masqueradeAll], [7000, 3000, true], mode);
  }
  t.equal(fromFile(`mode: nftables\n${body}`).config.syncPeriod, 7000);
  t.end();
});

const BODIES = [
  '',
  KUBEADM.slice(HEADER.length),
  'nftables: {minSyncPeriod: 0s}',
  'nodePortAddresses: []',
  'nodePortAddresses: [10.0.0.0/8, "::1/128"]',
  'bindAddress: "::"\nhostnameOverride: "yes"\nportRange: "0x10"\nclusterCIDR: "010.0.0.0/8,fd00::/64"',
  'featureGates: {AllowServiceExternalIPs: false, AllAlpha: true}\nwindowsRunAsService: true',
  'logging: {format: text, flushFrequency: 1500000000, verbosity: 9, vmodule: [{filePattern: "a*", verbosity: 2}, {filePattern: "y", verbosity: 0}]}',
  'featureGates: {LoggingAlphaOptions: true}\nlogging: {options: {text: {splitStream: true, infoBufferSize: 64Ki}, json: {infoBufferSize: 1024}}}',
  'conntrack: {maxPerCore: 0, tcpEstablishedTimeout: 0s, tcpCloseWaitTimeout: 90s}\noomScoreAdj: 0\nclientConnection: {qps: 0.5}',
  'mode: ipvs\nipvs: {minSyncPeriod: 5s, excludeCIDRs: [10.0.0.0/8], tcpTimeout: 1m}\niptables: {masqueradeAll: true}',
  'mode: iptables\niptables: {masqueradeBit: 0, localhostNodePorts: false, minSyncPeriod: 10s}',
  'detectLocalMode: InterfaceNamePrefix\ndetectLocal: {interfaceNamePrefix: "on"}\nwinkernel: {networkName: "null", enableDSR: true}',
];

t.test('every section of a written file has a period above 0, in every mode', (t) => {
  for (const mode of ['iptables', 'ipvs', 'nftables', 'kernelspace'])
    for (const body of BODIES) {
      const target = mode === 'kernelspace' ? WINDOWS : LINUX;
      const text = written(
        ['--config=in'],
        { in: `${HEADER}${body.replace(/^mode: .*\n?/m, '')}\nmode: ${mode}\n` },
        target,
      );
      t.equal(text.match(/^ +syncPeriod: (?:30s|15s)$/gm)?.length, 3, `${mode}: ${body}`);
      t.match(loaded(['--config=in'], { in: text }, target).document, { mode });
    }
  t.end();
});

t.test('CL-50: a written file reads back as the same configuration, and is written the same again', (t) => {
  for (const body of BODIES) {
    const first = written(['--config=in'], { in: HEADER + body });
    const again = written(['--config=in'], { in: first });
    t.equal(again, first, body);
    const before = loaded(['--config=in', '--cleanup'], { in: HEADER + body }).config;
    const after = loaded(['--config=in', '--cleanup'], { in: first });
    t.strictSame(after.config, before, body);
    t.notMatch(after.warnings.join(), /lenient/, 'what is written decodes strictly');
  }
  t.end();
});

t.test('flags of distributions can be written to a file, and a start with it does the same', (t) => {
  // k3s, RKE2 with another folder, RKE1 and MicroK8s: an address without a port, and conntrack left alone.
  const k3s = [
    '--cluster-cidr=10.42.0.0/16',
    '--conntrack-max-per-core=0',
    '--conntrack-tcp-timeout-close-wait=0s',
    '--conntrack-tcp-timeout-established=0s',
    '--healthz-bind-address=127.0.0.1',
    '--kubeconfig=/var/lib/rancher/k3s/agent/kubeproxy.kubeconfig',
    '--proxy-mode=iptables',
  ];
  const rows = [
    k3s,
    [
      ...k3s.filter((flag) => !/bind-address|cluster-cidr/.test(flag)),
      '--healthz-bind-address=::1',
      '--cluster-cidr=fd42::/56',
    ],
    [
      '--healthz-port=10255',
      '--healthz-bind-address=0.0.0.0',
      '--metrics-bind-address=127.0.0.1',
      '--metrics-port=29102',
      '--proxy-mode=iptables',
    ],
    ['--conntrack-max-per-core=131072', '--oom-score-adj=-998', '--master=https://127.0.0.1', '--proxy-mode=nftables'],
  ];
  for (const flags of rows) {
    const text = written(flags);
    const [byFlags, byFile] = [loaded(flags), loaded(['--config=written'], { written: text })];
    const { healthz, metrics, conntrack, mode } = byFlags.config;
    t.match(byFile.config, { healthz, metrics, conntrack, mode }, flags.join(' '));
  }
  t.end();
});
