import type { ComponentChildren, JSX } from 'preact';
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';

/** Rows drawn above and below what is seen, so that scrolling meets no blank. */
const BEYOND = 10;

interface Properties {
  /** What a screen reader calls it. */
  readonly label: string;
  readonly count: number;
  /** Pixels, the same for every row. */
  readonly rowHeight: number;
  /** Cells of the row of titles. */
  readonly head: ComponentChildren;
  /** The chosen row; -1: none. */
  readonly active: number;
  readonly onActive: (index: number) => void;
  /** Enter on the chosen row. */
  readonly onOpen: (index: number) => void;
  /** The rows that are drawn, whenever they are others: [first, end). */
  readonly onRange: (first: number, end: number) => void;
  readonly row: (index: number) => ComponentChildren;
}

/**
 * A table of any length of which only the rows in sight are in the document. It is one stop of the keyboard: the arrows choose a row, and the focus stays
 * on the table, so that it survives the rows that go.
 */
export function VirtualList(properties: Properties): JSX.Element {
  const { label, count, rowHeight, head, active, onRange, row } = properties;
  const scroller = useRef<HTMLDivElement>(null);
  const { first, end } = useRange(scroller, count, rowHeight);
  useEffect(() => {
    onRange(first, end);
  }, [first, end, onRange]);
  useEffect(() => {
    if (active >= 0 && scroller.current !== null) reveal(scroller.current, active, rowHeight);
  }, [active, rowHeight]);
  const isDrawn = active >= first && active < end;
  return (
    <div
      class="grid"
      role="grid"
      aria-label={label}
      aria-rowcount={count + 1}
      aria-activedescendant={isDrawn ? rowId(active) : undefined}
      tabIndex={0}
      ref={scroller}
      onKeyDown={(event) => {
        onKey(event, properties, scroller.current);
      }}
    >
      <div class="grid-head" role="row" aria-rowindex={1}>
        {head}
      </div>
      <div class="grid-body" role="rowgroup" style={{ height: `${count * rowHeight}px` }}>
        {Array.from({ length: Math.max(0, end - first) }, (_, offset) => first + offset).map((index) => (
          <div
            key={index}
            id={rowId(index)}
            class="grid-row"
            role="row"
            aria-rowindex={index + 2}
            aria-selected={index === active}
            style={{ transform: `translateY(${index * rowHeight}px)`, height: `${rowHeight}px` }}
            onClick={() => {
              properties.onActive(index);
              properties.onOpen(index);
            }}
          >
            {row(index)}
          </div>
        ))}
      </div>
    </div>
  );
}

function rowId(index: number): string {
  return `row-${index}`;
}

interface Range {
  readonly first: number;
  readonly end: number;
}

/** Which rows are to be drawn, as it scrolls and as its size changes. */
function useRange(scroller: { readonly current: HTMLDivElement | null }, count: number, rowHeight: number): Range {
  const [seen, setSeen] = useState({ top: 0, height: 600 });
  useLayoutEffect(() => {
    const element = scroller.current;
    if (element === null) return;
    const measure = (): void => {
      setSeen({ top: element.scrollTop, height: element.clientHeight });
    };
    const resized = new ResizeObserver(measure);
    resized.observe(element);
    element.addEventListener('scroll', measure, { passive: true });
    measure();
    return () => {
      resized.disconnect();
      element.removeEventListener('scroll', measure);
    };
  }, [scroller]);
  const first = Math.max(0, Math.min(count, Math.floor(seen.top / rowHeight)) - BEYOND);
  return { first, end: Math.min(count, Math.ceil((seen.top + seen.height) / rowHeight) + BEYOND) };
}

/** Scrolls no more than it must. */
function reveal(scroller: HTMLDivElement, index: number, rowHeight: number): void {
  const head = scroller.firstElementChild?.clientHeight ?? 0;
  const top = index * rowHeight;
  const bottom = top + rowHeight + head - scroller.clientHeight;
  if (top < scroller.scrollTop) scroller.scrollTop = top;
  else if (bottom > scroller.scrollTop) scroller.scrollTop = bottom;
}

function onKey(
  event: KeyboardEvent,
  { active, count, rowHeight, onActive, onOpen }: Properties,
  scroller: HTMLDivElement | null,
): void {
  if (event.altKey || event.ctrlKey || event.metaKey || count === 0) return;
  const page = Math.max(1, Math.floor((scroller?.clientHeight ?? 0) / rowHeight) - 2);
  const moves: Readonly<Record<string, number>> = {
    ArrowDown: active + 1,
    ArrowUp: active < 0 ? count - 1 : active - 1,
    PageDown: active + page,
    PageUp: active - page,
    Home: 0,
    End: count - 1,
  };
  const wanted = moves[event.key];
  if (wanted !== undefined) onActive(Math.max(0, Math.min(count - 1, wanted)));
  else if (event.key === 'Enter' && active >= 0) onOpen(active);
  else return;
  event.preventDefault();
}
