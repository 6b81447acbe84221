import { clientOf } from '../../../src/base/client-network.js';
import type { IncomingMessage } from 'node:http';
import { PASSED_TOKEN_HEADER } from '../../../src/base/passed-token.js';
import type { AuthenticationConfig } from '../../../src/config/secured.js';
import type { AnonymousSettings } from './authentication-file.js';
import { certificateIdentity } from './client-certificate.js';
import type { Followed } from './followed.js';
import type { JwtAuthenticators } from './jwt.js';
import type { TokenReviews } from './token-reviews.js';
import { ANONYMOUS, authenticated, UNAUTHENTICATED, type Identity } from './user.js';

interface AuthenticationOptions {
  readonly config: AuthenticationConfig;
  /** The content of `--authentication-config`. */
  readonly file: Pick<Followed<FileAuthentication>, 'current'> | null;
  /** Null: no API server is asked about bearer tokens. */
  readonly tokens: Pick<TokenReviews, 'identify'> | null;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
}

/** An `AuthenticationConfiguration` at work. */
export interface FileAuthentication {
  readonly tokens: Pick<JwtAuthenticators, 'identify'>;
  readonly anonymous: AnonymousSettings | null;
}

/**
 * Identifies the client: by certificate, then by token, then as anonymous. An invalid credential makes a request fail unless another one is valid; it never
 * makes the request anonymous.
 */
export class Authentication {
  constructor(private readonly options: AuthenticationOptions) {}

  async identify(request: IncomingMessage): Promise<Exclude<Identity, { readonly type: 'unauthenticated' }>> {
    const { config, now } = this.options;
    const certified = config.clientCaFile === null ? UNAUTHENTICATED : certificateIdentity(request, now());
    if (certified.type === 'user') return { type: 'user', user: authenticated(certified.user) };
    const known = await this.byToken(request);
    if (known.type === 'user') return { type: 'user', user: authenticated(known.user) };
    if (known.type !== 'unauthenticated') return known;
    if (certified.type !== 'unauthenticated') return certified;
    return this.isOpen(request)
      ? { type: 'user', user: ANONYMOUS }
      : { type: 'refused', why: 'neither a valid client certificate nor a valid bearer token' };
  }

  private async byToken({ headers, socket }: IncomingMessage): Promise<Identity> {
    const passed = headers[PASSED_TOKEN_HEADER];
    const token = bearerToken(headers.authorization ?? (typeof passed === 'string' ? passed : ''));
    const { tokens, file } = this.options;
    if (token === null) return UNAUTHENTICATED;
    const identity = (await file?.current.tokens.identify(token)) ?? UNAUTHENTICATED;
    if (identity.type !== 'unauthenticated') return identity;
    if (tokens !== null) return tokens.identify(token, clientOf(socket.remoteAddress).key);
    return file === null ? UNAUTHENTICATED : { type: 'refused', why: 'the bearer token is of no configured issuer' };
  }

  /** Whether a request may be anonymous. */
  private isOpen({ url = '' }: IncomingMessage): boolean {
    const { config, file } = this.options;
    const configured = file?.current.anonymous ?? null;
    if (configured === null) return config.anonymous ?? true;
    const [path = ''] = url.split('?', 1);
    return configured.enabled && (configured.paths?.includes(path) ?? true);
  }
}

/** RFC 6750 §2.1; null: there is none. */
function bearerToken(header: string): string | null {
  const [scheme = '', token = ''] = header.trim().split(' ', 2);
  return scheme.toLowerCase() === 'bearer' && token !== '' ? token : null;
}
