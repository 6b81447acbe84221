import { isIP } from 'node:net';
import { join } from 'node:path';
import { readFileWithin } from '../../../base/bounded-file.js';
import { messageOf } from '../../../base/error-message.js';
import { MAX_DOCUMENT_BYTES } from './document.js';
import { KubeconfigError } from './errors.js';
import {
  EXEC_API_VERSIONS,
  INTERACTIVE_MODES,
  parseKubeconfig,
  type Cluster,
  type ExecApiVersion,
  type ExecSettings,
  type Impersonation,
  type InteractiveMode,
  type Kubeconfig,
  type PemSource,
  type User,
} from './kubeconfig.js';
import { environmentProxy, parseProxyUrl, type Proxy } from './proxy.js';

/** Where the API server is and who we are to it: all that was configured, checked, with nothing read yet but the kubeconfig. */
export interface Access {
  /** For messages: the kubeconfig's path, `in-cluster` or `--master`. */
  readonly origin: string;
  /** http or https; a path is a prefix of every request's. */
  readonly server: URL;
  readonly proxy: Proxy | TunnelAccess | null;
  /** Null for http. */
  readonly tls: TlsAccess | null;
  readonly login: Login;
  readonly impersonate: Impersonation | null;
  readonly warnings: readonly string[];
}

/** The way that an egress selection names. It counts in place of every proxy, also of none. */
export type Egress = { readonly type: 'direct' } | TunnelAccess;

/** A proxy that is asked by CONNECT, whatever is spoken within. */
export interface TunnelAccess {
  readonly type: 'tunnel';
  /** For messages: the file that names it. */
  readonly origin: string;
  /** For messages. */
  readonly name: string;
  /** The host without brackets; or the path of a Unix socket. */
  readonly to: { readonly host: string; readonly port: number } | { readonly path: string };
  readonly login: Proxy['login'];
  /** Null: the proxy is not spoken to in TLS. */
  readonly tls: TlsAccess | null;
}

export interface TlsAccess {
  /** The name the server's certificate must have. */
  readonly serverName: string;
  /** Null: what the system trusts. */
  readonly authority: PemSource | null;
  /** Whether the server's certificate is not looked at. */
  readonly insecure: boolean;
  readonly pair: { readonly certificate: PemSource; readonly key: PemSource } | null;
}

interface Login {
  readonly token: string;
  /** While it can be read it counts before `token`. Empty: none. */
  readonly tokenFile: string;
  readonly basic: { readonly username: string; readonly password: string } | null;
  readonly exec: ExecAccess | null;
}

export interface ExecAccess {
  readonly at: string;
  readonly command: string;
  readonly args: readonly string[];
  readonly env: readonly (readonly [name: string, value: string])[];
  readonly apiVersion: ExecApiVersion;
  readonly interactiveMode: InteractiveMode;
  readonly installHint: string;
  /** What the plugin receives about the cluster; null: nothing. */
  readonly cluster: Cluster | null;
}

interface AccessOptions {
  /** `clientConnection.kubeconfig` or `--kubeconfig`; empty: none. The environment variable KUBECONFIG does not count. */
  readonly kubeconfig: string;
  /** Which context of it counts; absent or empty: its current one. */
  readonly context?: string;
  /** `--master`: counts instead of the kubeconfig's server. Empty: none. */
  readonly master: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** What an egress selection sets for the way; it counts before every proxy. */
  readonly egress?: Egress | null;
  /** Where a pod finds its service account's `token` and `ca.crt`. */
  readonly serviceAccountDirectory: string;
}

export const SERVICE_ACCOUNT_DIRECTORY = '/var/run/secrets/kubernetes.io/serviceaccount';

const NO_LOGIN: Login = { token: '', tokenFile: '', basic: null, exec: null };

/**
 * A kubeconfig's current context, a bare `--master`, or without either the pod's service account (behaviour ST-11).
 *
 * @throws KubeconfigError
 */
