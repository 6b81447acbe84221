import { readAudit, unusedLimits, type AuditConfig } from './audit.js';
import { durationMilliseconds, parseDuration } from './duration.js';
import { invalid } from './errors.js';
import type { FlagName } from './flag-table.js';
import { isFlagSet, listFlag, settingOf, textFlag, type CommandLine } from './flags.js';

/** What stands in front of the pages on the metrics address. Said by flags alone. */
export interface SecuredConfig {
  readonly tls: TlsConfig;
  readonly authentication: AuthenticationConfig;
  readonly authorization: AuthorizationConfig;
  /** Null: nothing is written down. */
  readonly audit: AuditConfig | null;
}

/** Times in milliseconds. */
export interface AuthenticationConfig {
  /** Path of the authorities that vouch for client certificates; null: none count. */
  readonly clientCaFile: string | null;
  /** How long a review of a bearer token counts; null: they are not reviewed, and count for nothing. */
  readonly tokenTtl: number | null;
  /** Whether who does not say who it is may ask; null: not said, which means that it may unless `file` says otherwise. */
  readonly anonymous: boolean | null;
  /** Path of an `AuthenticationConfiguration`; null: none. */
  readonly file: string | null;
}

/** Times in milliseconds. */
interface AuthorizationConfig {
  readonly mode: AuthorizationMode;
  /** Path of an `AuthorizationConfiguration`, which says it all in place of the rest; null: none. */
  readonly file: string | null;
  /** How long it counts that a user may, and that it may not. */
  readonly authorizedTtl: number;
  readonly unauthorizedTtl: number;
}

const AUTHORIZATION_MODES = ['AlwaysAllow', 'Webhook'] as const;
type AuthorizationMode = (typeof AUTHORIZATION_MODES)[number];

export interface TlsConfig {
  readonly pair: PairFiles | null;
  /** Where the certificate is kept that is made when no pair is given. */
  readonly directory: string;
  readonly named: readonly NamedPair[];
  /** Names as OpenSSL has them, joined by colons; null: those of the runtime. */
  readonly ciphers: string | null;
  readonly minVersion: TlsVersion;
}

export interface PairFiles {
  readonly certificateFile: string;
  readonly keyFile: string;
}

/** For clients that ask for one of these names. */
interface NamedPair extends PairFiles {
  /** In lower case, `*.` before those that stand for more; empty: those of the certificate. */
  readonly names: readonly string[];
}

const VERSIONS = {
  VersionTLS10: 'TLSv1',
  VersionTLS11: 'TLSv1.1',
  VersionTLS12: 'TLSv1.2',
  VersionTLS13: 'TLSv1.3',
} as const;
type TlsVersion = (typeof VERSIONS)[keyof typeof VERSIONS];

/** In TLS 1.3 all are on unless some are named, as in Go none can be switched off. */
const TLS13_SUITES = ['TLS_AES_128_GCM_SHA256', 'TLS_AES_256_GCM_SHA384', 'TLS_CHACHA20_POLY1305_SHA256'] as const;

/** OpenSSL's names by those of the IANA, which node agents take. */
const SUITES: Readonly<Record<string, string>> = {
  TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA: 'ECDHE-ECDSA-AES128-SHA',
  TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256: 'ECDHE-ECDSA-AES128-SHA256',
  TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256: 'ECDHE-ECDSA-AES128-GCM-SHA256',
  TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA: 'ECDHE-ECDSA-AES256-SHA',
  TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384: 'ECDHE-ECDSA-AES256-GCM-SHA384',
  TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305: 'ECDHE-ECDSA-CHACHA20-POLY1305',
  TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256: 'ECDHE-ECDSA-CHACHA20-POLY1305',
  TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA: 'ECDHE-RSA-AES128-SHA',
  TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256: 'ECDHE-RSA-AES128-SHA256',
  TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256: 'ECDHE-RSA-AES128-GCM-SHA256',
  TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA: 'ECDHE-RSA-AES256-SHA',
  TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384: 'ECDHE-RSA-AES256-GCM-SHA384',
  TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305: 'ECDHE-RSA-CHACHA20-POLY1305',
  TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256: 'ECDHE-RSA-CHACHA20-POLY1305',
  TLS_RSA_WITH_AES_128_CBC_SHA: 'AES128-SHA',
  TLS_RSA_WITH_AES_128_CBC_SHA256: 'AES128-SHA256',
  TLS_RSA_WITH_AES_128_GCM_SHA256: 'AES128-GCM-SHA256',
  TLS_RSA_WITH_AES_256_CBC_SHA: 'AES256-SHA',
  TLS_RSA_WITH_AES_256_GCM_SHA384: 'AES256-GCM-SHA384',
};

