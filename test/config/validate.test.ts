import t from 'tap';
import type { Target } from '../../src/config/load.js';
import { failure, fromFile, LINUX, WINDOWS } from './load-from.js';

/** The messages for a file's body, without the common prefix. */
function problems(body: string): readonly string[] {
  const error = failure(() => fromFile(body));
  if (error.code !== 'CONFIG_INVALID' || !error.message.startsWith('failed validate: ')) throw error;
  return error.problems;
}

const MASQUERADE_BIT = 'must be within the range [0, 31]';
const AT_LEAST_0 = 'must be greater than or equal to 0';
const CIDR = 'must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)';
const NODE_PORTS = `${CIDR}, or one of primary, localhost, all`;
const NO_INTERFACE = 'is no interface name of Linux: at most 15 bytes, without blanks, slashes and colons';

/** One rule a row: a body that breaks only it, and the message after `KubeProxyConfiguration.`. */
const RULES: readonly (readonly [string, string, string])[] = [
  [
    'VA-01',
    'featureGates: {NFTablesProxyMode: false}',
    'featureGates: Invalid value: cannot set feature gate NFTablesProxyMode to false, feature is locked to true',
  ],
  ['VA-02', 'iptables: {masqueradeBit: 32}', `iptables.masqueradeBit: Invalid value: 32: ${MASQUERADE_BIT}`],
  ['VA-02 low', 'iptables: {masqueradeBit: -1}', `iptables.masqueradeBit: Invalid value: -1: ${MASQUERADE_BIT}`],
  [
    'VA-05',
    'mode: nftables\nnftables: {masqueradeBit: 32}',
    `nftables.masqueradeBit: Invalid value: 32: ${MASQUERADE_BIT}`,
  ],
  ['VA-06 maxPerCore', 'conntrack: {maxPerCore: -1}', `conntrack.maxPerCore: Invalid value: -1: ${AT_LEAST_0}`],
  ['VA-06 min', 'conntrack: {min: -1}', `conntrack.min: Invalid value: -1: ${AT_LEAST_0}`],
  [
    'VA-06 established',
    'conntrack: {tcpEstablishedTimeout: -5s}',
    `conntrack.tcpEstablishedTimeout: Invalid value: "-5s": ${AT_LEAST_0}`,
  ],
  [
    'VA-06 close wait',
    'conntrack: {tcpCloseWaitTimeout: -5s}',
    `conntrack.tcpCloseWaitTimeout: Invalid value: "-5s": ${AT_LEAST_0}`,
  ],
  ['VA-06 udp', 'conntrack: {udpTimeout: -5s}', `conntrack.udpTimeout: Invalid value: "-5s": ${AT_LEAST_0}`],
  [
    'VA-06 udp stream',
    'conntrack: {udpStreamTimeout: -5s}',
    `conntrack.udpStreamTimeout: Invalid value: "-5s": ${AT_LEAST_0}`,
  ],
  ['VA-07 high', 'oomScoreAdj: 1001', 'oomScoreAdj: Invalid value: 1001: must be within the range [-1000, 1000]'],
  ['VA-07 low', 'oomScoreAdj: -1001', 'oomScoreAdj: Invalid value: -1001: must be within the range [-1000, 1000]'],
  [
    'VA-08',
    'mode: userspace',
    'mode: Invalid value: "userspace": must be iptables, ipvs, nftables or blank (blank means the best-available proxy [currently iptables])',
  ],
  [
    'VA-08 other platform',
    'mode: kernelspace',
    'mode: Invalid value: "kernelspace": must be iptables, ipvs, nftables or blank (blank means the best-available proxy [currently iptables])',
  ],
  [
    'VA-08 case',
    'mode: NFTables',
    'mode: Invalid value: "NFTables": must be iptables, ipvs, nftables or blank (blank means the best-available proxy [currently iptables])',
  ],
  ['VA-09', 'clientConnection: {burst: -1}', 'clientConnection.burst: Invalid value: -1: must be non-negative'],
  ['VA-10', 'configSyncPeriod: -1s', 'configSyncPeriod: Invalid value: "-1s": must be greater than 0'],
  [
    'VA-12',
    'mode: nftables\nnftables: {minSyncPeriod: -1s}',
    `nftables.minSyncPeriod: Invalid value: "-1s": ${AT_LEAST_0}`,
  ],
  [
    'VA-13',
    'mode: nftables\nnftables: {syncPeriod: 1s, minSyncPeriod: 2s}',
    'nftables.syncPeriod: Invalid value: "1s": must be greater than or equal to KubeProxyConfiguration.nftables.minSyncPeriod (2s)',
  ],
  [
    'VA-14',
    'bindAddress: nonsense',
    'bindAddress: Invalid value: "nonsense": not a valid textual representation of an IP address',
  ],
  [
    'VA-14 brackets',
    'bindAddress: "[::]"',
    'bindAddress: Invalid value: "[::]": not a valid textual representation of an IP address',
  ],
  ['VA-15 form', 'healthzBindAddress: 1.2.3', 'healthzBindAddress: Invalid value: "1.2.3": must be IP:port'],
  [
    'VA-15 address',
    'healthzBindAddress: "localhost:80"',
    'healthzBindAddress: Invalid value: "localhost:80": must be a valid IP',
  ],
  ['VA-15 no address', 'healthzBindAddress: ":80"', 'healthzBindAddress: Invalid value: ":80": must be a valid IP'],
  [
    'VA-15 port',
    'healthzBindAddress: "1.2.3.4:0"',
    'healthzBindAddress: Invalid value: "1.2.3.4:0": must be a valid port',
  ],
  [
    'VA-15 port name',
    'healthzBindAddress: "1.2.3.4:http"',
    'healthzBindAddress: Invalid value: "1.2.3.4:http": must be a valid port',
  ],
  [
    'VA-15 port range',
    'healthzBindAddress: "[::1]:65536"',
    'healthzBindAddress: Invalid value: "[::1]:65536": must be a valid port',
  ],
  ['VA-16', 'metricsBindAddress: "x:1"', 'metricsBindAddress: Invalid value: "x:1": must be a valid IP'],
  ...[
    ['healthzBindAddress: "127.0.0.1:10249"', '127.0.0.1:10249', '127.0.0.1:10249'],
    ['metricsBindAddress: "0.0.0.0:10256"', '0.0.0.0:10256', '0.0.0.0:10256'],
    ['metricsBindAddress: "127.0.0.1:10256"', '127.0.0.1:10256', '0.0.0.0:10256'],
    ['metricsBindAddress: "[::1]:80"\nhealthzBindAddress: "[::]:80"', '[::1]:80', '[::]:80'],
  ].map(
    ([body = '', metrics = '', health = '']) =>
      [
        `one listener: ${body}`,
        body,
        `metricsBindAddress: Invalid value: "${metrics}": takes the port of KubeProxyConfiguration.healthzBindAddress (${health})`,
      ] as const,
  ),
  [
    'KubeProxyIPVS',
    'mode: ipvs\nfeatureGates: {KubeProxyIPVS: false}',
    'mode: Forbidden: mode ipvs needs feature gate KubeProxyIPVS',
  ],
  [
    'VA-17',
    'nodePortAddresses: [10.0.0.0/8, 10.0.0.1]',
    `nodePortAddresses[1]: Invalid value: "10.0.0.1": ${NODE_PORTS}`,
  ],
  ['VA-17 case', 'nodePortAddresses: [Localhost]', `nodePortAddresses[0]: Invalid value: "Localhost": ${NODE_PORTS}`],
  ['VA-17 null', 'nodePortAddresses: [""]', `nodePortAddresses[0]: Invalid value: "": ${NODE_PORTS}`],
  [
    'VA-18',
    'showHiddenMetricsForVersion: "1.35"',
    'showHiddenMetricsForVersion: Invalid value: "1.35": must be omitted or the previous minor version, "1.36"',
  ],
  [
    'VA-19',
    'detectLocalMode: clustercidr',
    'detectLocalMode: Unsupported value: "clustercidr": supported values: "ClusterCIDR", "NodeCIDR", "BridgeInterface", "InterfaceNamePrefix"',
  ],
  [
    'VA-20',
    'detectLocalMode: BridgeInterface',
    'detectLocal.bridgeInterface: Required value: detectLocalMode BridgeInterface needs it',
  ],
  [
    'VA-21',
    'detectLocalMode: InterfaceNamePrefix',
    'detectLocal.interfaceNamePrefix: Required value: detectLocalMode InterfaceNamePrefix needs it',
  ],
  [
    'no name of an interface',
    'detectLocalMode: BridgeInterface\ndetectLocal: {bridgeInterface: abcdefghijklmnop}',
    `detectLocal.bridgeInterface: Invalid value: "abcdefghijklmnop": ${NO_INTERFACE}`,
  ],
  [
    'no beginning of one',
    'detectLocalMode: InterfaceNamePrefix\ndetectLocal: {interfaceNamePrefix: "a b"}',
    `detectLocal.interfaceNamePrefix: Invalid value: "a b": ${NO_INTERFACE}`,
  ],
  ['VA-22', 'clusterCIDR: 10.0.0.0', `clusterCIDR[0]: Invalid value: "10.0.0.0": ${CIDR}`],
  [
    'VA-22 neither family',
    'clusterCIDR: "::ffff:10.0.0.0/95"',
    `clusterCIDR[0]: Invalid value: "::ffff:10.0.0.0/95": ${CIDR}`,
  ],
  [
    'VA-22 two of IPv4',
    'clusterCIDR: "10.0.0.0/8,::ffff:11.0.0.0/104"',
    'clusterCIDR: Invalid value: "10.0.0.0/8,::ffff:11.0.0.0/104": two CIDRs must be of different IP families',
  ],
  ['VA-22 not trimmed', 'clusterCIDR: 10.0.0.0/8, fd00::/64', `clusterCIDR[1]: Invalid value: " fd00::/64": ${CIDR}`],
  [
    'VA-22 too many',
    'clusterCIDR: "10.0.0.0/8,fd00::/64,fd01::/64"',
    'clusterCIDR: Invalid value: "10.0.0.0/8,fd00::/64,fd01::/64": only one CIDR, or one per IP family, is allowed',
  ],
  [
    'VA-22 one family',
    'clusterCIDR: "10.0.0.0/8,11.0.0.0/8"',
    'clusterCIDR: Invalid value: "10.0.0.0/8,11.0.0.0/8": two CIDRs must be of different IP families',
  ],
  [
    'VA-23 format',
    'logging: {format: xml}',
    'logging.format: Unsupported value: "xml": supported values: "json", "text"',
  ],
  [
    'VA-23 json without its gate',
    'logging: {format: json}\nfeatureGates: {LoggingBetaOptions: false}',
    'logging.format: Forbidden: format json needs feature gate LoggingBetaOptions',
  ],
  [
    'VA-23 json without all beta gates',
    'logging: {format: json}\nfeatureGates: {AllBeta: false}',
    'logging.format: Forbidden: format json needs feature gate LoggingBetaOptions',
  ],
  [
    'VA-23 flush',
    'logging: {flushFrequency: -1s}',
    'logging.flushFrequency: Invalid value: "-1s": must be greater than 0',
  ],
  [
    'VA-23 verbosity',
    'logging: {verbosity: 2147483648}',
    'logging.verbosity: Invalid value: 2147483648: must be within the range [0, 2147483647]',
  ],
  [
    'VA-23 vmodule json',
    'logging: {format: json, vmodule: [{filePattern: a, verbosity: 1}]}',
    'logging.vmodule: Forbidden: only supported for text log format',
  ],
  [
    'VA-23 vmodule empty',
    'logging: {vmodule: [{filePattern: a}, {verbosity: 1}]}',
    'logging.vmodule[1].filePattern: Required value: must not be empty',
  ],
  [
    'VA-23 vmodule sign',
    'logging: {vmodule: [{filePattern: "a=b", verbosity: 1}]}',
    'logging.vmodule[0].filePattern: Invalid value: "a=b": must not contain equal signs or commas',
  ],
  [
    'VA-23 vmodule verbosity',
    'logging: {vmodule: [{filePattern: a, verbosity: 4294967295}]}',
    'logging.vmodule[0].verbosity: Invalid value: 4294967295: must be within the range [0, 2147483647]',
  ],
  [
    'VA-23 split',
    'logging: {options: {json: {splitStream: true}}}',
    'logging.options.json.splitStream: Forbidden: needs feature gate LoggingAlphaOptions',
  ],
  [
    'VA-23 buffer',
    'logging: {options: {text: {infoBufferSize: 64Ki}}}',
    'logging.options.text.infoBufferSize: Forbidden: needs feature gate LoggingAlphaOptions',
  ],
  ['ST-10', 'hostnameOverride: "  "', 'hostnameOverride: empty hostname is invalid'],
];

