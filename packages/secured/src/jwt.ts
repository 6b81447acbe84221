import { createLocalJWKSet, errors, jwtVerify, type JWTPayload } from 'jose';
import type { Clock } from '../../../src/base/clock.js';
import type { Log } from '../../../src/base/log.js';
import type { JwtSettings } from './authentication-file.js';
import { ClaimsError, unverifiedClaims, userOf } from './claims.js';
import { IssuerKeys } from './issuer-keys.js';
import { unavailable } from './reviews.js';
import { UNAUTHENTICATED, type Identity } from './user.js';

/** Algorithms of public keys alone: with a shared secret, or none, every verifier can sign. */
const ALGORITHMS = ['RS256', 'RS384', 'RS512', 'ES256', 'ES384', 'ES512', 'PS256', 'PS384', 'PS512'];
/** Clocks of issuers may be ahead or behind. In seconds. */
const SKEW_SECONDS = 10;

interface JwtOptions {
  readonly settings: readonly JwtSettings[];
  readonly clock: Clock;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  readonly log: Log;
}

interface Authenticator {
  readonly settings: JwtSettings;
  readonly keys: IssuerKeys;
  failing: boolean;
}

/** The user of a token whose issuer is known here. The token itself names its user, and no other server is asked about it. */
export class JwtAuthenticators {
  private readonly byIssuer: ReadonlyMap<string, Authenticator>;

  constructor(private readonly options: JwtOptions) {
    this.byIssuer = new Map(
      options.settings.map((settings) => [
        settings.issuer.url,
        { settings, keys: new IssuerKeys(settings.issuer, options.clock), failing: false },
      ]),
    );
  }

  async identify(token: string): Promise<Identity> {
    const issuer = unverifiedClaims(token)?.['iss'];
    const authenticator = typeof issuer === 'string' ? this.byIssuer.get(issuer) : undefined;
    if (authenticator === undefined) return UNAUTHENTICATED;
    const { settings, keys } = authenticator;
    try {
      await keys.current();
    } catch (error) {
      return this.withoutKeys(authenticator, error);
    }
    try {
      const claims = await this.verify(token, authenticator);
      authenticator.failing = false;
      return { type: 'user', user: userOf(claims, settings) };
    } catch (error) {
      if (error instanceof ClaimsError) return { type: 'refused', why: `the bearer token: ${error.message}` };
      if (error instanceof errors.JOSEError) return { type: 'refused', why: `the bearer token: ${error.code}` };
      return this.withoutKeys(authenticator, error);
    }
  }

  private async verify(token: string, { settings, keys }: Authenticator): Promise<JWTPayload> {
    const attempt = async (): Promise<JWTPayload> => {
      const { payload } = await jwtVerify(token, createLocalJWKSet(await keys.current()), {
        issuer: settings.issuer.url,
        audience: [...settings.issuer.audiences],
        algorithms: ALGORITHMS,
        requiredClaims: ['exp'],
        clockTolerance: SKEW_SECONDS,
        currentDate: new Date(this.options.now()),
      });
      return payload;
    };
    try {
      return await attempt();
    } catch (error) {
      const isStale =
        error instanceof errors.JWKSNoMatchingKey || error instanceof errors.JWSSignatureVerificationFailed;
      if (!isStale || !(await keys.renew())) throw error;
      return attempt();
    }
  }

  private withoutKeys(authenticator: Authenticator, error: unknown): Identity {
    const { url } = authenticator.settings.issuer;
    if (!authenticator.failing) this.options.log.error(error, 'cannot get the keys of an issuer', { issuer: url });
    authenticator.failing = true;
    return unavailable(503, 'cannot get the keys of the issuer of the bearer token');
  }
}