export async function resolveAccess(options: AccessOptions): Promise<Access> {
  const { context = '' } = options;
  if (options.kubeconfig !== '') {
    const kubeconfig = await readKubeconfig(options.kubeconfig);
    return kubeconfigAccess(context === '' ? kubeconfig : { ...kubeconfig, currentContext: context }, options);
  }
  return options.master === '' ? inClusterAccess(options) : masterAccess(options);
}

/**
 * Cluster and user of a kubeconfig's current context.
 *
 * @param serverGiven whether `--master` names the server, so that the context need not.
 * @throws KubeconfigError
 */
export async function readSelection(kubeconfig: string, serverGiven: boolean): Promise<Selection> {
  return select(await readKubeconfig(kubeconfig), serverGiven);
}

async function readKubeconfig(file: string): Promise<Kubeconfig> {
  let text: string;
  try {
    text = (await readFileWithin(file, MAX_DOCUMENT_BYTES)).toString('utf8');
  } catch (error) {
    throw new KubeconfigError(file, [`cannot be read: ${messageOf(error)}`], { cause: error });
  }
  return parseKubeconfig(text, file);
}

function masterAccess(options: AccessOptions): Access {
  const problems: string[] = [];
  const server = parseServer(options.master, '--master', problems);
  const proxy = proxyOf('', '', server, options, problems);
  if (problems.length > 0) throw new KubeconfigError('--master', problems);
  const tls = { serverName: hostOf(server), authority: null, insecure: false, pair: null };
  return {
    origin: '--master',
    server,
    proxy,
    tls: isTls(server) ? tls : null,
    login: NO_LOGIN,
    impersonate: null,
    warnings: [],
  };
}

function inClusterAccess(options: AccessOptions): Access {
  const { env, serviceAccountDirectory } = options;
  const host = env['KUBERNETES_SERVICE_HOST'] ?? '';
  const port = env['KUBERNETES_SERVICE_PORT'] ?? '';
  if (host === '' || port === '') {
    throw new KubeconfigError('nothing to read Services from', [
      'there are no --manifests, no kubeconfig (--kubeconfig, or clientConnection.kubeconfig in --config) and no --master. This is no pod with a service account (KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set): give one of them',
    ]);
  }
  const problems: string[] = [];
  const text = `https://${isIP(host) === 6 ? `[${host}]` : host}:${port}`;
  const server = parseServer(text, 'KUBERNETES_SERVICE_HOST, KUBERNETES_SERVICE_PORT', problems);
  const proxy = proxyOf('', '', server, options, problems);
  if (problems.length > 0) throw new KubeconfigError('in-cluster', problems);
  const authority = { type: 'file', path: join(serviceAccountDirectory, 'ca.crt'), field: 'ca.crt' } as const;
  return {
    origin: 'in-cluster',
    server,
    proxy,
    tls: { serverName: hostOf(server), authority, insecure: false, pair: null },
    login: { ...NO_LOGIN, tokenFile: join(serviceAccountDirectory, 'token') },
    impersonate: null,
    warnings: [],
  };
}

