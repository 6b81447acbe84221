import { hostname } from 'node:os';
import { buildConfig, type Config } from './config.js';
import {
  attribute,
  readConfiguration,
  type ConfigurationPaths,
  type ConfigurationSource,
} from './configuration-source.js';
import { KIND, type KubeProxyConfiguration } from './document.js';
import { applyPlatformDefaults, inForce, unsetMode } from './effective.js';
import { ConfigError, invalid } from './errors.js';
import type { ConfigFiles } from './files.js';
import { flagSettings, isFlagSet, parseCommandLine, textFlag, type CommandLine, type FlagSetting } from './flags.js';
import { readTruth } from './flag-values.js';
import { describeIneffective } from './ineffective.js';
import { describeLimitations } from './scheduler.js';
import { applyFlags, flagWarnings, type FileFlag } from './overlay.js';
import { readEnvironment } from './environment.js';
import { printProblem, type Report } from './tables/report.js';
import { remarked } from './tables/settings.js';
import { validateConfiguration } from './validate.js';
import { KUBERNETES_VERSION, minorOf } from './version.js';
import { printConfiguration } from './write.js';

/** What the process was asked to do without a command, with all that it needs for it. */
export type LoadedConfig =
  | { readonly command: 'help' }
  | { readonly command: 'version'; readonly format: 'short' | 'raw' }
  | ({ readonly command: 'write-config'; readonly path: string; readonly text: string } & Loaded)
  | ({ readonly command: 'run' | 'init' | 'cleanup' } & Loaded);

/** What a configuration depends on beside what is given. */
export interface Target {
  readonly platform: NodeJS.Platform;
  readonly environment: Readonly<Record<string, string | undefined>>;
}

export interface Loaded {
  readonly config: Config;
  /** The effective v1alpha1 document. */
  readonly document: KubeProxyConfiguration;
  /** For the log: one line each, about settings that do not do what one may think. */
  readonly warnings: readonly string[];
  /** Those of them that are about fields. */
  readonly remarks: readonly Report[];
  /** The version to report. */
  readonly version: string;
  /** Every flag as it counts, for the log and /flagz. */
  readonly flags: readonly FlagSetting[];
  /** The files that were read, to be followed. */
  readonly paths: ConfigurationPaths;
}

/**
 * Reads a command line without a command into a configuration. Nothing is printed, and nothing but `files` is read.
 *
 * @param argv arguments without the program's own path.
 * @param systemHostname the node's name when none is configured.
 * @param target the host that the configuration is for.
 * @throws ConfigError with every problem of the stage that failed.
 */
export function loadConfig(
  argv: readonly string[],
  files: ConfigFiles,
  systemHostname?: () => string,
  target?: Target,
): LoadedConfig {
  const line = parseCommandLine(argv);
  if (line.help) return { command: 'help' };
  const version = textFlag(line, 'version');
  const isAsked = readTruth(version || 'false');
  if (isAsked === true || version === 'raw') return { command: 'version', format: version === 'raw' ? 'raw' : 'short' };
  const reported = isAsked === false ? KUBERNETES_VERSION : overrideVersion(version);
  const loaded = loadLine(line, files, [], systemHostname, target, reported);
  const path = textFlag(line, 'write-config-to');
  if (path !== '') return { command: 'write-config', path, text: printConfiguration(loaded.document), ...loaded };
  const command = isFlagSet(line, 'cleanup') ? 'cleanup' : isFlagSet(line, 'init-only') ? 'init' : 'run';
  return { command, ...loaded };
}

/**
 * Reads the configuration that a parsed command line asks for, that of a command as well.
 *
 * @param commandProblems what the command has against it.
 */
export function loadLine(
  line: CommandLine,
  files: ConfigFiles,
  commandProblems: readonly string[],
  systemHostname: () => string = hostname,
  { platform, environment }: Target = { platform: process.platform, environment: process.env },
  version: string = KUBERNETES_VERSION,
): Loaded {
  const paths = { file: textFlag(line, 'config') || null, directory: textFlag(line, 'config-dir') || null };
  const source = readConfiguration(paths, files);
  const fileFlag = chooseFileFlag(paths);
  const decoded = applyFlags(source.document, line, fileFlag, platform);

  const defaulted = applyPlatformDefaults(decoded, platform);
  const settings = readEnvironment(line, { ...decoded, mode: defaulted.mode }, files, systemHostname);
  const problems = [
    ...validateSource(defaulted, source, platform, minorOf(version)),
    ...settings.problems,
    ...commandProblems,
    ...clusterCIDRProblems(line, defaulted, fileFlag),
  ];
  if (problems.length > 0) throw new ConfigError('CONFIG_INVALID', 'failed validate', problems);

  const document = inForce(defaulted);
  const kubeNetwork = environment['KUBE_NETWORK'] ?? '';
  const config = buildConfig(document, { ...settings.value, kubeNetwork });
  const warnings: readonly (string | Report)[] = [
    ...source.warnings,
    ...flagWarnings(source.document, line, fileFlag, platform),
    ...(decoded.mode === '' ? [remarked(`${KIND}.mode`, 'default', unsetMode(platform))] : []),
    ...describeIneffective(defaulted, config.kubernetes !== null),
    ...describeLimitations(defaulted),
    ...settings.warnings,
  ];
  return {
    config,
    document,
    warnings: warnings.map((warning) => (typeof warning === 'string' ? warning : printProblem(warning))),
    remarks: warnings.filter((warning) => typeof warning !== 'string'),
    version,
    flags: flagSettings(line),
    paths,
  };
}

/** Decided by what is given and not by what is found, or a first file in an empty directory would switch the flags off. */
function chooseFileFlag({ file, directory }: ConfigurationPaths): FileFlag {
  if (file !== null) return 'config';
  return directory === null ? null : 'config-dir';
}

/** Kubernetes' release as metrics, `User-Agent` and `/statusz` name it: that of the cluster, where alerts compare them. */
function overrideVersion(version: string): string {
  if (/^v\d+\.\d+\.\d+(?:-[0-9A-Za-z.-]+)?(?:\+[0-9A-Za-z.-]+)?$/.test(version)) return version;
  throw new ConfigError('CONFIG_USAGE', null, [
    invalid('--version', version, `must be true, false, raw or a release such as ${KUBERNETES_VERSION}`),
  ]);
}

/** Violations, each with the file it comes from unless a flag brought it in. */
function validateSource(
  document: KubeProxyConfiguration,
  { document: read, layers }: ConfigurationSource,
  platform: NodeJS.Platform,
  release: number,
): string[] {
  const problems = validateConfiguration(document, platform, release);
  if (problems.length === 0) return [];
  const inFiles = validateConfiguration(applyPlatformDefaults(read, platform), platform, release);
  const ofFiles = new Set(inFiles.map(printProblem));
  return problems.map((problem) => {
    const text = printProblem(problem);
    return ofFiles.has(text) ? attribute(problem, layers) : text;
  });
}

/** An empty list in a flag is a list of one empty prefix (behaviour FL-06); in a file it is none. */
function clusterCIDRProblems(
  { given }: CommandLine,
  { detectLocalMode }: KubeProxyConfiguration,
  file: FileFlag,
): string[] {
  const isEmpty = file === null && given.get('cluster-cidr') === '' && detectLocalMode === 'ClusterCIDR';
  return isEmpty ? [invalid('--cluster-cidr', '', 'must be one CIDR, or one per IP family')] : [];
}
