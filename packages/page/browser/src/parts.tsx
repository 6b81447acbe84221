import type { ComponentChildren, JSX } from 'preact';
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { clockTime, duration } from './format.js';
import { useNow } from './live.js';

/** Small things that several views are made of. */

export type Tone = 'good' | 'warn' | 'bad' | 'none';

/** Says by shape and colour what the text beside it says in words. */
export function Dot({ tone }: { readonly tone: Tone }): JSX.Element {
  return <span class={`dot ${tone}`} aria-hidden="true" />;
}

export function State({ tone, children }: { readonly tone: Tone; readonly children: ComponentChildren }): JSX.Element {
  return (
    <span class="state whole">
      <Dot tone={tone} />
      <span>{children}</span>
    </span>
  );
}

/** `3 min 2 s ago`, with the time itself for whoever points at it. */
export function Age({ at, suffix = ' ago' }: { readonly at: string; readonly suffix?: string }): JSX.Element {
  const seconds = (useNow() - Date.parse(at)) / 1000;
  return (
    <time dateTime={at} title={clockTime(at)}>
      {seconds < 2 && suffix === ' ago' ? 'just now' : `${duration(Math.max(0, Math.floor(seconds)))}${suffix}`}
    </time>
  );
}

export function Clock({ at }: { readonly at: string }): JSX.Element {
  return <time dateTime={at}>{clockTime(at)}</time>;
}

interface SectionProperties {
  readonly title: string;
  readonly note?: ComponentChildren;
  readonly children: ComponentChildren;
}

export function Section({ title, note, children }: SectionProperties): JSX.Element {
  return (
    <section class="section">
      <h2>
        {title}
        {note !== undefined && <span class="quiet">{note}</span>}
      </h2>
      {children}
    </section>
  );
}

/** Pairs of a name and a value; those without a value are left out. `wide-facts` are in two columns where there is room, `figures` beside each other. */
export function Facts({
  of,
  look = 'facts',
}: {
  readonly of: readonly (readonly [name: string, value: ComponentChildren])[];
  readonly look?: 'facts' | 'facts wide-facts' | 'figures';
}): JSX.Element {
  return (
    <dl class={look}>
      {of
        .filter(([, value]) => value !== null && value !== undefined && value !== false && value !== '')
        .map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
    </dl>
  );
}

interface TableProperties {
  /** What a screen reader calls it. */
  readonly label: string;
  /** Titles; those that begin with `#` are of numbers. */
  readonly columns: readonly string[];
  readonly children: ComponentChildren;
}

/** A table, whose rows are cards on a phone. Where it does not fit it scrolls sideways in itself; then the keyboard can stop at it. */
export function Table({ label, columns, children }: TableProperties): JSX.Element {
  const frame = useRef<HTMLDivElement>(null);
  const scrolls = useOverflow(frame);
  useCellTitles(frame, columns);
  return (
    <div class="scroll" ref={frame} {...(scrolls ? { tabIndex: 0, role: 'region', 'aria-label': label } : {})}>
      <table aria-label={label}>
        <thead>
          <tr>
            {columns.map((column) => (
              <th key={column} scope="col" class={column.startsWith('#') ? 'number' : undefined}>
                {column === '' ? <span class="unseen">more</span> : column.replace(/^#/, '')}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>{children}</tbody>
      </table>
    </div>
  );
}

/** Has each cell say what it is: the titles of a card, and what a table is that is not laid out as one. */
function useCellTitles(frame: { readonly current: HTMLElement | null }, columns: readonly string[]): void {
  useLayoutEffect(() => {
    const { current } = frame;
    if (current === null) return;
    const name = (): void => {
      nameCells(current, columns);
    };
    name();
    // Rows come and go without the table being made anew.
    const watched = new MutationObserver(name);
    watched.observe(current, { childList: true, subtree: true });
    return () => {
      watched.disconnect();
    };
  }, [frame, columns.join()]);
}

function nameCells(frame: HTMLElement, columns: readonly string[]): void {
  for (const table of frame.querySelectorAll('table')) {
    table.setAttribute('role', 'table');
    for (const part of [table.tHead, ...table.tBodies]) part?.setAttribute('role', 'rowgroup');
    for (const row of table.rows) {
      row.setAttribute('role', 'row');
      for (const cell of row.cells) {
        cell.setAttribute('role', ROLES[cell.scope] ?? 'cell');
        const title = columns[cell.cellIndex] ?? '';
        if (cell.colSpan === 1 && title !== '') cell.dataset['title'] = title.replace(/^#/, '');
      }
    }
  }
}

const ROLES: Readonly<Record<string, string>> = { row: 'rowheader', col: 'columnheader' };

function useOverflow(frame: { readonly current: HTMLElement | null }): boolean {
  const [overflows, setOverflows] = useState(false);
  useEffect(() => {
    const { current } = frame;
    if (current === null) return;
    const resized = new ResizeObserver(() => {
      setOverflows(current.scrollWidth > current.clientWidth);
    });
    for (const each of [current, ...current.children]) resized.observe(each);
    return () => {
      resized.disconnect();
    };
  }, [frame]);
  return overflows;
}

/** Whether a row was not there when the view was opened. */
export function useNewcomers(ids: readonly string[]): (id: string) => boolean {
  const known = useRef<ReadonlySet<string> | null>(null);
  known.current ??= new Set(ids);
  return (id) => known.current?.has(id) === false;
}

export function Trouble({ children }: { readonly children: ComponentChildren }): JSX.Element {
  return (
    <p class="trouble" role="alert">
      {children}
    </p>
  );
}

/** A list in one line of code. */
export function Codes({ of }: { readonly of: readonly string[] }): JSX.Element {
  return (
    <>
      {of.map((text, index) => (
        <span key={text}>
          {index > 0 && ', '}
          <code>{text}</code>
        </span>
      ))}
    </>
  );
}
