import { hostname } from 'node:os';
import { isLoopback } from '../base/ip.js';
import { buildConfig, type Config } from './config.js';
import {
  attribute,
  readConfiguration,
  type ConfigurationPaths,
  type ConfigurationSource,
} from './configuration-source.js';
import { KIND, type KubeProxyConfiguration } from './document.js';
import { applyPlatformDefaults, defaultMode, inForce } from './effective.js';
import type { Subcommand } from './command-names.js';
import { ConfigError, invalid } from './errors.js';
import type { ConfigFiles } from './files.js';
import {
  flagSettings,
  isFlagSet,
  listFlag,
  numberFlag,
  parseCommandLine,
  textFlag,
  type CommandLine,
  type FlagSetting,
} from './flags.js';
import { readTruth } from './flag-values.js';
import { parseListen, type HostPort } from './host-port.js';
import { describeIneffective } from './ineffective.js';
import { describeLimitations } from './scheduler.js';
import { applyFlags, flagWarnings, type FileFlag } from './overlay.js';
import { readSurroundings } from './surroundings.js';
import { printProblem, type Report } from './tables/report.js';
import { remarked } from './tables/settings.js';
import { validateConfiguration } from './validate.js';
import { KUBERNETES_VERSION } from './version.js';
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
      readonly node: string;
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
  /** `file`: what is written; empty: named after node and time. */
  | ({ readonly command: 'bugreport'; readonly file: string } & Loaded)
  | ({ readonly command: 'ui'; readonly listen: HostPort } & Loaded)
  | ({ readonly command: 'plan' | 'dump' | 'diff'; readonly output: OutputForm } & Loaded)
  | ({ readonly command: 'run' | 'init' | 'cleanup' | 'render' } & Loaded);

/** What a configuration depends on beside what is given. */
export interface Target {
  readonly platform: NodeJS.Platform;
  readonly environment: Readonly<Record<string, string | undefined>>;
}

/** How a command prints. */
export type OutputForm = (typeof OUTPUT_FORMS)[number];
const OUTPUT_FORMS = ['text', 'table', 'wide', 'json', 'yaml'] as const;

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
 * Turns a command line into a configuration. Nothing is printed, and nothing but `files` is read.
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
  return loadLine(parseCommandLine(argv), files, systemHostname, target);
}

/** The same of a command line that has been parsed: that of a command. */
export function loadLine(
  line: CommandLine,
  files: ConfigFiles,
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
  const surroundings = readSurroundings(line, { ...decoded, mode: defaulted.mode }, files, systemHostname);
  const problems = [
    ...validateSource(defaulted, source, platform),
    ...surroundings.problems,
    ...sourceProblems(line, command),
    ...clusterCIDRProblems(line, defaulted, fileFlag),
  ];
  if (problems.length > 0) throw new ConfigError('CONFIG_INVALID', 'failed validate', problems);

  const document = inForce(defaulted);
  const kubeNetwork = environment['KUBE_NETWORK'] ?? '';
  const config = buildConfig(document, { ...surroundings.value, kubeNetwork });
  const warnings: readonly (string | Report)[] = [
    ...source.warnings,
    ...flagWarnings(source.document, line, fileFlag, platform),
    ...(decoded.mode === '' ? [remarked(`${KIND}.mode`, 'default', `is not set, using ${defaultMode(platform)}`)] : []),
    ...describeIneffective(defaulted, config.kubernetes !== null),
    ...describeLimitations(defaulted),
    ...surroundings.warnings,
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

function readOutput(line: CommandLine): OutputForm {
  return OUTPUT_FORMS.find((form) => form === textFlag(line, 'output')) ?? 'text';
}

/** With what only this command wants to know. */
function forCommand(command: Command, line: CommandLine, loaded: Loaded): LoadedConfig {
  const output = readOutput(line);
  if (command === 'status') {
    const heapSnapshot = textFlag(line, 'heap-snapshot');
    return { command, output, heapSnapshot, watch: isFlagSet(line, 'watch'), ...loaded };
  }
  if (command === 'services')
    return {
      command,
      named: line.operand ?? '',
      output,
      problemsOnly: isFlagSet(line, 'problems'),
      limit: numberFlag(line, 'limit') ?? 0,
      watch: isFlagSet(line, 'watch'),
      ...loaded,
    };
  if (command === 'selftest' || command === 'trace') return forPackets(command, line, loaded);
  if (command === 'top')
    return {
      command,
      output,
      seconds: readSmall(line, 'seconds'),
      count: numberFlag(line, 'count') ?? 0,
      sort: readOrder(line),
      endpoints: isFlagSet(line, 'endpoints'),
      limit: numberFlag(line, 'limit') ?? 0,
      ...loaded,
    };
  if (command === 'bugreport') return { command, file: textFlag(line, 'file'), ...loaded };
  if (command === 'ui') return { command, listen: readListen(line), ...loaded };
  if (command === 'plan' || command === 'dump' || command === 'diff') return { command, output, ...loaded };
  if (command === 'explain')
    return {
      command,
      from: textFlag(line, 'from'),
      to: line.operand ?? '',
      output,
      node: textFlag(line, 'node'),
      namespace: textFlag(line, 'namespace'),
      selector: textFlag(line, 'selector'),
      ...loaded,
    };
  if (command !== 'write-config') return { command, ...loaded };
  return { command, path: textFlag(line, 'write-config-to'), text: printConfiguration(loaded.document), ...loaded };
}

/** What sends packets, or follows them. */
function forPackets(command: 'selftest' | 'trace', line: CommandLine, loaded: Loaded): LoadedConfig {
  const output = readOutput(line);
  const seconds = readSmall(line, 'seconds');
  if (command === 'selftest') {
    const isJunit = textFlag(line, 'output') === 'junit';
    return { command, services: line.operands, output: isJunit ? 'junit' : output, seconds, ...loaded };
  }
  const [from, to] = [textFlag(line, 'from'), line.operand ?? ''];
  return { command, from, to, output, seconds, count: readSmall(line, 'count'), ...loaded };
}

const ORDERS = ['connections', 'bytes', 'refused'] as const;

function readOrder(line: CommandLine): (typeof ORDERS)[number] {
  const text = textFlag(line, 'sort');
  const order = ORDERS.find((each) => each === text);
  if (order !== undefined) return order;
  throw new ConfigError('CONFIG_USAGE', null, [invalid('--sort', text, `must be one of ${ORDERS.join(', ')}`)]);
}

const MOST = { seconds: 60, count: 100 } as const;

function readSmall(line: CommandLine, name: keyof typeof MOST): number {
  const value = numberFlag(line, name) ?? 0;
  if (value >= 1 && value <= MOST[name]) return value;
  throw new ConfigError('CONFIG_USAGE', null, [invalid(`--${name}`, value, `must be 1 to ${MOST[name]}`)]);
}

/** Where the page is served: to this machine alone. */
function readListen(line: CommandLine): HostPort {
  const text = textFlag(line, 'listen');
  const place = parseListen(text);
  const problem =
    typeof place === 'string' ? place : 'must be an address of loopback: the page is for this machine alone';
  if (typeof place === 'object' && isLoopback(place.address)) return place;
  throw new ConfigError('CONFIG_USAGE', null, [invalid('--listen', text, problem)]);
}

type Command = Exclude<LoadedConfig['command'], 'help' | 'version'>;

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
): string[] {
  const problems = validateConfiguration(document, platform);
  if (problems.length === 0) return [];
  const ofFiles = new Set(validateConfiguration(applyPlatformDefaults(read, platform), platform).map(printProblem));
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
