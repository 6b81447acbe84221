import t from 'tap';
import type { Config, ManifestsSource } from '../../src/config/config.js';
import { rounds, usually } from '../support/extent.js';
import { failure, fromFile, HEADER, KUBEADM, load, loaded } from './load-from.js';

const path = (text: string): ManifestsSource => ({ type: 'path', path: text, name: text });

const DEFAULTS = {
  mode: 'iptables',
  nodeName: 'worker-1.example',
  kubernetes: null,
  manifests: [path('objects.yaml')],
  fileCheckFrequency: 900,
  httpCheckFrequency: 10_000,
  statusSocket: '/run/pointsman/status.sock',
  tracingFile: null,
  bindAddress: '0.0.0.0',
  healthz: { address: '0.0.0.0', port: 10256 },
  metrics: { address: '127.0.0.1', port: 10249 },
  secured: null,
  changeLog: null,
  serviceTelemetry: null,
  serviceLimits: { frontends: 10_000, entries: 100_000 },
  balance: { by: 'random', slots: 262_144 },
  retryTimes: { tcp: 1, dns: 4 },
  affinityIPv6Prefix: 128,
  resetRemovedEndpoints: false,
  externalIPsInClusterRanges: false,
  profiling: false,
  flagz: true,
  statusz: true,
  bindAddressHardFail: false,
  syncPeriod: 30_000,
  minSyncPeriod: 0,
  masqueradeAll: false,
  masqueradeBit: 14,
  localhostNodePorts: true,
  iptablesFlavor: 'auto',
  ipvs: null,
  kernelspace: null,
  localDetection: { type: 'ClusterCIDR', prefixes: [] },
  nodePortAddresses: [],
  allowExternalIPs: true,
  conntrack: {
    maxPerCore: 32768,
    min: 131072,
    tcpEstablishedTimeout: 86_400_000,
    tcpCloseWaitTimeout: 3_600_000,
    tcpBeLiberal: false,
    udpTimeout: 0,
    udpStreamTimeout: 0,
  },
  oomScoreAdj: -999,
  logging: {
    format: 'text',
    verbosity: 0,
    vmodule: [],
    splitStream: false,
    infoBufferSize: 0,
    flushFrequency: 0,
  },
};

const KUBERNETES = {
  kubeconfig: '',
  master: '',
  acceptContentTypes: '',
  contentType: 'application/vnd.kubernetes.protobuf',
  qps: 5,
  burst: 10,
  configSyncPeriod: 900_000,
  egressFile: null,
  events: { qps: 0.1, burst: 25, limitFile: null },
  clientCertificate: null,
};

t.test('without flags every setting has its default', (t) => {
  const { command, config, warnings, version } = loaded([]);
  t.equal(command, 'run');
  t.strictSame(config, DEFAULTS);
  t.equal(version, 'v1.37.2');
  t.same(warnings, [
    'KubeProxyConfiguration.mode: is not set, using iptables; from Kubernetes 1.40 the default is nftables: set the mode to keep it',
  ]);
  t.same(loaded(['--mode=nftables']).warnings, []);
  t.end();
});

