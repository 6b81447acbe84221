import { dirname, resolve, sep } from 'node:path';
import { messageOf } from '../../../base/error-message.js';
import { TranslateError } from '../../translate/errors.js';
import { Fields } from '../../translate/fields.js';
import { parseDocument } from './document.js';
import { KubeconfigError } from './errors.js';

/** A kubeconfig file, paths resolved, nothing selected yet. Text fields that are not given are empty. */
export interface Kubeconfig {
  readonly file: string;
  readonly currentContext: string;
  readonly contexts: ReadonlyMap<string, Context>;
  readonly clusters: ReadonlyMap<string, Cluster>;
  readonly users: ReadonlyMap<string, User>;
  /** Fields that mean nothing here, such as misspelt ones. */
  readonly warnings: readonly string[];
}

interface Context {
  /** Field path of this entry, for messages. */
  readonly at: string;
  readonly cluster: string;
  readonly user: string;
}

/** PEM text, given in place or as a file. */
export type PemSource =
  | { readonly type: 'file'; readonly path: string; readonly field: string }
  | { readonly type: 'data'; readonly pem: string; readonly field: string };

export interface Cluster {
  readonly at: string;
  readonly server: string;
  readonly tlsServerName: string;
  readonly insecure: boolean;
  readonly authority: PemSource | null;
  readonly proxyUrl: string;
  readonly disableCompression: boolean;
  /** What an exec plugin receives about the cluster beyond the other fields; null: nothing. */
  readonly execConfig: unknown;
}

export interface User {
  readonly at: string;
  readonly certificate: PemSource | null;
  readonly key: PemSource | null;
  readonly token: string;
  readonly tokenFile: string;
  readonly username: string;
  readonly password: string;
  readonly impersonate: Impersonation;
  readonly authProvider: string | null;
  readonly exec: ExecSettings | null;
}

export interface Impersonation {
  readonly user: string;
  readonly uid: string;
  readonly groups: readonly string[];
  readonly extra: readonly (readonly [key: string, values: readonly string[]])[];
}

export const EXEC_API_VERSIONS = ['client.authentication.k8s.io/v1', 'client.authentication.k8s.io/v1beta1'] as const;
export type ExecApiVersion = (typeof EXEC_API_VERSIONS)[number];
export const INTERACTIVE_MODES = ['Never', 'IfAvailable', 'Always'] as const;
export type InteractiveMode = (typeof INTERACTIVE_MODES)[number];

/** As written; what a selected user's must hold is checked on selection. */
export interface ExecSettings {
  readonly at: string;
  readonly command: string;
  readonly args: readonly string[];
  readonly env: readonly (readonly [name: string, value: string])[];
  readonly apiVersion: string;
  readonly installHint: string;
  readonly provideClusterInfo: boolean;
  readonly interactiveMode: string;
}

/**
 * Reads the text of a kubeconfig. Relative paths in it are relative to the file's directory; an exec command is only where it has a slash.
 * Unknown fields are warned of, not refused: kube-proxy takes such files.
 *
 * @throws KubeconfigError with every problem found.
 */
export function parseKubeconfig(text: string, file: string): Kubeconfig {
  const root = openRoot(text, file);
  const directory = dirname(resolve(file));
  try {
    root.choice('apiVersion', ['v1'], 'v1');
    root.choice('kind', ['Config'], 'Config');
    expectOnly(root, ROOT_FIELDS);
    const kubeconfig: Kubeconfig = {
      file,
      currentContext: root.string('current-context') ?? '',
      clusters: readEntries(root, 'clusters', (fields, at) => readCluster(fields, at, directory)),
      contexts: readEntries(root, 'contexts', readContext),
      users: readEntries(root, 'users', (fields, at) => readUser(fields, at, directory)),
      warnings: root.findings.warnings.all().map(String),
    };
    root.check();
    return kubeconfig;
  } catch (error) {
    if (error instanceof TranslateError) throw new KubeconfigError(file, error.problems.map(String));
    throw error;
  }
}

function openRoot(text: string, file: string): Fields {
  try {
    return Fields.ofSecret(parseDocument(text) ?? {});
  } catch (error) {
    if (error instanceof TranslateError) throw new KubeconfigError(file, ['must be a mapping']);
    throw new KubeconfigError(file, [messageOf(error)]);
  }
}

/** A list of `{name, <entry>}`, each name once. */
function readEntries<T>(
  root: Fields,
  list: 'clusters' | 'contexts' | 'users',
  read: (fields: Fields, at: string) => T,
): ReadonlyMap<string, T> {
  const entries = new Map<string, T>();
  const kind = list.slice(0, -1);
  for (const [index, entry] of root.sections(list).entries()) {
    const name = entry.requiredString('name');
    expectOnly(entry, ['name', kind]);
    if (entries.has(name)) entry.refuse('name', name, 'is given twice');
    entries.set(name, read(entry.section(kind), `${list}[${index}].${kind}`));
  }
  return entries;
}

function readContext(fields: Fields, at: string): Context {
  expectOnly(fields, ['cluster', 'user', 'namespace', 'extensions']);
  return { at, cluster: fields.string('cluster') ?? '', user: fields.string('user') ?? '' };
}

