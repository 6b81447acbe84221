import { exclusive, needs, rule, someOf } from '../../../../src/config/tables/rules.js';
import type { Section } from '../../../../src/config/tables/section.js';
import { scalar } from '../../../../src/config/tables/formats.js';
import {
  any,
  bool,
  field,
  list,
  map,
  oneOf,
  path,
  required,
  struct,
  text,
  type Field,
  type KindTable,
  type Rule,
  type Type,
} from '../../../../src/config/tables/types.js';

/** How clients reach the API server and prove who they are: full of secrets. */

function secret(type: Type): Field {
  return field(type, { secret: true });
}

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

const SERVER = {
  server: required(scalar('http url')),
  'tls-server-name': text,
  'insecure-skip-tls-verify': bool,
  'certificate-authority-data': secret(scalar('base64')),
  'proxy-url': secret(scalar('proxy url')),
  'disable-compression': bool,
};

const CLUSTER = struct(
  { ...SERVER, 'certificate-authority': path, extensions: EXTENSIONS },
  exclusive('certificate-authority', 'certificate-authority-data'),
  AUTHORITY,
  UNVERIFIED,
);

const EXEC = struct(
  {
    apiVersion: required(oneOf('client.authentication.k8s.io/v1', 'client.authentication.k8s.io/v1beta1')),
    command: required(path),
    args: secret(list(text)),
    env: list(struct({ name: required(text), value: secret(text) })),
    installHint: text,
    provideClusterInfo: bool,
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
    'client-certificate': path,
    'client-certificate-data': secret(scalar('base64')),
    'client-key': path,
    'client-key-data': secret(scalar('base64')),
    token: secret(text),
    tokenFile: path,
    as: text,
    'as-uid': text,
    'as-groups': list(text),
    'as-user-extra': map(list(text)),
    username: text,
    password: secret(text),
    'auth-provider': field(struct({ name: required(text), config: secret(map(text)) }), {
      deprecated: 'exec',
    }),
    exec: EXEC,
    extensions: EXTENSIONS,
  },
  exclusive('client-certificate', 'client-certificate-data'),
  exclusive('client-key', 'client-key-data'),
  exclusive('exec', 'auth-provider'),
  needs('password', 'username'),
  PAIR,
  IMPERSONATED,
  ONE_METHOD,
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

/** What a plugin receives, and what it answers. */
const EXEC_CREDENTIAL = struct({
  spec: struct({ cluster: struct({ ...SERVER, config: any }), interactive: bool }),
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
  ),
});

export const CREDENTIALS: readonly KindTable[] = [
  { kind: 'Config', group: '', versions: { v1: {} }, table: KUBECONFIG },
  {
    kind: 'ExecCredential',
    group: 'client.authentication.k8s.io',
    versions: { v1: { since: 22 }, v1beta1: {} },
    table: EXEC_CREDENTIAL,
  },
];
