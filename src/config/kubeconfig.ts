import type { Report } from './tables/report.js';
import { exclusive } from './tables/rules.js';
import { readSettings } from './tables/settings.js';
import { string } from './tables/spelling.js';
import {
  any,
  bool,
  entries,
  map,
  oneOf,
  optional,
  required,
  scalar,
  spelled,
  struct,
  text,
  type Field,
  type ScalarType,
  type Type,
  type Typed,
  type ValueOf,
} from './tables/types.js';
import { asMapping } from './yaml.js';

export function secret<T extends Type>(type: T): Field & Typed<ValueOf<T>> {
  return { is: 'field', type, secret: true };
}

const base64 = secret(scalar('base64'));

/** Text that is going to be a header's value. */
const header: ScalarType & Typed<string> = spelled(
  'header',
  string('text without control characters', (value) => !/[\u0000-\u0008\u000a-\u001f\u007f]/.test(value)),
);

const EXTENSIONS = entries(struct({ name: text, extension: any }));

/** What a plugin receives of a cluster as well. */
export const SERVER = {
  server: secret(text),
  'tls-server-name': text,
  'insecure-skip-tls-verify': bool,
  'certificate-authority-data': base64,
  'proxy-url': secret(text),
  'disable-compression': bool,
};

export const CLUSTER = struct(
  { ...SERVER, 'certificate-authority': text, extensions: EXTENSIONS },
  exclusive('certificate-authority', 'certificate-authority-data'),
);

export const EXEC = {
  apiVersion: text,
  command: text,
  args: secret(entries(text)),
  env: entries(struct({ name: required(text), value: secret(text) })),
  installHint: text,
  provideClusterInfo: bool,
  interactiveMode: text,
};

export const USER = struct(
  {
    'client-certificate': text,
    'client-certificate-data': base64,
    'client-key': text,
    'client-key-data': base64,
    token: secret(text),
    tokenFile: text,
    as: header,
    'as-uid': header,
    'as-groups': entries(header),
    'as-user-extra': map(entries(header)),
    username: text,
    password: secret(text),
    'auth-provider': optional(struct({ name: text, config: any })),
    exec: optional(struct(EXEC)),
    extensions: any,
  },
  exclusive('client-certificate', 'client-certificate-data'),
  exclusive('client-key', 'client-key-data'),
);

const CONTEXT = struct({ cluster: text, user: text, namespace: any, extensions: any });

/** A kubeconfig as every client of the API server reads it. What the cluster and the user of its context lack is found when they are used. */
const KUBECONFIG = struct({
  apiVersion: oneOf('v1'),
  kind: oneOf('Config'),
  preferences: any,
  clusters: entries(struct({ name: required(text), cluster: CLUSTER }), { unique: 'name' }),
  users: entries(struct({ name: required(text), user: USER }), { unique: 'name' }),
  contexts: entries(struct({ name: required(text), context: CONTEXT }), { unique: 'name' }),
  'current-context': text,
  extensions: any,
});

export type ClusterFields = ValueOf<typeof CLUSTER>;
export type UserFields = ValueOf<typeof USER>;

/** @param root a mapping, as it was parsed. @param report gets what is wrong, by rules of {@link STRICT} what is ignored. */
export function readKubeconfig(root: object, report: (report: Report) => void): ValueOf<typeof KUBECONFIG> {
  return readSettings(KUBECONFIG, asMapping(root), '', report);
}
