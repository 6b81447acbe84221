import { DEFAULT_EVENT_RATES } from '../config/event-rates.js';
import { bool, text } from '../config/flag.js';
import type { CommandSpec } from './command.js';
import { SERVICE_LIMIT_FLAGS } from './service-limits.js';

export const WEBHOOK: CommandSpec = {
  name: 'webhook',
  summary: 'answer admission reviews of Services',
  operands: '',
  about: ['Reviews of admission.k8s.io/v1, at /validate.'],
  examples: [
    {
      line: 'pointsman webhook --client-ca-file ca.crt --tls-cert-file tls.crt …',
      says: 'on port 9443',
    },
  ],
  flags: [
    text('tls-cert-file', 'file', 'serving certificate, PEM; reloaded on change'),
    text('tls-private-key-file', 'file', 'its key'),
    text('client-ca-file', 'file', 'CA certificates for API servers as clients; required'),
    bool('anonymous-auth', 'for tests, in place of --client-ca-file: allow anonymous requests; no events are sent'),
    text('policy', 'file', 'ServicePolicy (admission.pointsman.io/v1alpha1); reloaded on change'),
    text('kubeconfig', 'file', 'kubeconfig of the API server; empty: in-cluster'),
    text('listen', 'IP:port', 'address of /validate, over TLS', '0.0.0.0:9443'),
    text('health-listen', 'IP:port', 'address of /livez and /readyz, over plain HTTP', '0.0.0.0:8081'),
    text('service-cluster-ip-range', 'CIDRs', 'CIDRs of Services, comma-separated, in addition to ServiceCIDR objects'),
    ...SERVICE_LIMIT_FLAGS,
    text(
      'event-qps',
      'number',
      'events sent a second, once --event-burst is used up; 0: no limit',
      String(DEFAULT_EVENT_RATES.qps),
    ),
    text('event-burst', 'int', 'events that may be sent at once', String(DEFAULT_EVENT_RATES.burst)),
    text(
      'event-rate-limit-config',
      'file',
      'EventRateLimit Configuration (eventratelimit.admission.k8s.io/v1alpha1): further limits',
    ),
    text('v', 'level', 'log verbosity', '0', { short: 'v' }),
    text('logging-format', 'text|json', 'format of log lines', 'text'),
  ],
  proxyFlags: null,
  exits: { 0: 'it was ended by a signal', 1: 'it cannot go on', 2: 'the command line is wrong' },
};
