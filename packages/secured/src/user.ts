/** The client of a request, in the terms of authentication.k8s.io. */
export interface User {
  readonly name: string;
  /** Empty: none is known. */
  readonly uid: string;
  readonly groups: readonly string[];
  readonly extra: Readonly<Record<string, readonly string[]>>;
}

const AUTHENTICATED = 'system:authenticated';

export const ANONYMOUS: User = { name: 'system:anonymous', uid: '', groups: ['system:unauthenticated'], extra: {} };

/** With the group of all authenticated users. */
export function authenticated(user: User): User {
  return user.groups.includes(AUTHENTICATED) ? user : { ...user, groups: [...user.groups, AUTHENTICATED] };
}

/** What an authenticator makes of a request. */
export type Identity =
  /** Nothing that it could judge: another may. */
  | { readonly type: 'unauthenticated' }
  | { readonly type: 'user'; readonly user: User }
  /** The credential is invalid. */
  | { readonly type: 'refused'; readonly why: string }
  | Unavailable;

/** The user cannot be identified just now. */
export interface Unavailable {
  readonly type: 'unavailable';
  readonly status: 429 | 503;
  /** For the client: nothing about this side but what the client can do. */
  readonly why: string;
}

export const UNAUTHENTICATED: Identity = { type: 'unauthenticated' };
