import t from 'tap';
import { decodeConfiguration } from '../../src/config/decode.js';
import type { Report } from '../../src/config/tables/report.js';
import { Mapping } from '../../src/config/yaml.js';
import { failure, fromFile, HEADER, KUBEADM, loaded } from './load-from.js';

t.test('CF-01 to CF-40: fields have the defaults of v1alpha1', (t) => {
  const found: Report[] = [];
  t.strictSame(
    decodeConfiguration(new Mapping([]), (each) => found.push(each)),
    {
      apiVersion: 'kubeproxy.config.k8s.io/v1alpha1',
      kind: 'KubeProxyConfiguration',
      featureGates: {},
      clientConnection: {
        kubeconfig: '',
        acceptContentTypes: '',
        contentType: 'application/vnd.kubernetes.protobuf',
        qps: 5,
        burst: 10,
      },
      logging: {
        format: 'text',
        flushFrequency: '5s',
        verbosity: 0,
        vmodule: [],
        options: {
          json: { splitStream: false, infoBufferSize: '0' },
          text: { splitStream: false, infoBufferSize: '0' },
        },
      },
      hostnameOverride: '',
      bindAddress: '0.0.0.0',
      healthzBindAddress: '0.0.0.0:10256',
      metricsBindAddress: '127.0.0.1:10249',
      bindAddressHardFail: false,
      enableProfiling: false,
      showHiddenMetricsForVersion: '',
      mode: '',
      iptables: {
        masqueradeBit: 14,
        masqueradeAll: false,
        localhostNodePorts: true,
        syncPeriod: '30s',
        minSyncPeriod: '0s',
      },
      ipvs: {
        syncPeriod: '30s',
        minSyncPeriod: '0s',
        scheduler: '',
        excludeCIDRs: null,
        strictARP: false,
        tcpTimeout: '0s',
        tcpFinTimeout: '0s',
        udpTimeout: '0s',
      },
      nftables: { masqueradeBit: 14, masqueradeAll: false, syncPeriod: '30s', minSyncPeriod: '0s' },
      winkernel: {
        networkName: '',
        sourceVip: '',
        enableDSR: false,
        rootHnsEndpointName: '',
        forwardHealthCheckVip: false,
      },
      detectLocalMode: '',
      detectLocal: { bridgeInterface: '', interfaceNamePrefix: '' },
      clusterCIDR: '',
      nodePortAddresses: null,
      oomScoreAdj: -999,
      conntrack: {
        maxPerCore: 32768,
        min: 131072,
        tcpEstablishedTimeout: '24h0m0s',
        tcpCloseWaitTimeout: '1h0m0s',
        tcpBeLiberal: false,
        udpTimeout: '0s',
        udpStreamTimeout: '0s',
      },
      configSyncPeriod: '15m0s',
      portRange: '',
      windowsRunAsService: false,
    },
  );
  t.same(found, []);
  t.end();
});

