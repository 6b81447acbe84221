import { BALANCE_WORDS, type BalanceSettings } from '../base/balance.js';
import { NO_RETRIES, type RetryTimes } from '../base/conntrack-timeouts.js';
import type { ServiceLimits } from '../base/service-limits.js';
import { readLogFile, unusedLimits } from './audit.js';
import { readClientCertificate } from './client-certificate.js';
import {
  IPTABLES_FLAVORS,
  readsServer,
  type IptablesFlavorChoice,
  type ManifestsSource,
  type Environment,
} from './config.js';
import { KIND, type KubeProxyConfiguration } from './document.js';
import { durationMilliseconds, parseDuration } from './duration.js';
import { invalid } from './errors.js';
import { DEFAULT_EVENT_RATES, eventRateProblems, type EventRates } from './event-rates.js';
import type { ConfigFiles } from './files.js';
import type { FlagName } from './flag-table.js';
import { numberFlag, settingOf, textFlag, type CommandLine } from './flags.js';
import { readManifests } from './manifests-sources.js';
import { readSecured } from './secured.js';
import { readTelemetry, unusedTelemetry } from './telemetry.js';

/** Of the 108 bytes of an address (unix(7)) nine are for the name on which it is opened first; Node cuts off what is too long and says nothing. */
const MAX_SOCKET_PATH_BYTES = 99;

interface EnvironmentRead {
  readonly value: Omit<Environment, 'kubeNetwork'>;
  readonly problems: readonly string[];
  readonly warnings: readonly string[];
}

/** What the configuration needs beside its document: the node's name, and what only flags say. */
export function readEnvironment(
  line: CommandLine,
  document: KubeProxyConfiguration,
  files: ConfigFiles,
  systemHostname: () => string,
): EnvironmentRead {
  const problems: string[] = [];
  const nodeName = (document.hostnameOverride || systemHostname()).trim().toLowerCase();
  if (nodeName === '') problems.push(`${KIND}.hostnameOverride: empty hostname is invalid`);
  const manifests = readManifests(line, files);
  problems.push(...manifests.problems);
  const fileCheckFrequency = periodFlag(line, 'file-check-frequency', problems);
  const httpCheckFrequency = periodFlag(line, 'http-check-frequency', problems);
  const iptablesFlavor = readFlavor(line, problems);
  const statusSocket = readStatusSocket(line, problems);
  const clientCertificate = readClientCertificate(line, document.clientConnection.kubeconfig);
  const isServerRead = readsServer(document, textFlag(line, 'master'), manifests.sources.length === 0);
  const secured = readSecured(line, isServerRead);
  problems.push(...clientCertificate.problems, ...secured.problems);
  const changeLog = readLogFile(line, 'change-log', problems);
  const serviceTelemetry = readTelemetry(line, document, problems);
  return {
    value: {
      nodeName,
      master: textFlag(line, 'master'),
      manifests: manifests.sources,
      fileCheckFrequency,
      httpCheckFrequency,
      changeLog,
      statusSocket,
      clientCertificate: clientCertificate.value,
      tracingFile: textFlag(line, 'tracing-config-file') || null,
      egressFile: textFlag(line, 'egress-selector-config-file') || null,
      iptablesFlavor,
      secured: secured.value,
      events: readEventRates(line, problems),
      serviceTelemetry,
      serviceLimits: readServiceLimits(line, problems),
      balance: readBalance(line, problems),
      affinityIPv6Prefix: readAffinityPrefix(line, document, problems),
      resetRemovedEndpoints: resetsRemoved(line, document),
      externalIPsInClusterRanges: line.given.get('external-ips-in-cluster-ranges') === true,
      retryTimes: readRetryTimes(line, document, problems),
    },
    problems,
    warnings: [
      ...manifests.warnings,
      ...clientCertificate.warnings,
      ...secured.warnings,
      ...unusedLimits(line, 'change-log', changeLog),
      ...unusedFlags(line, document, manifests.sources, isServerRead),
      ...unusedDirectory(line, clientCertificate.value !== null || secured.value !== null),
    ],
  };
}

function readStatusSocket(line: CommandLine, problems: string[]): string | null {
  const statusSocket = settingOf(line, 'status-socket');
  if (Buffer.byteLength(statusSocket) > MAX_SOCKET_PATH_BYTES)
    problems.push(invalid('--status-socket', statusSocket, `must have at most ${MAX_SOCKET_PATH_BYTES} bytes`));
  return statusSocket || null;
}

function readFlavor(line: CommandLine, problems: string[]): IptablesFlavorChoice {
  const flavorText = textFlag(line, 'iptables-flavor') || 'auto';
  const iptablesFlavor = IPTABLES_FLAVORS.find((flavor) => flavor === flavorText);
  if (iptablesFlavor === undefined)
    problems.push(invalid('--iptables-flavor', flavorText, `must be one of ${IPTABLES_FLAVORS.join(', ')}`));
  return iptablesFlavor ?? 'auto';
}