for (const [rule, body, message] of RULES) {
  t.test(`validation ${rule}: ${body}`, (t) => {
    t.same(problems(body), [`KubeProxyConfiguration.${message}`]);
    t.end();
  });
}

t.test('VA-08: the modes are those of the platform', (t) => {
  const messages = (body: string, target: Target): string => failure(() => fromFile(body, [], target)).message;
  t.match(
    messages('mode: kernelspace', LINUX),
    /mode: Invalid value: "kernelspace": must be iptables, ipvs, nftables or/,
  );
  t.match(messages('mode: nftables', WINDOWS), /"nftables": must be kernelspace or blank .*currently kernelspace/);
  t.match(
    messages('winkernel: {sourceVip: 10.0.0.300}', WINDOWS),
    /winkernel\.sourceVip: Invalid value: "10.0.0.300": must be an IP address or the name of an HNS endpoint/,
  );
  t.equal(
    fromFile('winkernel: {sourceVip: 10.0.0.300}', [], LINUX).config.kernelspace,
    null,
    'not looked at elsewhere',
  );
  t.end();
});

t.test('VA-01: gates of Windows are locked', (t) => {
  t.match(
    failure(() => fromFile('featureGates: {WinDSR: false, WinOverlay: false}', [], WINDOWS)).message,
    /cannot set feature gate WinDSR to false, .*cannot set feature gate WinOverlay to false, feature is locked to true/,
  );
  t.same(fromFile('mode: kernelspace\nfeatureGates: {WinDSR: true, WinOverlay: true}', [], WINDOWS).warnings, []);
  t.end();
});

