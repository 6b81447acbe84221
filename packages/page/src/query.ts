/** A question that cannot be answered, with the status of the reason. */
export class AskedWrongly extends Error {
  constructor(
    readonly status: 400 | 403 | 404 | 429 | 503,
    message: string,
  ) {
    super(message);
  }
}

/** Which rows of many. */
export interface PageQuery {
  readonly offset: number;
  readonly limit: number;
}

const MAX_TEXT = 200;
const MAX_ROWS = 500;
const ROWS = 100;

/** @throws AskedWrongly */
export function textOf(query: URLSearchParams, name: string, longest = MAX_TEXT): string {
  const text = query.get(name) ?? '';
  if (text.length > longest) throw new AskedWrongly(400, `${name}: must have ${longest} characters at most`);
  return text;
}

/** @throws AskedWrongly */
export function pageOf(query: URLSearchParams, most = MAX_ROWS): PageQuery {
  return {
    offset: numberOf(query, 'offset', 0, 0, Number.MAX_SAFE_INTEGER),
    limit: numberOf(query, 'limit', ROWS, 1, most),
  };
}

/** @throws AskedWrongly */
export function oneOf<Word extends string>(query: URLSearchParams, name: string, words: readonly Word[]): Word {
  const text = query.get(name);
  const found = words.find((word) => word === text);
  if (found === undefined) throw new AskedWrongly(400, `${name}: must be one of ${words.join(', ')}`);
  return found;
}

/** @throws AskedWrongly also for one that is left out where `otherwise` is none of those that may be. */
export function numberOf(query: URLSearchParams, name: string, otherwise: number, least: number, most: number): number {
  const text = query.get(name);
  if (text === null && otherwise >= least) return otherwise;
  const number = /^\d{1,15}$/.test(text ?? '') ? Number(text) : NaN;
  if (!(number >= least && number <= most))
    throw new AskedWrongly(
      400,
      `${name}: ${JSON.stringify(text?.slice(0, MAX_TEXT) ?? '')}: must be a number from ${least} to ${most}`,
    );
  return number;
}
