import type { Clock } from '../../base/clock.js';
import type { Mapping } from '../../base/mapping.js';
import type { AuthorizationConfig } from '../../config/secured.js';
import { isUnavailable, unavailable, type Reviews } from './reviews.js';
import { Remembered } from './remembered.js';
import { TokenBucket, TokenBuckets } from './token-bucket.js';
import type { Unavailable, User } from './user.js';

/** What somebody wants, in the terms of authorization.k8s.io. */
export interface Wish {
  readonly user: User;
  readonly verb: string;
  readonly path: string;
}

export type Decision = { readonly type: 'allowed' } | { readonly type: 'denied'; readonly why: string } | Unavailable;

export interface Authorizer {
  decide(wish: Wish): Promise<Decision>;
}

/** As node agents have it: whoever may ask may ask for everything. */
export const ALWAYS_ALLOW: Authorizer = { decide: () => Promise.resolve({ type: 'allowed' }) };

const VERBS: ReadonlyMap<string, string> = new Map([
  ['GET', 'get'],
  ['HEAD', 'get'],
  ['POST', 'create'],
  ['PUT', 'update'],
  ['PATCH', 'patch'],
  ['DELETE', 'delete'],
]);

/** The verb of a method, as node agents have it. */
export function verbOf(method: string): string {
  return VERBS.get(method) ?? method.toLowerCase();
}

/** Of one user, so that nobody can use up what others need. */
const PER_SECOND = 5;
const AT_ONCE = 20;

export interface AccessReviewsOptions {
  readonly reviews: Reviews;
  readonly config: Pick<AuthorizationConfig, 'authorizedTtl' | 'unauthorizedTtl'>;
  readonly clock: Clock;
}

/** Asks the API server whether a user may, once for each user, verb and path and time, and only so often. */
export class AccessReviews implements Authorizer {
  private readonly remembered: Remembered<Decision>;
  private readonly each: TokenBuckets;

  constructor(private readonly options: AccessReviewsOptions) {
    const { clock, config } = options;
    const { authorizedTtl, unauthorizedTtl } = config;
    const forMs = { allowed: authorizedTtl, denied: unauthorizedTtl, unavailable: 0 } as const;
    this.remembered = new Remembered(clock, ({ type }) => ({ kind: type, forMs: forMs[type] }));
    this.each = new TokenBuckets(() => new TokenBucket(PER_SECOND, AT_ONCE, () => clock.now()));
  }

  decide(wish: Wish): Promise<Decision> {
    const spec = reviewSpec(wish);
    return this.remembered.get(JSON.stringify(spec), async () => {
      if (!this.each.take(wish.user.name))
        return unavailable(429, 'too many requests of this user that were not judged before');
      const said = await this.options.reviews.ask('SubjectAccessReview', spec, readStatus);
      if (isUnavailable(said)) return said;
      return said.allowed ? { type: 'allowed' } : { type: 'denied', why: said.reason };
    });
  }
}

/** The spec of a SubjectAccessReview. */
export function reviewSpec({ user, verb, path }: Wish): object {
  const { name, uid, groups, extra } = user;
  return {
    nonResourceAttributes: { path, verb },
    user: name,
    groups,
    ...(uid === '' ? {} : { uid }),
    ...(Object.keys(extra).length === 0 ? {} : { extra }),
  };
}

function readStatus({
  allowed,
  denied = false,
  reason = '',
}: Mapping): { readonly allowed: boolean; readonly reason: string } | null {
  if (typeof allowed !== 'boolean' || typeof denied !== 'boolean' || typeof reason !== 'string') return null;
  return { allowed: allowed && !denied, reason };
}
