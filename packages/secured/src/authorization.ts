import type { Clock } from '../../../src/base/clock.js';
import type { Mapping } from '../../../src/base/mapping.js';
import { TokenBucket } from '../../../src/base/token-bucket.js';
import { isUnavailable, unavailable, type Reviews } from './reviews.js';
import { Remembered } from './remembered.js';
import { TokenBuckets } from '../../../src/base/token-buckets.js';
import type { Unavailable, User } from './user.js';

/** The requested access, in the terms of authorization.k8s.io. */
export interface Wish {
  readonly user: User;
  readonly verb: string;
  readonly path: string;
}

export type Decision =
  { readonly type: 'allowed'; readonly why?: string } | { readonly type: 'denied'; readonly why: string } | Unavailable;

export interface Authorizer {
  decide(wish: Wish): Promise<Decision>;
}

/** As node agents have it: every client that is let in may ask for everything. */
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

/** The limit of one user, so that no user can exhaust what others need. */
const PER_SECOND = 5;
const AT_ONCE = 20;

/** What a reviewer answers: `nothing` neither allows nor forbids, so that others may be asked. */
export type Opinion = Decision | { readonly type: 'nothing'; readonly why: string };

interface AccessReviewsOptions {
  readonly reviews: Reviews;
  /** A version of authorization.k8s.io. */
  readonly version: ReviewVersion;
  /** How long it counts that a user may, and that it may not, in milliseconds. */
  readonly authorizedTtl: number;
  readonly unauthorizedTtl: number;
  readonly clock: Clock;
}

export type ReviewVersion = 'v1' | 'v1beta1';

/** Asks whether a user may, once for each user, verb and path and time, and only so often. */
export class AccessReviews implements Authorizer {
  private readonly remembered: Remembered<Opinion>;
  private readonly each: TokenBuckets;

  constructor(private readonly options: AccessReviewsOptions) {
    const { clock, authorizedTtl, unauthorizedTtl } = options;
    const forMs = {
      allowed: authorizedTtl,
      denied: unauthorizedTtl,
      nothing: unauthorizedTtl,
      unavailable: 0,
    } as const;
    this.remembered = new Remembered(clock, ({ type }) => ({ kind: type, forMs: forMs[type] }));
    this.each = new TokenBuckets(() => new TokenBucket(PER_SECOND, AT_ONCE, () => clock.now()));
  }

  /** Without another authorizer to ask, a user who is not allowed is denied. */
  async decide(wish: Wish): Promise<Decision> {
    const opinion = await this.judge(wish);
    return opinion.type === 'nothing' ? { type: 'denied', why: opinion.why } : opinion;
  }

  judge(wish: Wish): Promise<Opinion> {
    const { reviews, version } = this.options;
    const spec = reviewSpec(wish, version);
    return this.remembered.get(JSON.stringify(spec), async () => {
      if (!this.each.take(wish.user.name)) return unavailable(429, 'too many unreviewed requests of this user');
      const review = await reviews.ask('SubjectAccessReview', spec, readStatus, version);
      if (isUnavailable(review)) return review;
      return { type: review.type, why: review.reason };
    });
  }
}

/** The spec of a SubjectAccessReview. */
function reviewSpec({ user, verb, path }: Wish, version: ReviewVersion): object {
  const { name, uid, groups, extra } = user;
  return {
    nonResourceAttributes: { path, verb },
    user: name,
    ...(version === 'v1' ? { groups } : { group: groups }),
    ...(uid === '' ? {} : { uid }),
    ...(Object.keys(extra).length === 0 ? {} : { extra }),
  };
}

interface Said {
  readonly type: 'allowed' | 'denied' | 'nothing';
  readonly reason: string;
}

function readStatus({ allowed, denied = false, reason = '' }: Mapping): Said | null {
  if (typeof allowed !== 'boolean' || typeof denied !== 'boolean' || typeof reason !== 'string') return null;
  if (denied) return { type: 'denied', reason };
  return { type: allowed ? 'allowed' : 'nothing', reason };
}
