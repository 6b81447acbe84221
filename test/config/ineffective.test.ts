import t from 'tap';
import { failure, fromFile, HEADER, KUBEADM, load, loaded, NO_PODS, WINDOWS } from './load-from.js';

t.test('settings without effect in mode kernelspace are reported', (t) => {
  const warnings = (body: string): readonly string[] =>
    fromFile(body, [], WINDOWS).warnings.filter((line) => !line.includes('.mode: is not set'));
  t.same(warnings('iptables: {syncPeriod: 7s, minSyncPeriod: 2s}\nwinkernel: {networkName: a, enableDSR: true}'), []);
  const none = (field: string): string => `KubeProxyConfiguration.${field}: has no effect in mode kernelspace`;
  t.same(
    warnings(
      'nodePortAddresses: [primary]\ndetectLocalMode: NodeCIDR\nclusterCIDR: 10.0.0.0/8\nconntrack: {min: 5}\niptables: {masqueradeAll: true}',
    ),
    [
      none('detectLocalMode'),
      none('clusterCIDR'),
      none('conntrack.min'),
      none('nodePortAddresses'),
      none('iptables.masqueradeAll'),
    ],
  );
  t.end();
});

t.test('a prefix that names loopback is reported in mode nftables without the feature gate', (t) => {
  const warnings = (addresses: string, more = ''): readonly string[] =>
    fromFile(`mode: nftables\nnodePortAddresses: [${addresses}]\n${more}`).warnings;
  for (const named of ['primary, localhost', '127.0.0.0/8', '"::1/128"'])
    t.match(warnings(named), [/nodePortAddresses: node ports answer on loopback in mode nftables only with/], named);
  for (const other of ['primary', 'all', '10.0.0.0/8', '0.0.0.0/0']) t.same(warnings(other), [], other);
  t.same(warnings('localhost', 'featureGates: {KubeProxyNFTablesLocalhostNodePorts: true}'), []);
  t.end();
});

