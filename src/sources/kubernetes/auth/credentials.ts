import type { OutgoingHttpHeaders } from 'node:http';
import { isatty } from 'node:tty';
import type { Clock } from '../../../base/clock.js';
import { messageOf } from '../../../base/error-message.js';
import type { Log } from '../../../base/log.js';
import type { Access } from './access.js';
import { KubeconfigError } from './errors.js';
import type { ExecCredential, ExecObserver, ExecPlugin } from './exec-plugin.js';
import { impersonationHeaders } from './impersonation.js';
import { TlsTrust, type TlsClient } from './tls-trust.js';
import { TokenFile } from './token-file.js';

/** How long a credential plugin may take that does not prompt the user. */
const EXEC_TIMEOUT_MS = 60_000;

/** The proxy's identity in one request. */
export interface Identity {
  /** Authorization and impersonation. */
  readonly headers: OutgoingHttpHeaders;
  /** Null for http. */
  readonly tls: TlsClient | null;
  /** What could be renewed if the server refuses it. */
  readonly renewable:
    | { readonly type: 'token'; readonly token: string }
    | { readonly type: 'exec'; readonly credential: ExecCredential }
    | null;
}

export interface CredentialsDependencies {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly clock: Clock;
  /** As Math.random. */
  readonly random: () => number;
  /** Milliseconds since the epoch. */
  readonly wallClock: () => number;
  readonly isTerminal: () => boolean;
  readonly execTimeoutMs: number;
  readonly log: Log;
}

export function systemDependencies(log: Log, clock: Clock): CredentialsDependencies {
  return {
    env: process.env,
    clock,
    random: Math.random,
    wallClock: Date.now,
    isTerminal: () => isatty(0),
    execTimeoutMs: EXEC_TIMEOUT_MS,
    log,
  };
}

/** Keeps every kind of credential fresh. A token or password counts before what a plugin gives, a certificate of the kubeconfig too. */
export class Credentials {
  private readonly tls: TlsTrust | null;
  private readonly tokenFile: TokenFile | null;
  /** Read once it is needed: few kubeconfigs name a plugin. Null: not yet, or there is none. */
  private exec: ExecPlugin | null = null;
  private readonly loadExec: () => Promise<void>;
  private loading: Promise<void> | null = null;
  private readonly fixed: OutgoingHttpHeaders;

  constructor(
    private readonly access: Access,
    dependencies: CredentialsDependencies,
    observer: ExecObserver | null = null,
  ) {
    const { tls, login, impersonate } = access;
    const { env, clock, log } = dependencies;
    this.tls = tls === null ? null : new TlsTrust(tls, env, log);
    this.tokenFile =
      login.tokenFile === '' ? null : new TokenFile(login.tokenFile, login.token, () => clock.now(), log);
    const execDependencies = { ...dependencies, timeoutMs: dependencies.execTimeoutMs, observer };
    this.loadExec = async () => {
      if (login.exec === null) return;
      const { ExecPlugin } = await import('./exec-plugin.js');
      this.exec = new ExecPlugin(login.exec, execDependencies);
    };
    this.fixed = impersonate === null ? {} : impersonationHeaders(impersonate);
  }

  /**
   * Reads every file once, so that what is missing is known at the start. Runs no plugin.
   *
   * @throws KubeconfigError
   */
  async check(): Promise<void> {
    try {
      await this.tokenFile?.current();
      await this.tls?.current(null);
    } catch (error) {
      throw new KubeconfigError(this.access.origin, [messageOf(error)], { cause: error });
    }
  }

  /** @throws CredentialsError */
  async current(): Promise<Identity> {
    const { token, basic } = this.access.login;
    const fileToken = await this.tokenFile?.current();
    await (this.loading ??= this.loadExec());
    const credential = (await this.exec?.current()) ?? null;
    const tls = (await this.tls?.current(credential?.pair ?? null)) ?? null;
    const identify = (authorization: string, renewable: Identity['renewable']): Identity => ({
      headers: authorization === '' ? this.fixed : { Authorization: authorization, ...this.fixed },
      tls,
      renewable,
    });
    if (fileToken !== undefined) return identify(`Bearer ${fileToken}`, { type: 'token', token: fileToken });
    const viaExec = credential === null ? null : ({ type: 'exec', credential } as const);
    if (token !== '') return identify(`Bearer ${token}`, viaExec);
    if (basic !== null) {
      const login = Buffer.from(`${basic.username}:${basic.password}`, 'utf8').toString('base64');
      return identify(`Basic ${login}`, viaExec);
    }
    const execToken = credential?.token ?? '';
    return identify(execToken === '' ? '' : `Bearer ${execToken}`, viaExec);
  }

  /**
   * After the server refused `identity`: renews what can be renewed. Answers whether `current` has changed.
   *
   * @throws CredentialsError
   */
  async renew({ renewable }: Identity): Promise<boolean> {
    if (renewable?.type === 'token') return (await this.tokenFile?.renew(renewable.token)) ?? false;
    if (renewable?.type !== 'exec' || this.exec === null) return false;
    return this.exec.renew(renewable.credential);
  }

  /** The server did not refuse `identity`. */
  accepted({ renewable }: Identity): void {
    if (renewable?.type === 'exec') this.exec?.accepted(renewable.credential);
  }

  /** Milliseconds until `current` may change by itself, files apart. */
  get dueInMs(): number {
    return this.exec?.dueInMs ?? Number.POSITIVE_INFINITY;
  }

  close(): void {
    this.exec?.close();
  }
}