/** Flags that switch TLS on. */
const SWITCHES = ['tls-cert-file', 'tls-private-key-file', 'tls-sni-cert-key'] as const satisfies readonly FlagName[];
/** Flags that mean nothing without it. */
const DETAILS = [
  'audit-log-format',
  'audit-log-maxage',
  'audit-log-maxbackup',
  'audit-log-maxsize',
  'audit-log-mode',
  'tls-cipher-suites',
  'tls-min-version',
] as const satisfies readonly FlagName[];
/** Flags about who may ask, and who did: without TLS others on the way could take what tells it. */
const GUARDS = [
  'audit-log-path',
  'audit-policy-file',
  'authentication-config',
  'client-ca-file',
  'authentication-token-webhook',
  'authentication-token-webhook-cache-ttl',
  'anonymous-auth',
  'authorization-config',
  'authorization-mode',
  'authorization-webhook-cache-authorized-ttl',
  'authorization-webhook-cache-unauthorized-ttl',
] as const satisfies readonly FlagName[];

/** Flags whose place a file takes. */
const WEBHOOK_FLAGS = [
  'authorization-mode',
  'authorization-webhook-cache-authorized-ttl',
  'authorization-webhook-cache-unauthorized-ttl',
] as const satisfies readonly FlagName[];

interface SecuredFlags {
  /** Null: plain HTTP, open to all clients. */
  readonly value: SecuredConfig | null;
  readonly problems: readonly string[];
  readonly warnings: readonly string[];
}

/** @param readsServer whether there is an API server to ask. */
export function readSecured(line: CommandLine, readsServer: boolean): SecuredFlags {
  const isTls = isFlagSet(line, 'metrics-tls') || SWITCHES.some((flag) => line.given.has(flag));
  const problems: string[] = [];
  if (isTls && line.given.get('metrics-tls') === false)
    problems.push('--metrics-tls: Invalid value: false: a certificate is given, which is served over TLS');
  const tls = readTls(line, isTls, problems);
  const authentication = readAuthentication(line, problems);
  const authorization = readAuthorization(line, problems);
  const audit = readAudit(line, problems);
  if (isTls) {
    problems.push(...(readsServer ? [] : unaskable(authentication, authorization)));
    return {
      value: { tls, authentication, authorization, audit },
      problems,
      warnings: [
        ...unusedTtls(line, authentication, authorization),
        ...unusedLimits(line, 'audit-log', audit && audit.log),
        ...(audit === null && line.given.has('audit-log-mode')
          ? ['--audit-log-mode: has no effect without --audit-log-path']
          : []),
      ],
    };
  }
  for (const flag of GUARDS.filter((each) => line.given.has(each)))
    problems.push(`--${flag}: Forbidden: needs --metrics-tls`);
  const unused = DETAILS.filter((flag) => line.given.has(flag));
  return { value: null, problems, warnings: unused.map((flag) => `--${flag}: has no effect without --metrics-tls`) };
}

/** Users that no authority is asked about. */
function unaskable({ tokenTtl }: AuthenticationConfig, { mode }: AuthorizationConfig): readonly string[] {
  const detail = 'there is no API server to ask, everything is read from --manifests';
  return [
    ...(tokenTtl === null ? [] : [`--authentication-token-webhook: Forbidden: ${detail}`]),
    ...(mode === 'Webhook' ? [`--authorization-mode: Forbidden: ${detail}`] : []),
  ];
}

function unusedTtls(
  line: CommandLine,
  { tokenTtl }: AuthenticationConfig,
  { mode }: AuthorizationConfig,
): readonly string[] {
  const rows: readonly (readonly [flag: FlagName, isUsed: boolean, without: string])[] = [
    ['authentication-token-webhook-cache-ttl', tokenTtl !== null, '--authentication-token-webhook'],
    ['authorization-webhook-cache-authorized-ttl', mode === 'Webhook', '--authorization-mode=Webhook'],
    ['authorization-webhook-cache-unauthorized-ttl', mode === 'Webhook', '--authorization-mode=Webhook'],
  ];
  return rows
    .filter(([flag, isUsed]) => line.given.has(flag) && !isUsed)
    .map(([flag, , without]) => `--${flag}: has no effect without ${without}`);
}