t.test('each field of the configuration file reaches the configuration', (t) => {
  const rows: readonly (readonly [string, Partial<Record<keyof Config, unknown>>])[] = [
    ['bindAddress: 010.0.0.1', { bindAddress: '10.0.0.1' }],
    [
      'bindAddress: "FD00::0:1"',
      {
        bindAddress: 'fd00::1',
        healthz: { address: '::', port: 10256 },
        metrics: { address: '::1', port: 10249 },
      },
    ],
    ['metricsBindAddress: 0.0.0.0:99', { metrics: { address: '0.0.0.0', port: 99 } }],
    ['enableProfiling: true', { profiling: true }],
    ['featureGates: {ComponentFlagz: false}', { flagz: false }],
    ['featureGates: {AllBeta: false, ComponentFlagz: true}', { statusz: false }],
    ['clientConnection: {kubeconfig: /k}', { kubernetes: { ...KUBERNETES, kubeconfig: '/k' } }],
    [
      'clientConnection: {kubeconfig: /k, acceptContentTypes: application/json, contentType: application/json, qps: 0.5, burst: 3}\nconfigSyncPeriod: 1m',
      {
        kubernetes: {
          ...KUBERNETES,
          kubeconfig: '/k',
          acceptContentTypes: 'application/json',
          contentType: 'application/json',
          qps: 0.5,
          burst: 3,
          configSyncPeriod: 60_000,
        },
      },
    ],
    ['healthzBindAddress: "[::1]:99"', { healthz: { address: '::1', port: 99 } }],
    ['bindAddressHardFail: true', { bindAddressHardFail: true }],
    ['iptables: {syncPeriod: 1m, minSyncPeriod: 250ms}', { syncPeriod: 60_000, minSyncPeriod: 250 }],
    ['iptables: {masqueradeAll: true, masqueradeBit: 3}', { masqueradeAll: true, masqueradeBit: 3 }],
    ['iptables: {localhostNodePorts: false}', { localhostNodePorts: false }],
    ['nftables: {masqueradeAll: true, masqueradeBit: 3, syncPeriod: 9s}', {}],
    [
      'mode: nftables\nnftables: {syncPeriod: 1m, minSyncPeriod: 250ms}',
      {
        mode: 'nftables',
        resetRemovedEndpoints: true,
        retryTimes: { tcp: 1, dns: 4 },
        localhostNodePorts: false,
        nodePortAddresses: ['primary'],
        syncPeriod: 60_000,
        minSyncPeriod: 250,
      },
    ],
    [
      'mode: nftables\nnftables: {minSyncPeriod: 0s, masqueradeAll: true, masqueradeBit: 3}\nnodePortAddresses: []',
      {
        mode: 'nftables',
        resetRemovedEndpoints: true,
        retryTimes: { tcp: 1, dns: 4 },
        localhostNodePorts: false,
        nodePortAddresses: ['primary'],
        minSyncPeriod: 0,
        masqueradeAll: true,
        masqueradeBit: 3,
      },
    ],
    [
      'clusterCIDR: "10.244.1.0/16,fd00::/48"',
      { localDetection: { type: 'ClusterCIDR', prefixes: ['10.244.0.0/16', 'fd00::/48'] } },
    ],
    ['detectLocalMode: NodeCIDR', { localDetection: { type: 'NodeCIDR' } }],
    [
      'detectLocalMode: BridgeInterface\ndetectLocal: {bridgeInterface: cbr0}',
      { localDetection: { type: 'BridgeInterface', name: 'cbr0' } },
    ],
    [
      'detectLocalMode: InterfaceNamePrefix\ndetectLocal: {interfaceNamePrefix: veth}',
      { localDetection: { type: 'InterfaceNamePrefix', prefix: 'veth' } },
    ],
    ['nodePortAddresses: [10.1.2.3/8, "::/0"]', { nodePortAddresses: ['10.0.0.0/8', '::/0'] }],
    ['nodePortAddresses: []', { nodePortAddresses: [] }],
    ['nodePortAddresses: [primary]', { nodePortAddresses: ['primary'] }],
    ['nodePortAddresses: [all]', { nodePortAddresses: ['0.0.0.0/0', '::/0'] }],
    [
      'nodePortAddresses: [localhost, 10.0.0.0/8, primary, primary]',
      { nodePortAddresses: ['primary', '127.0.0.0/8', '::1/128', '10.0.0.0/8'] },
    ],
    ['featureGates: {AllowServiceExternalIPs: false}', { allowExternalIPs: false }],
    ['oomScoreAdj: 5', { oomScoreAdj: 5 }],
    ['hostnameOverride: " Node-A "', { nodeName: 'node-a' }],
    ['logging: {format: json, verbosity: 3}', { logging: { ...DEFAULTS.logging, format: 'json', verbosity: 3 } }],
    [
      'logging: {vmodule: [{filePattern: "plan*", verbosity: 5}]}',
      { logging: { ...DEFAULTS.logging, vmodule: [{ filePattern: 'plan*', verbosity: 5 }] } },
    ],
    [
      'featureGates: {LoggingAlphaOptions: true}\nlogging: {flushFrequency: 1s, options: {text: {splitStream: true, infoBufferSize: 64Ki}, json: {infoBufferSize: 1}}}',
      { logging: { ...DEFAULTS.logging, splitStream: true, infoBufferSize: 65536, flushFrequency: 1000 } },
    ],
    [
      'featureGates: {LoggingAlphaOptions: true}\nlogging: {options: {text: {infoBufferSize: 64Ki}, json: {splitStream: true}}}',
      {},
    ],
    [
      'conntrack: {maxPerCore: 0, min: 1, tcpEstablishedTimeout: 1h, tcpCloseWaitTimeout: 1m, tcpBeLiberal: true, udpTimeout: 10s, udpStreamTimeout: 20s}',
      {
        conntrack: {
          maxPerCore: 0,
          min: 0,
          tcpEstablishedTimeout: 3_600_000,
          tcpCloseWaitTimeout: 60_000,
          tcpBeLiberal: true,
          udpTimeout: 10_000,
          udpStreamTimeout: 20_000,
        },
      },
    ],
  ];
  for (const [body, expected] of rows) t.strictSame(fromFile(body).config, { ...DEFAULTS, ...expected }, body);
  t.end();
});

