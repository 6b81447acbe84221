import t from 'tap';
import { decodeConfiguration } from '../../src/config/decode.js';
import type { KubeProxyConfiguration } from '../../src/config/document.js';
import { CONFIGURATION_FLAGS, FLAGS } from '../../src/config/flag-table.js';
import { Mapping } from '../../src/config/yaml.js';
import { loaded } from './load-from.js';

const DEFAULTS = decodeConfiguration(new Mapping([]));

/** One flag a row: arguments, the fields they change, and the mode they are given in. */
type Row = readonly [
  id: string,
  argv: readonly string[],
  changed: Readonly<Record<string, unknown>>,
  mode?: 'nftables' | 'iptables' | 'ipvs',
];

const ROWS: readonly Row[] = [
  ['FL-01', ['--bind-address=10.0.0.1'], { bindAddress: '10.0.0.1' }],
  ['FL-01 empty', ['--bind-address='], {}],
  ['FL-02', ['--bind-address-hard-fail'], { bindAddressHardFail: true }],
  ['FL-03', ['--boot-id-file=/x'], {}],
  ['FL-04', ['--machine-id-file', '/x'], {}],
  ['FL-06', ['--cluster-cidr=10.0.0.0/8,fd00::/64'], { clusterCIDR: '10.0.0.0/8,fd00::/64' }],
  ['FL-08', ['--config-sync-period=1m'], { configSyncPeriod: '1m0s' }],
  ['FL-09', ['--conntrack-max-per-core=0'], { 'conntrack.maxPerCore': 0 }],
  ['FL-10', ['--conntrack-min=7'], { 'conntrack.min': 7 }],
  ['FL-11', ['--conntrack-tcp-be-liberal'], { 'conntrack.tcpBeLiberal': true }],
  ['FL-12', ['--conntrack-tcp-timeout-close-wait=0'], { 'conntrack.tcpCloseWaitTimeout': '0s' }],
  ['FL-13', ['--conntrack-tcp-timeout-established=1h30m'], { 'conntrack.tcpEstablishedTimeout': '1h30m0s' }],
  ['FL-14', ['--conntrack-udp-timeout=10s'], { 'conntrack.udpTimeout': '10s' }],
  ['FL-15', ['--conntrack-udp-timeout-stream=20s'], { 'conntrack.udpStreamTimeout': '20s' }],
  ['FL-16', ['--detect-local-mode=NodeCIDR'], { detectLocalMode: 'NodeCIDR' }],
  ['FL-16 empty', ['--detect-local-mode='], {}],
  ['FL-17', ['--feature-gates=AllAlpha=true,A=false'], { featureGates: { AllAlpha: true, A: false } }],
  ['FL-17 repeated', ['--feature-gates=A=false', '--feature-gates=B=1,A=1'], { featureGates: { A: true, B: true } }],
  ['FL-18', ['--healthz-bind-address=10.0.0.1:80'], { healthzBindAddress: '10.0.0.1:80' }],
  ['FL-18 bare', ['--healthz-bind-address=10.0.0.1'], { healthzBindAddress: '10.0.0.1:10256' }],
  ['FL-63 healthz', ['--healthz-bind-address='], {}],
  ['FL-20', ['--hostname-override= Node-A '], { hostnameOverride: 'node-a' }],
  ['FL-22', ['--iptables-localhost-nodeports=false'], { 'iptables.localhostNodePorts': false }],
  ['FL-23', ['--iptables-masquerade-bit=0'], { 'iptables.masqueradeBit': 0 }],
  ['FL-24', ['--iptables-min-sync-period=2s'], { 'iptables.minSyncPeriod': '2s' }, 'iptables'],
  ['FL-24 nftables', ['--iptables-min-sync-period=2s'], { 'nftables.minSyncPeriod': '2s' }],
  ['FL-24 zero', ['--iptables-min-sync-period=0'], {}, 'iptables'],
  ['FL-25', ['--iptables-sync-period=1m'], { 'iptables.syncPeriod': '1m0s' }, 'iptables'],
  ['FL-25 nftables', ['--iptables-sync-period=1m'], { 'nftables.syncPeriod': '1m0s' }],
  ['FL-61 ipvs', ['--iptables-sync-period=1m', '--iptables-min-sync-period=2s'], {}, 'ipvs'],
  ['FL-26', ['--ipvs-exclude-cidrs=10.0.0.0/8,10.1.0.0/16'], { 'ipvs.excludeCIDRs': ['10.0.0.0/8', '10.1.0.0/16'] }],
  ['FL-27', ['--ipvs-min-sync-period=0'], {}, 'ipvs'],
  ['FL-27 given', ['--ipvs-min-sync-period=5s'], { 'ipvs.minSyncPeriod': '5s' }, 'ipvs'],
  ['FL-28', ['--ipvs-scheduler=sh'], { 'ipvs.scheduler': 'sh' }],
  ['FL-29', ['--ipvs-strict-arp'], { 'ipvs.strictARP': true }],
  ['FL-30', ['--ipvs-sync-period=1m', '--ipvs-min-sync-period=0'], { 'ipvs.syncPeriod': '1m0s' }, 'ipvs'],
  ['FL-61 nftables', ['--ipvs-sync-period=1m', '--ipvs-min-sync-period=2s'], {}],
  ['FL-31 tcp', ['--ipvs-tcp-timeout=1s'], { 'ipvs.tcpTimeout': '1s' }],
  ['FL-31 tcpfin', ['--ipvs-tcpfin-timeout=1s'], { 'ipvs.tcpFinTimeout': '1s' }],
  ['FL-31 udp', ['--ipvs-udp-timeout=1s'], { 'ipvs.udpTimeout': '1s' }],
  ['FL-32', ['--kube-api-burst=3'], { 'clientConnection.burst': 3 }],
  ['FL-32 zero', ['--kube-api-burst=0'], {}],
  ['FL-33', ['--kube-api-content-type=application/json'], { 'clientConnection.contentType': 'application/json' }],
  ['FL-33 empty', ['--kube-api-content-type='], { 'clientConnection.contentType': 'application/json' }],
  ['FL-34', ['--kube-api-qps=-1'], { 'clientConnection.qps': -1 }],
  ['FL-35', ['--kubeconfig=/k'], { 'clientConnection.kubeconfig': '/k' }],
  ['FL-36', ['--log-flush-frequency=1s'], { 'logging.flushFrequency': '1s' }],
  [
    'FL-37 json',
    ['--feature-gates=LoggingAlphaOptions=true', '--log-json-split-stream', '--log-json-info-buffer-size=64Ki'],
    {
      featureGates: { LoggingAlphaOptions: true },
      'logging.options.json.splitStream': true,
      'logging.options.json.infoBufferSize': '64Ki',
    },
  ],
  [
    'FL-37 text',
    ['--feature-gates=LoggingAlphaOptions=true', '--log-text-split-stream', '--log-text-info-buffer-size=1'],
    {
      featureGates: { LoggingAlphaOptions: true },
      'logging.options.text.splitStream': true,
      'logging.options.text.infoBufferSize': '1',
    },
  ],
  ['FL-38', ['--logging-format=json'], { 'logging.format': 'json' }],
  ['FL-39', ['--masquerade-all'], { 'iptables.masqueradeAll': true }, 'iptables'],
  ['FL-39 ipvs', ['--masquerade-all', '--ipvs-min-sync-period=0'], { 'iptables.masqueradeAll': true }, 'ipvs'],
  ['FL-39 nftables', ['--masquerade-all'], { 'nftables.masqueradeAll': true }],
  ['FL-41', ['--metrics-bind-address=[::1]:80'], { metricsBindAddress: '[::1]:80' }],
  ['FL-41 bare', ['--metrics-bind-address=::1'], { metricsBindAddress: '[::1]:10249' }],
  ['FL-63 metrics', ['--metrics-bind-address='], {}],
  ['FL-43', ['--nodeport-addresses=10.0.0.0/8'], { nodePortAddresses: ['10.0.0.0/8'] }],
  ['FL-43 empty', ['--nodeport-addresses='], { nodePortAddresses: [] }, 'iptables'],
  ['FL-43 empty, nftables', ['--nodeport-addresses='], {}],
  ['FL-44', ['--oom-score-adj=0'], { oomScoreAdj: 0 }],
  ['FL-45', ['--pod-bridge-interface=cbr0'], { 'detectLocal.bridgeInterface': 'cbr0' }],
  ['FL-46', ['--pod-interface-name-prefix=veth'], { 'detectLocal.interfaceNamePrefix': 'veth' }],
  ['FL-47', ['--profiling'], { enableProfiling: true }],
  ['FL-48 by our name', ['--mode=nftables'], {}],
  ['FL-49', ['--show-hidden-metrics-for-version=1.36'], { showHiddenMetricsForVersion: '1.36' }],
  ['FL-50 v', ['-v', '3'], { 'logging.verbosity': 3 }],
  [
    'FL-50 vmodule',
    ['--vmodule=a*=1,b=2'],
    {
      'logging.vmodule': [
        { filePattern: 'a*', verbosity: 1 },
        { filePattern: 'b', verbosity: 2 },
      ],
    },
  ],
  ['FL-64', ['--bind-address=::'], { bindAddress: '::' }],
];