function kubeconfigAccess(kubeconfig: Kubeconfig, options: AccessOptions): Access {
  const { file } = kubeconfig;
  const { master } = options;
  const { cluster, user } = select(kubeconfig, master !== '');
  const problems: string[] = [];
  const [serverText, serverField] =
    master === ''
      ? ([cluster?.server ?? '', `${cluster?.at ?? 'cluster'}.server`] as const)
      : ([master, '--master'] as const);
  const server = parseServer(serverText, serverField, problems);
  const proxy = proxyOf(
    cluster?.['proxy-url'] ?? '',
    `${cluster?.at ?? 'cluster'}.proxy-url`,
    server,
    options,
    problems,
  );
  const insecure = cluster?.['insecure-skip-tls-verify'] ?? false;
  if (cluster !== null && insecure && cluster.authority !== null) {
    problems.push(`${cluster.at}.insecure-skip-tls-verify: must not be true beside a certificate authority`);
  }
  // The name belongs to the server that --master replaces.
  const tlsServerName = master === '' ? (cluster?.['tls-server-name'] ?? '') : '';
  const tls: TlsAccess = {
    serverName: tlsServerName === '' ? hostOf(server) : tlsServerName,
    authority: cluster?.authority ?? null,
    insecure,
    pair: user === null ? null : certificatePair(user, problems),
  };
  const execCluster = cluster && { ...cluster, server: serverText, 'tls-server-name': tlsServerName };
  const login = user === null ? NO_LOGIN : readLogin(user, execCluster, problems);
  const impersonate = user === null ? null : checkImpersonation(user, problems);
  if (problems.length > 0) throw new KubeconfigError(file, problems);
  const warnings = [...kubeconfig.warnings, ...unusedProxy(cluster, options)];
  const access = { origin: file, server, proxy, warnings };
  if (isTls(server)) return { ...access, tls, login, impersonate };
  const ignored = user === null ? [] : [`${user.at}: not used, as ${server.origin} is not encrypted`];
  return { ...access, tls: null, login: NO_LOGIN, impersonate: null, warnings: [...access.warnings, ...ignored] };
}

export interface Selection {
  readonly cluster: Cluster | null;
  readonly user: User | null;
}

/** Cluster and user of the current context. A context without a user is anonymous and still has the cluster's authority. */
function select({ file, currentContext, contexts, clusters, users }: Kubeconfig, serverGiven: boolean): Selection {
  const refuse = (problem: string): never => {
    throw new KubeconfigError(file, [problem]);
  };
  if (currentContext === '') refuse('current-context: is required');
  const context = contexts.get(currentContext);
  if (context === undefined) return refuse(`current-context: "${currentContext}": no such context in contexts`);
  const cluster = clusters.get(context.cluster) ?? null;
  if (cluster === null && (context.cluster !== '' || !serverGiven)) {
    refuse(`${context.at}.cluster: "${context.cluster}": no such cluster in clusters`);
  }
  const user = users.get(context.user) ?? null;
  if (user === null && context.user !== '') refuse(`${context.at}.user: "${context.user}": no such user in users`);
  return { cluster, user };
}

/** As in kube-proxy, an address without a scheme means http. */
function parseServer(text: string, field: string, problems: string[]): URL {
  const full = text.includes('://') ? text : `http://${text}`;
  const url = text !== '' && URL.canParse(full) ? new URL(full) : null;
  if (url === null || !['http:', 'https:'].includes(url.protocol) || url.hostname === '') {
    problems.push(
      // The text is not reported: it may contain a password.
      text === '' ? `${field}: is required` : `${field}: must be a URL https://… or http://…`,
    );
    return new URL('https://invalid');
  }
  if (url.username !== '' || url.password !== '') problems.push(`${field}: must not hold a user name or password`);
  url.search = '';
  url.hash = '';
  return url;
}

function isTls({ protocol }: URL): boolean {
  return protocol === 'https:';
}

export function hostOf({ hostname }: URL): string {
  return hostname.startsWith('[') ? hostname.slice(1, -1) : hostname;
}

function proxyOf(
  text: string,
  field: string,
  server: URL,
  { env, egress = null }: Pick<AccessOptions, 'env' | 'egress'>,
  problems: string[],
): Access['proxy'] {
  if (egress !== null) return egress.type === 'direct' ? null : egress;
  const proxy = text === '' ? environmentProxy(server, env) : parseProxyUrl(text);
  if (typeof proxy !== 'string') return proxy;
  problems.push(text === '' ? proxy : `${field}: ${proxy}`);
  return null;
}

function unusedProxy(cluster: Cluster | null, { egress = null }: AccessOptions): readonly string[] {
  if (egress === null || cluster === null || cluster['proxy-url'] === '') return [];
  return [`${cluster.at}.proxy-url: not used, as --egress-selector-config-file counts in its place`];
}

