import { parseMapping, type Mapping } from '../../../src/base/mapping.js';
import { messageOf } from '../../../src/base/error-message.js';
import { celValue } from '../../../src/config/tables/expression.js';
import type { JwtSettings, Mapped, Rule } from './authentication-file.js';
import type { User } from './user.js';

/** A token's claims make no user, and why; for who holds the token. */
export class ClaimsError extends Error {}

/**
 * The user that claims identify, whose signature, times, issuer and audience are valid.
 *
 * @throws ClaimsError
 */
export function userOf(claims: Mapping, settings: JwtSettings): User {
  const values = celValue(claims);
  for (const rule of settings.claimRules) {
    if ('expression' in rule) check(rule, values);
    else if (claims[rule.claim] !== rule.requiredValue)
      throw new ClaimsError(`claim ${rule.claim} does not have the required value`);
  }
  const [username = '', ...more] = texts(settings.username, claims, values, 'username');
  if ('claim' in settings.username && settings.username.claim === 'email') requireVerified(claims);
  if (username === '' || more.length > 0) throw new ClaimsError('the claims have no user name');
  const uid = settings.uid === null ? [] : texts(settings.uid, claims, values, 'uid');
  if (uid.length > 1) throw new ClaimsError('the claims have several uids');
  const user: User = {
    name: username,
    uid: uid[0] ?? '',
    groups: settings.groups === null ? [] : texts(settings.groups, claims, values, 'groups'),
    extra: Object.fromEntries(
      settings.extra
        .map(
          ({ key, expression }) =>
            [key, texts({ expression }, claims, values, key).filter((text) => text !== '')] as const,
        )
        .filter(([, found]) => found.length > 0),
    ),
  };
  const { name, groups, extra } = user;
  for (const rule of settings.userRules) check(rule, { username: name, uid: user.uid, groups, extra });
  return user;
}

/** As in the API server: an issuer that reports whether it verified an address has to have done so. */
function requireVerified(claims: Mapping): void {
  const verified = ownClaim(claims, 'email_verified');
  if (verified !== null && verified !== true) throw new ClaimsError('claim email_verified is not true');
}

function check({ expression, message }: Rule, value: unknown): void {
  let holds: unknown;
  try {
    holds = expression.evaluate(value);
  } catch (error) {
    throw new ClaimsError(`${message || expression.source}: ${reasonOf(error)}`);
  }
  if (holds !== true) throw new ClaimsError(message || `does not hold: ${expression.source}`);
}

/** Null, and what is not there, are no texts. */
function texts(mapped: Mapped, claims: Mapping, values: unknown, what: string): readonly string[] {
  const prefix = 'claim' in mapped ? mapped.prefix : '';
  const found = 'claim' in mapped ? ownClaim(claims, mapped.claim) : evaluate(mapped, values, what);
  if (found === null || found === undefined || found === '') return [];
  const list: readonly unknown[] = Array.isArray(found) ? found : [found];
  return list.map((each) => {
    if (typeof each !== 'string') throw new ClaimsError(`${what} is not text`);
    return prefix + each;
  });
}

function ownClaim(claims: Mapping, name: string): unknown {
  return Object.hasOwn(claims, name) ? claims[name] : null;
}

function evaluate(
  { expression }: Extract<Mapped, { readonly expression: unknown }>,
  values: unknown,
  what: string,
): unknown {
  try {
    return expression.evaluate(values);
  } catch (error) {
    throw new ClaimsError(`${what}: ${reasonOf(error)}`);
  }
}

/** Without the place in the expression. */
function reasonOf(error: unknown): string {
  return messageOf(error).split('\n', 1)[0] ?? '';
}

/** The claims of an unverified token; null: it is none. */
export function unverifiedClaims(token: string): Mapping | null {
  const parts = token.split('.');
  if (parts.length !== 3) return null;
  return parseMapping(Buffer.from(parts[1] ?? '', 'base64url').toString('utf8'));
}
