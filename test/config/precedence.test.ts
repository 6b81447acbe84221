import t from 'tap';
import { FLAGS } from '../../src/config/flag-table.js';
import { parseCommandLine } from '../../src/config/flags.js';
import { SECURED_FLAGS } from '../../src/config/secured-flags.js';
import { address } from '../support/rows.js';
import { failure, fromFile, load, loaded, WINDOWS } from './load-from.js';

t.test('CL-40: a flag that --config replaces is reported, and no other', (t) => {
  const values: Readonly<Record<string, string>> = {
    bool: 'true',
    int32: '1',
    float32: '1',
    string: 'x',
    duration: '1s',
    quantity: '0',
    address: '10.0.0.1',
    'address-port': '10.0.0.1:1',
    words: '10.0.0.0/8',
    gates: 'A=true',
    vmodule: 'a=1',
  };
  const counting = [
    'cleanup',
    'hostname-override',
    'init-only',
    'log-flush-frequency',
    'log-json-info-buffer-size',
    'log-json-split-stream',
    'log-text-info-buffer-size',
    'log-text-split-stream',
    'logging-format',
    'master',
    'v',
    'vmodule',
    'write-config-to',
  ];
  const neither: readonly string[] = [
    'config',
    'config-dir',
    'mode',
    'manifests',
    'manifests-header',
    'manifests-header-file',
    'manifests-ca-file',
    'manifests-cert-file',
    'manifests-key-file',
    'file-check-frequency',
    'http-check-frequency',
    'status-socket',
    'tracing-config-file',
    'egress-selector-config-file',
    'event-qps',
    'event-burst',
    'event-rate-limit-config',
    'change-log-path',
    'change-log-maxsize',
    'change-log-maxbackup',
    'change-log-maxage',
    'session-affinity-ipv6-prefix',
    'balance',
    'balance-slots-max',
    'external-ips-in-cluster-ranges',
    'reset-removed-endpoints',
    'service-telemetry',
    'service-telemetry-endpoints',
    'service-telemetry-max',
    'connect-retry',
    'dns-retry',
    'service-frontends-max',
    'service-entries-max',
    'from',
    'node',
    'namespace',
    'selector',
    'output',
    'version',
    'heap-snapshot',
    'listen',
    'watch',
    'iptables-flavor',
    'boot-id-file',
    'machine-id-file',
    ...SECURED_FLAGS.map(({ name }) => name),
    'bootstrap-kubeconfig',
    'rotate-certificates',
    'signer-name',
  ];
  const gates = 'mode: nftables\nfeatureGates: {LoggingAlphaOptions: true}';
  const plain = fromFile(gates);
  for (const { name, type, remark } of FLAGS) {
    if (neither.includes(name) || remark === 'has no effect on Linux') continue;
    const value = name === 'logging-format' ? 'json' : (values[type] ?? '');
    const { config, warnings, document } = fromFile(gates, [`--${name}=${value}`]);
    const ignored = warnings.filter((warning) => warning === `--${name}: is ignored because --config is given`);
    t.equal(ignored.length, counting.includes(name) ? 0 : 1, name);
    if (counting.includes(name)) continue;
    t.strictSame(config, plain.config, name);
    t.strictSame(document, plain.document, name);
  }
  t.end();
});

t.test("CL-40: logging flags win over the file's, vmodule entries come before its", (t) => {
  const body =
    'mode: nftables\nfeatureGates: {LoggingAlphaOptions: true}\nlogging: {format: json, flushFrequency: 1s, verbosity: 1, options: {text: {infoBufferSize: 5}}}';
  const { config } = fromFile(body, [
    '--logging-format=text',
    '--log-flush-frequency=2s',
    '--log-text-split-stream',
    '-v=2',
    '--vmodule=a=1',
  ]);
  t.same(config.logging, {
    format: 'text',
    verbosity: 2,
    vmodule: [{ filePattern: 'a', verbosity: 1 }],
    splitStream: true,
    infoBufferSize: 5,
    flushFrequency: 2000,
  });
  const merged = fromFile('logging: {vmodule: [{filePattern: a, verbosity: 9}, {filePattern: b, verbosity: 8}]}', [
    '--vmodule=c=1,a=2',
    '--vmodule=d=3',
  ]);
  t.same(
    merged.config.logging.vmodule.map(({ filePattern, verbosity }) => `${filePattern}=${verbosity}`),
    ['c=1', 'a=2', 'd=3', 'a=9', 'b=8'],
  );
  const replaced = fromFile(
    'mode: nftables\nhostnameOverride: a\nlogging: {verbosity: 3, vmodule: [{filePattern: a, verbosity: 1}]}',
    ['--hostname-override=B', '-v=4', '--vmodule=a=2', '--logging-format=text'],
  );
  t.same(replaced.warnings, [
    'KubeProxyConfiguration.hostnameOverride: "a" has no effect because --hostname-override is given',
    'KubeProxyConfiguration.logging.verbosity: 3 has no effect because --v is given',
  ]);
  const same = fromFile('mode: nftables\nhostnameOverride: b\nlogging: {verbosity: 0}', [
    '--hostname-override=b',
    '-v=4',
  ]);
  t.same(same.warnings, [], 'the same, and what is a default anyway');
  t.equal(
    failure(() => fromFile('mode: nftables', ['--log-text-split-stream'])).message,
    'failed validate: KubeProxyConfiguration.logging.options.text.splitStream: Forbidden: needs feature gate LoggingAlphaOptions',
  );
  t.end();
});

