import type { IncomingMessage } from 'node:http';
import type { AuthenticationConfig } from '../../config/secured.js';
import { certificateIdentity } from './client-certificate.js';
import type { TokenReviews } from './token-reviews.js';
import { ANONYMOUS, authenticated, NOBODY, type Identity } from './user.js';

export interface AuthenticationOptions {
  readonly config: AuthenticationConfig;
  /** Null: bearer tokens count for nothing. */
  readonly tokens: Pick<TokenReviews, 'identify'> | null;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
}

/**
 * Who asks: by certificate, then by token, then nobody. What was shown and is no good makes a request fail unless something else is good; it never makes it
 * one of nobody's.
 */
export class Authentication {
  constructor(private readonly options: AuthenticationOptions) {}

  async identify(request: IncomingMessage): Promise<Exclude<Identity, { readonly type: 'nobody' }>> {
    const { config, now } = this.options;
    const certified = config.clientCaFile === null ? NOBODY : certificateIdentity(request, now());
    if (certified.type === 'user') return { type: 'user', user: authenticated(certified.user) };
    const known = await this.byToken(request);
    if (known.type === 'user') return { type: 'user', user: authenticated(known.user) };
    if (known.type !== 'nobody') return known;
    if (certified.type !== 'nobody') return certified;
    return config.anonymous
      ? { type: 'user', user: ANONYMOUS }
      : { type: 'refused', why: 'neither a client certificate nor a bearer token that counts' };
  }

  private byToken({ headers, socket }: IncomingMessage): Promise<Identity> | Identity {
    const token = bearerToken(headers.authorization ?? '');
    const { tokens } = this.options;
    return tokens === null || token === null ? NOBODY : tokens.identify(token, socket.remoteAddress ?? '');
  }
}

/** RFC 6750 §2.1; null: there is none. */
function bearerToken(header: string): string | null {
  const [scheme = '', token = ''] = header.trim().split(' ', 2);
  return scheme.toLowerCase() === 'bearer' && token !== '' ? token : null;
}
