// docs/configuration.md says what becomes of each field of the file while the process runs: here it is held to the code.
import { readFileSync } from 'node:fs';
import { load } from 'js-yaml';
import t from 'tap';
import { compareConfigs } from '../../src/config/compare.js';
import { KUBE_PROXY } from '../../src/config/document.js';
import { FLAGS } from '../../src/config/flag-table.js';
import { isActive, leaves, type Leaf } from '../../src/config/tables/settings.js';
import { projectFile } from '../support/lab/agent.js';
import { fromFile } from './load-from.js';

/** Another value for fields whose type does not tell one. */
const OTHER: Readonly<Record<string, string>> = {
  featureGates: '{AllowServiceExternalIPs: false}',
  'clientConnection.acceptContentTypes': 'application/json',
  'clientConnection.contentType': 'application/json',
  'logging.format': 'json',
  'logging.vmodule': '[{filePattern: a, verbosity: 1}]',
  bindAddress: '192.0.2.1',
  healthzBindAddress: '127.0.0.1:9',
  metricsBindAddress: '127.0.0.1:9',
  showHiddenMetricsForVersion: '"1.36"',
  'ipvs.scheduler': 'sh',
  'winkernel.sourceVip': '192.0.2.1',
  detectLocalMode: 'NodeCIDR',
  clusterCIDR: '10.0.0.0/8',
};

/** Another value than a field's default. */
function otherThan({ path, field: { type, default: initial } }: Leaf): string {
  const known = OTHER[path.join('.')];
  if (known !== undefined) return known;
  if (type.is === 'list') return '[192.0.2.0/24]';
  const { in: kind, canonical } = type.is === 'scalar' ? type.spelling : { in: '' };
  if (kind === 'boolean') return String(initial !== true);
  if (kind === 'number') return '3';
  if (canonical === undefined) return 'other';
  return type.is === 'scalar' && type.format === 'quantity' ? '1Ki' : '2s';
}

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

/** The rows of the document's tables, by their first column. */
function documented(): ReadonlyMap<string, readonly string[]> {
  const text = readFileSync(projectFile('docs/configuration.md'), 'utf8');
  const rows = [...text.matchAll(/^\| `([^`]+)` +\|(.*)\|$/gm)];
  return new Map(rows.map(([, name = '', rest = '']) => [name, rest.split('|').map((cell) => cell.trim())]));
}

t.test('every configuration field is in the table of live changes, and behaves as it says', (t) => {
  const rows = documented();
  const fields = leaves(KUBE_PROXY).filter(({ path }) => path.join('.') !== 'mode');
  for (const leaf of fields) {
    const path = leaf.path.join('.');
    const effects = MODES.map((mode) => effect(mode, path, otherThan(leaf)));
    t.same(rows.get(path)?.slice(0, MODES.length), effects, path);
    for (const [index, mode] of MODES.entries())
      if (!isActive(leaf.field, mode)) t.equal(effects[index], 'means nothing', `${path} in mode ${mode}`);
  }
  t.end();
});

t.test('every field has a flag, except those without one in kube-proxy', (t) => {
  const without = leaves(KUBE_PROXY).filter(({ field }) => field.flag === undefined);
  t.same(
    without.map(({ path }) => path.join('.')),
    ['clientConnection.acceptContentTypes', 'portRange', 'nftables.masqueradeBit'],
  );
  t.end();
});

t.test('every flag is in the document of live changes', (t) => {
  const text = readFileSync(projectFile('docs/configuration.md'), 'utf8');
  for (const { name } of FLAGS) t.match(text, `\`--${name}\``, name);
  t.end();
});