/** Flags that are about what there is none of. */
function unusedFlags(
  line: CommandLine,
  document: KubeProxyConfiguration,
  sources: readonly ManifestsSource[],
  isServerRead: boolean,
): readonly string[] {
  const { mode } = document;
  const has = (type: ManifestsSource['type']): boolean => sources.some((source) => source.type === type);
  const rows: readonly (readonly [flag: FlagName, isUsed: boolean, why: string])[] = [
    ['iptables-flavor', mode !== 'nftables', `in mode ${mode}`],
    ['session-affinity-ipv6-prefix', mode === 'nftables', `in mode ${mode}`],
    ...BALANCE_FLAGS.map((flag) => [flag, mode === 'nftables', `in mode ${mode}`] as const),
    ['reset-removed-endpoints', mode === 'nftables', `in mode ${mode}`],
    ['egress-selector-config-file', isServerRead, 'without an API server to read from'],
    ...EVENT_FLAGS.map((flag) => [flag, isServerRead, 'without an API server to send events to'] as const),
    ['file-check-frequency', has('path'), 'without a file or directory in --manifests'],
    ['http-check-frequency', has('url'), 'without a URL in --manifests'],
  ];
  const unused = rows.filter(([flag, isUsed]) => line.given.has(flag) && !isUsed);
  return [
    ...unused.map(([flag, , why]) => `--${flag}: has no effect ${why}`),
    ...unusedTelemetry(line, document),
    ...unusedRetryTimes(line, document),
  ];
}

const BALANCE_FLAGS = ['balance', 'balance-slots-max'] as const satisfies readonly FlagName[];

const EVENT_FLAGS = ['event-qps', 'event-burst', 'event-rate-limit-config'] as const satisfies readonly FlagName[];

function readEventRates(line: CommandLine, problems: string[]): EventRates {
  const rates = {
    qps: numberFlag(line, 'event-qps') ?? DEFAULT_EVENT_RATES.qps,
    burst: numberFlag(line, 'event-burst') ?? DEFAULT_EVENT_RATES.burst,
    limitFile: textFlag(line, 'event-rate-limit-config') || null,
  };
  problems.push(...eventRateProblems(rates));
  return rates;
}

const IPV6_BITS = 128;

/** In bits. */
function readAffinityPrefix(line: CommandLine, { mode }: KubeProxyConfiguration, problems: string[]): number {
  const bits = numberFlag(line, 'session-affinity-ipv6-prefix') ?? IPV6_BITS;
  if (bits < 1 || bits > IPV6_BITS)
    problems.push(invalid('--session-affinity-ipv6-prefix', bits, `must be between 1 and ${IPV6_BITS}, inclusive`));
  return mode === 'nftables' ? bits : IPV6_BITS;
}

function resetsRemoved(line: CommandLine, { mode }: KubeProxyConfiguration): boolean {
  return mode === 'nftables' && line.given.get('reset-removed-endpoints') !== false;
}

/** Of certificates. */
function unusedDirectory(line: CommandLine, isUsed: boolean): readonly string[] {
  return line.given.has('cert-dir') && !isUsed
    ? ['--cert-dir: has no effect without --metrics-tls, --bootstrap-kubeconfig or --rotate-certificates']
    : [];
}

/** In milliseconds. */
function periodFlag(line: CommandLine, name: FlagName, problems: string[]): number {
  const text = settingOf(line, name);
  const duration = parseDuration(text);
  const milliseconds = duration === null ? 0 : durationMilliseconds(duration);
  if (milliseconds <= 0) problems.push(invalid(`--${name}`, text, 'must be greater than zero'));
  return milliseconds;
}

/** How connections are shared as far as Services do not say it, as the flags have it. */
function readBalance(line: CommandLine, problems: string[]): BalanceSettings {
  const word = settingOf(line, 'balance');
  const by = BALANCE_WORDS.get(word);
  if (by === undefined)
    problems.push(invalid('--balance', word, `must be one of ${[...BALANCE_WORDS.keys()].join(' ')}`));
  const slots = numberFlag(line, 'balance-slots-max') ?? Number(settingOf(line, 'balance-slots-max'));
  if (slots < 1) problems.push(invalid('--balance-slots-max', slots, 'must be greater than 0'));
  return { by: by ?? 'random', slots };
}

/** How much of one Service is programmed, as the flags have it. */
function readServiceLimits(line: CommandLine, problems: string[]): ServiceLimits {
  const read = (name: FlagName): number => {
    const value = numberFlag(line, name) ?? Number(settingOf(line, name));
    if (value < 1) problems.push(invalid(`--${name}`, value, 'must be greater than 0'));
    return value;
  };
  return { frontends: read('service-frontends-max'), entries: read('service-entries-max') };
}

/** Longer than any client waits for the first answer to its first packets. */
const MOST_RETRY_SECONDS = 60;

const FLAGS = ['connect-retry', 'dns-retry'] as const satisfies readonly FlagName[];

/** When unanswered attempts go to another endpoint, as the flags have it. */
function readRetryTimes(line: CommandLine, { mode }: KubeProxyConfiguration, problems: string[]): RetryTimes {
  const read = (name: FlagName): number | null => {
    const text = settingOf(line, name);
    const duration = parseDuration(text);
    const seconds = duration === null ? NaN : durationMilliseconds(duration) / 1000;
    const isRight = Number.isInteger(seconds) && seconds >= 0 && seconds <= MOST_RETRY_SECONDS;
    if (!isRight)
      problems.push(
        invalid(`--${name}`, text, `must be whole seconds, 0 to ${MOST_RETRY_SECONDS}: conntrack counts in these`),
      );
    return isRight && seconds > 0 ? seconds : null;
  };
  const [tcp, dns] = [read('connect-retry'), read('dns-retry')];
  return retriesIn(mode) ? { tcp, dns } : NO_RETRIES;
}

/** Whether a mode has rules that give new flows other timeouts. */
function retriesIn(mode: string): boolean {
  return mode === 'nftables' || mode === 'iptables';
}

/** Flags that change nothing. */
function unusedRetryTimes(line: CommandLine, { mode }: KubeProxyConfiguration): readonly string[] {
  if (retriesIn(mode)) return [];
  return FLAGS.filter((flag) => line.given.has(flag)).map((flag) => `--${flag}: has no effect in mode ${mode}`);
}
