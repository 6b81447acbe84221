import {
  familyOf,
  isLoopback,
  isUnspecified,
  parseAddress,
  parsePrefix,
  prefixContains,
} from '../../../../src/base/ip.js';
import { scalar } from '../../../../src/config/tables/formats.js';
import { string } from '../../../../src/config/tables/spelling.js';
import { int, spelled, text } from '../../../../src/config/tables/types.js';
import { Mapping } from '../../../../src/config/yaml.js';
import { pairsOf, valueOf, type Syntax, type Syntaxes } from './flags.js';

/** How flags of the node agent are written that have a syntax of their own. */

/** Addresses that no other machine can use. */
const USELESS = ['169.254.0.0/16', 'fe80::/10', '224.0.0.0/4', 'ff00::/8'].flatMap((each) => parsePrefix(each) ?? []);

/** Unspecified means the default address of a family, and only stands alone. */
function areNodeAddresses(value: string): boolean {
  const addresses = value.split(',').flatMap((entry) => parseAddress(entry.trim()) ?? []);
  if (addresses.length !== value.split(',').length) return false;
  if (new Set(addresses.map(familyOf)).size < addresses.length) return false;
  if (addresses.some(isUnspecified)) return addresses.length === 1;
  return !addresses.some(
    (address) =>
      isLoopback(address) ||
      USELESS.some((prefix) => familyOf(prefix) === familyOf(address) && prefixContains(prefix, address)),
  );
}

export const NODE_ADDRESSES = spelled(
  'node addresses',
  string('an IP address that other machines reach, or one of each family with a comma between', areNodeAddresses),
);

/** Labels of Kubernetes' own domains that a node may give itself, besides those below `kubelet.` and `node.`. */
const OWN_LABELS = [
  ...['arch', 'instance-type', 'os'].map((name) => `beta.kubernetes.io/${name}`),
  ...['region', 'zone'].map((name) => `failure-domain.beta.kubernetes.io/${name}`),
  ...['region', 'zone'].map((name) => `topology.kubernetes.io/${name}`),
  ...['arch', 'hostname', 'os'].map((name) => `kubernetes.io/${name}`),
];
const KEY = scalar('label key').spelling;
const VALUE = scalar('label value').spelling;

function isNodeLabel(pair: string): boolean {
  if (pair.trim() === '') return true;
  const at = pair.indexOf('=');
  const [key, value] = [pair.slice(0, at).trim(), pair.slice(at + 1).trim()];
  if (at < 0 || !KEY.test(key, key) || !(value === '' || VALUE.test(value, value))) return false;
  const [domain = ''] = key.includes('/') ? key.split('/') : [];
  const isReserved = /(?:^|\.)(?:kubernetes|k8s)\.io$/.test(domain);
  return !isReserved || /(?:^|\.)(?:kubelet|node)\.kubernetes\.io$/.test(domain) || OWN_LABELS.includes(key);
}

export const NODE_LABEL = spelled(
  'node label',
  string('labels such as example.com/role=gpu, of kubernetes.io only those that a node may give itself', isNodeLabel),
);

/** The entries of a text, each read; null where one cannot be. */
function entriesOf(given: string, separator: string, read: (entry: string) => Mapping | null): unknown {
  if (given === '') return [];
  const entries = given.split(separator).map(read);
  return entries.includes(null) ? null : entries;
}

function taintOf(entry: string): Mapping | null {
  const [, key, value, effect] = /^([^=:]+)(?:=([^=:]*))?:([^=:]+)$/.exec(entry.trim()) ?? [];
  if (key === undefined) return null;
  return new Mapping(Object.entries({ key, ...(value === undefined ? {} : { value }), effect }));
}

function numaNodeOf(entry: string): Mapping | null {
  const [, node, limits] = /^(\d{1,9}):(.+)$/.exec(entry.trim()) ?? [];
  const pairs = limits === undefined ? null : pairsOf(limits, () => text);
  return pairs instanceof Mapping ? new Mapping(Object.entries({ numaNode: Number(node), limits: pairs })) : null;
}

/** Names and values of requests; a name may come again. */
function headersOf(given: string): unknown {
  const headers = new Map<string, string[]>();
  for (const pair of given.split(',').filter((each) => each !== '')) {
    const at = pair.indexOf(':');
    if (at < 0) return null;
    const name = pair.slice(0, at).trim();
    headers.set(name, [...(headers.get(name) ?? []), pair.slice(at + 1).trim()]);
  }
  return new Mapping(headers);
}

function verbositiesOf(given: string): unknown {
  return entriesOf(given, ',', (entry) => {
    const at = entry.indexOf('=');
    const [filePattern, verbosity] = [entry.slice(0, at), valueOf(int(0), entry.slice(at + 1))];
    return at < 0 ? null : new Mapping(Object.entries({ filePattern, verbosity }));
  });
}

const THRESHOLDS: Syntax = {
  read: (given) => {
    const pairs = pairsOf(given, () => text, '<');
    return pairs instanceof Mapping ? pairs : null;
  },
  should: 'thresholds such as memory.available<100Mi, with commas between',
};

export const KUBELET_SYNTAXES: Syntaxes = {
  'eviction-hard': THRESHOLDS,
  'eviction-soft': THRESHOLDS,
  'manifest-url-header': { read: headersOf, should: 'headers such as name:value, with commas between' },
  'register-with-taints': {
    read: (given) => entriesOf(given, ',', taintOf),
    should: 'taints such as example.com/role=gpu:NoSchedule, with commas between',
  },
  'reserved-memory': {
    read: (given) => entriesOf(given, ';', numaNodeOf),
    should: 'NUMA nodes such as 0:memory=1Gi,hugepages-2Mi=64Mi, with semicolons between',
  },
  vmodule: { read: verbositiesOf, should: 'patterns such as kubelet*=4, with commas between' },
};
