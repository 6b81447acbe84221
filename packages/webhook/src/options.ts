import { parsePrefix, type IPPrefix } from '../../../src/base/ip.js';
import type { ServiceLimits } from '../../../src/base/service-limits.js';
import { parseGiven } from '../../../src/commands/given.js';
import { readServiceLimits } from '../../../src/commands/service-limits.js';
import { WEBHOOK } from '../../../src/commands/webhook.js';
import { invalid } from '../../../src/config/errors.js';
import { eventRateProblems, type EventRates } from '../../../src/config/event-rates.js';
import { parseListen, type HostPort } from '../../../src/config/host-port.js';
import type { PairFiles } from '../../../src/config/secured.js';

/** The values of the flags of `pointsman webhook`. */
export interface WebhookOptions {
  /** Empty: as a pod. */
  readonly kubeconfig: string;
  /** Where reviews are answered, and where life and readiness are. */
  readonly listen: HostPort;
  readonly health: HostPort;
  readonly pair: PairFiles;
  /** Path of the authorities that vouch for API servers; null: anonymous clients may ask, too. */
  readonly clientCaFile: string | null;
  /** Path of a `ServicePolicy`; null: the defaults. */
  readonly policyFile: string | null;
  /** Ranges of Services, beside those of ServiceCIDRs. */
  readonly serviceRanges: readonly IPPrefix[];
  /** As the proxies' flags have them. */
  readonly limits: ServiceLimits;
  readonly events: EventRates;
  readonly verbosity: number;
  readonly logFormat: 'text' | 'json';
}

/** What is wrong with the arguments, where something is; null: help was asked for. */
export function parseOptions(argv: readonly string[]): WebhookOptions | readonly string[] | null {
  const given = parseGiven(WEBHOOK, argv);
  if (typeof given === 'string') return [given];
  if (given.help) return null;
  const text = (name: string): string => given.text(name);
  const problems: string[] = given.operands.map((word) => `${JSON.stringify(word)}: webhook takes flags alone`);
  const listen = hostPort('listen', text('listen'), problems);
  const health = hostPort('health-listen', text('health-listen'), problems);
  for (const name of ['tls-cert-file', 'tls-private-key-file'] as const)
    if (text(name) === '') problems.push(`--${name}: is required`);
  const isAnonymous = given.isSet('anonymous-auth');
  if (isAnonymous === (text('client-ca-file') !== ''))
    problems.push(`--client-ca-file: ${isAnonymous ? 'must not be given with --anonymous-auth' : 'is required'}`);
  if (!/^\d{1,2}$/.test(text('v'))) problems.push(invalid('--v', text('v'), 'must be a number'));
  const format = text('logging-format');
  if (format !== 'text' && format !== 'json')
    problems.push(invalid('--logging-format', format, 'must be text or json'));
  const [qps = NaN, burst = NaN] = ['event-qps', 'event-burst'].map((name) =>
    text(name) === '' ? NaN : Number(text(name)),
  );
  const events = { qps, burst, limitFile: text('event-rate-limit-config') || null };
  problems.push(...eventRateProblems(events));
  const serviceRanges = ranges(text('service-cluster-ip-range'), problems);
  const { limits, problems: ofLimits } = readServiceLimits(given);
  problems.push(...ofLimits);
  if (problems.length > 0 || listen === null || health === null) return problems;
  return {
    listen,
    health,
    serviceRanges,
    events,
    kubeconfig: text('kubeconfig'),
    limits,
    pair: { certificateFile: text('tls-cert-file'), keyFile: text('tls-private-key-file') },
    clientCaFile: text('client-ca-file') || null,
    policyFile: text('policy') || null,
    verbosity: Number(text('v')),
    logFormat: format === 'json' ? 'json' : 'text',
  };
}

function hostPort(name: string, text: string, problems: string[]): HostPort | null {
  const parsed = parseListen(text);
  if (typeof parsed !== 'string') return parsed;
  problems.push(invalid(`--${name}`, text, parsed));
  return null;
}

function ranges(text: string, problems: string[]): readonly IPPrefix[] {
  const entries = text.split(',').filter((entry) => entry !== '');
  return entries.flatMap((entry) => {
    const range = parsePrefix(entry.trim());
    if (range === null)
      problems.push(invalid('--service-cluster-ip-range', entry, 'must be a CIDR such as 10.96.0.0/12'));
    return range ?? [];
  });
}
