import { messageOf } from '../../../base/error-message.js';
import type { TunnelAccess } from './access.js';
import type { CredentialsDependencies } from './credentials.js';
import { KubeconfigError } from './errors.js';
import { TlsTrust, type TlsClient } from './tls-trust.js';

/** The same, with keys and certificates that are read again when their files change. */
export class Tunnel {
  readonly type = 'tunnel';
  private readonly trust: TlsTrust | null;

  constructor(
    readonly access: TunnelAccess,
    { env, log }: Pick<CredentialsDependencies, 'env' | 'log'>,
  ) {
    this.trust = access.tls && new TlsTrust(access.tls, env, log);
  }

  /**
   * Reads every file once, so that what is missing is known at the start.
   *
   * @throws KubeconfigError
   */
  async check(): Promise<void> {
    try {
      await this.tls();
    } catch (error) {
      throw new KubeconfigError(this.access.origin, [messageOf(error)], { cause: error });
    }
  }

  /** How to speak TLS with the proxy; null: not at all. */
  async tls(): Promise<TlsClient | null> {
    return (await this.trust?.current(null)) ?? null;
  }
}