t.test('FL-19, FL-42, FL-62: deprecated port flags set the addresses', (t) => {
  const deprecated = (name: string): string => `--${name}-port: is deprecated, use --${name}-bind-address`;
  const unused = (name: string): string => `--${name}-port: has no effect because --${name}-bind-address has a port`;
  const rows: readonly (readonly [readonly string[], string | null, readonly string[]])[] = [
    [['--healthz-port=0'], null, [deprecated('healthz')]],
    [['--healthz-port=0', '--healthz-bind-address=10.0.0.1:80'], null, [deprecated('healthz')]],
    [['--healthz-port=99'], '0.0.0.0:10256', [deprecated('healthz'), unused('healthz')]],
    [['--healthz-port=10256'], '0.0.0.0:10256', [deprecated('healthz')]],
    [['--healthz-port=99', '--healthz-bind-address=10.0.0.1'], '10.0.0.1:99', [deprecated('healthz')]],
    [['--healthz-port=99', '--healthz-bind-address=fd00::1'], 'fd00::1:99', [deprecated('healthz')]],
    [
      ['--healthz-port=99', '--healthz-bind-address=10.0.0.1:80'],
      '10.0.0.1:80',
      [deprecated('healthz'), unused('healthz')],
    ],
    [['--healthz-port=0', '--write-config-to=x'], null, [deprecated('healthz')]],
    [['--healthz-bind-address=::1', '--write-config-to=x'], '::1:10256', []],
    [['--metrics-port=99', '--metrics-bind-address=10.0.0.1'], '0.0.0.0:10256', [deprecated('metrics')]],
  ];
  for (const [argv, healthz, warnings] of rows) {
    const result = loaded(['--proxy-mode=nftables', ...argv]);
    const { address, port } = result.config.healthz ?? {};
    t.equal(address === undefined ? null : `${address}:${port}`, healthz, argv.join(' '));
    t.same(result.warnings, warnings, argv.join(' '));
  }
  t.same(loaded(['--metrics-port=99', '--metrics-bind-address=10.0.0.1']).config.metrics, {
    address: '10.0.0.1',
    port: 99,
  });
  const problems = (argv: readonly string[]): readonly string[] => failure(() => loaded(argv)).problems;
  t.same(problems(['--metrics-port=0']), [
    'KubeProxyConfiguration.metricsBindAddress: Invalid value: "": must be IP:port',
  ]);
  t.same(problems(['--healthz-port=70000', '--healthz-bind-address=::1']), [
    'KubeProxyConfiguration.healthzBindAddress: Invalid value: "[::1]:70000": must be a valid port',
  ]);
  const beside = fromFile('mode: nftables', ['--healthz-port=0', '--metrics-port=0']);
  t.same(beside.config.healthz, { address: '0.0.0.0', port: 10256 });
  t.same(beside.warnings, [
    deprecated('healthz'),
    '--healthz-port: is ignored because --config is given',
    deprecated('metrics'),
    '--metrics-port: is ignored because --config is given',
  ]);
  t.end();
});

t.test('FL-53: on Windows, flags set fields of winkernel, and --config replaces them', (t) => {
  const flags = ['--network-name=n', '--source-vip=10.0.0.1', '--enable-dsr', '--forward-healthcheck-vip'];
  const { config, document, warnings } = loaded(flags, {}, WINDOWS);
  const fields = { networkName: 'n', enableDSR: true, rootHnsEndpointName: 'cbr0', forwardHealthCheckVip: true };
  t.equal(config.mode, 'kernelspace');
  t.strictSame(document.winkernel, { ...fields, sourceVip: '10.0.0.1' });
  t.strictSame(config.kernelspace, {
    ...fields,
    healthzPort: 10_256,
    sourceVip: address('10.0.0.1'),
    sourceVipEndpoint: null,
    network: { by: 'name', text: 'n' },
  });
  t.same(warnings, ['KubeProxyConfiguration.mode: is not set, using kernelspace']);
  const ofFile = fromFile('winkernel: {networkName: f}', ['--network-name=n'], WINDOWS);
  t.equal(ofFile.config.kernelspace?.networkName, 'f');
  t.ok(ofFile.warnings.includes('--network-name: is ignored because --config is given'));
  t.equal(loaded(['--root-hnsendpoint-name=x'], {}, WINDOWS).config.kernelspace?.rootHnsEndpointName, 'x');
  t.end();
});

