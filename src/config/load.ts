import { hostname } from 'node:os';
import { buildConfig, type Config, type HttpHeader, type Surroundings } from './config.js';
import { decodeConfiguration, findConfiguration } from './decode.js';
import { KIND, type KubeProxyConfiguration } from './document.js';
import { applyPlatformDefaults, clearInactive, DEFAULT_MODE, SUPPORTED_MODES } from './effective.js';
import { ConfigError, invalid, joinProblems } from './errors.js';
import { FLAGS, parseCommandLine, type CommandLine, type FlagName, type FlagValue, type Subcommand } from './flags.js';
import { describeIneffective } from './ineffective.js';
import type { Findings } from './reader.js';
import { validateConfiguration } from './validate.js';
import { KUBERNETES_VERSION } from './version.js';
import { printConfiguration } from './write.js';
import { Mapping, YamlError } from './yaml.js';

/** What the process was asked to do, with all that it needs for it. */
export type LoadedConfig =
  | { readonly command: 'help'; readonly text: string }
  | { readonly command: 'version'; readonly format: 'short' | 'raw' }
  | ({ readonly command: 'write-config'; readonly path: string; readonly text: string } & Loaded)
  | ({ readonly command: 'run' | 'cleanup' | Subcommand } & Loaded);

interface Loaded {
  readonly config: Config;
  /** The effective v1alpha1 document. */
  readonly document: KubeProxyConfiguration;
  /** For the log: one line each, about settings that do not do what one may think. */
  readonly warnings: readonly string[];
  /** The version to report. */
  readonly version: string;
}

/**
 * Turns a command line into a configuration. Nothing is printed, and nothing but `read` is called.
 *
 * @param argv arguments without the program's own path.
 * @param read returns a file's text, or throws.
 * @param systemHostname the node's name when none is configured.
 * @throws ConfigError with every problem of the stage that failed.
 */
export function loadConfig(
  argv: readonly string[],
  read: (path: string) => string,
  systemHostname: () => string = hostname,
): LoadedConfig {
  const line = parseCommandLine(argv);
  if (line.help !== null) return { command: 'help', text: line.help };
  const version = textFlag(line, 'version');
  if (version === 'true' || version === 'raw')
    return { command: 'version', format: version === 'raw' ? 'raw' : 'short' };
  const reportedVersion = version === '' || version === 'false' ? KUBERNETES_VERSION : overrideVersion(version);

  const source = readSource(line, read);
  const findings: Findings = { strict: [], fatal: [] };
  const decoded = decodeConfiguration(withFlags(source.mapping, line, source.path), findings);
  if (findings.fatal.length > 0) throw decodeError(source.path, [...findings.fatal, ...findings.strict]);

  const command = chooseCommand(line);
  const defaulted = applyPlatformDefaults(decoded);
  const surroundings = readSurroundings(line, decoded, systemHostname);
  const problems = [
    ...validateConfiguration(defaulted),
    ...surroundings.problems,
    ...modeProblems(defaulted, command),
    ...sourceProblems(line, command),
  ];
  if (problems.length > 0) throw new ConfigError('CONFIG_INVALID', 'failed validate', problems);

  const document = clearInactive(defaulted);
  const loaded: Loaded = {
    config: buildConfig(document, surroundings.value),
    document,
    warnings: [
      ...source.warnings,
      ...strictWarnings(source.path, findings.strict),
      ...ignoredFlags(line, source.path),
      ...(decoded.mode === '' ? [`${KIND}.mode: is not set, using ${DEFAULT_MODE}`] : []),
      ...describeIneffective(defaulted),
    ],
    version: reportedVersion,
  };
  if (command !== 'write-config') return { command, ...loaded };
  return { command, path: textFlag(line, 'write-config-to'), text: printConfiguration(document), ...loaded };
}

type Command = Exclude<LoadedConfig['command'], 'help' | 'version'>;

function chooseCommand(line: CommandLine): Command {
  if (textFlag(line, 'write-config-to') !== '') return 'write-config';
  if (flag(line, 'cleanup') === true) return 'cleanup';
  return line.subcommand ?? 'run';
}

/** A version that may be reported has the core of the real one and something of its own behind it. */
function overrideVersion(version: string): string {
  const rest = version.startsWith(KUBERNETES_VERSION) ? version.slice(KUBERNETES_VERSION.length) : null;
  if (rest !== null && /^(?:[-+][0-9A-Za-z.+-]+)?$/.test(rest)) return version;
  throw new ConfigError('CONFIG_USAGE', null, [
    invalid('--version', version, `must be true, false, raw or ${KUBERNETES_VERSION} with a suffix`),
  ]);
}

interface Source {
  /** Null: no file, flags only. */
  readonly path: string | null;
  readonly mapping: Mapping;
  readonly warnings: readonly string[];
}