/** Every field of `after` that is not as in `before`, by its path. */
function changes(before: object, after: object, path = ''): Readonly<Record<string, unknown>> {
  const old = new Map<string, unknown>(Object.entries(before));
  const found: Record<string, unknown> = {};
  for (const [key, value] of Object.entries(after) as [string, unknown][]) {
    const was = old.get(key);
    if (JSON.stringify(was) === JSON.stringify(value)) continue;
    const isSection = key !== 'featureGates' && [was, value].every((part) => part?.constructor === Object);
    if (isSection) Object.assign(found, changes(was as object, value as object, `${path}${key}.`));
    else found[path + key] = value;
  }
  return found;
}

/** Undoes what every document has undergone, which is not the flag's doing. */
function comparable(document: KubeProxyConfiguration, mode: string): KubeProxyConfiguration {
  const periods = (section: 'iptables' | 'ipvs' | 'nftables'): object =>
    section === mode
      ? {}
      : { syncPeriod: DEFAULTS[section].syncPeriod, minSyncPeriod: DEFAULTS[section].minSyncPeriod };
  const { iptables, ipvs, nftables } = document;
  const isDefault = JSON.stringify(document.nodePortAddresses) === '["primary"]';
  return {
    ...document,
    mode: '',
    iptables: { ...iptables, ...periods('iptables') },
    ipvs: { ...ipvs, ...periods('ipvs') },
    nftables: { ...nftables, ...periods('nftables') },
    detectLocalMode: document.detectLocalMode === 'ClusterCIDR' ? '' : document.detectLocalMode,
    nodePortAddresses: isDefault ? null : document.nodePortAddresses,
  };
}