t.test('FL-53: Windows flags give a warning elsewhere and change nothing', (t) => {
  const flags = [
    'source-vip=10.0.0.1',
    'network-name=n',
    'enable-dsr',
    'root-hnsendpoint-name=x',
    'forward-healthcheck-vip=false',
  ];
  const plain = loaded(['--proxy-mode=nftables']);
  for (const flag of flags) {
    const { document, warnings } = loaded(['--proxy-mode=nftables', `--${flag}`]);
    t.same(warnings, [`--${flag.replace(/=.*/, '')}: has no effect on Linux`]);
    t.strictSame(document, plain.document);
  }
  const service = loaded(['--proxy-mode=nftables', '--windows-service']);
  t.same(service.warnings, ['KubeProxyConfiguration.windowsRunAsService: has no effect on Linux']);
  t.strictSame(service.document, { ...plain.document, windowsRunAsService: true });
  t.end();
});

t.test('values that decode and fail validation are refused', (t) => {
  const rows: readonly (readonly [string, string])[] = [
    ['--proxy-mode=x', 'mode: Invalid value: "x"'],
    ['--detect-local-mode=x', 'detectLocalMode: Unsupported value: "x"'],
    ['--config-sync-period=0', 'configSyncPeriod: Invalid value: "0s": must be greater than 0'],
    ['--iptables-sync-period=0', 'nftables.syncPeriod: Invalid value: "0s": must be greater than 0'],
    ['--cluster-cidr=10.0.0.0/8, fd00::/64', 'clusterCIDR[1]: Invalid value: " fd00::/64"'],
    ['--oom-score-adj=2000', 'oomScoreAdj: Invalid value: 2000'],
    ['--kube-api-burst=-1', 'clientConnection.burst: Invalid value: -1'],
    ['--nodeport-addresses=primary,loopback', `nodePortAddresses[1]: Invalid value: "loopback"`],
    ['--show-hidden-metrics-for-version=1.35', 'showHiddenMetricsForVersion: Invalid value: "1.35"'],
    ['--logging-format=xml', 'logging.format: Unsupported value: "xml"'],
    ['--feature-gates=NFTablesProxyMode=false', 'featureGates: Invalid value: cannot set feature gate'],
    ['--healthz-bind-address=10.0.0.1:0', ''],
  ];
  for (const [argument, problem] of rows) {
    if (problem === '') {
      t.equal(failure(() => loaded([argument])).code, 'CONFIG_USAGE', argument);
      continue;
    }
    t.match(
      failure(() => loaded(['--proxy-mode=nftables', argument])).problems[0],
      `KubeProxyConfiguration.${problem}`,
    );
  }
  t.end();
});

t.test('the command line of existing DaemonSets is accepted', (t) => {
  const argv = ['--config=/var/lib/kube-proxy/config.conf', '--hostname-override=Node-1'];
  t.equal(parseCommandLine(argv).given.size, 2);
  // What managed clusters run without a file.
  const flags = load(
    [
      '--v=2',
      '--iptables-sync-period=20s',
      '--nodeport-addresses=$(NODE_IP)/32',
      '--conntrack-max-per-core=0',
      '--master=https://10.0.0.1',
      '--kubeconfig=/var/lib/kube-proxy/kubeconfig',
      '--cluster-cidr=10.44.0.0/14',
      '--oom-score-adj=-998',
      '--feature-gates=',
      '--profiling=false',
      '--metrics-bind-address=0.0.0.0',
    ].map((argument) => argument.replace('$(NODE_IP)', '10.1.1.1')),
  );
  if (!('config' in flags)) throw new Error(flags.command);
  t.match(flags.config, {
    syncPeriod: 20_000,
    kubernetes: { master: 'https://10.0.0.1', kubeconfig: '/var/lib/kube-proxy/kubeconfig' },
    metrics: { address: '0.0.0.0', port: 10249 },
    nodePortAddresses: ['10.1.1.1/32'],
    oomScoreAdj: -998,
  });
  t.same(flags.warnings, [
    'KubeProxyConfiguration.mode: is not set, using iptables; from Kubernetes 1.40 the default is nftables: set the mode to keep it',
  ]);
  t.end();
});

t.test('an empty --cluster-cidr is refused where it would be used, as by kube-proxy', (t) => {
  t.same(failure(() => loaded(['--cluster-cidr='])).problems, [
    '--cluster-cidr: Invalid value: "": must be one CIDR, or one per IP family',
  ]);
  t.equal(loaded(['--cluster-cidr=', '--detect-local-mode=NodeCIDR']).document.clusterCIDR, '');
  t.equal(fromFile('clusterCIDR: ""', ['--cluster-cidr=']).document.clusterCIDR, '');
  t.end();
});