t.test('defaults depend on other fields, and explicit zeros count', (t) => {
  type Document = ReturnType<typeof fromFile>['document'];
  const rows: readonly (readonly [string, (document: Document) => unknown, unknown])[] = [
    ['bindAddress: "::"', (d) => [d.healthzBindAddress, d.metricsBindAddress], ['[::]:10256', '[::1]:10249']],
    [
      'bindAddress: 10.0.0.1',
      (d) => [d.healthzBindAddress, d.metricsBindAddress],
      ['0.0.0.0:10256', '127.0.0.1:10249'],
    ],
    ['healthzBindAddress: 10.0.0.1', (d) => d.healthzBindAddress, '10.0.0.1:10256'],
    ['healthzBindAddress: "fd00::1"', (d) => d.healthzBindAddress, '[fd00::1]:10256'],
    ['healthzBindAddress: 10.0.0.1:80', (d) => d.healthzBindAddress, '10.0.0.1:80'],
    ['healthzBindAddress: ""', (d) => d.healthzBindAddress, '0.0.0.0:10256'],
    ['metricsBindAddress: 0.0.0.0', (d) => d.metricsBindAddress, '0.0.0.0:10249'],
    [
      'clientConnection: {qps: 0, burst: 0, contentType: ""}',
      (d) => [d.clientConnection.qps, d.clientConnection.burst, d.clientConnection.contentType],
      [5, 10, 'application/vnd.kubernetes.protobuf'],
    ],
    ['clientConnection: {qps: 0.5, burst: 3}', (d) => [d.clientConnection.qps, d.clientConnection.burst], [0.5, 3]],
    ['configSyncPeriod: null', (d) => d.configSyncPeriod, '15m0s'],
    ['configSyncPeriod: 0s\noomScoreAdj: null', (d) => d.configSyncPeriod, '15m0s'],
    ['logging: {flushFrequency: 0}\niptables: {masqueradeBit: null}', (d) => d.logging.flushFrequency, '5s'],
    [
      'logging: {flushFrequency: null, format: ""}',
      (d) => [d.logging.flushFrequency, d.logging.format],
      ['5s', 'text'],
    ],
    ['logging: {flushFrequency: 1500000000}', (d) => d.logging.flushFrequency, '1.5s'],
    ['logging: {flushFrequency: 2s}', (d) => d.logging.flushFrequency, '2s'],
    ['mode: nftables\nnftables: {syncPeriod: "0", masqueradeBit: null}', (d) => d.nftables.syncPeriod, '30s'],
    ['mode: nftables\nnftables: {minSyncPeriod: 0s}', (d) => d.nftables.minSyncPeriod, '0s'],
    ['mode: nftables\nnftables: {minSyncPeriod: "0"}', (d) => d.nftables.minSyncPeriod, '0s'],
    ['mode: nftables\nnftables: {minSyncPeriod: null}', (d) => d.nftables.minSyncPeriod, '0s'],
    ['iptables: {minSyncPeriod: 0s}', (d) => d.iptables.minSyncPeriod, '0s'],
    ['iptables: {minSyncPeriod: 1ms}', (d) => d.iptables.minSyncPeriod, '1ms'],
    ['nftables: {masqueradeBit: 0}', (d) => d.nftables.masqueradeBit, 0],
    ['conntrack: {maxPerCore: 0, min: 0}', (d) => [d.conntrack.maxPerCore, d.conntrack.min], [0, 0]],
    [
      'conntrack: {tcpEstablishedTimeout: 0s, tcpCloseWaitTimeout: null}',
      (d) => [d.conntrack.tcpEstablishedTimeout, d.conntrack.tcpCloseWaitTimeout],
      ['0s', '1h0m0s'],
    ],
    ['oomScoreAdj: 0', (d) => d.oomScoreAdj, 0],
    ['oomScoreAdj: null', (d) => d.oomScoreAdj, -999],
    ['iptables: {localhostNodePorts: false}', (d) => d.iptables.localhostNodePorts, false],
    ['nodePortAddresses: null', (d) => d.nodePortAddresses, null],
    ['mode: nftables\nnodePortAddresses: null', (d) => d.nodePortAddresses, ['primary']],
    ['nodePortAddresses: []', (d) => d.nodePortAddresses, []],
    ['mode: nftables\nnodePortAddresses: []', (d) => d.nodePortAddresses, ['primary']],
    ['mode: nftables\nnodePortAddresses: [0.0.0.0/0]', (d) => d.nodePortAddresses, ['0.0.0.0/0']],
    ['detectLocalMode: ""', (d) => d.detectLocalMode, 'ClusterCIDR'],
    ['mode: ""', (d) => d.mode, 'iptables'],
    ['nftables: ~', (d) => d.nftables.masqueradeBit, 14],
    [
      'featureGates: {ContextualLogging: null, NativeHistograms: true}',
      (d) => d.featureGates,
      { NativeHistograms: true },
    ],
  ];
  for (const [body, pick, expected] of rows) t.strictSame(pick(fromFile(body).document), expected, body);
  t.end();
});

