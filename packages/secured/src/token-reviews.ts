import { createHmac, randomBytes } from 'node:crypto';
import type { Clock } from '../../../src/base/clock.js';
import { isMapping, type Mapping } from '../../../src/base/mapping.js';
import { TokenBucket } from '../../../src/base/token-bucket.js';
import { unverifiedClaims } from './claims.js';
import { isUnavailable, unavailable, type Reviews } from './reviews.js';
import { Remembered } from './remembered.js';
import { TokenBuckets } from '../../../src/base/token-buckets.js';
import type { Identity, User } from './user.js';

/** Tokens that are new to us, from any client. */
const PER_SECOND = 10;
const AT_ONCE = 20;
/** And from one address. */
const PER_SECOND_OF_ONE = 2;
const AT_ONCE_OF_ONE = 10;

interface TokenReviewsOptions {
  readonly reviews: Reviews;
  /** How long an answer counts, in milliseconds. */
  readonly ttl: number;
  readonly clock: Clock;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
}

/** The user of a bearer token, as the API server reports it. It is asked once for each token and time, and only so often. */
export class TokenReviews {
  private readonly remembered: Remembered<Judged>;
  private readonly all: TokenBucket;
  private readonly each: TokenBuckets;
  /** Tokens are kept by what cannot be turned back into them. */
  private readonly secret = randomBytes(32);

  constructor(private readonly options: TokenReviewsOptions) {
    const { clock, ttl } = options;
    const now = (): number => clock.now();
    this.all = new TokenBucket(PER_SECOND, AT_ONCE, now);
    this.each = new TokenBuckets(() => new TokenBucket(PER_SECOND_OF_ONE, AT_ONCE_OF_ONE, now));
    this.remembered = new Remembered(clock, ({ identity, endsAt }) => {
      const { type } = identity;
      return { kind: type, forMs: type === 'unavailable' ? 0 : Math.min(ttl, endsAt - options.now()) };
    });
  }

  /** @param from the client that it comes from: an address or network. */
  async identify(token: string, from: string): Promise<Identity> {
    const key = createHmac('sha256', this.secret).update(token).digest('base64');
    const { identity } = await this.remembered.get(key, async () => {
      if (!this.each.take(from) || !this.all.take())
        return { identity: unavailable(429, 'too many unreviewed tokens'), endsAt: 0 };
      return { identity: await this.review(token), endsAt: endOf(token) };
    });
    return identity;
  }

  private async review(token: string): Promise<Identity> {
    const review = await this.options.reviews.ask('TokenReview', { token }, readStatus);
    if (isUnavailable(review)) return review;
    return review.user === null
      ? { type: 'refused', why: 'the API server does not know the bearer token' }
      : { type: 'user', user: review.user };
  }
}

interface Judged {
  readonly identity: Identity;
  /** When it cannot count any more, in milliseconds since the epoch. */
  readonly endsAt: number;
}

function readStatus({ authenticated, user }: Mapping): { readonly user: User | null } | null {
  if (authenticated !== true) return authenticated === false || authenticated === undefined ? { user: null } : null;
  if (!isMapping(user)) return null;
  const { username, uid = '', groups = [], extra = {} } = user;
  if (typeof username !== 'string' || username === '' || typeof uid !== 'string') return null;
  if (!isTexts(groups) || !isMapping(extra)) return null;
  const entries = Object.entries(extra).flatMap(([name, values]) => (isTexts(values) ? [[name, values] as const] : []));
  return { user: { name: username, uid, groups, extra: Object.fromEntries(entries) } };
}

function isTexts(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((each) => typeof each === 'string');
}

/** When a token ends by its own claim, in milliseconds since the epoch: it is not remembered for longer, though only the API server judges it. */
function endOf(token: string): number {
  const end = unverifiedClaims(token)?.['exp'];
  return typeof end === 'number' ? end * 1000 : Infinity;
}
