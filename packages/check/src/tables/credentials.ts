import {
  CLUSTER as READ_CLUSTER,
  EXEC as READ_EXEC,
  secret,
  SERVER as READ_SERVER,
  USER as READ_USER,
} from '../../../../src/config/kubeconfig.js';
import { needs, exclusive, rule, someOf } from '../../../../src/config/tables/rules.js';
import type { Section } from '../../../../src/config/tables/section.js';
import { scalar } from '../../../../src/config/tables/formats.js';
import {
  any,
  bool,
  field,
  list,
  map,
  oneOf,
  required,
  struct,
  text,
  type KindTable,
  type Rule,
} from '../../../../src/config/tables/types.js';

import { pem } from './pem.js';

/** How clients reach the API server and prove who they are, as strictly as can be: full of secrets. */

const EXTENSIONS = list(struct({ name: required(text), extension: any }), { unique: 'name' });

const AUTHORITY = rule('tls', (section) => {
  const name = ['certificate-authority', 'certificate-authority-data'].find((each) => section.has(each));
  if (section.truth('insecure-skip-tls-verify') && name !== undefined)
    section.refuse('tls', name, 'must not be given with insecure-skip-tls-verify');
});

const UNVERIFIED = rule('tls', (section) => {
  if (section.truth('insecure-skip-tls-verify'))
    section.warn('tls', 'insecure-skip-tls-verify', 'lets any server answer in place of the API server');
});

const SERVER = { ...READ_SERVER, server: required(scalar('http url')), 'proxy-url': secret(scalar('proxy url')) };

const CLUSTER = struct(
  { ...READ_CLUSTER.fields, ...SERVER, extensions: EXTENSIONS },
  ...READ_CLUSTER.rules,
  AUTHORITY,
  UNVERIFIED,
  pem('certificate-authority-data', 'certificate', 'base64'),
);

const EXEC = struct(
  {
    ...READ_EXEC,
    apiVersion: required(oneOf('client.authentication.k8s.io/v1', 'client.authentication.k8s.io/v1beta1')),
    command: required(text),
    interactiveMode: oneOf('Never', 'IfAvailable', 'Always'),
  },
  rule('requires', (section) => {
    if (section.text('apiVersion').endsWith('/v1') && !section.has('interactiveMode'))
      section.refuse('requires', 'interactiveMode', 'is missing', '"Never" or "IfAvailable" or "Always"');
  }),
);

/** A certificate and its key, each as a file or in place. */
const PAIR = rule('requires', (section) => {
  const has = (name: string): boolean => section.has(name) || section.has(`${name}-data`);
  if (has('client-certificate') !== has('client-key'))
    section.refuse('requires', '', 'must have client-certificate and client-key, or neither');
});

/** Who impersonates a user has to name the user. */
const IMPERSONATED = rule('requires', (section) => {
  if (section.has('as')) return;
  for (const name of ['as-uid', 'as-groups', 'as-user-extra']) {
    const map = section.section(name);
    if (map === null ? section.has(name) : map.names().length > 0)
      section.refuse('requires', name, 'needs as beside it');
  }
});

/** One way to prove who it is, for what counts as one. */
const ONE_METHOD = rule('exclusive', (section) => {
  const name = ['username', 'password'].find((each) => section.has(each));
  if (section.text('token') !== '' && name !== undefined)
    section.refuse('exclusive', name, 'must not be given beside token');
});

const USER = struct(
  {
    ...READ_USER.fields,
    'auth-provider': field(struct({ name: required(text), config: secret(map(text)) }), { deprecated: 'exec' }),
    exec: EXEC,
    extensions: EXTENSIONS,
  },
  ...READ_USER.rules,
  exclusive('exec', 'auth-provider'),
  needs('password', 'username'),
  PAIR,
  IMPERSONATED,
  ONE_METHOD,
  pem('client-certificate-data', 'certificate', 'base64'),
  pem('client-key-data', 'private key', 'base64'),
);

/** What a context names has to be there. */
function named(entries: string, isKnown: (names: readonly string[], section: Section) => void): Rule {
  return rule('reference', (section) => {
    isKnown(
      section.sections(entries).map((entry) => entry.text('name')),
      section,
    );
  });
}

function ofContexts(kind: 'cluster' | 'user'): Rule {
  return named(`${kind}s`, (names, section) => {
    for (const context of section.sections('contexts').flatMap((entry) => entry.section('context') ?? []))
      if (context.has(kind) && !names.includes(context.text(kind)))
        context.refuse('reference', kind, `is none of ${kind}s`);
  });
}

const CURRENT = named('contexts', (names, section) => {
  if (section.has('current-context') && !names.includes(section.text('current-context')))
    section.refuse('reference', 'current-context', 'is none of contexts');
});

const KUBECONFIG = struct(
  {
    preferences: struct({ colors: bool, extensions: EXTENSIONS }),
    clusters: list(struct({ name: required(text), cluster: required(CLUSTER) }), { unique: 'name' }),
    users: list(struct({ name: required(text), user: required(USER) }), { unique: 'name' }),
    contexts: list(
      struct({
        name: required(text),
        context: required(
          struct({
            cluster: required(text),
            user: required(text),
            namespace: scalar('dns label'),
            extensions: EXTENSIONS,
          }),
        ),
      }),
      { unique: 'name' },
    ),
    'current-context': text,
    extensions: EXTENSIONS,
  },
  ofContexts('cluster'),
  ofContexts('user'),
  CURRENT,
);

/** The reference demands both of a plugin's answer, too; clients take one without them. */
const SPEC = rule('required', (section) => {
  if (!section.isGiven('spec')) section.warn('required', 'spec', 'is missing, which clients allow', 'a mapping');
  else if (section.section('spec')?.isGiven('interactive') !== true)
    section.warn('required', 'spec.interactive', 'is missing, which clients allow', 'true or false');
});

/** An ExecCredential: a credential plugin receives its spec and answers its status. */
const EXEC_CREDENTIAL = struct(
  {
    spec: struct({
      cluster: struct({ ...SERVER, config: any }, pem('certificate-authority-data', 'certificate', 'base64')),
      interactive: bool,
    }),
    status: struct(
      {
        expirationTimestamp: scalar('timestamp'),
        token: secret(text),
        clientCertificateData: secret(text),
        clientKeyData: secret(text),
      },
      someOf('token', 'clientCertificateData'),
      needs('clientCertificateData', 'clientKeyData'),
      needs('clientKeyData', 'clientCertificateData'),
      pem('clientCertificateData', 'certificate', 'text'),
      pem('clientKeyData', 'private key', 'text'),
    ),
  },
  SPEC,
);

export const CREDENTIALS: readonly KindTable[] = [
  { kind: 'Config', group: '', versions: { v1: {} }, table: KUBECONFIG },
  {
    kind: 'ExecCredential',
    group: 'client.authentication.k8s.io',
    versions: { v1: { since: 22 }, v1beta1: {} },
    table: EXEC_CREDENTIAL,
  },
];
