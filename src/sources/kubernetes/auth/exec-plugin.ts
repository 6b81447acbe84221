import { X509Certificate } from 'node:crypto';
import { isAbsolute } from 'node:path';
import { messageOf } from '../../../base/error-message.js';
import { FileText } from '../../../base/file-text.js';
import type { Log } from '../../../base/log.js';
import { endOfValidity } from '../../../base/pem.js';
import { parseTimestamp } from '../../../base/timestamp.js';
import { TranslateError } from '../../translate/errors.js';
import { Fields } from '../../translate/fields.js';
import { isHeaderToken, type ExecAccess } from './access.js';
import { filledFields, type Cluster } from './kubeconfig.js';
import { parseDocument } from './document.js';
import { CredentialsError } from './errors.js';
import { CommandError, runCommand } from './exec-run.js';
import { HoldOff, type HoldOffDependencies } from './hold-off.js';
import { checkPair, type PemPair } from './tls-trust.js';

/** What a plugin gave. */
export interface ExecCredential {
  /** Empty: none. */
  readonly token: string;
  readonly pair: PemPair | null;
  /** Milliseconds since the epoch: by the plugin's answer, or the end of its certificate; null: until the server refuses it. */
  readonly expiresAt: number | null;
}

interface ExecDependencies extends HoldOffDependencies {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Milliseconds since the epoch. */
  readonly wallClock: () => number;
  readonly isTerminal: () => boolean;
  readonly timeoutMs: number;
  readonly log: Log;
  readonly observer: ExecObserver | null;
}

/** How a run of the command ended, in the words of Kubernetes' own clients. */
export type ExecOutcome = 'no_error' | 'plugin_execution_error' | 'plugin_not_found_error' | 'client_internal_error';

/** Is notified of the command, for metrics. */
export interface ExecObserver {
  /** `exitCode`: 0 for success and nothing else. */
  pluginCalled(outcome: ExecOutcome, exitCode: number): void;
  /** It gave a certificate: when that expires, and how old its predecessor had become (null for the first); in milliseconds, the first since the epoch. */
  certificateRotated(expiresAt: number, ageMs: number | null): void;
}

/** The plugin prompts the user. */
const INTERACTIVE_TIMEOUT_MS = 300_000;

interface Held {
  readonly credential: ExecCredential;
  /** Milliseconds since the epoch. */
  readonly renewAt: number;
  readonly usableUntil: number;
}

/**
 * Credentials from a command, by the `client.authentication.k8s.io` protocol (KEP 541). However many requests want them at once, it runs once; and what failed
 * is not tried again with every request.
 */
export class ExecPlugin {
  private held: Held | null = null;
  private running: Promise<ExecCredential> | null = null;
  private readonly ending = new AbortController();
  private readonly authority: FileText | null;
  /** Runs that failed, or gave what had expired already. */
  private readonly failures: HoldOff;
  /** Runs after a refusal; over when the server takes what came of one. */
  private readonly refusals: HoldOff;
  private failure: CredentialsError | null = null;

  constructor(
    private readonly access: ExecAccess,
    private readonly dependencies: ExecDependencies,
  ) {
    const { cluster } = access;
    this.authority = cluster?.authority?.type === 'file' ? new FileText(cluster.authority.path) : null;
    this.failures = new HoldOff(dependencies);
    this.refusals = new HoldOff(dependencies);
  }

  /** @throws CredentialsError */
  async current(): Promise<ExecCredential> {
    const { held } = this;
    const now = this.dependencies.wallClock();
    if (held !== null && now < held.renewAt) return held.credential;
    const usable = held !== null && now < held.usableUntil ? held.credential : null;
    if (this.running === null && this.failures.remainingMs > 0) {
      if (usable !== null) return usable;
      if (this.failure !== null) throw this.failure;
    }
    try {
      return await this.run();
    } catch (error) {
      if (usable === null) throw error;
      return usable;
    }
  }

  /** Runs the command again after the server refused what it gave, unless that has happened meanwhile. Answers whether there is something else now. */
  async renew(refused: ExecCredential): Promise<boolean> {
    if (this.held !== null && this.held.credential !== refused) return true;
    if (this.running === null) {
      if (this.refusals.remainingMs > 0 || this.failures.remainingMs > 0) return false;
      this.refusals.failed();
    }
    await this.run();
    return true;
  }

  /** The server took it. */
  accepted(credential: ExecCredential): void {
    if (this.held?.credential === credential) this.refusals.over();
  }

  /** Milliseconds until the command is to run again, if it has run; infinite while nothing expires. */
  get dueInMs(): number {
    if (this.held === null) return this.failures.remainingMs;
    return Math.max(this.held.renewAt - this.dependencies.wallClock(), this.failures.remainingMs);
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
    const startedAt = this.dependencies.wallClock();
    try {
      const credential = await this.call();
      this.observe(credential);
      this.hold(credential, startedAt);
      return credential;
    } catch (error) {
      this.observeFailure(error);
      throw this.fail(error);
    }
  }