for (const [id, argv, expected, mode = 'nftables'] of ROWS) {
  t.test(`flags ${id}: ${argv.join(' ')} (${mode})`, (t) => {
    // A mode that cannot run yet can be written.
    const { document } = loaded([
      `--proxy-mode=${mode}`,
      ...argv,
      ...(mode === 'nftables' ? [] : ['--write-config-to=x']),
    ]);
    t.same(changes(DEFAULTS, comparable(document, mode)), expected);
    t.equal(document.mode, mode);
    t.end();
  });
}

t.test('FL-01 to FL-53: every flag there is, and what each counts as when it is not given', (t) => {
  const peers = {
    'bind-address': '0.0.0.0',
    'bind-address-hard-fail': 'false',
    'boot-id-file': '/proc/sys/kernel/random/boot_id',
    'machine-id-file': '/etc/machine-id,/var/lib/dbus/machine-id',
    cleanup: 'false',
    'cluster-cidr': '',
    config: '',
    'config-sync-period': '15m0s',
    'conntrack-max-per-core': '32768',
    'conntrack-min': '131072',
    'conntrack-tcp-be-liberal': 'false',
    'conntrack-tcp-timeout-close-wait': '1h0m0s',
    'conntrack-tcp-timeout-established': '24h0m0s',
    'conntrack-udp-timeout': '0s',
    'conntrack-udp-timeout-stream': '0s',
    'detect-local-mode': '',
    'feature-gates': '',
    'healthz-bind-address': '0.0.0.0:10256',
    'healthz-port': '10256',
    'hostname-override': '',
    'init-only': 'false',
    'iptables-localhost-nodeports': 'true',
    'iptables-masquerade-bit': '14',
    'iptables-min-sync-period': '0s',
    'iptables-sync-period': '30s',
    'ipvs-exclude-cidrs': '[]',
    'ipvs-min-sync-period': '0s',
    'ipvs-scheduler': '',
    'ipvs-strict-arp': 'false',
    'ipvs-sync-period': '30s',
    'ipvs-tcp-timeout': '0s',
    'ipvs-tcpfin-timeout': '0s',
    'ipvs-udp-timeout': '0s',
    'kube-api-burst': '10',
    'kube-api-content-type': 'application/vnd.kubernetes.protobuf',
    'kube-api-qps': '5',
    kubeconfig: '',
    'log-flush-frequency': '5s',
    'log-json-info-buffer-size': '0',
    'log-json-split-stream': 'false',
    'log-text-info-buffer-size': '0',
    'log-text-split-stream': 'false',
    'logging-format': 'text',
    'masquerade-all': 'false',
    master: '',
    'metrics-bind-address': '127.0.0.1:10249',
    'metrics-port': '10249',
    'nodeport-addresses': '[]',
    'oom-score-adj': '-999',
    'pod-bridge-interface': '',
    'pod-interface-name-prefix': '',
    profiling: 'false',
    'proxy-mode': '',
    'show-hidden-metrics-for-version': '',
    v: '0',
    vmodule: '',
    version: 'false',
    'write-config-to': '',
    'windows-service': 'false',
    'source-vip': '',
    'network-name': '',
    'enable-dsr': 'false',
    'root-hnsendpoint-name': 'cbr0',
    'forward-healthcheck-vip': 'false',
  };
  const ours = {
    'config-dir': '',
    mode: '',
    manifests: '[]',
    'manifests-header': '[]',
    'manifests-header-file': '[]',
    'manifests-ca-file': '[]',
    'manifests-cert-file': '[]',
    'manifests-key-file': '[]',
    'file-check-frequency': '900ms',
    'http-check-frequency': '10s',
    'iptables-flavor': 'auto',
    'bootstrap-kubeconfig': '',
    'rotate-certificates': 'false',
    'signer-name': 'kubernetes.io/kube-apiserver-client',
    'status-socket': '/run/pointsman/status.sock',
    'tracing-config-file': '',
    'egress-selector-config-file': '',
    'event-qps': '0.1',
    'event-burst': '25',
    'event-rate-limit-config': '',
    'metrics-tls': 'false',
    'tls-cert-file': '',
    'tls-private-key-file': '',
    'cert-dir': '/var/lib/pointsman/pki',
    'tls-cipher-suites': '[]',
    'tls-min-version': '',
    'tls-sni-cert-key': '[]',
    'client-ca-file': '',
    'anonymous-auth': 'true',
    'authentication-token-webhook': 'false',
    'authentication-token-webhook-cache-ttl': '2m0s',
    'change-log-maxage': '0',
    'change-log-maxbackup': '0',
    'change-log-maxsize': '0',
    'change-log-path': '',
    'session-affinity-ipv6-prefix': '128',
    balance: 'random',
    'balance-slots-max': '262144',
    'external-ips-in-cluster-ranges': 'false',
    'reset-removed-endpoints': 'true',
    'service-telemetry': 'false',
    'service-telemetry-endpoints': 'false',
    'service-telemetry-max': '1000',
    'connect-retry': '1s',
    'dns-retry': '4s',
    'service-frontends-max': '10000',
    'service-entries-max': '100000',
    'audit-log-format': 'json',
    'audit-log-maxage': '0',
    'audit-log-maxbackup': '0',
    'audit-log-maxsize': '0',
    'audit-log-mode': 'batch',
    'audit-log-path': '',
    'audit-policy-file': '',
    'authentication-config': '',
    'authorization-mode': 'AlwaysAllow',
    'authorization-webhook-cache-authorized-ttl': '5m0s',
    'authorization-webhook-cache-unauthorized-ttl': '30s',
    'authorization-config': '',
  };
  t.same(Object.fromEntries(FLAGS.map(({ name, initial }) => [name, initial])), { ...peers, ...ours });
  t.end();
});

t.test('a flag with the default as its value changes nothing', (t) => {
  const plain = loaded(['--proxy-mode=nftables']);
  for (const { name, initial, type, platform } of CONFIGURATION_FLAGS) {
    if (platform !== undefined) continue;
    // Not given is not the same as empty, and the value of mode iptables not the default of section ipvs.
    if (['proxy-mode', 'nodeport-addresses', 'ipvs-min-sync-period', 'cluster-cidr'].includes(name)) continue;
    const value = type === 'words' ? '' : initial;
    const given = loaded(['--proxy-mode=nftables', `--${name}=${value}`]);
    t.strictSame(given.config, plain.config, name);
    t.same(given.warnings, [], name);
  }
  t.end();
});
