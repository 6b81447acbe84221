import { dirname, resolve, sep } from 'node:path';
import { messageOf } from '../../../base/error-message.js';
import { isMapping } from '../../../base/mapping.js';
import { readKubeconfig, SERVER, type ClusterFields, type UserFields } from '../../../config/kubeconfig.js';
import { printReport } from '../../../config/tables/report.js';
import { STRICT } from '../../../config/tables/settings.js';
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

export interface Cluster extends ClusterFields {
  readonly at: string;
  readonly authority: PemSource | null;
  /** What an exec plugin receives about the cluster beyond the other fields; null: nothing. */
  readonly execConfig: unknown;
}

export interface User extends UserFields {
  readonly at: string;
  readonly certificate: PemSource | null;
  readonly key: PemSource | null;
}

export type Impersonation = Pick<User, 'as' | 'as-uid' | 'as-groups' | 'as-user-extra'>;
/** As written; what a selected user's must hold is checked on selection. */
export type ExecSettings = NonNullable<User['exec']>;

export const EXEC_API_VERSIONS = ['client.authentication.k8s.io/v1', 'client.authentication.k8s.io/v1beta1'] as const;
export type ExecApiVersion = (typeof EXEC_API_VERSIONS)[number];
export const INTERACTIVE_MODES = ['Never', 'IfAvailable', 'Always'] as const;
export type InteractiveMode = (typeof INTERACTIVE_MODES)[number];

/** A file of a million wrong entries shall not produce a megabyte of message. */
const MAX_SHOWN = 10;

/**
 * Reads the text of a kubeconfig. Relative paths in it are relative to the file's directory; an exec command is only where it has a slash.
 * Unknown fields are warned of, not refused: kube-proxy takes such files.
 *
 * @throws KubeconfigError with the first problems found.
 */
export function parseKubeconfig(text: string, file: string): Kubeconfig {
  const root = parse(text, file);
  const [errors, warnings]: [string[], string[]] = [[], []];
  const read = readKubeconfig(root, (report) => {
    const list = STRICT.includes(report.rule) ? warnings : errors;
    if (list.length < MAX_SHOWN) list.push(printReport({ ...report, path: report.path.slice(1) }));
  });
  if (errors.length > 0) throw new KubeconfigError(file, errors);
  const directory = dirname(resolve(file));
  const raw = Fields.ofSecret(root).sections('clusters');
  return {
    file,
    currentContext: read['current-context'],
    clusters: byName(read.clusters, ({ cluster }, index) => {
      const at = `clusters[${index}].cluster`;
      const { 'certificate-authority': path, 'certificate-authority-data': data } = cluster;
      const authority = pemSource(`${at}.certificate-authority`, path, data, directory);
      return { ...cluster, at, authority, execConfig: raw[index] === undefined ? null : execConfig(raw[index]) };
    }),
    contexts: byName(read.contexts, ({ context }, index) => ({ ...context, at: `contexts[${index}].context` })),
    users: byName(read.users, ({ user }, index) => readUser(user, `users[${index}].user`, directory)),
    warnings,
  };
}

function parse(text: string, file: string): object {
  let root: unknown;
  try {
    root = parseDocument(text) ?? {};
  } catch (error) {
    throw new KubeconfigError(file, [messageOf(error)]);
  }
  if (!isMapping(root)) throw new KubeconfigError(file, ['must be a mapping']);
  return root;
}

/** What is written of a cluster, beside files, which are where this kubeconfig is. */
export function filledFields(cluster: Cluster): object {
  const fields = Object.keys(SERVER).map((name) => [name, cluster[name as keyof typeof SERVER]] as const);
  return Object.fromEntries(fields.filter(([, value]) => value !== '' && value !== false));
}

function byName<E extends { readonly name: string }, V>(
  list: readonly E[],
  read: (entry: E, index: number) => V,
): ReadonlyMap<string, V> {
  return new Map(list.map((entry, index) => [entry.name, read(entry, index)]));
}

const EXEC_EXTENSION = 'client.authentication.k8s.io/exec';

/** As it was parsed: it is none of ours. */
function execConfig(entry: Fields): unknown {
  const extensions = entry.section('cluster').sections('extensions');
  return extensions.find((each) => each.string('name') === EXEC_EXTENSION)?.raw('extension') ?? null;
}

function readUser(user: UserFields, at: string, directory: string): User {
  const pem = (name: 'client-certificate' | 'client-key'): PemSource | null =>
    pemSource(`${at}.${name}`, user[name], user[`${name}-data`], directory);
  const { exec } = user;
  const command = exec?.command ?? '';
  return {
    ...user,
    at,
    certificate: pem('client-certificate'),
    key: pem('client-key'),
    tokenFile: resolvePath(directory, user.tokenFile),
    exec: exec && { ...exec, command: command.includes(sep) ? resolvePath(directory, command) : command },
  };
}

function pemSource(field: string, path: string, data: string, directory: string): PemSource | null {
  if (data !== '') return { type: 'data', pem: Buffer.from(data, 'base64').toString('latin1'), field: `${field}-data` };
  return path === '' ? null : { type: 'file', path: resolvePath(directory, path), field };
}

function resolvePath(directory: string, path: string): string {
  return path === '' ? '' : resolve(directory, path);
}
