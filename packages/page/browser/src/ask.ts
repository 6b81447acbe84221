import { useEffect, useRef, useState } from 'preact/hooks';
import { parse } from './parse.js';
import type { Api, ApiError } from '../../src/api.js';

export type Path = keyof Api;

/** @throws Error with the server's own words, or what kept it from answering. */
export async function ask<P extends Path>(
  path: P,
  query: Api[P]['query'],
  signal: AbortSignal,
): Promise<Api[P]['answer']> {
  const given = Object.entries(query as Readonly<Record<string, string | undefined>>).filter(
    (entry): entry is [string, string] => entry[1] !== undefined && entry[1] !== '',
  );
  const search = new URLSearchParams(given).toString();
  return (await askAt(`${path}${search === '' ? '' : `?${search}`}`, signal)) as Api[P]['answer'];
}

/**
 * What is at an address beside the page.
 *
 * @throws as {@link ask}.
 */
export async function askAt(address: string, signal: AbortSignal): Promise<unknown> {
  const response = await fetch(`./${address}`, { signal, cache: 'no-store' });
  if (!response.ok) throw new Error(await complaint(response));
  return parse(await response.text());
}

async function complaint(response: Response): Promise<string> {
  try {
    const { error } = parse(await response.text()) as Partial<ApiError>;
    if (typeof error === 'string') return error;
  } catch {
    // Not from the page's server, or cut off.
  }
  return `the server answered ${response.status}`;
}

/**
 * One question at a time. To another question the one before is given up; the same one again waits for the answer to the first, so that it gets there however
 * often it is asked.
 */
export class Inquiry<P extends Path> {
  #underWay: { readonly question: string; readonly stop: AbortController } | null = null;
  #again = false;

  constructor(
    private readonly path: P,
    private readonly answered: (answer: Api[P]['answer'], query: Api[P]['query']) => void,
    private readonly failed: (message: string, query: Api[P]['query']) => void,
  ) {}

  ask(query: Api[P]['query']): void {
    const question = JSON.stringify(query);
    if (this.#underWay?.question === question) {
      this.#again = true;
      return;
    }
    this.close();
    const stop = new AbortController();
    this.#underWay = { question, stop };
    const settle = (tell: () => void): void => {
      if (stop.signal.aborted) return;
      this.#underWay = null;
      tell();
      if (!this.#again) return;
      this.#again = false;
      this.ask(query);
    };
    ask(this.path, query, stop.signal).then(
      (answer) => {
        settle(() => {
          this.answered(answer, query);
        });
      },
      (error: unknown) => {
        settle(() => {
          this.failed(messageOf(error), query);
        });
      },
    );
  }

  /** What is under way is given up. */
  close(): void {
    this.#underWay?.stop.abort();
    this.#underWay = null;
    this.#again = false;
  }
}

export interface Asked<Answer> {
  /** The answer to the present question; null while that is on its way. An answer to the same question stays until there is a newer one. */
  readonly answer: Answer | null;
  readonly error: string | null;
}

/**
 * Asks, and asks again whenever the question or the version is another.
 *
 * @param query null: nothing is asked.
 * @param version another one when the answer may have changed.
 */
export function useAnswer<P extends Path>(
  path: P,
  query: Api[P]['query'] | null,
  version: number,
): Asked<Api[P]['answer']> {
  type Held = Asked<Api[P]['answer']> & { readonly question: string | null };
  const question = query === null ? null : JSON.stringify(query);
  const [held, setHeld] = useState<Held>({ question: null, answer: null, error: null });
  const inquiry = useRef<Inquiry<P> | null>(null);
  inquiry.current ??= new Inquiry(
    path,
    (answer, asked) => {
      setHeld({ question: JSON.stringify(asked), answer, error: null });
    },
    (error, asked) => {
      const of = JSON.stringify(asked);
      setHeld((before) => ({ question: of, answer: before.question === of ? before.answer : null, error }));
    },
  );
  const latest = useRef(query);
  latest.current = query;
  useEffect(() => {
    if (latest.current !== null) inquiry.current?.ask(latest.current);
  }, [question, version]);
  useEffect(
    () => () => {
      inquiry.current?.close();
    },
    [],
  );
  return held.question === question ? held : { answer: null, error: null };
}

export function messageOf(error: unknown): string {
  if (error instanceof TypeError) return 'the process cannot be reached';
  return error instanceof Error ? error.message : String(error);
}