  private async call(): Promise<ExecCredential> {
    const { command, args, installHint, apiVersion } = this.access;
    const { env, timeoutMs } = this.dependencies;
    this.ending.signal.throwIfAborted();
    const interactive = this.interactive();
    const execInfo = await this.execInfo(interactive);
    const run = {
      command,
      args,
      env: { ...pluginEnvironment(env), ...Object.fromEntries(this.access.env), KUBERNETES_EXEC_INFO: execInfo },
      interactive,
      timeoutMs: interactive ? INTERACTIVE_TIMEOUT_MS : timeoutMs,
      signal: this.ending.signal,
    };
    return readCredential(await runCommand(run, installHint), apiVersion);
  }

  private hold(credential: ExecCredential, startedAt: number): void {
    const { wallClock, log } = this.dependencies;
    if (this.ending.signal.aborted) return;
    const { expiresAt } = credential;
    const expired = expiresAt !== null && expiresAt <= wallClock();
    // Clocks differ, so the server is to judge; and the command is to be left alone.
    const usableUntil = expired || expiresAt === null ? Number.POSITIVE_INFINITY : expiresAt;
    this.held = { credential, renewAt: renewalTime(credential, startedAt), usableUntil };
    if (expired) {
      this.failures.failed();
      log.warn('The credential plugin returned expired credentials', { plugin: this.access.command });
    } else {
      this.failures.over();
      if (this.failure !== null) log.info(0, 'The credential plugin works again', { plugin: this.access.command });
    }
    this.failure = null;
  }

  /** Logged once for as long as it stays the same. */
  private fail(error: unknown): CredentialsError {
    const { at, command } = this.access;
    const failure = new CredentialsError(`${at}.command "${command}": ${messageOf(error)}`, { cause: error });
    if (this.ending.signal.aborted) return failure;
    this.failures.failed();
    const { log } = this.dependencies;
    const { exitCode = null, stderr = '' } = error instanceof CommandError ? error : {};
    const fields = { plugin: command, exitCode, stderr, retryInMs: Math.round(this.failures.remainingMs) };
    if (this.failure?.message === failure.message)
      log.info(2, `The credential plugin still fails: ${failure.message}`, fields);
    else log.error(failure, 'The credential plugin fails, its last credentials are used until they expire', fields);
    this.failure = failure;
    return failure;
  }

  private observe({ pair }: ExecCredential): void {
    const { observer, wallClock } = this.dependencies;
    observer?.pluginCalled('no_error', 0);
    const certificate = pair?.certificate ?? null;
    if (observer === null || certificate === null || certificate === this.held?.credential.pair?.certificate) return;
    const before = this.held?.credential.pair ?? null;
    const age = before === null ? null : wallClock() - Date.parse(new X509Certificate(before.certificate).validFrom);
    observer.certificateRotated(endOfValidity(certificate), age);
  }

  private observeFailure(error: unknown): void {
    const failure = error instanceof CommandError ? error : null;
    const outcome =
      failure === null
        ? 'client_internal_error'
        : failure.exitCode === null
          ? 'plugin_not_found_error'
          : 'plugin_execution_error';
    this.dependencies.observer?.pluginCalled(outcome, failure?.exitCode ?? 1);
  }

  private interactive(): boolean {
    const { interactiveMode } = this.access;
    if (interactiveMode === 'Never') return false;
    const terminal = this.dependencies.isTerminal();
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

  /** Empty fields are left out, as in kube-proxy. */
  private async clusterInfo(cluster: Cluster): Promise<object> {
    const pem = (await this.authority?.read()) ?? null;
    return {
      ...filledFields(cluster),
      ...(pem === null ? {} : { 'certificate-authority-data': Buffer.from(pem, 'latin1').toString('base64') }),
      ...(cluster.execConfig === null ? {} : { config: cluster.execConfig }),
    };
  }
}

/** All of ours, as the protocol has it; but a program is not looked for where this process happens to be, as in Go. */
function pluginEnvironment(env: ExecDependencies['env']): NodeJS.ProcessEnv {
  const path = (env['PATH'] ?? '').split(':').filter(isAbsolute).join(':');
  return { ...env, PATH: path === '' ? undefined : path };
}

/** A tenth of the lifetime, at most a minute, before the end. */
function renewalTime({ expiresAt }: ExecCredential, issuedAt: number): number {
  if (expiresAt === null) return Number.POSITIVE_INFINITY;
  return expiresAt - Math.min(60_000, Math.max(0, expiresAt - issuedAt) / 10);
}

/** @throws Error that shows nothing of what was printed but field paths, kind and version, as it may be secret. */
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
    if (pair === null) return { token, pair, expiresAt };
    checkPair(pair, 'status.clientCertificateData');
    return { token, pair, expiresAt: Math.min(expiresAt ?? Number.POSITIVE_INFINITY, endOfValidity(certificate)) };
  } catch (error) {
    throw error instanceof TranslateError ? new Error(`printed no usable ExecCredential: ${error.message}`) : error;
  }
}

function openCredential(text: string): Fields {
  try {
    return Fields.ofSecret(parseDocument(text));
  } catch (error) {
    const detail = error instanceof TranslateError ? 'must be a mapping' : messageOf(error);
    throw new Error(`printed no ExecCredential: ${detail}`, { cause: error });
  }
}

function readTime(fields: Fields, name: string): number | null {
  const text = fields.string(name);
  if (text === null) return null;
  const time = parseTimestamp(text);
  if (time === null) fields.refuseSecret(name, 'must be a time as in RFC 3339');
  return time;
}
