import { X509Certificate } from 'node:crypto';
import { isatty } from 'node:tty';
import type { Log } from '../../../net/log.js';
import { TranslateError } from '../../translate/errors.js';
import { Fields } from '../../translate/fields.js';
import { isHeaderToken, type ExecAccess, type ExecCluster } from './access.js';
import { parseDocument } from './document.js';
import { CredentialsError, messageOf } from './errors.js';
import { CommandError, runCommand } from './exec-run.js';
import { FileText } from './file-text.js';
import { checkPair, type PemPair } from './tls-trust.js';

/** What a plugin gave. */
export interface ExecCredential {
  /** Empty: none. */
  readonly token: string;
  readonly pair: PemPair | null;
  /** Milliseconds since the epoch; null: until the server refuses it. */
  readonly expiresAt: number | null;
}

export interface ExecSurroundings {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  readonly isTerminal: () => boolean;
  readonly timeoutMs: number;
  readonly log: Log;
  readonly observer: ExecObserver | null;
}

/** How a run of the command ended, in the words of Kubernetes' own clients. */
export type ExecOutcome = 'no_error' | 'plugin_execution_error' | 'plugin_not_found_error' | 'client_internal_error';

/** Hears of the command, for metrics. */
export interface ExecObserver {
  /** `exitCode`: 0 for success and nothing else. */
  pluginCalled(outcome: ExecOutcome, exitCode: number): void;
  /** It gave a certificate: when that expires, and how old its predecessor had become (null for the first); in milliseconds, the first since the epoch. */
  certificateRotated(expiresAt: number, ageMs: number | null): void;
}

export const EXEC_TIMEOUT_MS = 60_000;
/** Somebody is asked something. */
const INTERACTIVE_TIMEOUT_MS = 300_000;

export function standardInputIsTerminal(): boolean {
  return isatty(0);
}

/**
 * Credentials from a command, by the `client.authentication.k8s.io` protocol (KEP 541). However many requests want them at once, it runs once.
 */
export class ExecPlugin {
  private held: { readonly credential: ExecCredential; readonly renewAt: number } | null = null;
  private running: Promise<ExecCredential> | null = null;
  private readonly ending = new AbortController();
  private readonly authority: FileText | null;

  constructor(
    private readonly access: ExecAccess,
    private readonly surroundings: ExecSurroundings,
  ) {
    const { cluster } = access;
    this.authority = cluster?.authority?.type === 'file' ? new FileText(cluster.authority.path) : null;
  }

  /** @throws CredentialsError */
  async current(): Promise<ExecCredential> {
    const { held } = this;
    const now = this.surroundings.now();
    if (held !== null && now < held.renewAt) return held.credential;
    try {
      return await this.run();
    } catch (error) {
      const { expiresAt = null } = held?.credential ?? {};
      if (held === null || expiresAt === null || now >= expiresAt) throw error;
      this.surroundings.log.error(
        error,
        'credentials could not be renewed early, the old ones are used until they expire',
      );
      return held.credential;
    }
  }

  /** Runs the command again after the server refused what it gave, unless that has happened meanwhile. */
  async renew(refused: ExecCredential): Promise<void> {
    if (this.held === null || this.held.credential === refused) await this.run();
  }

  close(): void {
    this.held = null;
    this.ending.abort();
  }

  private run(): Promise<ExecCredential> {
    this.running ??= this.runOnce().finally(() => (this.running = null));
    return this.running;
  }

  private async runOnce(): Promise<ExecCredential> {
    const { at, command, args, installHint, apiVersion } = this.access;
    const { env, now, timeoutMs } = this.surroundings;
    try {
      const interactive = this.interactive();
      const execInfo = await this.execInfo(interactive);
      const run = {
        command,
        args,
        env: { ...env, ...Object.fromEntries(this.access.env), KUBERNETES_EXEC_INFO: execInfo },
        interactive,
        timeoutMs: interactive ? INTERACTIVE_TIMEOUT_MS : timeoutMs,
        signal: this.ending.signal,
      };
      const startedAt = now();
      const credential = readCredential(await runCommand(run, installHint), apiVersion);
      this.observe(credential);
      if (!this.ending.signal.aborted) this.held = { credential, renewAt: renewalTime(credential, startedAt) };
      return credential;
    } catch (error) {
      this.observeFailure(error);
      throw new CredentialsError(`${at}.command "${command}": ${messageOf(error)}`, { cause: error });
    }
  }