t.test('VA-11: a negative period is below zero and below the minimum', (t) => {
  t.same(problems('mode: nftables\nnftables: {syncPeriod: -1s, minSyncPeriod: 1s}'), [
    'KubeProxyConfiguration.nftables.syncPeriod: Invalid value: "-1s": must be greater than 0',
    'KubeProxyConfiguration.nftables.syncPeriod: Invalid value: "-1s": must be greater than or equal to KubeProxyConfiguration.nftables.minSyncPeriod (1s)',
  ]);
  t.end();
});

t.test('VA-03, VA-04: the ipvs section is validated in mode ipvs only', (t) => {
  const body =
    'ipvs: {tcpTimeout: -1s, tcpFinTimeout: -2s, udpTimeout: -3s, excludeCIDRs: [10.0.0.0/8, x], minSyncPeriod: -4s}\n';
  t.same(problems(`mode: ipvs\n${body}`), [
    `KubeProxyConfiguration.ipvs.tcpTimeout: Invalid value: "-1s": ${AT_LEAST_0}`,
    `KubeProxyConfiguration.ipvs.tcpFinTimeout: Invalid value: "-2s": ${AT_LEAST_0}`,
    `KubeProxyConfiguration.ipvs.udpTimeout: Invalid value: "-3s": ${AT_LEAST_0}`,
    `KubeProxyConfiguration.ipvs.excludeCIDRs[1]: Invalid value: "x": ${CIDR}`,
    `KubeProxyConfiguration.ipvs.minSyncPeriod: Invalid value: "-4s": ${AT_LEAST_0}`,
  ]);
  t.equal(fromFile(body).config.mode, 'iptables', 'VA-30: not checked in another mode');
  const longest = 'must be at most 596h31m23s, the maximum of ip_vs';
  const named = 'is no scheduler name of ip_vs: at most 15 bytes, without blanks';
  t.same(problems('mode: ipvs\nipvs: {udpTimeout: 596h31m24s, scheduler: "r r"}'), [
    `KubeProxyConfiguration.ipvs.udpTimeout: Invalid value: "596h31m24s": ${longest}`,
    `KubeProxyConfiguration.ipvs.scheduler: Invalid value: "r r": ${named}`,
  ]);
  for (const name of ['abcdefghijklmnop', 'éééééééé', 'a\\u0000'])
    t.match(problems(`mode: ipvs\nipvs: {scheduler: "${name}"}`)[0] ?? '', named, name);
  t.equal(fromFile('mode: ipvs\nipvs: {tcpTimeout: 596h31m23s, scheduler: abcdefghijklmno}').config.mode, 'ipvs');
  t.end();
});

