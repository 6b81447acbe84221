import type { ApiObject } from '../api-objects.js';

/** Somebody the API server knows by a token. */
export interface KnownUser {
  readonly username: string;
  readonly uid?: string;
  readonly groups?: readonly string[];
  readonly extra?: Readonly<Record<string, readonly string[]>>;
}

/** A rule of a ClusterRole for paths, with whom it is bound to. */
export interface PathRule {
  /** A user or a group. */
  readonly who: string;
  /** A `*` at the end stands for anything. */
  readonly nonResourceURLs: readonly string[];
  readonly verbs: readonly string[];
}

interface AccessSpec {
  readonly user: string;
  readonly groups?: readonly string[];
  readonly nonResourceAttributes: { readonly path: string; readonly verb: string };
}

const KINDS: Readonly<Record<string, string>> = {
  '/apis/authentication.k8s.io/v1/tokenreviews': 'authentication.k8s.io/v1 TokenReview',
  '/apis/authorization.k8s.io/v1/subjectaccessreviews': 'authorization.k8s.io/v1 SubjectAccessReview',
};

/** Judges tokens and paths, and writes down what it was asked. */
export class ServedReviews {
  readonly users = new Map<string, KnownUser>();
  readonly rules: PathRule[] = [];
  /** The specs of what came. */
  readonly asked: { readonly kind: string; readonly spec: object }[] = [];
  /** What is answered in place of the truth: a body, or what becomes of the status. */
  lie: string | ((status: object) => object) | null = null;

  /** The body that answers; null: not a review. */
  answer(path: string, body: string): string | null {
    const [apiVersion = '', kind] = (KINDS[path] ?? '').split(' ');
    if (kind === undefined) return null;
    const review = JSON.parse(body) as ApiObject & { readonly spec: object };
    if (review['apiVersion'] !== apiVersion || review['kind'] !== kind) throw new Error(`no ${kind}: ${body}`);
    const { spec } = review;
    this.asked.push({ kind, spec });
    const status =
      kind === 'TokenReview' ? this.judgeToken(spec as { token: string }) : this.judgeAccess(spec as AccessSpec);
    if (typeof this.lie === 'string') return this.lie;
    return JSON.stringify({ ...review, status: this.lie === null ? status : this.lie(status) });
  }

  private judgeToken({ token }: { readonly token: string }): object {
    const user = this.users.get(token);
    return user === undefined ? { user: {}, error: 'invalid bearer token' } : { authenticated: true, user };
  }

  private judgeAccess({ user, groups = [], nonResourceAttributes: { path, verb } }: AccessSpec): object {
    const matches = (url: string): boolean => (url.endsWith('*') ? path.startsWith(url.slice(0, -1)) : path === url);
    const allowed = this.rules.some(
      ({ who, nonResourceURLs, verbs }) =>
        [user, ...groups].includes(who) && verbs.includes(verb) && nonResourceURLs.some(matches),
    );
    return { allowed };
  }
}