t.test('an explicit zero is obeyed, or refused by name', (t) => {
  const positive = 'must be greater than 0';
  const rows: readonly (readonly [string, string])[] = [
    ['configSyncPeriod: 0s', 'configSyncPeriod: Invalid value: "0s"'],
    ['iptables: {syncPeriod: 0s}', 'iptables.syncPeriod: Invalid value: "0s"'],
    ['mode: nftables\nnftables: {syncPeriod: 0h}', 'nftables.syncPeriod: Invalid value: "0s"'],
    ['logging: {flushFrequency: 0}', 'logging.flushFrequency: Invalid value: "0s"'],
  ];
  for (const [body, problem] of rows)
    t.same(failure(() => fromFile(body)).problems, [`KubeProxyConfiguration.${problem}: ${positive}`], body);
  t.same(
    failure(() => loaded(['--config-dir=d'], { 'd/1.yaml': KUBEADM, 'd/2.yaml': `${HEADER}configSyncPeriod: 0s` }))
      .problems,
    [`KubeProxyConfiguration.configSyncPeriod: Invalid value: "0s": ${positive} (from d/2.yaml)`],
  );
  t.end();
});

t.test("zeros in a generated file count as unset: silently in kubeadm's, with a warning in an edited one", (t) => {
  const body = KUBEADM.slice(HEADER.length);
  const lines = (isKept: (line: string) => boolean): string => body.split('\n').filter(isKept).join('\n');
  const unset =
    'mode: is not set, using iptables; from Kubernetes 1.40 the default is nftables: set the mode to keep it';
  const zeros = '0 is taken for unset, like other fields of the file:';
  const kubeadms =
    '[configSyncPeriod, logging.flushFrequency, iptables.syncPeriod, ipvs.syncPeriod, nftables.syncPeriod]';
  const rows: readonly (readonly [name: string, body: string, ambiguous: string | null])[] = [
    ['as kubeadm writes it', body, null],
    ['without its nulls', lines((line) => !line.endsWith(' null')), null],
    ['of a release without nftables mode', body.replace(/^nftables:\n(?: .*\n)+/m, ''), null],
    ['a field removed', lines((line) => !line.startsWith('portRange')), kubeadms],
    ['nulls and a field removed', lines((line) => !/ null$|^portRange/.test(line)), kubeadms],
    ['zero beside null', 'mode: ""\nconfigSyncPeriod: 0s\noomScoreAdj: null', 'configSyncPeriod'],
    ['zero beside empty text', 'mode: ""\niptables: {syncPeriod: 0s}', 'iptables.syncPeriod'],
  ];
  for (const [name, text, ambiguous] of rows) {
    const { document, warnings } = fromFile(text);
    t.match([document.configSyncPeriod, document.iptables.syncPeriod], ['15m0s', '30s'], name);
    t.equal(document.clientConnection.qps, 5, name);
    const expected = ambiguous === null ? [] : [`kube-proxy.yaml: ${zeros} ${ambiguous}`];
    t.same(
      warnings.filter((warning) => !/clientConnection\.|\.mode:/.test(warning)),
      expected,
      name,
    );
    t.ok(
      warnings.some((warning) => warning.endsWith(unset)),
      name,
    );
  }
  t.end();
});

t.test('CL-44: a default of one mode is not written for another', (t) => {
  t.equal(loaded(['--mode=iptables', '--write-config-to=x']).document.nodePortAddresses, null);
  t.end();
});

t.test('CL-41: strict decoding problems are one warning that lists them all', (t) => {
  const { document, warnings } = fromFile(
    'unknown: 1\nClusterCIDR: 10.1.0.0/16\nclusterCIDR: 10.2.0.0/16\nclusterCIDR: 10.3.0.0/16\nnftables: {MasqueradeAll: true, ipset: {a: 1}}\nlogging: {vmodule: [{filePattern: a, verbosity: 1, x: 1}]}\nfeatureGates: {ContextualLogging: false, ContextualLogging: true}\nmode: nftables\n',
  );
  t.equal(document.clusterCIDR, '10.3.0.0/16', 'the last of two counts, another case counts for nothing');
  t.equal(document.nftables.masqueradeAll, false);
  t.same(warnings, [
    'Using lenient decoding as strict decoding failed: kube-proxy.yaml: [' +
      [
        'KubeProxyConfiguration.featureGates.ContextualLogging: field is set twice, the last one is used',
        'KubeProxyConfiguration.logging.vmodule[0].x: unknown field',
        'KubeProxyConfiguration.nftables.MasqueradeAll: unknown field',
        'KubeProxyConfiguration.nftables.ipset: unknown field',
        'KubeProxyConfiguration.unknown: unknown field',
        'KubeProxyConfiguration.ClusterCIDR: unknown field',
        'KubeProxyConfiguration.clusterCIDR: field is set twice, the last one is used',
      ].join(', ') +
      ']',
  ]);
  t.end();
});

