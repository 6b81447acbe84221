// docs/configuration.md says what becomes of each field of the file while the process runs: here it is held to the code.
import { readFileSync } from 'node:fs';
import { load } from 'js-yaml';
import t from 'tap';
import { compareConfigs } from '../../src/config/compare.js';
import { FLAGS } from '../../src/config/flag-table.js';
import { projectFile } from '../support/lab/agent.js';
import { fromFile } from './load-from.js';

/** Another value for each field, with what makes it act where that needs more. */
const OTHER: Readonly<Record<string, string>> = {
  featureGates: '{AllowServiceExternalIPs: false}',
  'clientConnection.kubeconfig': '/other',
  'clientConnection.acceptContentTypes': 'application/json',
  'clientConnection.contentType': 'application/json',
  'clientConnection.qps': '7',
  'clientConnection.burst': '7',
  'logging.format': 'json',
  'logging.flushFrequency': '1s',
  'logging.verbosity': '3',
  'logging.vmodule': '[{filePattern: a, verbosity: 1}]',
  'logging.options.json.infoBufferSize': '1Ki',
  'logging.options.json.splitStream': 'true',
  'logging.options.text.infoBufferSize': '1Ki',
  'logging.options.text.splitStream': 'true',
  hostnameOverride: 'other',
  bindAddress: '192.0.2.1',
  healthzBindAddress: '127.0.0.1:9',
  metricsBindAddress: '127.0.0.1:9',
  bindAddressHardFail: 'true',
  enableProfiling: 'true',
  showHiddenMetricsForVersion: '"1.35"',
  'iptables.masqueradeBit': '3',
  'iptables.masqueradeAll': 'true',
  'iptables.localhostNodePorts': 'false',
  'iptables.syncPeriod': '1m',
  'iptables.minSyncPeriod': '2s',
  'ipvs.syncPeriod': '1m',
  'ipvs.minSyncPeriod': '2s',
  'ipvs.scheduler': 'sh',
  'ipvs.excludeCIDRs': '[192.0.2.0/24]',
  'ipvs.strictARP': 'true',
  'ipvs.tcpTimeout': '1s',
  'ipvs.tcpFinTimeout': '1s',
  'ipvs.udpTimeout': '1s',
  'nftables.masqueradeBit': '3',
  'nftables.masqueradeAll': 'true',
  'nftables.syncPeriod': '1m',
  'nftables.minSyncPeriod': '2s',
  'winkernel.networkName': 'x',
  'winkernel.sourceVip': '192.0.2.1',
  'winkernel.enableDSR': 'true',
  'winkernel.rootHnsEndpointName': 'x',
  'winkernel.forwardHealthCheckVip': 'true',
  detectLocalMode: 'NodeCIDR',
  'detectLocal.bridgeInterface': 'cbr1',
  'detectLocal.interfaceNamePrefix': 'veth',
  clusterCIDR: '10.0.0.0/8',
  nodePortAddresses: '[192.0.2.0/24]',
  oomScoreAdj: '1',
  'conntrack.maxPerCore': '1',
  'conntrack.min': '1',
  'conntrack.tcpEstablishedTimeout': '1s',
  'conntrack.tcpCloseWaitTimeout': '1s',
  'conntrack.tcpBeLiberal': 'true',
  'conntrack.udpTimeout': '1s',
  'conntrack.udpStreamTimeout': '1s',
  configSyncPeriod: '1m',
  portRange: '"1-2"',
  windowsRunAsService: 'true',
};

/** Fields that say what the file is. */
const HEAD = ['apiVersion', 'kind', 'mode'];
const MODES = ['iptables', 'ipvs', 'nftables'] as const;
type Fields = Readonly<Record<string, unknown>>;

/** What other fields a field needs to act. */
const CONTEXT: Readonly<Record<string, Fields>> = {
  'logging.flushFrequency': { logging: { options: { text: { splitStream: true, infoBufferSize: '1Ki' } } } },
  'logging.options.text.infoBufferSize': { logging: { options: { text: { splitStream: true } } } },
  'logging.options.json.infoBufferSize': { logging: { format: 'json', options: { json: { splitStream: true } } } },
  'logging.options.json.splitStream': { logging: { format: 'json' } },
  'detectLocal.bridgeInterface': { detectLocalMode: 'BridgeInterface', detectLocal: { bridgeInterface: 'cbr0' } },
  'detectLocal.interfaceNamePrefix': {
    detectLocalMode: 'InterfaceNamePrefix',
    detectLocal: { interfaceNamePrefix: 'cali' },
  },
};

function effect(mode: string, path: string, other: string): string {
  const gates = path === 'featureGates' ? {} : { featureGates: { LoggingAlphaOptions: true } };
  const base: Fields = { mode, clientConnection: { kubeconfig: '/k' }, ...gates, ...CONTEXT[path] };
  const changes = compareConfigs(
    fromFile(printed(base)).config,
    fromFile(printed(withField(base, path.split('.'), load(other)))).config,
  );
  return changes.length === 0 ? 'means nothing' : 'live';
}

function printed(fields: Fields): string {
  return Object.entries(fields)
    .map(([name, value]) => `${name}: ${JSON.stringify(value)}\n`)
    .join('');
}

function withField(fields: Fields, [name = '', ...rest]: readonly string[], value: unknown): Fields {
  if (rest.length === 0) return { ...fields, [name]: value };
  return { ...fields, [name]: withField((fields[name] ?? {}) as Fields, rest, value) };
}

/** Paths of all fields that are no maps of fixed fields. */
function leaves(value: unknown, path: string): readonly string[] {
  const isSection = typeof value === 'object' && value !== null && !Array.isArray(value) && path !== 'featureGates';
  if (!isSection) return [path];
  return Object.entries(value).flatMap(([name, part]) => leaves(part, path === '' ? name : `${path}.${name}`));
}

/** The rows of the document's tables, by their first column. */
function documented(): ReadonlyMap<string, readonly string[]> {
  const text = readFileSync(projectFile('docs/configuration.md'), 'utf8');
  const rows = [...text.matchAll(/^\| `([^`]+)` +\|(.*)\|$/gm)];
  return new Map(rows.map(([, name = '', rest = '']) => [name, rest.split('|').map((cell) => cell.trim())]));
}

t.test('every field of the file is in the table, and does what it says', (t) => {
  const rows = documented();
  const { document } = fromFile('');
  const fields = leaves(document, '').filter((path) => !HEAD.includes(path));
  t.same([...fields].sort(), Object.keys(OTHER).sort(), 'the fields there are');
  for (const path of fields) {
    const effects = MODES.map((mode) => effect(mode, path, OTHER[path] ?? ''));
    t.same(rows.get(path)?.slice(0, MODES.length), effects, path);
  }
  t.end();
});

t.test('every flag is in the document', (t) => {
  const text = readFileSync(projectFile('docs/configuration.md'), 'utf8');
  for (const { name } of FLAGS) t.match(text, `\`--${name}\``, name);
  t.end();
});
