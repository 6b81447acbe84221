import { differences } from './compare.js';
import { decodeConfiguration } from './decode.js';
import { KIND, type KubeProxyConfiguration } from './document.js';
import { clip, ConfigError, invalid } from './errors.js';
import type { Flag } from './flag.js';
import { CONFIGURATION_FLAGS, FLAGS } from './flag-table.js';
import { numberFlag, textFlag, type CommandLine } from './flags.js';
import { HEALTHZ_PORT, METRICS_PORT, withPort } from './host-port.js';
import type { Report } from './tables/report.js';
import { remarked } from './tables/settings.js';
import { Mapping } from './yaml.js';

/** The flag that names files which count in place of most flags; null: there are none. */
export type FileFlag = 'config' | 'config-dir' | null;

/** Lays the flags over a document with its defaults: beside a file only those that count there (behaviour CL-40). */
export function applyFlags(
  document: KubeProxyConfiguration,
  line: CommandLine,
  file: FileFlag,
  platform: NodeJS.Platform,
): KubeProxyConfiguration {
  const hostname = textFlag(line, 'hostname-override');
  if (hostname !== '' && hostname.trim() === '')
    throw new ConfigError('CONFIG_INVALID', 'failed complete', ['empty hostname-override is invalid']);
  const mode = readMode(line);
  const isOpen = mode !== '' && (file === null || document.mode === '');
  const laid = CONFIGURATION_FLAGS.reduce(
    (below, flag) => {
      const value = line.given.get(flag.name);
      return value === undefined || flag.set === undefined || !actsOn(flag, platform) || isReplaced(flag, file)
        ? below
        : flag.set(below, value);
    },
    isOpen ? { ...document, mode } : document,
  );
  return file === null ? completeFlags(laid, line) : laid;
}

/** The mode of --mode; empty: none. kube-proxy has --proxy-mode alone. */
function readMode(line: CommandLine): string {
  const [mode, proxyMode] = [textFlag(line, 'mode'), textFlag(line, 'proxy-mode')];
  if (mode !== '' && line.given.has('proxy-mode') && mode !== proxyMode)
    throw new ConfigError('CONFIG_USAGE', null, [
      invalid('--mode', mode, `does not agree with --proxy-mode=${clip(proxyMode)}`),
    ]);
  return mode;
}

/** What of the command line, or of the files' document beside it, does not do what one may think. */
export function flagWarnings(
  document: KubeProxyConfiguration,
  line: CommandLine,
  file: FileFlag,
  platform: NodeJS.Platform,
): readonly (string | Report)[] {
  const ofFlags = FLAGS.filter(({ name }) => line.given.has(name)).flatMap((flag) => [
    ...(flag.remark === undefined || flag.platform === platform ? [] : [`--${flag.name}: ${flag.remark}`]),
    ...(actsOn(flag, platform) && isReplaced(flag, file)
      ? [`--${flag.name}: is ignored because --${file ?? ''} is given`]
      : []),
    ...(file === null ? portWarnings(flag.name, line) : []),
  ]);
  return [
    ...ofFlags,
    ...(file === null ? [] : [...replacedMode(document, line, file), ...replacedFields(document, line)]),
  ];
}

function replacedMode({ mode }: KubeProxyConfiguration, line: CommandLine, file: string): readonly string[] {
  const given = textFlag(line, 'mode');
  const isReplacing = given !== '' && mode !== '' && given !== mode;
  return isReplacing ? [`--mode: is ignored because --${file} sets ${clip(mode)}`] : [];
}

/** Fields that a file sets and a flag sets otherwise. Entries of --vmodule are put before the file's and replace none. */
function replacedFields(document: KubeProxyConfiguration, line: CommandLine): readonly Report[] {
  const defaults = decodeConfiguration(new Mapping([]));
  const ofFile = new Set(differences(KIND, defaults, document).map(({ field }) => field));
  return CONFIGURATION_FLAGS.flatMap(({ name, type, set, overridesFile }) => {
    const value = line.given.get(name);
    if (value === undefined || set === undefined || overridesFile !== true || type === 'vmodule') return [];
    return differences(KIND, document, set(document, value))
      .filter(({ field }) => ofFile.has(field))
      .map(({ field, before }) =>
        remarked(field, 'no-effect', `${clip(before)} has no effect because --${name} is given`),
      );
  });
}

function actsOn(flag: Flag, platform: NodeJS.Platform): boolean {
  return flag.platform === undefined || flag.platform === platform;
}

function isReplaced(flag: Flag, file: FileFlag): boolean {
  return file !== null && flag.overridesFile !== true && (flag.set !== undefined || portOf(flag.name) !== null);
}

/** A deprecated port, and the address it completes. */
interface PortFlag {
  readonly name: 'healthz-port' | 'metrics-port';
  readonly address: 'healthz-bind-address' | 'metrics-bind-address';
  readonly port: number;
}

const HEALTHZ: PortFlag = { name: 'healthz-port', address: 'healthz-bind-address', port: HEALTHZ_PORT };
const METRICS: PortFlag = { name: 'metrics-port', address: 'metrics-bind-address', port: METRICS_PORT };

function portOf(name: string): PortFlag | null {
  return [HEALTHZ, METRICS].find((port) => port.name === name) ?? null;
}

/** What follows from several flags. */
function completeFlags(document: KubeProxyConfiguration, line: CommandLine): KubeProxyConfiguration {
  const { healthzBindAddress, metricsBindAddress } = document;
  return {
    ...document,
    healthzBindAddress: completeAddress(healthzBindAddress, HEALTHZ, line),
    metricsBindAddress: completeAddress(metricsBindAddress, METRICS, line),
  };
}

/** Port 0 empties an address; any other is appended to one that has none (behaviour FL-62). */
function completeAddress(address: string, { name, port }: PortFlag, line: CommandLine): string {
  const given = numberFlag(line, name) ?? port;
  return given === 0 ? '' : withPort(address, given);
}

/** A deprecated port acts only on an address that has none, and an address that was not given has one. */
function portWarnings(name: string, line: CommandLine): string[] {
  const port = portOf(name);
  if (port === null) return [];
  const address = textFlag(line, port.address);
  const isBare = address !== '' && withPort(address, port.port) !== address;
  const given = numberFlag(line, port.name);
  if (given === 0 || isBare || (given === port.port && address === '')) return [];
  return [`--${name}: has no effect because --${port.address} has a port`];
}