t.test('CL-41: wrong types are errors, each with path and value', (t) => {
  const duration = 'must be a duration such as "30s", "1h5m" or "500ms"';
  const rows: readonly (readonly [string, string])[] = [
    ['mode: 5', 'mode: Invalid value: 5: must be a string'],
    ['clusterCIDR: {a: 1}', 'clusterCIDR: Invalid value: {…}: must be a string'],
    ['bindAddress: [a]', 'bindAddress: Invalid value: […]: must be a string'],
    ['enableProfiling: "true"', 'enableProfiling: Invalid value: "true": must be true or false'],
    ['bindAddressHardFail: 1', 'bindAddressHardFail: Invalid value: 1: must be true or false'],
    ['oomScoreAdj: "1"', 'oomScoreAdj: Invalid value: "1": must be an integer in the range [-2147483648, 2147483647]'],
    ['oomScoreAdj: 1.5', 'oomScoreAdj: Invalid value: 1.5: must be an integer in the range [-2147483648, 2147483647]'],
    [
      'conntrack: {min: 2147483648}',
      'conntrack.min: Invalid value: 2147483648: must be an integer in the range [-2147483648, 2147483647]',
    ],
    [
      'logging: {verbosity: -1}',
      'logging.verbosity: Invalid value: -1: must be an integer in the range [0, 4294967295]',
    ],
    ['clientConnection: {qps: fast}', 'clientConnection.qps: Invalid value: "fast": must be a number'],
    ['clientConnection: {qps: 1.0e+39}', 'clientConnection.qps: Invalid value: 1e+39: must be a number of 32 bits'],
    ['clientConnection: {qps: .inf}', 'clientConnection.qps: Invalid value: Infinity: must be a number'],
    ['configSyncPeriod: 30', `configSyncPeriod: Invalid value: 30: ${duration}`],
    ['nftables: {syncPeriod: ""}', `nftables.syncPeriod: Invalid value: "": ${duration}`],
    ['nftables: {minSyncPeriod: 0}', `nftables.minSyncPeriod: Invalid value: 0: ${duration}`],
    ['nftables: {minSyncPeriod: 1d}', `nftables.minSyncPeriod: Invalid value: "1d": ${duration}`],
    ['logging: {flushFrequency: 1.5}', `logging.flushFrequency: Invalid value: 1.5: ${duration}`],
    [
      'logging: {options: {json: {infoBufferSize: lots}}}',
      'logging.options.json.infoBufferSize: Invalid value: "lots": must be a quantity such as "64Ki"',
    ],
    ['nodePortAddresses: 10.0.0.0/8', 'nodePortAddresses: Invalid value: "10.0.0.0/8": must be a list'],
    ['nodePortAddresses: [a, 1]', 'nodePortAddresses[1]: Invalid value: 1: must be a string'],
    ['nodePortAddresses: [null]', 'nodePortAddresses[0]: Invalid value: null: must be a string'],
    ['iptables: []', 'iptables: Invalid value: […]: must be a mapping'],
    ['iptables: off', 'iptables: Invalid value: false: must be a mapping'],
    ['featureGates: [a]', 'featureGates: Invalid value: […]: must be a mapping'],
    ['featureGates: {A: 1}', 'featureGates.A: Invalid value: 1: must be true or false'],
    ['logging: {vmodule: [a]}', 'logging.vmodule[0]: Invalid value: "a": must be a mapping'],
    [`mode: [${'x,'.repeat(500)}]`, 'mode: Invalid value: […]: must be a string'],
    [
      `oomScoreAdj: ${'x'.repeat(500)}`,
      `oomScoreAdj: Invalid value: "${'x'.repeat(200)}…": must be an integer in the range [-2147483648, 2147483647]`,
    ],
  ];
  for (const [body, message] of rows) {
    const error = failure(() => fromFile(body));
    t.same(error.problems, [`KubeProxyConfiguration.${message}`], body);
    t.match(error.message, /^failed complete: failed to decode: kube-proxy\.yaml: /);
    t.equal(error.code, 'CONFIG_DECODE');
  }
  t.end();
});

