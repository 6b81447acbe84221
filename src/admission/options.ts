import { parseArgs } from 'node:util';
import { resultOrMessage } from '../base/error-message.js';
import { parsePrefix, type IPPrefix } from '../base/ip.js';
import { DEFAULT_SERVICE_LIMITS } from '../base/service-limits.js';
import { invalid } from '../config/errors.js';
import { DEFAULT_EVENT_RATES, eventRateProblems, type EventRates } from '../config/event-rates.js';
import { parseListen, type HostPort } from '../config/host-port.js';
import type { PairFiles } from '../config/secured.js';

/** What the flags of `pointsman webhook` say. */
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
  /** Of Services, beside those of ServiceCIDRs. */
  readonly serviceRanges: readonly IPPrefix[];
  /** As the proxies' flag has it. */
  readonly maxFrontends: number;
  readonly events: EventRates;
  readonly verbosity: number;
  readonly logFormat: 'text' | 'json';
}

export const USAGE = `Usage: pointsman webhook [flags]

Answers an API server whether Services may be created and changed as somebody wants (admission.k8s.io/v1, at /validate).

      --tls-cert-file FILE, --tls-private-key-file FILE
                                  the certificate that is served, PEM; followed while running
      --policy FILE               a ServicePolicy (admission.pointsman.io/v1alpha1); followed while running
      --kubeconfig FILE           how to reach the API server; without it as a pod does
      --listen IP:PORT            where reviews are answered, over TLS (default 0.0.0.0:9443)
      --health-listen IP:PORT     where /livez and /readyz are, over plain HTTP (default 0.0.0.0:8081)
      --client-ca-file FILE       authorities of the client certificates that API servers show; required
      --anonymous-auth            for tests, in place of it: allow anonymous requests; no events are sent
      --service-cluster-ip-range CIDRS
                                  ranges of Services, with commas between, beside those of ServiceCIDR objects
      --service-frontends-max N   how many frontends (ports × addresses) nodes program of one Service (default ${DEFAULT_SERVICE_LIMITS.frontends})
      --event-qps N               events sent a second, once --event-burst is used up; 0: no limit (default ${DEFAULT_EVENT_RATES.qps})
      --event-burst N             events that may be sent at once (default ${DEFAULT_EVENT_RATES.burst})
      --event-rate-limit-config FILE
                                  EventRateLimit Configuration (eventratelimit.admission.k8s.io/v1alpha1): limits that count beside these
  -v, --v N                       verbosity of the log (default 0)
      --logging-format text|json  how it is written (default text)
  -h, --help                      print this text
`;

/** What is wrong with the arguments, where something is; null: help was asked for. */
export function parseOptions(argv: readonly string[]): WebhookOptions | readonly string[] | null {
  const parsed = resultOrMessage(() => parseAll(argv));
  if (typeof parsed === 'string') return [parsed];
  const { values, positionals } = parsed;
  if (values.help) return null;
  const problems: string[] = positionals.map((word) => `${JSON.stringify(word)}: webhook takes flags alone`);
  const listen = hostPort('listen', values.listen, problems);
  const health = hostPort('health-listen', values['health-listen'], problems);
  for (const name of ['tls-cert-file', 'tls-private-key-file'] as const)
    if (values[name] === '') problems.push(`--${name}: is required`);
  const isAnonymous = values['anonymous-auth'];
  if (isAnonymous === (values['client-ca-file'] !== ''))
    problems.push(`--client-ca-file: ${isAnonymous ? 'must not be given with --anonymous-auth' : 'is required'}`);
  if (!/^\d{1,2}$/.test(values.v)) problems.push(invalid('--v', values.v, 'must be a number'));
  const format = values['logging-format'];
  if (format !== 'text' && format !== 'json')
    problems.push(invalid('--logging-format', format, 'must be text or json'));
  const [qps, burst] = [values['event-qps'], values['event-burst']].map((text) => (text === '' ? NaN : Number(text)));
  const events = { qps: qps ?? NaN, burst: burst ?? NaN, limitFile: values['event-rate-limit-config'] || null };
  problems.push(...eventRateProblems(events));
  const serviceRanges = ranges(values['service-cluster-ip-range'], problems);
  const maxText = values['service-frontends-max'];
  if (!/^[1-9]\d{0,8}$/.test(maxText))
    problems.push(invalid('--service-frontends-max', maxText, 'must be a number greater than 0'));
  if (problems.length > 0 || listen === null || health === null) return problems;
  return {
    ...{ listen, health, serviceRanges, events, kubeconfig: values.kubeconfig, maxFrontends: Number(maxText) },
    pair: { certificateFile: values['tls-cert-file'], keyFile: values['tls-private-key-file'] },
    clientCaFile: values['client-ca-file'] || null,
    policyFile: values.policy || null,
    verbosity: Number(values.v),
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

function parseAll(argv: readonly string[]) {
  const text = (initial = '') => ({ type: 'string', default: initial }) as const;
  return parseArgs({
    args: [...argv],
    allowPositionals: true,
    options: {
      'tls-cert-file': text(),
      'tls-private-key-file': text(),
      policy: text(),
      kubeconfig: text(),
      listen: text('0.0.0.0:9443'),
      'health-listen': text('0.0.0.0:8081'),
      'client-ca-file': text(),
      'anonymous-auth': { type: 'boolean', default: false },
      'service-cluster-ip-range': text(),
      'service-frontends-max': text(String(DEFAULT_SERVICE_LIMITS.frontends)),
      'event-qps': text(String(DEFAULT_EVENT_RATES.qps)),
      'event-burst': text(String(DEFAULT_EVENT_RATES.burst)),
      'event-rate-limit-config': text(),
      v: { ...text('0'), short: 'v' },
      'logging-format': text('text'),
      help: { type: 'boolean', short: 'h', default: false },
    },
  });
}
