import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Log } from '../base/log.js';
import { answerNotFound, answerText } from '../serve/http-endpoint.js';
import { answerWhole, JSON_HEADERS } from '../serve/listener.js';
import { BadReview, printAnswer, readReview, type AdmissionRequest, type Verdict } from './review.js';

/** Where the API server asks. */
const VALIDATE = '/validate';

/** Two objects of the greatest size that the API server stores, and what is around them. */
const MAX_BODY_BYTES = 4 << 20;
const TOO_LARGE = `a review has at most ${MAX_BODY_BYTES} bytes`;
/** Reviews whose texts are being read at one time; others are to come again. */
const MAX_UNDER_WAY = 32;

export interface ReviewPagesOptions {
  readonly judge: (request: AdmissionRequest) => Verdict;
  readonly log: Log;
}

/** Answers reviews: 200 with a verdict, or a status that says what is wrong with the request. */
export class ReviewPages {
  private underWay = 0;

  constructor(private readonly options: ReviewPagesOptions) {}

  /** The error for which it could not, which has been answered and told of. */
  async answer(request: IncomingMessage, response: ServerResponse): Promise<unknown> {
    const refusal = this.refusalOf(request);
    if (refusal !== null) {
      refuse(response, ...refusal);
      return null;
    }
    this.underWay++;
    try {
      const body = await readBody(request);
      if (body === null) refuse(response, 413, TOO_LARGE);
      else this.review(body, response);
      return null;
    } catch (error) {
      // Who asked has gone.
      if (response.destroyed || !request.complete) return null;
      this.options.log.error(error, 'a review cannot be answered');
      refuse(response, 500, 'internal error');
      return error;
    } finally {
      this.underWay--;
    }
  }

  private refusalOf({ url = '', method = '', headers }: IncomingMessage): readonly [number, string] | null {
    const [path] = url.split('?', 1);
    if (path !== VALIDATE) return [404, '404 page not found'];
    if (method !== 'POST') return [405, 'reviews are posted'];
    const [type = ''] = (headers['content-type'] ?? '').split(';', 1);
    if (type.trim().toLowerCase() !== 'application/json') return [415, 'a review is application/json'];
    if (Number(headers['content-length'] ?? 0) > MAX_BODY_BYTES) return [413, TOO_LARGE];
    if (this.underWay >= MAX_UNDER_WAY) return [503, 'too many reviews are under way'];
    return null;
  }

  private review(body: Buffer, response: ServerResponse): void {
    let request: AdmissionRequest;
    try {
      request = readReview(body.toString('utf8'));
    } catch (error) {
      if (!(error instanceof BadReview)) throw error;
      this.options.log.info(2, 'a review cannot be read', { why: error.message });
      refuse(response, 400, error.message);
      return;
    }
    const verdict = this.options.judge(request);
    answerWhole(response, 200, JSON_HEADERS, printAnswer(request.uid, verdict));
  }
}

/** What has not been read of the request is not waited for. */
function refuse(response: ServerResponse, status: number, text: string): void {
  if (!response.req.complete) response.setHeader('Connection', 'close');
  if (status === 405) response.setHeader('Allow', 'POST');
  if (status === 503) response.setHeader('Retry-After', '1');
  answerText(response, status, `${text}\n`);
}

/** Null: it is too large. */
async function readBody(request: IncomingMessage): Promise<Buffer | null> {
  const chunks: Buffer[] = [];
  let length = 0;
  // What is refused is answered, so the connection must not end with the loop.
  const parts = request.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>;
  for await (const chunk of parts) {
    length += chunk.length;
    if (length > MAX_BODY_BYTES) return null;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

/** Life and readiness, for a kubelet: over plain HTTP, apart from reviews. @param unready why not; null: it is ready. */
export function answerProbe(request: IncomingMessage, response: ServerResponse, unready: string | null): void {
  const [path] = (request.url ?? '').split('?', 1);
  if (path === '/livez' || path === '/healthz') answerText(response, 200, 'ok\n');
  else if (path === '/readyz') answerText(response, unready === null ? 200 : 503, `${unready ?? 'ok'}\n`);
  else answerNotFound(response);
}