t.test('the loaded configuration is deeply frozen', (t) => {
  const { config } = fromFile('logging: {vmodule: [{filePattern: a, verbosity: 1}]}\nclusterCIDR: 10.0.0.0/8');
  const seen: unknown[] = [config];
  for (const value of seen) {
    if (typeof value !== 'object' || value === null) continue;
    t.ok(Object.isFrozen(value));
    for (const part of Object.values(value) as unknown[]) seen.push(part);
  }
  t.end();
});

t.test('CL-40: beside --config a flag is ignored or wins over the file, each with a warning', (t) => {
  const { config, warnings } = fromFile('mode: nftables\nhostnameOverride: from-file\nlogging: {verbosity: 1}', [
    '--hostname-override= From-Flag ',
    '-v=7',
    '--proxy-mode=ipvs',
  ]);
  t.equal(config.nodeName, 'from-flag');
  t.equal(config.logging.verbosity, 7);
  t.equal(config.mode, 'nftables');
  t.same(warnings, [
    '--proxy-mode: is ignored because --config is given',
    'KubeProxyConfiguration.hostnameOverride: "from-file" has no effect because --hostname-override is given',
    'KubeProxyConfiguration.logging.verbosity: 1 has no effect because --v is given',
  ]);
  const untouched = fromFile('mode: nftables\nhostnameOverride: from-file\nlogging: {verbosity: 1}', [
    '--hostname-override=',
  ]).config;
  t.equal(untouched.nodeName, 'from-file');
  t.equal(untouched.logging.verbosity, 1);
  t.equal(
    fromFile('mode: nftables\nlogging: {verbosity: 1}', ['-v=0']).config.logging.verbosity,
    0,
    'an explicit zero counts',
  );
  t.equal(
    failure(() => fromFile('', ['--hostname-override=  '])).message,
    'failed complete: empty hostname-override is invalid',
  );
  t.equal(failure(() => fromFile('logging: 5', ['-v=1'])).problems.length, 1, 'a flag does not hide a broken section');
  t.match(failure(() => loaded(['-v=-1'])).message, 'KubeProxyConfiguration.logging.verbosity: Invalid value: -1');
  t.equal(loaded(['--config=', '--mode=nftables']).warnings.length, 0, 'an empty path is no file');
  t.end();
});

t.test('--mode counts where the file leaves the mode open, and a file that sets another one wins', (t) => {
  const rows: readonly (readonly [body: string, argv: readonly string[], mode: string, warnings: readonly string[]])[] =
    [
      ['', ['--mode=nftables'], 'nftables', []],
      ['mode: ""', ['--mode=ipvs'], 'ipvs', []],
      ['mode: ipvs', ['--mode=ipvs'], 'ipvs', []],
      ['mode: ipvs', ['--mode='], 'ipvs', []],
      ['mode: ipvs', ['--mode=nftables'], 'ipvs', ['--mode: is ignored because --config sets ipvs']],
      ['', ['--mode=ipvs', '--proxy-mode=ipvs'], 'ipvs', ['--proxy-mode: is ignored because --config is given']],
      [
        '',
        ['--proxy-mode=ipvs'],
        'iptables',
        [
          '--proxy-mode: is ignored because --config is given',
          'KubeProxyConfiguration.mode: is not set, using iptables; from Kubernetes 1.40 the default is nftables: set the mode to keep it',
        ],
      ],
    ];
  for (const [body, argv, mode, warnings] of rows) {
    const found = fromFile(body, argv);
    t.equal(found.config.mode, mode, `${body} ${argv.join(' ')}`);
    t.same(found.warnings, warnings, `${body} ${argv.join(' ')}`);
  }
  for (const argv of [['--mode=ipvs'], ['--mode=ipvs', '--proxy-mode=ipvs'], ['--proxy-mode=ipvs', '--mode=']])
    t.equal(loaded(argv).config.mode, 'ipvs', argv.join(' '));
  for (const argv of [
    ['--mode=ipvs', '--proxy-mode=nftables'],
    ['--proxy-mode=nftables', '--mode=ipvs'],
    ['--mode=ipvs', '--proxy-mode='],
  ])
    t.match(failure(() => loaded(argv)).message, '--mode: Invalid value: "ipvs": does not agree with --proxy-mode=');
  t.match(failure(() => fromFile('', ['--mode=x'])).message, 'KubeProxyConfiguration.mode: Invalid value: "x"');
  t.end();
});

