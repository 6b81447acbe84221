import { useCallback, useEffect, useRef, useState } from 'preact/hooks';
import type { ServicesPage, ServicesQuery, ServiceSummary } from '../../../../src/serve/service-answers.js';
import { Inquiry } from './ask.js';
import { useServicesVersion } from './live.js';

/** Rows are asked for by the hundred, so that scrolling a little asks for nothing. */
const BLOCK = 100;
const MOST = 500;
/** While a user scrolls far, only the rows at the stop are asked for. */
const SETTLE_MS = 60;

export interface ServiceRows {
  /** Null: not known yet. */
  readonly matched: number | null;
  readonly total: number;
  /** They are of what is asked for now, not of what was asked for before. */
  readonly isCurrent: boolean;
  /** Undefined: on its way. */
  readonly row: (index: number) => ServiceSummary | undefined;
  /** The place of a Service among the known rows; -1: it is not there. Another function when there are other rows. */
  readonly indexOf: (key: string) => number;
  readonly error: string | null;
  /** The rows that are in sight: [first, end). */
  readonly setRange: (first: number, end: number) => void;
}

const NONE: ReadonlyMap<number, ServiceSummary> = new Map();

interface Held {
  /** What was searched for. */
  readonly search: string;
  readonly page: ServicesPage | null;
  readonly rows: ReadonlyMap<number, ServiceSummary>;
  readonly error: string | null;
}

interface Window {
  readonly offset: number;
  readonly limit: number;
}

/** What is asked for, but for which rows of it. */
export type ServiceFilters = Omit<ServicesQuery, 'offset' | 'limit'>;

/** The rows in sight of all that fit, kept up to date; the server does the search. */
export function useServiceRows(filters: ServiceFilters): ServiceRows {
  const search = searchOf(filters);
  const latest = useRef(filters);
  latest.current = filters;
  const [held, setHeld] = useState<Held>({ search, page: null, rows: new Map(), error: null });
  const [window, setWindow] = useState<Window>({ offset: 0, limit: BLOCK });
  const version = useServicesVersion(
    ({ keys, membership }) =>
      membership ||
      filters.problems !== undefined ||
      filters.sort !== undefined ||
      [...held.rows.values()].some(({ key }) => keys.includes(key)),
  );
  const inquiry = useInquiry(setHeld);
  const { offset, limit } = window;
  useEffect(() => {
    const query: ServicesQuery = { ...latest.current, offset: String(offset), limit: String(limit) };
    const timer = setTimeout(() => {
      inquiry.ask(query);
    }, SETTLE_MS);
    return () => {
      clearTimeout(timer);
    };
  }, [inquiry, search, offset, limit, version]);
  const setRange = useCallback((first: number, end: number) => {
    const from = Math.floor(first / BLOCK) * BLOCK;
    const rows = Math.min(MOST, Math.max(BLOCK, Math.ceil(end / BLOCK) * BLOCK - from));
    setWindow((before) => (before.offset === from && before.limit === rows ? before : { offset: from, limit: rows }));
  }, []);
  const rows = held.search === search ? held.rows : NONE;
  const indexOf = useCallback((key: string) => [...rows].find(([, row]) => row.key === key)?.[0] ?? -1, [rows]);
  return {
    matched: held.page?.matched ?? null,
    total: held.page?.total ?? 0,
    isCurrent: held.search === search,
    row: (index) => rows.get(index),
    indexOf,
    error: held.error,
    setRange,
  };
}

function searchOf({ q = '', problems, type, sort }: ServicesQuery): string {
  return JSON.stringify([q, problems, type, sort]);
}

function useInquiry(setHeld: (change: (before: Held) => Held) => void): Inquiry<'api/services'> {
  const inquiry = useRef<Inquiry<'api/services'> | null>(null);
  inquiry.current ??= new Inquiry(
    'api/services',
    (page, query) => {
      const rows = new Map(page.rows.map((row, index) => [page.offset + index, row]));
      setHeld(() => ({ search: searchOf(query), page, rows, error: null }));
    },
    (error) => {
      setHeld((before) => ({ ...before, error }));
    },
  );
  const { current } = inquiry;
  useEffect(
    () => () => {
      current.close();
    },
    [current],
  );
  return current;
}