function certificatePair({ at, certificate, key }: User, problems: string[]): TlsAccess['pair'] {
  if (certificate !== null && key !== null) return { certificate, key };
  if (certificate !== null)
    problems.push(`${at}: client-key or client-key-data is required beside a client certificate`);
  if (key !== null)
    problems.push(`${at}: client-certificate or client-certificate-data is required beside a client key`);
  return null;
}

function readLogin(user: User, cluster: Cluster | null, problems: string[]): Login {
  const { at, token, tokenFile, username, password, 'auth-provider': authProvider, exec } = user;
  const basic = username === '' && password === '' ? null : { username, password };
  if (basic !== null && (token !== '' || tokenFile !== '')) {
    problems.push(`${at}: must have either a token or a username and password`);
  }
  if (username.includes(':')) problems.push(`${at}.username: must not hold a colon`);
  if (!isHeaderToken(token)) problems.push(`${at}.token: must be printable ASCII`);
  if (authProvider !== null) {
    problems.push(
      `${at}.auth-provider: "${authProvider.name}": auth providers are not supported (Kubernetes dropped them in 1.26): use exec`,
    );
  }
  return { token, tokenFile, basic, exec: exec && readExec(exec, `${at}.exec`, cluster, problems) };
}

/** Whether text can be sent as a bearer token. */
export function isHeaderToken(token: string): boolean {
  return /^[\x21-\x7e]*$/.test(token);
}

function readExec(settings: ExecSettings, at: string, cluster: Cluster | null, problems: string[]): ExecAccess {
  const { command, args, installHint, provideClusterInfo } = settings;
  const apiVersion = EXEC_API_VERSIONS.find((version) => version === settings.apiVersion);
  if (apiVersion === undefined) {
    problems.push(`${at}.apiVersion: "${settings.apiVersion}": must be ${EXEC_API_VERSIONS.join(' or ')}`);
  }
  if (command === '') problems.push(`${at}.command: is required`);
  problems.push(...fieldsWithNull(settings, at));
  // Only the older version has a default.
  const modeText =
    settings.interactiveMode === '' && apiVersion?.endsWith('v1beta1') === true
      ? 'IfAvailable'
      : settings.interactiveMode;
  const interactiveMode = INTERACTIVE_MODES.find((mode) => mode === modeText);
  if (interactiveMode === undefined) {
    problems.push(`${at}.interactiveMode: "${modeText}": must be one of ${INTERACTIVE_MODES.join(', ')}`);
  }
  return {
    at,
    command,
    args,
    env: settings.env.map(({ name, value }) => [name, value]),
    installHint,
    apiVersion: apiVersion ?? EXEC_API_VERSIONS[0],
    interactiveMode: interactiveMode ?? 'Never',
    cluster: provideClusterInfo ? cluster : null,
  };
}

/** A value that no process can be given; Node's error would contain it, and it may be secret. */
function fieldsWithNull({ command, args, env }: ExecSettings, at: string): readonly string[] {
  const texts: readonly (readonly [field: string, text: string])[] = [
    ['command', command],
    ...args.map((text, index) => [`args[${index}]`, text] as const),
    ...env.flatMap(({ name, value }, index) => [
      [`env[${index}].name`, name] as const,
      [`env[${index}].value`, value] as const,
    ]),
  ];
  return texts
    .filter(([, text]) => text.includes('\0'))
    .map(([field]) => `${at}.${field}: must not hold a null character`);
}

function checkImpersonation(user: User, problems: string[]): Impersonation | null {
  if (user.as !== '') return user;
  if (user['as-uid'] !== '' || user['as-groups'].length > 0 || Object.keys(user['as-user-extra']).length > 0)
    problems.push(`${user.at}.as: is required beside as-uid, as-groups and as-user-extra`);
  return null;
}