function readAuthentication(line: CommandLine, problems: string[]): AuthenticationConfig {
  const clientCaFile = textFlag(line, 'client-ca-file') || null;
  const ttl = ttlFlag(line, 'authentication-token-webhook-cache-ttl', problems);
  const tokenTtl = isFlagSet(line, 'authentication-token-webhook') ? ttl : null;
  const file = textFlag(line, 'authentication-config') || null;
  const given = line.given.get('anonymous-auth');
  const anonymous = typeof given === 'boolean' ? given : null;
  if (anonymous === false && clientCaFile === null && tokenTtl === null && file === null)
    problems.push(
      '--anonymous-auth: Invalid value: false: no client could authenticate without --client-ca-file, --authentication-token-webhook or --authentication-config',
    );
  return { clientCaFile, tokenTtl, anonymous, file };
}

function readAuthorization(line: CommandLine, problems: string[]): AuthorizationConfig {
  const text = settingOf(line, 'authorization-mode');
  const mode = AUTHORIZATION_MODES.find((each) => each === text);
  if (mode === undefined)
    problems.push(invalid('--authorization-mode', text, `must be one of ${AUTHORIZATION_MODES.join(', ')}`));
  const file = textFlag(line, 'authorization-config') || null;
  for (const flag of WEBHOOK_FLAGS.filter((each) => file !== null && line.given.has(each)))
    problems.push(`--${flag}: Forbidden: beside --authorization-config`);
  return {
    file,
    mode: mode ?? 'Webhook',
    authorizedTtl: ttlFlag(line, 'authorization-webhook-cache-authorized-ttl', problems),
    unauthorizedTtl: ttlFlag(line, 'authorization-webhook-cache-unauthorized-ttl', problems),
  };
}

/** In milliseconds. */
function ttlFlag(line: CommandLine, name: FlagName, problems: string[]): number {
  const text = settingOf(line, name);
  const duration = parseDuration(text);
  const ttl = duration === null ? 0 : durationMilliseconds(duration);
  if (ttl < 0) problems.push(invalid(`--${name}`, text, 'must be greater than or equal to 0'));
  return ttl;
}

function readTls(line: CommandLine, isTls: boolean, problems: string[]): TlsConfig {
  const certificateFile = textFlag(line, 'tls-cert-file');
  const keyFile = textFlag(line, 'tls-private-key-file');
  if (certificateFile === '' && keyFile !== '')
    problems.push('--tls-cert-file: Required value: beside --tls-private-key-file');
  if (certificateFile !== '' && keyFile === '')
    problems.push('--tls-private-key-file: Required value: beside --tls-cert-file');
  const directory = settingOf(line, 'cert-dir');
  const pair = certificateFile === '' ? null : { certificateFile, keyFile };
  if (isTls && pair === null && directory === '') problems.push('--cert-dir: Required value: without --tls-cert-file');
  return {
    pair,
    directory,
    named: listFlag(line, 'tls-sni-cert-key').flatMap((value) => readNamedPair(value, problems)),
    ciphers: readSuites(listFlag(line, 'tls-cipher-suites'), problems),
    minVersion: readVersion(textFlag(line, 'tls-min-version') || 'VersionTLS12', problems),
  };
}

/** `certificate,key` or `certificate,key:name,name`. */
function readNamedPair(value: string, problems: string[]): readonly NamedPair[] {
  const [, certificateFile, keyFile, list] = /^([^,:]+),([^,:]+)(?::(.*))?$/.exec(value.trim()) ?? [];
  const names = list === undefined ? [] : list.split(',').map((name) => name.trim().toLowerCase());
  const isName = (name: string): boolean => /^(?:\*\.)?[a-z0-9_]([-a-z0-9_.]*[a-z0-9_])?$/.test(name);
  if (certificateFile !== undefined && keyFile !== undefined && names.every(isName))
    return [{ certificateFile, keyFile, names }];
  problems.push(invalid('--tls-sni-cert-key', value, "must be 'certificate,key' or 'certificate,key:name,name'"));
  return [];
}

function readSuites(suites: readonly string[], problems: string[]): string | null {
  const taken = suites.map((name) => name.trim());
  const isTls13 = (name: string): boolean => TLS13_SUITES.some((suite) => suite === name);
  for (const name of taken.filter((suite) => !isTls13(suite) && SUITES[suite] === undefined))
    problems.push(invalid('--tls-cipher-suites', name, 'is no cipher suite that this program has'));
  if (taken.length === 0) return null;
  const older = taken.flatMap((name) => SUITES[name] ?? []);
  const newer = taken.filter(isTls13);
  return [...(newer.length === 0 ? TLS13_SUITES : newer), ...new Set(older)].join(':');
}

function readVersion(text: string, problems: string[]): TlsVersion {
  const found = Object.entries(VERSIONS).find(([name]) => name === text);
  if (found !== undefined) return found[1];
  problems.push(invalid('--tls-min-version', text, `must be one of ${Object.keys(VERSIONS).join(', ')}`));
  return 'TLSv1.2';
}
