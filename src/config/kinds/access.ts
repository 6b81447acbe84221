import { X509Certificate } from 'node:crypto';
import { trimEnd } from '../../base/text.js';
import { condition, expression, membersOf, type ResultType, type Shape } from '../tables/expression.js';
import { exclusive, needs, rule, someOf } from '../tables/rules.js';
import type { Section } from '../tables/section.js';
import { scalar } from '../tables/formats.js';
import { bool, field, list, oneOf, orZero, parsed, required, struct, text, type StructType } from '../tables/types.js';
import { renamedKind } from './apiserver-groups.js';

/** Who may ask the API server: authentication by tokens, and the chain of authorizers. */

/** A prefix goes with a claim and has to be written, be it empty. */
const PREFIX = rule('requires', (section) => {
  if (section.has('claim') && !section.isGiven('prefix'))
    section.refuse('requires', 'prefix', 'is missing beside claim', 'text, which may be empty');
  if (section.has('claim') || !section.isGiven('prefix')) return;
  if (section.has('expression')) section.refuse('exclusive', 'prefix', 'must not be given beside expression');
  else section.refuse('requires', 'prefix', 'needs claim beside it');
});

const MAPPED = { claim: text, expression: text };

function prefixed(types: readonly ResultType[], ...rules: StructType['rules']): StructType {
  return struct(
    { ...MAPPED, prefix: field(text, { mayBeEmpty: true }) },
    exclusive('claim', 'expression'),
    expression('expression', 'claims', ...types),
    PREFIX,
    ...rules,
  );
}

const DISCOVERY = rule('issuer', (section) => {
  if (section.has('discoveryURL') && trimEnd(section.text('discoveryURL'), '/') === trimEnd(section.text('url'), '/'))
    section.refuse('issuer', 'discoveryURL', 'is the same as url');
});

const AUDIENCES = rule('required', (section) => {
  for (const [index, audience] of section.texts('audiences').entries())
    if (audience === '') section.refuse('required', `audiences[${index}]`, 'is empty');
});

const MATCH_POLICY = rule('audiences', (section) => {
  if (section.texts('audiences').length > 1 && !section.has('audienceMatchPolicy'))
    section.refuse('audiences', 'audienceMatchPolicy', 'is missing, as there are several audiences', '"MatchAny"');
});