t.test('in mode ipvs, schedulers that refuse connections or use one endpoint are reported', (t) => {
  const warnings = (mode: string, scheduler: string): readonly string[] =>
    fromFile(`mode: ${mode}\nipvs: {scheduler: ${scheduler}}`).warnings;
  for (const [scheduler, reported] of [
    ['ovf', /most connections are refused$/],
    ['fo', /one endpoint of a Service gets all connections$/],
    ['dh', /they are refused while it drains$/],
    ['sh', /clients of an endpoint that drains are refused/],
  ] as const) {
    t.match(warnings('ipvs', scheduler), [/^KubeProxyConfiguration\.ipvs\.scheduler: scheduler "/], scheduler);
    t.match(warnings('ipvs', scheduler), [reported], scheduler);
    t.notMatch(warnings('iptables', scheduler).join(), /refused|all connections/, 'another mode has none');
  }
  for (const scheduler of ['""', 'rr', 'wrr', 'lc', 'wlc', 'sed', 'nq', 'mh']) t.same(warnings('ipvs', scheduler), []);
  t.end();
});

t.test('mode nftables names the annotation that replaces hashing schedulers', (t) => {
  const warnings = (mode: string, scheduler: string): readonly string[] =>
    fromFile(`mode: ${mode}\nipvs: {scheduler: ${scheduler}}`).warnings;
  for (const scheduler of ['mh', 'sh'])
    t.match(warnings('nftables', scheduler), [
      /^KubeProxyConfiguration\.ipvs\.scheduler: has no effect in mode nftables; in the place of "[ms]h": --balance=hash=address for all Services, or their annotation pointsman\.dev\/balance$/,
    ]);
  t.notMatch(warnings('nftables', 'lc').join(), /--balance/);
  t.notMatch(warnings('iptables', 'mh').join(), /--balance/);
  t.end();
});

t.test('settings without effect are reported, and only when set', (t) => {
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
  t.same(
    fromFile('mode: ipvs\niptables: {masqueradeAll: true, masqueradeBit: 1, localhostNodePorts: false}').warnings,
    ['KubeProxyConfiguration.iptables.localhostNodePorts: has no effect in mode ipvs'],
  );
  const silent = [
    'clientConnection: {qps: 5, burst: 0, kubeconfig: null}',
    'clientConnection: {kubeconfig: /k}\nconfigSyncPeriod: 1m',
    'metricsBindAddress: 0.0.0.0',
    'clientConnection: {kubeconfig: /k, qps: 6, burst: 7, contentType: application/json, acceptContentTypes: application/json}',
    'enableProfiling: true',
    'featureGates: {LoggingAlphaOptions: true}\nlogging: {flushFrequency: 1s, options: {text: {splitStream: true, infoBufferSize: 1}}}',
    'bindAddress: "::1"',
    'iptables: {masqueradeAll: false, masqueradeBit: null, minSyncPeriod: 0s}',
    'ipvs: {excludeCIDRs: []}',
    'logging: {flushFrequency: 5000000000}',
    'featureGates: {AllAlpha: false, AllBeta: true, NFTablesProxyMode: true, WatchListClient: true}',
  ];
  for (const body of silent) t.same(fromFile(`mode: nftables\n${body}`).warnings, [], body);
  t.same(fromFile('mode: nftables\nlogging: {flushFrequency: 1s}').warnings, [
    'KubeProxyConfiguration.logging.flushFrequency: has no effect, log lines are written unbuffered',
  ]);
  t.same(fromFile('mode: nftables\nshowHiddenMetricsForVersion: "1.36"').warnings, [
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

t.test('fields that another field disables, and unused fields, are reported', (t) => {
  const detection = (mode: string): string => `has no effect with detectLocalMode ${mode}`;
  const fromManifests = 'has no effect, everything is read from --manifests';
  const rows: readonly (readonly [string, readonly string[]])[] = [
    ['portRange: 1-2', ['portRange: has no effect']],
    ['detectLocalMode: NodeCIDR\nclusterCIDR: 10.0.0.0/8', [`clusterCIDR: ${detection('NodeCIDR')}`]],
    ['detectLocal: {bridgeInterface: cbr0}', [`detectLocal.bridgeInterface: ${detection('ClusterCIDR')}`]],
    [
      'detectLocalMode: BridgeInterface\ndetectLocal: {bridgeInterface: cbr0, interfaceNamePrefix: veth}',
      [`detectLocal.interfaceNamePrefix: ${detection('BridgeInterface')}`],
    ],
    ['clientConnection: {qps: 7, burst: 0}', [`clientConnection.qps: ${fromManifests}`]],
    ['clientConnection: {acceptContentTypes: "*/*"}', [`clientConnection.acceptContentTypes: ${fromManifests}`]],
    ['configSyncPeriod: 1m', [`configSyncPeriod: ${fromManifests}`]],
    ['clientConnection: {kubeconfig: /k, qps: 7}\nconfigSyncPeriod: 1m', []],
    [
      'clientConnection: {kubeconfig: /k, qps: -1, burst: 50}',
      ['clientConnection.burst: has no effect, as a negative qps limits nothing'],
    ],
    ['clientConnection: {kubeconfig: /k, qps: -1}', []],
    ['conntrack: {maxPerCore: 0, min: 5}', ['conntrack.min: has no effect with maxPerCore 0']],
    ['conntrack: {maxPerCore: 0}', []],
    [
      'conntrack: {udpTimeout: 1500ms, udpStreamTimeout: 1ms, tcpCloseWaitTimeout: 2s}',
      [
        'conntrack.udpTimeout: the kernel takes whole seconds, of 1.5s and at least 1',
        'conntrack.udpStreamTimeout: the kernel takes whole seconds, of 1ms and at least 1',
      ],
    ],
  ];
  t.same(fromFile('mode: ipvs\nipvs: {scheduler: lc, strictARP: true, tcpTimeout: 1500ms, udpTimeout: 2s}').warnings, [
    'KubeProxyConfiguration.ipvs.tcpTimeout: the kernel takes whole seconds, of 1.5s and at least 1',
  ]);
  t.same(fromFile('mode: ipvs', ['--iptables-flavor=legacy']).warnings, [], 'the mode has rules too');
  for (const [body, expected] of rows)
    t.same(
      fromFile(`mode: nftables\n${body}`).warnings,
      expected.map((warning) => `KubeProxyConfiguration.${warning}`),
      body,
    );
  const warnings = (argv: readonly string[]): readonly string[] => {
    const result = load(['--manifests=m', '--mode=nftables', ...argv]);
    return 'warnings' in result ? result.warnings : [];
  };
  t.same(warnings([]), [NO_PODS]);
  t.same(warnings(['--cluster-cidr=10.0.0.0/8']), []);
  t.same(warnings(['--masquerade-all']), [], 'all is masqueraded anyway');
  t.same(warnings(['--detect-local-mode=NodeCIDR']), []);
  const local = '--detect-local-mode=NodeCIDR';
  t.same(warnings([local, '--iptables-flavor=legacy', '--file-check-frequency=1s', '--http-check-frequency=1s']), [
    '--iptables-flavor: has no effect in mode nftables',
    '--http-check-frequency: has no effect without a URL in --manifests',
  ]);
  t.same(warnings([local, '--session-affinity-ipv6-prefix=64']), [], 'in mode nftables');
  t.same(warnings([local, '--balance=hash=address', '--balance-slots-max=1000']), [], 'in mode nftables');
  t.same(warnings([local, '--egress-selector-config-file=/nowhere']), [
    '--egress-selector-config-file: has no effect without an API server to read from',
  ]);
  t.same(warnings([local, '--egress-selector-config-file=/nowhere', '--master=host']), []);
  const details = ['--service-telemetry-endpoints', '--service-telemetry-max=9'];
  t.same(
    warnings([local, ...details]),
    ['endpoints', 'max'].map((flag) => `--service-telemetry-${flag}: has no effect without --service-telemetry`),
  );
  t.same(warnings([local, '--service-telemetry', ...details]), []);
  t.same(warnings([local, '--event-qps=1', '--event-rate-limit-config=/nowhere']), [
    '--event-qps: has no effect without an API server to send events to',
    '--event-rate-limit-config: has no effect without an API server to send events to',
  ]);
  t.same(warnings([local, '--manifests=https://host/', '--http-check-frequency=1s']), []);
  t.end();
});

t.test('content types that cannot be decoded are refused', (t) => {
  const detail = 'must be application/vnd.kubernetes.protobuf or application/json';
  const rows: readonly (readonly [string, string])[] = [
    ['contentType: application/cbor', 'contentType: Invalid value: "application/cbor"'],
    ['contentType: "*/*"', 'contentType: Invalid value: "*/*"'],
    [
      'acceptContentTypes: "application/json, application/yaml"',
      'acceptContentTypes: Invalid value: "application/yaml"',
    ],
    ['acceptContentTypes: application/json;as=Table', 'acceptContentTypes: Invalid value: "application/json;as=Table"'],
  ];
  for (const [field, problem] of rows)
    t.same(failure(() => fromFile(`clientConnection: {${field}}`)).problems, [
      `KubeProxyConfiguration.clientConnection.${problem}: ${detail}`,
    ]);
  fromFile('clientConnection: {contentType: application/json, acceptContentTypes: "application/json;q=0.9, */*"}');
  t.end();
});

/** The warnings and clusterCIDR of kubeadm's two documents in a file. */
function beside(
  cluster: string,
  configuration = 'mode: nftables\n',
  version = 'v1beta4',
): readonly [string, readonly string[]] {
  const text = `apiVersion: kubeadm.k8s.io/${version}\nkind: ClusterConfiguration\n${cluster}\n---\n${HEADER}${configuration}`;
  const { document, warnings } = loaded(['--config=c'], { c: text });
  return [document.clusterCIDR, warnings];
}

t.test("kubeadm's ClusterConfiguration in the same file gives podSubnet, and contradictions are reported", (t) => {
  const [pods, services] = ['networking.podSubnet', 'networking.serviceSubnet'].map(
    (path) => `ClusterConfiguration.${path}`,
  );
  const ours = 'KubeProxyConfiguration.clusterCIDR';
  const used = (subnet: string): string => `${ours}: is not set, using ${subnet} of ${pods ?? ''}`;
  t.same(beside('networking: {podSubnet: 10.1.0.0/16}'), ['10.1.0.0/16', [used('10.1.0.0/16')]]);
  t.same(beside('networking: {podSubnet: 10.1.0.0/16}', 'mode: nftables\n', 'v1beta3')[0], '10.1.0.0/16');
  t.same(
    beside('networking: {podSubnet: 10.1.0.0/16}', 'mode: nftables\n', 'v1beta2')[0],
    '',
    'a version that is not read',
  );
  t.same(beside('networking: {podSubnet: 10.244.0.0/16}', KUBEADM.slice(HEADER.length))[1], [
    'KubeProxyConfiguration.mode: is not set, using iptables; from Kubernetes 1.40 the default is nftables: set the mode to keep it',
  ]);
  t.same(beside('networking: {podSubnet: 10.1.0.0/16}', 'mode: nftables\nclusterCIDR: 10.2.0.0/16'), [
    '10.2.0.0/16',
    [`${ours}: 10.2.0.0/16 counts, and not 10.1.0.0/16 of ${pods}`],
  ]);
  t.same(beside('proxy: {disabled: true}')[1], [
    'ClusterConfiguration.proxy.disabled: is true, which does not keep this program from running',
  ]);
  t.same(beside('proxy: {disabled: true}', 'mode: nftables\n', 'v1beta3')[1], [], 'it had no such field');
  t.same(beside('networking: {}', 'mode: nftables\ndetectLocalMode: NodeCIDR')[1], [
    `${pods}: is not set, so Nodes may have no podCIDRs, which detectLocalMode NodeCIDR needs`,
  ]);
  t.same(beside('networking: {podSubnet: 10.1.0.0/16}', 'mode: nftables\ndetectLocalMode: NodeCIDR'), ['', []]);

  const subnets = (pod: string, service: string): readonly string[] =>
    beside(`networking: {podSubnet: "${pod}", serviceSubnet: "${service}"}`)[1].filter((line) => line !== used(pod));
  t.same(subnets('10.1.0.0/16,fd00:1::/64', '10.96.0.0/12,fd00:2::/112'), []);
  t.same(subnets('10.1.0.0/16', '10.96.0.0/12,fd00:2::/112'), [
    `${pods}: has no IPv6, as ${services} has: such Services get no endpoints`,
  ]);
  t.same(subnets('fd00:1::/64,10.1.0.0/16', '10.96.0.0/12,fd00:2::/112'), [
    `${pods}: its first IP family is not the first of ${services}, the primary one`,
  ]);
  t.same(subnets('10.96.0.0/16', '10.96.0.0/12'), [`${pods}: 10.96.0.0/16 overlaps ${services}`]);

  for (const foreign of ['networking: 5', 'networking: {podSubnet: [a], serviceSubnet: 7}', 'proxy: [x]', '1: 2'])
    t.same(beside(foreign), ['', []], foreign);
  for (const subnet of ['x', '10.1.0.0/16,10.2.0.0/16', '10.1.0.0/16, fd00::/64']) {
    const [clusterCIDR, [warning = '']] = beside(`networking: {podSubnet: "${subnet}"}`);
    t.equal(clusterCIDR, '');
    t.ok(warning.startsWith(`${pods}: Invalid value: "${subnet}": is ignored`), warning);
  }
  t.end();
});

t.test('warnings about thousands of ignored fields stay short', (t) => {
  const names = Array.from({ length: 4000 }, (_, index) => `field${index}`);
  const bodies = [
    names.map((name) => `${name}: 1\n`).join(''),
    `featureGates: {${names.map((name) => `${name}: true`).join(',')}}`,
    `mode: nftables\n${names.map(() => '---\na: 1\n').join('')}`,
    `${'x'.repeat(60_000)}: 1`,
  ];
  for (const body of bodies) t.ok(fromFile(body).warnings.join().length < 6000);
  t.end();
});