t.test('the command is derived from the command line', (t) => {
  t.equal(loaded([]).command, 'run');
  t.equal(loaded(['plan']).command, 'plan');
  t.equal(load(['dump']).command, 'dump', 'needs no source');
  t.equal(load(['--cleanup']).command, 'cleanup', 'needs no source');
  t.equal(loaded(['--cleanup=false']).command, 'run');
  t.equal(load(['--write-config-to=x', '--cleanup']).command, 'write-config');
  t.same(load(['--version']), { command: 'version', format: 'short' });
  for (const yes of ['true', '1', 'T']) t.same(load([`--version=${yes}`]), { command: 'version', format: 'short' });
  t.equal(loaded(['--version=0']).command, 'run');
  t.same(load(['--version=raw', '--config=gone']), { command: 'version', format: 'raw' });
  t.equal(loaded(['--version=false']).version, 'v1.37.2');
  t.equal(loaded(['--version=v1.37.2-acme.1+x']).version, 'v1.37.2-acme.1+x');
  const hidden = '--show-hidden-metrics-for-version=1.36';
  t.equal(loaded([hidden]).command, 'run');
  t.equal(loaded([hidden, '--version=v1.37.0']).command, 'run');
  t.match(failure(() => loaded([hidden, '--version=v1.36.4'])).message, /the previous minor version, "1\.35"/);
  t.equal(loaded(['--version=v1.35.4']).version, 'v1.35.4', "the cluster's release");
  for (const version of ['v1.37', 'v1.37.2x', '1.37.2', 'v1.37.2.3', 'v1.37.2-', 'v1.37.2-a b']) {
    t.match(
      failure(() => loaded([`--version=${version}`])).message,
      `--version: Invalid value: ${JSON.stringify(version)}`,
    );
  }
  t.match(load(['plan', '-h']), { command: 'help', of: 'plan' });
  t.same(load(['-h']), { command: 'help' });
  t.equal(load(['--init-only']).command, 'init');
  t.equal(loaded(['--init-only=false']).command, 'run');
  t.equal(load(['--init-only', '--cleanup']).command, 'cleanup');
  for (const command of ['plan', 'render'])
    t.same(failure(() => load([command])).problems, [`--manifests: Required value: ${command} reads no API server`]);
  t.end();
});

t.test('objects come from the API server, from manifests, or from both', (t) => {
  const source = (argv: readonly string[], files?: Readonly<Record<string, string>>): unknown => {
    const result = load(argv, files);
    if (!('config' in result)) throw new Error(result.command);
    return { kubernetes: result.config.kubernetes, manifests: result.config.manifests };
  };
  const file = { c: `${HEADER}clientConnection: {kubeconfig: /k}` };
  t.same(source([]), { kubernetes: KUBERNETES, manifests: [] }, 'in-cluster');
  t.same(source(['--kubeconfig=/k']), { kubernetes: { ...KUBERNETES, kubeconfig: '/k' }, manifests: [] });
  t.same(
    source(['--kube-api-qps=0', '--kube-api-burst=0']),
    { kubernetes: KUBERNETES, manifests: [] },
    'zero is unset',
  );
  t.same(source(['--master=m']), { kubernetes: { ...KUBERNETES, master: 'm' }, manifests: [] });
  t.same(source(['--manifests=a']), { kubernetes: null, manifests: [path('a')] });
  t.same(source(['--manifests=a', '--kubeconfig=/k']), {
    kubernetes: { ...KUBERNETES, kubeconfig: '/k' },
    manifests: [path('a')],
  });
  t.same(source(['--manifests=a', '--master=m']), {
    kubernetes: { ...KUBERNETES, master: 'm' },
    manifests: [path('a')],
  });
  t.same(
    source(['--manifests=a', '--config=c', '--master=m'], file),
    { kubernetes: { ...KUBERNETES, kubeconfig: '/k', master: 'm' }, manifests: [path('a')] },
    '--master stays effective beside --config',
  );
  t.end();
});

t.test('ST-10: the node name is the override or the host name', (t) => {
  t.equal(loaded(['--hostname-override=Node-B']).config.nodeName, 'node-b');
  t.equal(loaded([]).config.nodeName, 'worker-1.example');
  t.end();
});