/** Group names that belong to Kubernetes itself are not for claims. */
const EXTRA_KEY = rule('extra-key', (section) => {
  const key = section.text('key');
  const [domain = '', ...rest] = key.split('/');
  const isDomain =
    domain.length <= 253 && domain.split('.').every((label) => /^[a-z0-9](?:[a-z0-9-]*[a-z0-9])?$/.test(label));
  if (key === '') return;
  if (key !== key.toLowerCase()) section.refuse('extra-key', 'key', 'has capital letters');
  else if (!isDomain || !/^[\w.~!$&'()*+,;=:@%/-]+$/.test(rest.join('/')))
    section.refuse('extra-key', 'key', 'cannot be read', 'a domain, a slash and a path');
  else if (/(?:^|\.)(?:k8s|kubernetes)\.io$/.test(domain))
    section.refuse('extra-key', 'key', 'is of a domain that is reserved');
});

/** Whoever takes the address for a name has to ask whether it was verified. */
const VERIFIED_EMAIL = rule('email', (section) => {
  const mappings = section.section('claimMappings');
  const username = mappings?.section('username') ?? null;
  const used = membersOf(username?.text('expression') ?? '', 'claims');
  const others = [
    ...section.sections('claimValidationRules').map((each) => each.text('expression')),
    ...(mappings?.sections('extra') ?? []).map((each) => each.text('valueExpression')),
  ];
  const isVerified = [used, ...others.map((each) => membersOf(each, 'claims'))].some(({ read }) =>
    read.has('email_verified'),
  );
  if ((used.read.has('email') || used.perhapsRead.has('email')) && !isVerified)
    username?.refuse('email', 'expression', 'uses claims.email', 'used with claims.email_verified in some expression');
});

/** A claim or an expression is looked at by one rule. */
const ONCE_EACH = rule('unique', (section) => {
  for (const name of ['claim', 'expression']) {
    const seen = new Set<string>();
    for (const each of section.sections('claimValidationRules').filter((one) => one.text(name) !== ''))
      if (seen.size === seen.add(each.text(name)).size) each.refuse('unique', name, 'is given twice');
  }
});

/** What an expression may ask of a user. */
const USER: Shape = { username: 'string', uid: 'string', groups: 'list<string>', extra: 'map<string, list<string>>' };

const AUTHORITY = rule('tls', (section) => {
  if (section.has('certificateAuthority') && !hasCertificate(section.text('certificateAuthority')))
    section.refuse('tls', 'certificateAuthority', 'has no certificate', 'certificates in PEM');
});

function hasCertificate(text: string): boolean {
  const blocks = text.match(/-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----/g) ?? [];
  return blocks.length > 0 && blocks.every(isCertificate);
}

function isCertificate(pem: string): boolean {
  try {
    return new X509Certificate(pem).serialNumber !== '';
  } catch {
    return false;
  }
}

const JWT = struct(
  {
    issuer: required(
      struct(
        {
          url: required(scalar('https url')),
          discoveryURL: scalar('https url'),
          certificateAuthority: field(text, { secret: true }),
          audiences: required(list(text, { min: 1, unique: '' })),
          audienceMatchPolicy: oneOf('MatchAny'),
          egressSelectorType: field(oneOf('controlplane', 'cluster'), { since: 34 }),
        },
        DISCOVERY,
        AUDIENCES,
        MATCH_POLICY,
        AUTHORITY,
      ),
    ),
    claimValidationRules: list(
      struct(
        { ...MAPPED, requiredValue: field(text, { mayBeEmpty: true }), message: text },
        exclusive('claim', 'expression'),
        someOf('claim', 'expression'),
        needs('requiredValue', 'claim'),
        needs('message', 'expression'),
        condition('expression', 'claims'),
      ),
    ),
    claimMappings: required(
      struct({
        username: required(prefixed(['string'], someOf('claim', 'expression'))),
        groups: prefixed(['string', 'list<string>']),
        uid: struct(
          MAPPED,
          exclusive('claim', 'expression'),
          someOf('claim', 'expression'),
          expression('expression', 'claims', 'string'),
        ),
        extra: list(
          struct(
            { key: required(text), valueExpression: required(text) },
            EXTRA_KEY,
            expression('valueExpression', 'claims', 'string', 'list<string>'),
          ),
          { unique: 'key' },
        ),
      }),
    ),
    userValidationRules: list(
      struct({ expression: required(text), message: text }, condition('expression', 'user', USER)),
      { unique: 'expression' },
    ),
  },
  VERIFIED_EMAIL,
  ONCE_EACH,
);

/** Tokens are distinguished by their issuer. */
const ISSUERS = rule('unique', (section) => {
  const issuers = section.sections('jwt').flatMap((jwt) => jwt.section('issuer') ?? []);
  for (const name of ['url', 'discoveryURL']) {
    const seen = new Set<string>();
    for (const issuer of issuers.filter((each) => each.text(name) !== ''))
      if (seen.size === seen.add(issuer.text(name)).size) issuer.refuse('unique', name, 'is given twice');
  }
});

const ANONYMOUS = rule('anonymous', (section) => {
  if (!section.truth('enabled') && section.has('conditions'))
    section.refuse('anonymous', 'conditions', 'has no effect unless enabled is true');
});

const AUTHENTICATION = struct(
  {
    jwt: list(JWT, { max: 64 }),
    anonymous: struct(
      {
        enabled: required(bool),
        conditions: list(struct({ path: required(scalar('absolute path')) }), { unique: 'path' }),
      },
      ANONYMOUS,
    ),
  },
  ISSUERS,
);

const SELECTOR = { rawSelector: 'string', requirements: 'list<dyn>' };

/** What an expression may ask of a request. */
const REQUEST: Shape = {
  user: 'string',
  uid: 'string',
  groups: 'list<string>',
  extra: 'map<string, list<string>>',
  resourceAttributes: {
    ...Object.fromEntries(
      ['namespace', 'verb', 'group', 'version', 'resource', 'subresource', 'name'].map((name) => [name, 'string']),
    ),
    fieldSelector: SELECTOR,
    labelSelector: SELECTOR,
  },
  nonResourceAttributes: { path: 'string', verb: 'string' },
};

const CONDITION_VERSION = rule('requires', (section) => {
  const name = 'matchConditionSubjectAccessReviewVersion';
  if (section.has('matchConditions') && !section.has(name))
    section.refuse('requires', name, 'is missing beside matchConditions', '"v1"');
});

const CONNECTION = rule('connection', (section) => {
  const isFile = section.text('type') === 'KubeConfigFile';
  if (isFile && !section.isGiven('kubeConfigFile'))
    section.refuse('connection', 'kubeConfigFile', 'is missing, KubeConfigFile needs it');
  if (section.has('type') && !isFile && section.has('kubeConfigFile'))
    section.refuse('connection', 'kubeConfigFile', 'must not be given with InClusterConfig');
});

const TTL = orZero(parsed(scalar('duration above 0')));

const WEBHOOK = struct(
  {
    authorizedTTL: field(TTL, { default: '5m' }),
    cacheAuthorizedRequests: field(bool, { since: 34 }),
    unauthorizedTTL: field(TTL, { default: '30s' }),
    cacheUnauthorizedRequests: field(bool, { since: 34 }),
    timeout: required(parsed({ ...scalar('duration above 0'), most: '30s' })),
    subjectAccessReviewVersion: required(oneOf('v1', 'v1beta1')),
    matchConditionSubjectAccessReviewVersion: oneOf('v1'),
    failurePolicy: required(oneOf('NoOpinion', 'Deny')),
    connectionInfo: required(
      struct(
        { type: required(oneOf('KubeConfigFile', 'InClusterConfig')), kubeConfigFile: scalar('absolute path') },
        CONNECTION,
      ),
    ),
    matchConditions: list(struct({ expression: required(text) }, condition('expression', 'request', REQUEST)), {
      max: 64,
      unique: 'expression',
    }),
  },
  CONDITION_VERSION,
);

const WEBHOOK_TYPE = rule('webhook', (section) => {
  const isWebhook = section.text('type') === 'Webhook';
  if (isWebhook && !section.has('webhook')) section.refuse('webhook', 'webhook', 'is missing, Webhook needs it');
  if (section.has('type') && !isWebhook && section.has('webhook'))
    section.refuse('webhook', 'webhook', `must not be given with ${section.text('type')}`);
});

/** Only webhooks differ from one another. */
const ONCE = rule('unique', (section: Section) => {
  const seen = new Set<string>();
  for (const authorizer of section.sections('authorizers')) {
    const type = authorizer.text('type');
    if (type !== 'Webhook' && type !== '' && seen.size === seen.add(type).size)
      authorizer.refuse('unique', 'type', 'is given twice');
  }
});

const AUTHORIZATION = struct(
  {
    authorizers: required(
      list(
        struct(
          {
            type: required(oneOf('Webhook', 'Node', 'RBAC', 'ABAC', 'AlwaysAllow', 'AlwaysDeny')),
            name: required(scalar('dns label')),
            webhook: WEBHOOK,
          },
          WEBHOOK_TYPE,
        ),
        { min: 1, unique: 'name' },
      ),
    ),
  },
  ONCE,
);

export const AUTHENTICATION_KIND = renamedKind('AuthenticationConfiguration', AUTHENTICATION, { v1: { since: 34 } });
export const AUTHORIZATION_KIND = renamedKind('AuthorizationConfiguration', AUTHORIZATION, { v1: { since: 32 } });
