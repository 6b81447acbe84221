import { rule } from '../tables/rules.js';
import { scalar } from '../tables/formats.js';
import { field, int, list, oneOf, required, struct, text, type KindTable } from '../tables/types.js';

/** What limits events, as the API server's admission plugin and this program read it, and what `pointsman webhook` refuses. */

const UNUSED_CACHE = rule('no-effect', (section) => {
  if (section.text('type') === 'Server' && section.isGiven('cacheSize'))
    section.warn('no-effect', 'cacheSize', 'has no effect for type Server');
});

export const EVENT_LIMIT_TYPES = ['Server', 'Namespace', 'User', 'SourceAndObject'] as const;

const EVENT_RATES = struct({
  limits: required(
    list(
      struct(
        {
          type: required(oneOf(...EVENT_LIMIT_TYPES)),
          qps: required(int(1)),
          burst: required(int(1)),
          cacheSize: field(int(0), { default: 4096 }),
        },
        UNUSED_CACHE,
      ),
      { min: 1, unique: 'type' },
    ),
  ),
});

export const EVENT_RATE_KIND: KindTable = {
  kind: 'Configuration',
  group: 'eventratelimit.admission.k8s.io',
  versions: { v1alpha1: {} },
  table: EVENT_RATES,
};

/** What can be wrong with a Service. */
export const SERVICE_RULES = [
  'frontends',
  'conflicts',
  'ports',
  'nodeAddresses',
  'serviceRanges',
  'podRanges',
  'sourceRanges',
  'unusable',
  'externalIPs',
] as const;
export type ServiceRule = (typeof SERVICE_RULES)[number];

export const RULE_ACTIONS = ['Refuse', 'Warn', 'Ignore'] as const;
export type RuleAction = (typeof RULE_ACTIONS)[number];

const ACTION = field(oneOf(...RULE_ACTIONS), { default: 'Refuse' });

/** A `*` stands for any end of a name, and only there. */
const NAMESPACES = rule('namespace', (section) => {
  for (const [index, pattern] of section.texts('namespaces').entries())
    if (!/^(?:\*|[a-z0-9][a-z0-9-]{0,62}\*?)$/.test(pattern))
      section.refuse('namespace', `namespaces[${index}]`, 'is no namespace', 'a name, maybe with * at its end');
});

const SERVICE_POLICY = struct({
  rules: struct(Object.fromEntries(SERVICE_RULES.map((name) => [name, ACTION]))),
  allowedExternalIPs: list(
    struct(
      { namespaces: required(list(text, { min: 1 })), cidrs: required(list(scalar('cidr'), { min: 1 })) },
      NAMESPACES,
    ),
  ),
});

export const SERVICE_POLICY_KIND: KindTable = {
  kind: 'ServicePolicy',
  group: 'admission.pointsman.io',
  versions: { v1alpha1: {} },
  table: SERVICE_POLICY,
};