t.test('CF-53: a file of kubeadm gives the defaults', (t) => {
  const { config, warnings } = loaded(['--config=/var/lib/kube-proxy/config.conf', '--hostname-override=Node-1'], {
    '/var/lib/kube-proxy/config.conf': KUBEADM,
  });
  t.strictSame(config, {
    ...DEFAULTS,
    nodeName: 'node-1',
    kubernetes: { ...KUBERNETES, kubeconfig: '/var/lib/kube-proxy/kubeconfig.conf' },
    localDetection: { type: 'ClusterCIDR', prefixes: ['10.244.0.0/16'] },
  });
  t.same(warnings, [
    'KubeProxyConfiguration.mode: is not set, using iptables; from Kubernetes 1.40 the default is nftables: set the mode to keep it',
  ]);
  t.end();
});

t.test('garbage in the configuration file gives a ConfigError, nothing else', (t) => {
  let seed = 7;
  const next = (bound: number): number => {
    seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0;
    return Math.floor((seed / 2 ** 32) * bound);
  };
  // Every value of a valid file replaced by every other kind of value, then random edits of its text.
  const values = [
    '~',
    '5',
    '-1',
    '1e400',
    '.nan',
    '""',
    'x',
    '[]',
    '[[1], {a: b}]',
    '{}',
    '{a: {b: c}}',
    'true',
    '99999999999999999999',
    '"\\u0000"',
    '&a [*a]',
    '!!binary x',
  ];
  const lines = KUBEADM.split('\n');
  const texts = lines.flatMap((line, index) =>
    line.includes(': ')
      ? values
          .filter((_, at) => (at + index) % usually(3, 1) === 0)
          .map((value) =>
            [...lines.slice(0, index), line.replace(/: .*/, `: ${value}`), ...lines.slice(index + 1)].join('\n'),
          )
      : [],
  );
  for (let round = 0; round < rounds(1000); round++) {
    const at = next(KUBEADM.length);
    texts.push(KUBEADM.slice(0, at) + String.fromCharCode(next(256)) + KUBEADM.slice(at + next(20)));
  }
  const outcomes = { loaded: 0, refused: 0 };
  for (const text of texts) {
    try {
      loaded(['--config=c'], { c: text });
      outcomes.loaded++;
    } catch (error) {
      if (!(error instanceof Error) || error.name !== 'ConfigError') {
        t.fail(`not a ConfigError: ${String(error)}`, { text });
      }
      outcomes.refused++;
    }
  }
  t.ok(outcomes.loaded > 100 && outcomes.refused > 100, JSON.stringify(outcomes));
  t.end();
});

t.test('status, explain and the like take their arguments', (t) => {
  const status = load(['status', '-o', 'json', '--status-socket=/run/other.sock']);
  t.match(status, {
    command: 'status',
    given: { output: 'json' },
    config: { statusSocket: '/run/other.sock', kubernetes: {} },
  });
  const to = '[fd00::1]:80/TCP';
  t.match(load(['explain', to]), {
    command: 'explain',
    given: { from: 'external', output: 'text' },
    operands: [to],
  });
  t.match(load(['--from=node', 'explain', '--output=json', to]), {
    given: { from: 'node', output: 'json', node: '' },
    operands: [to],
  });
  const there = ['--node=worker-1', '--kubeconfig=admin.conf', '--context=prod', '--namespace=net', '-l', 'app=proxy'];
  t.match(load(['explain', ...there, to]), {
    given: { node: 'worker-1', context: 'prod', namespace: 'net', selector: 'app=proxy' },
    config: { kubernetes: { kubeconfig: 'admin.conf' } },
  });
  t.throws(
    () => load(['explain', '--node=worker-1', '--manifests=a.yaml', to]),
    /--node: Forbidden: --manifests are asked/,
  );
  t.equal(loaded(['--status-socket=']).config.statusSocket, null, 'switched off');
  const path = (bytes: number): string => `/${'ü'.repeat(40)}`.padEnd(bytes - 40, 'x');
  t.equal(loaded([`--status-socket=${path(99)}`]).config.statusSocket, path(99));
  t.same(failure(() => load(['status', `--status-socket=${path(100)}`])).problems, [
    `--status-socket: Invalid value: "${path(100)}": must have at most 99 bytes`,
  ]);
  t.match(load(['status', '-o', 'yaml']), { given: { output: 'yaml' } });
  t.same(failure(() => load(['status', '-o', 'xml'])).problems, [
    '--output: Invalid value: "xml": must be one of text, json, yaml',
  ]);
  t.end();
});

t.test('--iptables-flavor is taken with a file, and wrong values are refused', (t) => {
  t.equal(fromFile('', ['--iptables-flavor=legacy']).config.iptablesFlavor, 'legacy', 'counts beside a file');
  t.same(failure(() => loaded(['--iptables-flavor=new'])).problems, [
    '--iptables-flavor: Invalid value: "new": must be one of auto, legacy, nft',
  ]);
  t.end();
});