  private observe({ pair }: ExecCredential): void {
    const { observer, now } = this.surroundings;
    observer?.pluginCalled('no_error', 0);
    const certificate = pair?.certificate ?? null;
    if (observer === null || certificate === null || certificate === this.held?.credential.pair?.certificate) return;
    const before = this.held?.credential.pair ?? null;
    const age = before === null ? null : now() - Date.parse(new X509Certificate(before.certificate).validFrom);
    observer.certificateRotated(Date.parse(new X509Certificate(certificate).validTo), age);
  }

  private observeFailure(error: unknown): void {
    const failure = error instanceof CommandError ? error : null;
    const outcome =
      failure === null
        ? 'client_internal_error'
        : failure.exitCode === null
          ? 'plugin_not_found_error'
          : 'plugin_execution_error';
    this.surroundings.observer?.pluginCalled(outcome, failure?.exitCode ?? 1);
  }

  private interactive(): boolean {
    const { interactiveMode } = this.access;
    if (interactiveMode === 'Never') return false;
    const terminal = this.surroundings.isTerminal();
    if (interactiveMode === 'Always' && !terminal) {
      throw new Error('interactiveMode is Always, but standard input is no terminal');
    }
    return terminal;
  }

  private async execInfo(interactive: boolean): Promise<string> {
    const { cluster, apiVersion } = this.access;
    const spec = { ...(cluster === null ? {} : { cluster: await this.clusterInfo(cluster) }), interactive };
    return JSON.stringify({ kind: 'ExecCredential', apiVersion, spec });
  }

  /** Fields that say nothing are left out, as in the peer. */
  private async clusterInfo(cluster: ExecCluster): Promise<object> {
    const { server, tlsServerName, insecure, authority, proxyUrl, disableCompression, config } = cluster;
    const pem = authority?.type === 'data' ? authority.pem : await this.authority?.read();
    return {
      server,
      ...(tlsServerName === '' ? {} : { 'tls-server-name': tlsServerName }),
      ...(insecure ? { 'insecure-skip-tls-verify': true } : {}),
      ...(pem === undefined ? {} : { 'certificate-authority-data': Buffer.from(pem, 'latin1').toString('base64') }),
      ...(proxyUrl === '' ? {} : { 'proxy-url': proxyUrl }),
      ...(disableCompression ? { 'disable-compression': true } : {}),
      ...(config === null ? {} : { config }),
    };
  }
}

/** A tenth of the lifetime, at most a minute, before the end. */
function renewalTime({ expiresAt }: ExecCredential, issuedAt: number): number {
  if (expiresAt === null) return Number.POSITIVE_INFINITY;
  return expiresAt - Math.min(60_000, Math.max(0, expiresAt - issuedAt) / 10);
}

/** @throws Error that shows nothing of what was printed but field paths, as it may be secret. */
function readCredential(text: string, apiVersion: string): ExecCredential {
  const fields = openCredential(text);
  try {
    fields.choice('kind', ['ExecCredential'], 'ExecCredential');
    const version = fields.requiredString('apiVersion');
    if (version !== '' && version !== apiVersion)
      fields.refuse('apiVersion', version, `must be ${apiVersion}, as configured`);
    const status = fields.section('status');
    if (fields.lacks('status')) fields.refuseSecret('status', 'is required');
    const token = status.secretString('token') ?? '';
    const certificate = status.secretString('clientCertificateData') ?? '';
    const key = status.secretString('clientKeyData') ?? '';
    const expiresAt = readTime(status, 'expirationTimestamp');
    if (!isHeaderToken(token)) status.refuseSecret('token', 'must be printable ASCII');
    if ((certificate === '') !== (key === '')) {
      status.refuseSecret(
        certificate === '' ? 'clientCertificateData' : 'clientKeyData',
        'is required beside the other one',
      );
    }
    if (token === '' && certificate === '' && key === '')
      status.refuseSecret('token', 'or clientCertificateData and clientKeyData are required');
    fields.check();
    const pair = certificate === '' ? null : { certificate, key };
    if (pair !== null) checkPair(pair, 'status.clientCertificateData');
    return { token, pair, expiresAt };
  } catch (error) {
    throw error instanceof TranslateError ? new Error(`printed no usable ExecCredential: ${error.message}`) : error;
  }
}

function openCredential(text: string): Fields {
  try {
    return Fields.of(parseDocument(text));
  } catch (error) {
    const detail = error instanceof TranslateError ? 'must be a mapping' : messageOf(error);
    throw new Error(`printed no ExecCredential: ${detail}`, { cause: error });
  }
}

const RFC3339 = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/;

function readTime(fields: Fields, name: string): number | null {
  const text = fields.string(name);
  if (text === null) return null;
  const time = RFC3339.test(text) ? Date.parse(text) : Number.NaN;
  if (!Number.isNaN(time)) return time;
  fields.refuse(name, text, 'must be a time as in RFC 3339');
  return null;
}
