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
import type { Subcommand } from './command-names.js';
import { ConfigError, invalid } from './errors.js';
import type { ConfigFiles } from './files.js';
import {
  flagSettings,
  isFlagSet,
  listFlag,
  parseCommandLine,
  textFlag,
  type CommandLine,
  type FlagSetting,
} from './flags.js';
import { readTruth } from './flag-values.js';
import type { HostPort } from './host-port.js';
import { describeIneffective } from './ineffective.js';
import { describeLimitations } from './scheduler.js';
import { applyFlags, flagWarnings, type FileFlag } from './overlay.js';
import { readEnvironment } from './environment.js';
import { printProblem, type Report } from './tables/report.js';
import { remarked } from './tables/settings.js';
import { validateConfiguration } from './validate.js';
import { KUBERNETES_VERSION, minorOf } from './version.js';
import { printConfiguration } from './write.js';

/** What the process was asked to do, with all that it needs for it. */
export type LoadedConfig =
  /** `of`: the command whose flags are asked for; null: the proxy itself. */
  | { readonly command: 'help'; readonly of: Subcommand | null }
  | { readonly command: 'version'; readonly format: 'short' | 'raw' }
  | ({ readonly command: 'write-config'; readonly path: string; readonly text: string } & Loaded)
  /** `heapSnapshot`: the file to write one to; empty: none. `watch`: again and again. */
  | ({
      readonly command: 'status';
      readonly output: OutputForm;
      readonly heapSnapshot: string;
      readonly watch: boolean;
    } & Loaded)
  /** `node`: whose proxy is asked, through the API server; empty: the one of this machine. `namespace`, `selector`: of the proxies' pods; empty: the usual ones. */
  | ({
      readonly command: 'explain';
      readonly from: string;
      readonly to: string;
      readonly output: OutputForm;
      readonly watch: boolean;
      readonly node: string;
      readonly context: string;
      readonly namespace: string;
      readonly selector: string;
    } & Loaded)
  /** `named`: which of them; empty: all. `limit`: how many; 0: all of them. */
  | ({
      readonly command: 'services';
      readonly named: string;
      readonly output: OutputForm;
      readonly problemsOnly: boolean;
      readonly limit: number;
      readonly watch: boolean;
    } & Loaded)
  /** `services`: which are tried; empty: one of the test itself. `seconds`: how long an answer is waited for. */
  | ({
      readonly command: 'selftest';
      readonly services: readonly string[];
      readonly output: OutputForm | 'junit';
      readonly seconds: number;
    } & Loaded)
  /** `from`: empty: any sender. `count`: how many connections, of those that come within `seconds`. */
  | ({
      readonly command: 'trace';
      readonly from: string;
      readonly to: string;
      readonly output: OutputForm;
      readonly seconds: number;
      readonly count: number;
    } & Loaded)
  /** `seconds`: between two looks. `count`: how many tables; 0: until it is interrupted. `limit`: rows of each. */
  | ({
      readonly command: 'top';
      readonly output: OutputForm;
      readonly seconds: number;
      readonly count: number;
      readonly sort: 'connections' | 'bytes' | 'refused';
      readonly endpoints: boolean;
      readonly limit: number;
    } & Loaded)
  /** `file`: what is written; empty: named after node and time. `node`: as of explain; `all`: of all nodes. */
  | ({
      readonly command: 'bugreport';
      readonly file: string;
      readonly node: string;
      readonly all: boolean;
      readonly kubeconfig: string;
      readonly context: string;
      readonly namespace: string;
      readonly selector: string;
    } & Loaded)
  | ({ readonly command: 'ui'; readonly listen: HostPort } & Loaded)
  | ({ readonly command: 'plan' | 'dump' | 'diff'; readonly output: OutputForm } & Loaded)
  | ({ readonly command: 'run' } & Loaded)
  | ({ readonly command: 'init' | 'cleanup' | 'render' } & Loaded);

/** What a configuration depends on beside what is given. */
export interface Target {
  readonly platform: NodeJS.Platform;
  readonly environment: Readonly<Record<string, string | undefined>>;
}

/** How a command prints. */
export type OutputForm = (typeof OUTPUT_FORMS)[number];
export const OUTPUT_FORMS = ['text', 'table', 'wide', 'json', 'yaml'] as const;

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
 * TimeBudget a command line into a configuration. Nothing is printed, and nothing but `files` is read.
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
  return loadLine(parseCommandLine(argv), files, ofProxy, systemHostname, target);
}

/** The same of a command line that has been parsed: that of a command. */
export function loadLine(
  line: CommandLine,
  files: ConfigFiles,
  forCommand: ReadSettings,
  systemHostname: () => string = hostname,
  { platform, environment }: Target = { platform: process.platform, environment: process.env },
): LoadedConfig {
  if (line.help) return { command: 'help', of: line.subcommand };
  const version = textFlag(line, 'version');
  const isAsked = readTruth(version || 'false');
  if (isAsked === true || version === 'raw') return { command: 'version', format: version === 'raw' ? 'raw' : 'short' };
  const reportedVersion = isAsked === false ? KUBERNETES_VERSION : overrideVersion(version);

  const paths = { file: textFlag(line, 'config') || null, directory: textFlag(line, 'config-dir') || null };
  const source = readConfiguration(paths, files);
  const fileFlag = chooseFileFlag(paths);
  const decoded = applyFlags(source.document, line, fileFlag, platform);

  const command = chooseCommand(line);
  const defaulted = applyPlatformDefaults(decoded, platform);
  const settings = readEnvironment(line, { ...decoded, mode: defaulted.mode }, files, systemHostname);
  const problems = [
    ...validateSource(defaulted, source, platform, minorOf(reportedVersion)),
    ...settings.problems,
    ...sourceProblems(line, command),
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
  const loaded: Loaded = {
    config,
    document,
    warnings: warnings.map((warning) => (typeof warning === 'string' ? warning : printProblem(warning))),
    remarks: warnings.filter((warning) => typeof warning !== 'string'),
    version: reportedVersion,
    flags: flagSettings(line),
    paths,
  };
  return forCommand(command, line, loaded);
}

/** Of what stands without a command's name. */
function ofProxy(command: Command, line: CommandLine, loaded: Loaded): LoadedConfig {
  if (command === 'write-config')
    return { command, path: textFlag(line, 'write-config-to'), text: printConfiguration(loaded.document), ...loaded };
  if (command === 'run' || command === 'init' || command === 'cleanup') return { command, ...loaded };
  throw new TypeError(`${command} is a command`);
}

/** What a command line comes to, beside the configuration. */
type ReadSettings = (command: Command, line: CommandLine, loaded: Loaded) => LoadedConfig;

export type Command = Exclude<LoadedConfig['command'], 'help' | 'version'>;

function chooseCommand(line: CommandLine): Command {
  if (textFlag(line, 'write-config-to') !== '') return 'write-config';
  if (isFlagSet(line, 'cleanup')) return 'cleanup';
  if (isFlagSet(line, 'init-only')) return 'init';
  return line.subcommand ?? 'run';
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

function sourceProblems(line: CommandLine, command: Command): string[] {
  const isNeeded = command === 'plan' || command === 'render';
  const isGiven = listFlag(line, 'manifests').length > 0;
  if (isNeeded && !isGiven) return [`--manifests: Required value: ${command} reads no API server`];
  return isGiven && textFlag(line, 'node') !== '' ? ['--node: Forbidden: --manifests are asked, not a node'] : [];
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