function readSource(line: CommandLine, read: (path: string) => string): Source {
  const path = textFlag(line, 'config');
  if (path === '') return { path: null, mapping: new Mapping([]), warnings: [] };
  let text: string;
  try {
    text = read(path);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new ConfigError('CONFIG_READ', 'failed complete', [
      `could not read configuration file ${JSON.stringify(path)}: ${reason}`,
    ]);
  }
  try {
    const found = findConfiguration(text);
    if (!('mapping' in found)) throw decodeError(path, found);
    const passedOver = found.passedOver.length > 0 ? joinProblems(found.passedOver) : null;
    const warnings = passedOver === null ? [] : [`${path}: only one ${KIND} is used, passed over: ${passedOver}`];
    return { path, mapping: found.mapping, warnings };
  } catch (error) {
    throw error instanceof YamlError ? decodeError(path, [error.message]) : error;
  }
}

function decodeError(path: string | null, problems: readonly string[]): ConfigError {
  return new ConfigError('CONFIG_DECODE', `failed complete: failed to decode: ${path ?? 'flags'}`, problems);
}

/** Lays the flags over the document: beside a file only those that count there. */
function withFlags(mapping: Mapping, line: CommandLine, path: string | null): Mapping {
  const laid = FLAGS.filter(({ overridesFile }) => path === null || overridesFile === true);
  return laid.reduce((result, { name, field }) => {
    const value = name === 'hostname-override' ? hostnameOverride(line) : line.given.get(name);
    return field === undefined || value === undefined || value === '' ? result : result.with(field, value);
  }, mapping);
}

function hostnameOverride(line: CommandLine): string {
  const given = textFlag(line, 'hostname-override');
  const name = given.trim().toLowerCase();
  if (given !== '' && name === '')
    throw new ConfigError('CONFIG_INVALID', 'failed complete', ['empty hostname-override is invalid']);
  return name;
}

function ignoredFlags(line: CommandLine, path: string | null): string[] {
  if (path === null) return [];
  return FLAGS.filter(
    ({ name, field, overridesFile }) => line.given.has(name) && field !== undefined && overridesFile !== true,
  ).map(({ name }) => `--${name}: is ignored because --config is given`);
}

function strictWarnings(path: string | null, strict: readonly string[]): string[] {
  if (strict.length === 0) return [];
  return [`Using lenient decoding as strict decoding failed: ${path ?? 'flags'}: ${joinProblems(strict)}`];
}

function modeProblems({ mode }: KubeProxyConfiguration, command: Command): string[] {
  // Neither of these two runs a mode: cleaning up removes what is ours whatever the configuration says.
  if (command === 'write-config' || command === 'cleanup') return [];
  if (mode !== 'iptables' && mode !== 'ipvs') return [];
  return [invalid(`${KIND}.mode`, mode, `is not supported yet (supported: ${SUPPORTED_MODES.join(', ')})`)];
}

function sourceProblems(line: CommandLine, command: Command): string[] {
  const isNeeded = command === 'run' || command === 'plan' || command === 'render';
  return isNeeded && listFlag(line, 'manifests').length === 0
    ? ['--manifests: Required value: reading from the Kubernetes API is not supported yet']
    : [];
}

function readSurroundings(
  line: CommandLine,
  document: KubeProxyConfiguration,
  systemHostname: () => string,
): { readonly value: Surroundings; readonly problems: readonly string[] } {
  const problems: string[] = [];
  const nodeName = (document.hostnameOverride || systemHostname()).trim().toLowerCase();
  if (nodeName === '') problems.push(`${KIND}.hostnameOverride: empty hostname is invalid`);
  const manifests = listFlag(line, 'manifests');
  if (manifests.includes('')) problems.push('--manifests: Required value: must not be empty');
  const headerLines = listFlag(line, 'manifests-header');
  if (headerLines.length > 0 && !manifests.some((source) => /^https?:\/\//i.test(source))) {
    problems.push('--manifests-header: Forbidden: only with a URL in --manifests');
  }
  const manifestsHeaders = headerLines.map(parseHeader);
  // The value may be a credential, so messages name the flag only.
  if (manifestsHeaders.includes(null)) problems.push("--manifests-header: Invalid value: must be 'Name: value'");
  return {
    value: { nodeName, manifests, manifestsHeaders: manifestsHeaders.filter((header) => header !== null) },
    problems,
  };
}

/** A field name is an RFC 9110 token, a value visible text; anything else would make a malformed request. */
function parseHeader(line: string): HttpHeader | null {
  const match = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([\t\x20-\x7e\x80-\xff]*)$/.exec(line);
  return match === null ? null : { name: match[1] ?? '', value: (match[2] ?? '').trim() };
}

function flag(line: CommandLine, name: FlagName): FlagValue | undefined {
  return line.given.get(name);
}

function textFlag(line: CommandLine, name: FlagName): string {
  const value = flag(line, name);
  return typeof value === 'string' ? value : '';
}

function listFlag(line: CommandLine, name: FlagName): readonly string[] {
  const value = flag(line, name);
  return typeof value === 'object' ? value : [];
}
