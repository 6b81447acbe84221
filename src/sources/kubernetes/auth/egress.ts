import { messageOf } from '../../../base/error-message.js';
import type { TlsAccess } from './access.js';
import type { CredentialsSurroundings } from './credentials.js';
import { KubeconfigError } from './errors.js';
import type { Proxy } from './proxy.js';
import { TlsTrust, type TlsClient } from './tls-trust.js';

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

/** The same, with keys and certificates that are read again when their files change. */
export class Tunnel {
  readonly type = 'tunnel';
  private readonly trust: TlsTrust | null;

  constructor(
    readonly access: TunnelAccess,
    { env, log }: Pick<CredentialsSurroundings, 'env' | 'log'>,
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