function readCluster(fields: Fields, at: string, directory: string): Cluster {
  expectOnly(fields, CLUSTER_FIELDS);
  return {
    at,
    server: fields.secretString('server') ?? '',
    tlsServerName: fields.string('tls-server-name') ?? '',
    insecure: fields.boolean('insecure-skip-tls-verify') ?? false,
    authority: readPem(fields, 'certificate-authority', at, directory),
    proxyUrl: fields.secretString('proxy-url') ?? '',
    disableCompression: fields.boolean('disable-compression') ?? false,
    execConfig: readExecConfig(fields),
  };
}

const EXEC_EXTENSION = 'client.authentication.k8s.io/exec';

function readExecConfig(fields: Fields): unknown {
  const extension = fields.sections('extensions').find((entry) => entry.string('name') === EXEC_EXTENSION);
  return extension?.raw('extension') ?? null;
}

function readUser(fields: Fields, at: string, directory: string): User {
  expectOnly(fields, USER_FIELDS);
  return {
    at,
    certificate: readPem(fields, 'client-certificate', at, directory),
    key: readPem(fields, 'client-key', at, directory),
    token: fields.secretString('token') ?? '',
    tokenFile: resolvePath(directory, fields.string('tokenFile') ?? ''),
    username: fields.string('username') ?? '',
    password: fields.secretString('password') ?? '',
    impersonate: readImpersonation(fields),
    authProvider: fields.lacks('auth-provider') ? null : (fields.section('auth-provider').string('name') ?? ''),
    exec: fields.lacks('exec') ? null : readExec(fields.section('exec'), `${at}.exec`, directory),
  };
}

function readImpersonation(fields: Fields): Impersonation {
  const extra = fields.section('as-user-extra');
  return {
    user: headerText(fields, 'as', fields.string('as') ?? ''),
    uid: headerText(fields, 'as-uid', fields.string('as-uid') ?? ''),
    groups: fields.strings('as-groups').map(({ text, at }) => headerText(fields, at, text)),
    extra: extra.names().map((key) => [key, extra.strings(key).map(({ text, at }) => headerText(extra, at, text))]),
  };
}

/** Text that is going to be a header's value. */
function headerText(fields: Fields, path: string, text: string): string {
  if (/[\u0000-\u0008\u000a-\u001f\u007f]/.test(text)) fields.refuse(path, text, 'must not hold control characters');
  return text;
}

function readExec(fields: Fields, at: string, directory: string): ExecSettings {
  expectOnly(fields, EXEC_FIELDS);
  const command = fields.string('command') ?? '';
  return {
    at,
    command: command.includes(sep) ? resolvePath(directory, command) : command,
    args: fields.strings('args').map(({ text }) => text),
    env: fields.sections('env').map((entry) => [entry.requiredString('name'), entry.secretString('value') ?? '']),
    apiVersion: fields.string('apiVersion') ?? '',
    installHint: fields.string('installHint') ?? '',
    provideClusterInfo: fields.boolean('provideClusterInfo') ?? false,
    interactiveMode: fields.string('interactiveMode') ?? '',
  };
}

/** `<name>-data` in base64, or `<name>`, a path. Both is an error, as in kube-proxy. */
function readPem(fields: Fields, name: string, at: string, directory: string): PemSource | null {
  const path = fields.string(name) ?? '';
  const data = fields.secretString(`${name}-data`) ?? '';
  if (path !== '' && data !== '') fields.refuse(name, path, `must not be given beside ${name}-data`);
  if (data !== '') {
    const pem = decodeBase64(data);
    if (pem === null) fields.refuseSecret(`${name}-data`, 'must be base64');
    return { type: 'data', pem: pem ?? '', field: `${at}.${name}-data` };
  }
  return path === '' ? null : { type: 'file', path: resolvePath(directory, path), field: `${at}.${name}` };
}

function decodeBase64(text: string): string | null {
  const digits = text.replace(/[\r\n]/g, '');
  if (digits.length % 4 !== 0 || !/^[A-Za-z0-9+/]*={0,2}$/.test(digits)) return null;
  return Buffer.from(digits, 'base64').toString('latin1');
}

function resolvePath(directory: string, path: string): string {
  return path === '' ? '' : resolve(directory, path);
}

function expectOnly(fields: Fields, known: readonly string[]): void {
  for (const name of fields.names()) {
    if (!known.includes(name)) fields.warnSecret(name, 'is no field known here, and ignored');
  }
}

const ROOT_FIELDS = [
  'apiVersion',
  'kind',
  'preferences',
  'clusters',
  'users',
  'contexts',
  'current-context',
  'extensions',
];
const CLUSTER_FIELDS = [
  'server',
  'tls-server-name',
  'insecure-skip-tls-verify',
  'certificate-authority',
  'certificate-authority-data',
  'proxy-url',
  'disable-compression',
  'extensions',
];
const USER_FIELDS = [
  'client-certificate',
  'client-certificate-data',
  'client-key',
  'client-key-data',
  'token',
  'tokenFile',
  'as',
  'as-uid',
  'as-groups',
  'as-user-extra',
  'username',
  'password',
  'auth-provider',
  'exec',
  'extensions',
];
const EXEC_FIELDS = ['command', 'args', 'env', 'apiVersion', 'installHint', 'provideClusterInfo', 'interactiveMode'];