t.test('every violation is reported at once, in one message', (t) => {
  const error = failure(() => fromFile('oomScoreAdj: 2000\nbindAddress: x\nconntrack: {min: -1}\n'));
  t.equal(error.problems.length, 3);
  t.equal(error.message, `failed validate: [${error.problems.join(', ')}]`);
  t.end();
});

t.test('thousands of violations are counted, and only the first are printed', (t) => {
  const error = failure(() => fromFile(`nodePortAddresses: [${'x,'.repeat(1000)}]`));
  t.equal(error.problems.length, 1000);
  t.match(error.message, /and 950 more\]$/);
  t.end();
});

t.test('the extreme valid values are accepted', (t) => {
  const bodies = [
    'iptables: {masqueradeBit: 0}\nnftables: {masqueradeBit: 31}',
    'oomScoreAdj: -1000',
    'oomScoreAdj: 1000',
    'conntrack: {maxPerCore: 0, min: 0, tcpEstablishedTimeout: 0s, tcpCloseWaitTimeout: 0s}',
    'nftables: {syncPeriod: 2s, minSyncPeriod: 2s}',
    'bindAddress: "::"',
    'bindAddress: 010.0.0.1',
    'healthzBindAddress: "[::]:65535"',
    'metricsBindAddress: 0.0.0.0',
    'showHiddenMetricsForVersion: "1.36"',
    'clusterCIDR: "10.0.0.0/8,fd00::/64"',
    'clusterCIDR: "fd00::1/64"',
    'clusterCIDR: "::ffff:10.0.0.0/104,fd00::/64"',
    'nodePortAddresses: ["::ffff:192.0.2.0/120"]',
    'nodePortAddresses: [primary, localhost]',
    'nodePortAddresses: [all, primary, 10.0.0.0/8, localhost, localhost]',
    'detectLocalMode: NodeCIDR\nclusterCIDR: nonsense',
    'detectLocalMode: BridgeInterface\ndetectLocal: {bridgeInterface: cbr0}',
    'detectLocalMode: InterfaceNamePrefix\ndetectLocal: {interfaceNamePrefix: "abcdefghijklm\u00e9"}',
    'detectLocalMode: NodeCIDR\ndetectLocal: {bridgeInterface: abcdefghijklmnop, interfaceNamePrefix: a b}',
    'logging: {format: json}',
    'logging: {options: {json: {infoBufferSize: "0"}, text: {splitStream: true, infoBufferSize: 1Mi}}}\nfeatureGates: {LoggingAlphaOptions: true}',
    'logging: {options: {json: {infoBufferSize: 1k}}}\nfeatureGates: {AllAlpha: true}',
    'clientConnection: {qps: -1}',
    'portRange: anything at all',
    'featureGates: {NFTablesProxyMode: true, AllAlpha: true, AllBeta: false}',
  ];
  for (const body of bodies) t.equal(fromFile(body).command, 'run', body);
  t.end();
});
