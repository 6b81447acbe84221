import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Clock } from '../../../src/base/clock.js';
import type { Log } from '../../../src/base/log.js';
import { answerText, type Page } from '../../../src/serve/http-endpoint.js';
import { answerWhole, JSON_HEADERS } from '../../../src/serve/listener.js';
import { Bodies, type ReadBody } from './bodies.js';
import { Turns, type Work } from './turns.js';
import { BadReview, printAnswer, readReview, type AdmissionRequest, type Verdict } from './review.js';

/** Where the API server asks. */
const VALIDATE = '/validate';

/** Two objects of the greatest size that the API server stores, and what is around them. */
export const MAX_BODY_BYTES = 4 << 20;
const TOO_LARGE = `a review has at most ${MAX_BODY_BYTES} bytes`;
/** The limit of all incomplete reviews. */
export const MAX_PENDING_BYTES = 16 << 20;
/** For a review to come. The API server waits three seconds for the answer, and sends a review in one go. */
export const BODY_DEADLINE_MS = 1000;

const REFUSED_BODIES: Readonly<Record<Exclude<ReadBody, Buffer>, readonly [status: number, text: string]>> = {
  'too-large': [413, TOO_LARGE],
  late: [408, `a review comes within ${BODY_DEADLINE_MS / 1000} s`],
  'no-room': [503, `reviews that are not whole yet have at most ${MAX_PENDING_BYTES} bytes together`],
};

/** Larger ones wait for others, as reading them takes long. */
const SMALL_BYTES = 64 << 10;
/** The limit of whole reviews that wait: the oldest is then judged at once. */
export const MAX_WAITING_BYTES = 32 << 20;

interface ReviewPagesOptions {
  readonly judge: (request: AdmissionRequest) => Work<Verdict>;
  readonly clock: Clock;
  readonly log: Log;
}

/** Answers reviews: 200 with a verdict, or a status that names the fault of the request. */
export class ReviewPages {
  private readonly bodies: Bodies;
  private readonly turns = new Turns(MAX_WAITING_BYTES);

  constructor(private readonly options: ReviewPagesOptions) {
    const limits = { maxBytes: MAX_BODY_BYTES, maxPendingBytes: MAX_PENDING_BYTES, deadlineMs: BODY_DEADLINE_MS };
    this.bodies = new Bodies(limits, options.clock);
  }

  /** Returns the error that prevented a verdict, after it was answered and logged; null: none. */
  async answer(request: IncomingMessage, response: ServerResponse): Promise<unknown> {
    const refusal = this.refusalOf(request);
    if (refusal !== null) {
      refuse(response, ...refusal);
      return null;
    }
    try {
      const body = await this.bodies.read(request);
      if (typeof body === 'string') refuse(response, ...REFUSED_BODIES[body]);
      else await this.review(body, response);
      return null;
    } catch (error) {
      // The client has gone.
      if (response.destroyed || !request.complete) return null;
      this.options.log.error(error, 'a review cannot be answered');
      refuse(response, 500, 'internal error');
      return error;
    }
  }

  private refusalOf({ url = '', method = '', headers }: IncomingMessage): readonly [number, string] | null {
    const [path] = url.split('?', 1);
    if (path !== VALIDATE) return [404, '404 page not found'];
    if (method !== 'POST') return [405, 'reviews need POST'];
    const [type = ''] = (headers['content-type'] ?? '').split(';', 1);
    if (type.trim().toLowerCase() !== 'application/json') return [415, 'a review must be application/json'];
    if (Number(headers['content-length'] ?? 0) > MAX_BODY_BYTES) return [413, TOO_LARGE];
    return null;
  }

  private async review(body: Buffer, response: ServerResponse): Promise<void> {
    try {
      // An API server that gave up has closed the connection.
      const answer = await this.turns.run(this.judging(body), body.length, () => !response.destroyed);
      if (answer !== null) answerWhole(response, 200, JSON_HEADERS, answer);
    } catch (error) {
      if (!(error instanceof BadReview)) throw error;
      this.options.log.info(2, 'a review cannot be read', { why: error.message });
      refuse(response, 400, error.message);
    }
  }

  private *judging(body: Buffer): Work<string> {
    if (body.length > SMALL_BYTES) yield;
    const request = readReview(body.toString('utf8'));
    return printAnswer(request.uid, yield* this.options.judge(request));
  }
}

/** What has not been read of the request is not waited for. */
function refuse(response: ServerResponse, status: number, text: string): void {
  if (!response.req.complete) response.setHeader('Connection', 'close');
  if (status === 405) response.setHeader('Allow', 'POST');
  if (status === 503) response.setHeader('Retry-After', '1');
  answerText(response, status, `${text}\n`);
}

/** Life and readiness, for a kubelet: over plain HTTP, apart from reviews. @param unready why not; null: it is ready. */
export function probePages(unready: () => string | null): ReadonlyMap<string, Page> {
  const live: Page = (_request, response) => {
    answerText(response, 200, 'ok\n');
  };
  const ready: Page = (_request, response) => {
    const why = unready();
    answerText(response, why === null ? 200 : 503, `${why ?? 'ok'}\n`);
  };
  return new Map([
    ['/livez', live],
    ['/healthz', live],
    ['/readyz', ready],
  ]);
}
