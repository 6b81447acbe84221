import { API_GROUP, API_VERSION, KIND, KUBE_PROXY, type KubeProxyConfiguration } from './document.js';
import { clip, printValue } from './errors.js';
import { HEALTHZ_PORT, isIPv4Text, METRICS_PORT, withPort } from './host-port.js';
import { readCluster, type ClusterConfiguration } from './kubeadm.js';
import { readSettings, refused } from './tables/settings.js';
import type { Report } from './tables/report.js';
import { Mapping, parseDocuments } from './yaml.js';

/** The one configuration in a file, and the documents beside it that were passed over. */
export interface ConfigurationFile {
  readonly mapping: Mapping;
  /** kubeadm's document beside it. */
  readonly cluster: ClusterConfiguration | null;
  readonly passedOver: readonly string[];
}

/**
 * Finds the KubeProxyConfiguration among a file's documents: the first of the right version and kind.
 *
 * @returns what is wrong with each document when there is none.
 * @throws YamlError when the text is not YAML.
 */
export function findConfiguration(text: string): ConfigurationFile | readonly Report[] {
  const documents = parseDocuments(text).map((document, index) => ({
    document,
    ...identify(document, `document ${index + 1}`),
  }));
  const ours = documents.find(({ problems }) => problems.length === 0)?.document;
  if (!(ours instanceof Mapping)) {
    return documents.length === 0
      ? [refused('', '', null, 'the file holds no document')]
      : documents.flatMap(({ problems }) => problems);
  }
  const others = documents.filter(({ document }) => document !== ours);
  const clusters = others.flatMap(({ document }) => readCluster(document) ?? []);
  const passedOver = others.filter(({ document }) => readCluster(document) === null).map(({ title }) => title);
  return { mapping: ours, cluster: clusters[0] ?? null, passedOver };
}

function identify(
  document: unknown,
  position: string,
): { readonly title: string; readonly problems: readonly Report[] } {
  if (!(document instanceof Mapping))
    return { title: position, problems: [refused(position, 'type', null, 'must be a mapping')] };
  const [version, kind] = ['apiVersion', 'kind'].map((name) => document.entries.get(name) ?? '');
  const isUnknown = typeof version === 'string' && version.startsWith(`${API_GROUP}/`);
  const problems = [typeProblems(`${position}.apiVersion`, version), typeProblems(`${position}.kind`, kind)].flat();
  return {
    title: `${position} (${title(version, 'apiVersion')}, ${title(kind, 'kind')})`,
    problems:
      problems.length > 0
        ? problems
        : [
            ...metaProblems(`${position}.apiVersion`, version, API_VERSION, isUnknown ? 'is an unknown version, ' : ''),
            ...metaProblems(`${position}.kind`, kind, KIND),
          ],
  };
}

function title(value: unknown, name: string): string {
  return typeof value === 'string' && value !== '' ? clip(value) : `no ${name}`;
}

function typeProblems(path: string, value: unknown): readonly Report[] {
  return typeof value === 'string' ? [] : [refused(path, 'type', printValue(value), 'must be a string')];
}

function metaProblems(path: string, value: unknown, wanted: string, why = ''): readonly Report[] {
  if (value === wanted) return [];
  if (value === '') return [refused(path, 'required', null, `must be ${wanted}`)];
  return [refused(path, 'value', printValue(value), `${why}must be ${wanted}`)];
}

/**
 * Decodes a document and fills in the defaults of v1alpha1, which stand in place of what is wrong, too.
 *
 * @param report gets what is wrong.
 */
export function decodeConfiguration(
  mapping: Mapping,
  report: (report: Report) => void = () => undefined,
): KubeProxyConfiguration {
  const read = readSettings(KUBE_PROXY, mapping, KIND, report);
  const { bindAddress, healthzBindAddress, metricsBindAddress } = read;
  const [anyAddress, loopback] = isIPv4Text(bindAddress) ? ['0.0.0.0', '127.0.0.1'] : ['::', '::1'];
  return {
    ...read,
    apiVersion: API_VERSION,
    kind: KIND,
    healthzBindAddress: withPort(healthzBindAddress || anyAddress, HEALTHZ_PORT),
    metricsBindAddress: withPort(metricsBindAddress || loopback, METRICS_PORT),
  };
}
