import { join } from 'node:path';
import { messageOf } from '../base/error-message.js';
import { YamlError } from '../base/yaml.js';
import { decodeConfiguration, findConfiguration, type ConfigurationFile } from './decode.js';
import { KIND, type KubeProxyConfiguration } from './document.js';
import { ConfigError, joinProblems } from './errors.js';
import { isDropIn, type ConfigFiles } from './files.js';
import { describeCluster, fillClusterCIDR, type ClusterConfiguration } from './kubeadm.js';
import { printProblem, type Report } from './tables/report.js';
import { STRICT } from './tables/settings.js';
import { withoutPlaceholders } from './written-out.js';
import { Mapping } from './yaml.js';

/** Where the configuration is; null: not given. */
export interface ConfigurationPaths {
  readonly file: string | null;
  /** Of drop-in files. */
  readonly directory: string | null;
}

export interface ConfigurationSource {
  /** With every default filled in. */
  readonly document: KubeProxyConfiguration;
  /** About the files, or about fields. */
  readonly warnings: readonly (string | Report)[];
  /** In the order they were laid over one another. */
  readonly layers: readonly Layer[];
}

interface Layer {
  readonly path: string;
  readonly mapping: Mapping;
  readonly cluster: ClusterConfiguration | null;
  readonly warnings: readonly string[];
}

/**
 * Reads the configuration file and lays the directory's files over it, in the order of their names.
 *
 * @throws ConfigError that names the file.
 */
export function readConfiguration({ file, directory }: ConfigurationPaths, files: ConfigFiles): ConfigurationSource {
  const dropIns = directory === null ? [] : listDropIns(directory, files);
  const layers = [...(file === null ? [] : [file]), ...dropIns].map((path) => readLayer(path, files));
  const merged = layers.reduce((below, { mapping }) => below.merge(mapping), new Mapping([]));
  const cluster = layers.findLast((layer) => layer.cluster !== null)?.cluster ?? null;
  const filled = cluster === null ? merged : fillClusterCIDR(merged, cluster);
  const document = decodeConfiguration(filled);
  return {
    document,
    warnings: [
      ...layers.flatMap(({ warnings }) => warnings),
      ...(cluster === null ? [] : describeCluster(cluster, document, filled !== merged)),
    ],
    layers,
  };
}

/** The problem with the file that set the field it is about, when several could have. */
export function attribute(problem: Report, layers: readonly Layer[]): string {
  const [, ...path] = problem.path.replace(/\[.*/, '').split('.');
  const layer = layers.length < 2 ? undefined : layers.findLast(({ mapping }) => mapping.has(path));
  return `${printProblem(problem)}${layer === undefined ? '' : ` (from ${layer.path})`}`;
}

function listDropIns(directory: string, files: ConfigFiles): readonly string[] {
  try {
    const names = files.list(directory).filter(isDropIn).sort();
    return names.map((name) => join(directory, name));
  } catch (error) {
    throw readError('directory', directory, error);
  }
}

function readLayer(path: string, files: ConfigFiles): Layer {
  const found = find(path, readText(path, files));
  const problems: Report[] = [];
  decodeConfiguration(found.mapping, (problem) => problems.push(problem));
  const strict = problems.filter(({ rule }) => STRICT.includes(rule)).map(printStrict);
  const fatal = problems.filter(({ rule }) => !STRICT.includes(rule)).map(printProblem);
  if (fatal.length > 0) throw decodeError(path, [...fatal, ...strict]);
  const { passedOver, cluster } = found;
  const { mapping, ambiguous } = withoutPlaceholders(found.mapping);
  const warnings = [
    ...(ambiguous.length > 0
      ? [`${path}: 0 is taken for unset, like other fields of the file: ${joinProblems(ambiguous)}`]
      : []),
    ...(passedOver.length > 0 ? [`${path}: only one ${KIND} is used, ignored: ${joinProblems(passedOver)}`] : []),
    ...(strict.length > 0
      ? [`Using lenient decoding as strict decoding failed: ${path}: ${joinProblems(strict)}`]
      : []),
  ];
  return { path, mapping, cluster, warnings };
}

/** What kube-proxy's lenient decoding passes over: a name in another case is as unknown to it as any. */
function printStrict({ rule, path }: Report): string {
  return `${path}: ${rule === 'duplicate-field' ? 'field is set twice, the last one is used' : 'unknown field'}`;
}

function readText(path: string, files: ConfigFiles): string {
  try {
    return files.read(path);
  } catch (error) {
    throw readError('file', path, error);
  }
}

function find(path: string, text: string): ConfigurationFile {
  try {
    const found = findConfiguration(text);
    if ('mapping' in found) return found;
    throw decodeError(path, found.map(printProblem));
  } catch (error) {
    throw error instanceof YamlError ? decodeError(path, [error.message]) : error;
  }
}

function readError(what: 'file' | 'directory', path: string, error: unknown): ConfigError {
  const reason = messageOf(error);
  return new ConfigError('CONFIG_READ', 'failed complete', [
    `could not read configuration ${what} ${JSON.stringify(path)}: ${reason}`,
  ]);
}

function decodeError(path: string, problems: readonly string[]): ConfigError {
  return new ConfigError('CONFIG_DECODE', `failed complete: failed to decode: ${path}`, problems);
}
