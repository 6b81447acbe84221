import { errorCode } from '../../../src/base/error-message.js';
import type { Log } from '../../../src/base/log.js';
import { isMapping, parseMapping, type Mapping } from '../../../src/base/mapping.js';
import type { ApiConnection } from '../../../src/sources/kubernetes/connection.js';
import type { AccessObserver } from '../../../src/observe/access-metrics.js';
import type { Unavailable } from './user.js';

/** Less than the ten seconds that `pointsman nodes` waits for a page: the command has to receive the reason for a missing answer. */
export const REVIEW_TIMEOUT_MS = 5000;
/** A client that comes while so many are under way is asked to retry. */
const MAX_UNDER_WAY = 16;

/** What is asked of an API server. */
type ReviewKind = 'TokenReview' | 'SubjectAccessReview';

const PATHS: Readonly<Record<ReviewKind, (version: string) => string>> = {
  TokenReview: (version) => `/apis/authentication.k8s.io/${version}/tokenreviews`,
  SubjectAccessReview: (version) => `/apis/authorization.k8s.io/${version}/subjectaccessreviews`,
};
const GROUPS: Readonly<Record<ReviewKind, string>> = {
  TokenReview: 'authentication.k8s.io',
  SubjectAccessReview: 'authorization.k8s.io',
};

export interface ReviewsOptions {
  /** Null: there is none to ask just now. */
  readonly api: () => Pick<ApiConnection, 'post'> | null;
  /** When that API server last answered, in milliseconds since the epoch; null: never. */
  readonly receivedAt?: () => number | null;
  readonly log: Log;
  readonly observer: AccessObserver;
  /** Only tests and webhooks have another than 5 s. */
  readonly reviewTimeoutMs?: number;
  /** The server that is asked, as messages name it, and the path for it where it is no API server. */
  readonly webhook?: { readonly name: string; readonly path: string };
}

/** Asks an API server for its judgement. An answer counts only in the form that was asked for. */
export class Reviews {
  private underWay = 0;
  private failing = false;

  constructor(private readonly options: ReviewsOptions) {}

  /**
   * The answer's `status`, or why there is none.
   *
   * @param read null: it has not the form that it should.
   */
  async ask<T extends object>(
    kind: ReviewKind,
    spec: object,
    read: (status: Mapping) => T | null,
    version = 'v1',
  ): Promise<T | Unavailable> {
    const { observer, log, webhook } = this.options;
    const who = webhook === undefined ? 'the API server' : `webhook ${webhook.name}`;
    if (this.underWay >= MAX_UNDER_WAY) return unavailable(503, 'too many reviews are under way');
    this.underWay++;
    try {
      const status = read(await this.exchange(kind, spec, version));
      if (status === null) throw new Error(`the status of a ${kind} is malformed`);
      observer.reviewed(kind, 'answered');
      if (this.failing) log.info(0, `${who} reviews again`, { kind });
      this.failing = false;
      return status;
    } catch (error) {
      observer.reviewed(kind, 'failed');
      if (!this.failing)
        log.error(error, `${who} gives no review; requests without a cached review are refused`, { kind });
      this.failing = true;
      const code = errorCode(error);
      return unavailable(503, `no ${kind} from ${who}${code === null ? '' : ` (${code})`}${this.cutOff(error)}`);
    } finally {
      this.underWay--;
    }
  }

  /** The report about an API server that cannot be reached, rather than refuses. */
  private cutOff(error: unknown): string {
    const { webhook, receivedAt } = this.options;
    const isReached = !(error instanceof Error && ['ApiError', 'TimeoutError'].includes(error.name));
    const received = webhook === undefined && !isReached ? (receivedAt?.() ?? null) : null;
    return received === null ? '' : `: cut off from the API server since ${new Date(received).toISOString()}`;
  }

  private async exchange(kind: ReviewKind, spec: object, version: string): Promise<Mapping> {
    const { webhook, reviewTimeoutMs = REVIEW_TIMEOUT_MS } = this.options;
    const api = this.options.api();
    if (api === null) throw new Error('everything is read from --manifests');
    const apiVersion = `${GROUPS[kind]}/${version}`;
    const { status, body } = await api.post(
      webhook?.path ?? PATHS[kind](version),
      JSON.stringify({ apiVersion, kind, spec }),
      {
        signal: AbortSignal.timeout(reviewTimeoutMs),
        // They have limits of their own, and neither wait for events nor keep them waiting.
        unpaced: true,
      },
    );
    if (status !== 200 && status !== 201) throw new Error(`${kind} was answered with status ${status}`);
    const answer = parseMapping(body);
    if (answer?.['kind'] !== kind || answer['apiVersion'] !== apiVersion)
      throw new Error(`what answered a ${kind} is none`);
    if (!isMapping(answer['status'])) throw new Error(`a ${kind} was answered without a status`);
    return answer['status'];
  }
}

export function unavailable(status: 429 | 503, why: string): Unavailable {
  return { type: 'unavailable', status, why };
}

export function isUnavailable(answer: object): answer is Unavailable {
  return 'type' in answer && answer.type === 'unavailable';
}