t.test('every decoding problem is reported at once, strict ones included', (t) => {
  const error = failure(() =>
    fromFile('mode: 5\nunknown: 1\nnodePortAddresses: [1, a, 2]\nnftables: {syncPeriod: 5}\n'),
  );
  t.equal(error.problems.length, 5);
  t.end();
});

t.test('CL-42: a configuration file may have several documents', (t) => {
  const read = (text: string): ReturnType<typeof loaded> => loaded(['--config=c'], { c: text });
  const other = 'apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n';
  const ours = (cidr: string): string => `${HEADER}mode: nftables\nclusterCIDR: ${cidr}\n`;
  const several = read(`${other}---\n${ours('10.1.0.0/16')}---\n# nothing\n---\n${ours('10.2.0.0/16')}`);
  t.equal(several.document.clusterCIDR, '10.1.0.0/16');
  t.same(several.warnings, [
    'c: only one KubeProxyConfiguration is used, ignored: [document 1 (kubelet.config.k8s.io/v1beta1, KubeletConfiguration), document 3 (kubeproxy.config.k8s.io/v1alpha1, KubeProxyConfiguration)]',
  ]);
  t.equal(
    read(
      JSON.stringify(
        { apiVersion: 'kubeproxy.config.k8s.io/v1alpha1', kind: 'KubeProxyConfiguration', clusterCIDR: '10.3.0.0/16' },
        null,
        '\t',
      ),
    ).document.clusterCIDR,
    '10.3.0.0/16',
  );
  t.same(read(`\ufeff${ours('10.4.0.0/16')}`.replaceAll('\n', '\r\n')).document.clusterCIDR, '10.4.0.0/16');

  const group = 'kubeproxy.config.k8s.io';
  const rows: readonly (readonly [string, readonly string[]])[] = [
    ['', ['the file holds no document']],
    ['# only a comment\n---\n', ['the file holds no document']],
    ['just text', ['document 1: Invalid value: must be a mapping']],
    ['[]', ['document 1: Invalid value: must be a mapping']],
    [
      'mode: nftables',
      [
        `document 1.apiVersion: Required value: must be ${group}/v1alpha1`,
        'document 1.kind: Required value: must be KubeProxyConfiguration',
      ],
    ],
    [`apiVersion: ${group}/v1alpha1`, ['document 1.kind: Required value: must be KubeProxyConfiguration']],
    ['kind: KubeProxyConfiguration', [`document 1.apiVersion: Required value: must be ${group}/v1alpha1`]],
    [
      `kind: KubeProxyConfiguration\napiVersion: ${group}/v1alpha2`,
      [`document 1.apiVersion: Invalid value: "${group}/v1alpha2": is an unknown version, must be ${group}/v1alpha1`],
    ],
    [`kind: 5\napiVersion: ${group}/v1alpha1`, ['document 1.kind: Invalid value: 5: must be a string']],
    [
      `${other}---\n5`,
      [
        `document 1.apiVersion: Invalid value: "kubelet.config.k8s.io/v1beta1": must be ${group}/v1alpha1`,
        'document 1.kind: Invalid value: "KubeletConfiguration": must be KubeProxyConfiguration',
        'document 2: Invalid value: must be a mapping',
      ],
    ],
  ];
  for (const [text, problems] of rows) t.same(failure(() => read(text)).problems, problems, JSON.stringify(text));
  t.end();
});

t.test('a missing file and one that is no YAML are errors', (t) => {
  t.equal(
    failure(() => loaded(['--config=gone'])).message,
    `failed complete: could not read configuration file "gone": ENOENT: no such file or directory, open 'gone'`,
  );
  const error = failure(() => fromFile('mode: [\n'));
  t.match(error.message, /^failed complete: failed to decode: kube-proxy\.yaml: line \d+: /);
  t.end();
});
