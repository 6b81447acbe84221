import { DEFAULT_EVENT_RATES } from '../config/event-rates.js';
import { DEFAULT_SERVICE_LIMITS } from '../base/service-limits.js';
import type { CommandSpec } from './command.js';

const FILE = { type: 'string', value: 'file', initial: '' } as const;

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
    { ...FILE, name: 'tls-cert-file', help: 'serving certificate, PEM; reloaded on change' },
    { ...FILE, name: 'tls-private-key-file', help: 'its key' },
    { ...FILE, name: 'client-ca-file', help: 'CA certificates for API servers as clients; required' },
    {
      name: 'anonymous-auth',
      type: 'bool',
      help: 'for tests, in place of --client-ca-file: allow anonymous requests; no events are sent',
      initial: 'false',
    },
    { ...FILE, name: 'policy', help: 'ServicePolicy (admission.pointsman.io/v1alpha1); reloaded on change' },
    { ...FILE, name: 'kubeconfig', help: 'kubeconfig of the API server; empty: in-cluster' },
    {
      name: 'listen',
      type: 'string',
      value: 'IP:port',
      help: 'address of /validate, over TLS',
      initial: '0.0.0.0:9443',
    },
    {
      name: 'health-listen',
      type: 'string',
      value: 'IP:port',
      help: 'address of /livez and /readyz, over plain HTTP',
      initial: '0.0.0.0:8081',
    },
    {
      name: 'service-cluster-ip-range',
      type: 'string',
      value: 'CIDRs',
      help: 'CIDRs of Services, comma-separated, in addition to ServiceCIDR objects',
      initial: '',
    },
    {
      name: 'service-frontends-max',
      type: 'string',
      value: 'int',
      help: 'maximum frontends (ports × addresses) of one Service',
      initial: String(DEFAULT_SERVICE_LIMITS.frontends),
    },
    {
      name: 'event-qps',
      type: 'string',
      value: 'number',
      help: 'events sent a second, once --event-burst is used up; 0: no limit',
      initial: String(DEFAULT_EVENT_RATES.qps),
    },
    {
      name: 'event-burst',
      type: 'string',
      value: 'int',
      help: 'events that may be sent at once',
      initial: String(DEFAULT_EVENT_RATES.burst),
    },
    {
      ...FILE,
      name: 'event-rate-limit-config',
      help: 'EventRateLimit Configuration (eventratelimit.admission.k8s.io/v1alpha1): further limits',
    },
    { name: 'v', short: 'v', type: 'string', value: 'level', help: 'log verbosity', initial: '0' },
    { name: 'logging-format', type: 'string', value: 'text|json', help: 'format of log lines', initial: 'text' },
  ],
  proxyFlags: null,
  exits: { 0: 'it was ended by a signal', 1: 'it cannot go on', 2: 'the command line is wrong' },
};
