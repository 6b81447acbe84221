import { messageOf } from '../base/error-message.js';
import type { SourceState } from '../observe/metrics.js';
import type { ApiConnection } from '../sources/kubernetes/connection.js';

/** Something that came this recently proves that the API server answers. */
const HEARD_MS = 5000;
const ANSWER_MS = 3000;
/** Clients that ask us often do not make us ask the API server as often. */
const ASKED_EVERY_MS = 5000;

interface Question {
  readonly at: number;
  readonly problem: Promise<string | null>;
}

const last = new WeakMap<Pick<ApiConnection, 'get'>, Question>();

/**
 * Why the API server answers nothing; null: it answers, or something came from it just now. A server that hangs keeps its connections open, so its watches
 * only show it when their next bookmark is overdue. Nothing is reconnected.
 *
 * @param api null: none is read.
 * @param now on a clock of milliseconds.
 */
export async function apiProblem(
  api: Pick<ApiConnection, 'get'> | null,
  sources: readonly SourceState[],
  now: () => number,
): Promise<string | null> {
  const heard = sources.flatMap(({ isWatched, sinceLastEventMs }) =>
    isWatched === undefined ? [] : (sinceLastEventMs ?? []),
  );
  // At the start the lists themselves are the question.
  if (api === null || heard.length === 0 || Math.min(...heard) < HEARD_MS) return null;
  const former = last.get(api);
  if (former !== undefined && now() - former.at < ASKED_EVERY_MS) return former.problem;
  const question = { at: now(), problem: ask(api) };
  last.set(api, question);
  return question.problem;
}

/** Any answer will do, a refusal as well. */
async function ask(api: Pick<ApiConnection, 'get'>): Promise<string | null> {
  // The limit includes the connection: the kernel of a frozen server accepts some, until its queue is full.
  const signal = AbortSignal.timeout(ANSWER_MS);
  try {
    const { body } = await api.get('/version', {}, { accept: 'application/json', signal });
    body.destroy();
    return null;
  } catch (error) {
    return `unavailable: ${signal.aborted ? `no answer within ${ANSWER_MS / 1000} s` : messageOf(error)}`;
  }
}
