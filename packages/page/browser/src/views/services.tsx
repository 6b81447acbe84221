import type { JSX } from 'preact';
import { useCallback, useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import type { ServiceProblem, ServiceSummary } from '../../../../../src/serve/service-answers.js';
import { counted, number } from '../format.js';
import { SEARCH_ID, takeWish } from '../keyboard.js';
import { Trouble } from '../parts.js';
import { go, type Route } from '../route.js';
import { useServiceRows, type ServiceRows } from '../service-rows.js';
import { VirtualList } from '../virtual-list.js';
import { SERVICE_ID, ServicePane } from './service.js';

/** As the style sheet has it. */
const ROW_HEIGHT = 34;
/** Who types or holds an arrow down goes on before this. */
const PAUSE_MS = 150;

/** All Services, and beside them the one that was chosen. */
export function ServicesView({ route }: { readonly route: Route }): JSX.Element {
  const { item, parameters } = route;
  const q = parameters['q'] ?? '';
  const problems = parameters['problems'] === 'only' ? 'only' : undefined;
  const rows = useServiceRows(q, problems);
  const grid = useRef<HTMLDivElement>(null);
  const openService = useCallback(
    (key: string | null) => {
      go({ view: 'services', item: key, parameters: { q, problems: problems ?? '' } }, key !== null && item !== null);
    },
    [q, problems, item],
  );
  const close = (): void => {
    openService(null);
    grid.current?.querySelector<HTMLElement>('[role=grid]')?.focus();
  };
  return (
    <div class={item === null ? 'services' : 'services split'}>
      <section class="list-pane" ref={grid}>
        <h1 class={item === null ? undefined : 'small'}>Services</h1>
        <Search
          q={q}
          problems={problems}
          onChange={(changed) => {
            go({ view: 'services', item, parameters: { q, problems: problems ?? '', ...changed } }, true);
          }}
          onDown={() => grid.current?.querySelector<HTMLElement>('[role=grid]')?.focus()}
        />
        <Found rows={rows} isFiltered={q !== '' || problems !== undefined} />
        {rows.error !== null && <Trouble>{rows.error}</Trouble>}
        <List rows={rows} selected={item} onSelect={openService} search={`${q} ${problems ?? ''}`} />
      </section>
      {item !== null && <ServicePane key={item} serviceKey={item} onClose={close} />}
    </div>
  );
}

interface SearchProperties {
  readonly q: string;
  readonly problems: 'only' | undefined;
  readonly onChange: (parameters: Readonly<Record<string, string>>) => void;
  readonly onDown: () => void;
}

/** What is typed, which the address follows after a pause. */
function useTyped(q: string, onChange: SearchProperties['onChange']): readonly [string, (typed: string) => void] {
  const [typed, setTyped] = useState(q);
  const latest = useRef(onChange);
  latest.current = onChange;
  /** What this field itself made of the address: it comes back as `q`, when more may have been typed. */
  const told = useRef(q);
  useEffect(() => {
    if (q !== told.current) setTyped(q);
    told.current = q;
  }, [q]);
  useEffect(() => {
    if (typed === q) return;
    const timer = setTimeout(() => {
      told.current = typed;
      latest.current({ q: typed });
    }, PAUSE_MS);
    return () => {
      clearTimeout(timer);
    };
  }, [typed, q]);
  return [typed, setTyped];
}

function Search({ q, problems, onChange, onDown }: SearchProperties): JSX.Element {
  const [typed, setTyped] = useTyped(q, onChange);
  const input = useRef<HTMLInputElement>(null);
  useEffect(() => {
    if (takeWish()) input.current?.focus();
  }, []);
  return (
    <div class="search" role="search">
      <label class="unseen" for={SEARCH_ID}>
        Search by name, address, port or namespace
      </label>
      <input
        id={SEARCH_ID}
        ref={input}
        type="search"
        placeholder="Name, address, port, ns:namespace"
        maxLength={200}
        spellcheck={false}
        autocomplete="off"
        value={typed}
        onInput={({ currentTarget }) => {
          setTyped(currentTarget.value);
        }}
        onKeyDown={(event) => {
          if (event.key === 'ArrowDown' || event.key === 'Enter') onDown();
          else if (event.key === 'Escape') setTyped('');
          else return;
          event.preventDefault();
        }}
      />
      <kbd aria-hidden="true">/</kbd>
      <OnlyProblems
        checked={problems === 'only'}
        onChange={(checked) => {
          onChange({ problems: checked ? 'only' : '' });
        }}
      />
    </div>
  );
}

function OnlyProblems({
  checked,
  onChange,
}: {
  readonly checked: boolean;
  readonly onChange: (checked: boolean) => void;
}): JSX.Element {
  return (
    <label class="check">
      <input
        type="checkbox"
        checked={checked}
        onChange={({ currentTarget }) => {
          onChange(currentTarget.checked);
        }}
      />
      With problems
    </label>
  );
}

function Found({
  rows: { matched, total },
  isFiltered,
}: {
  readonly rows: ServiceRows;
  readonly isFiltered: boolean;
}): JSX.Element {
  const text =
    matched === null
      ? 'Asking the process…'
      : isFiltered
        ? `${number(matched)} of ${counted(total, 'Service')}`
        : counted(total, 'Service');
  return (
    <p class="found quiet" role="status">
      {text}
    </p>
  );
}

interface ListProperties {
  readonly rows: ServiceRows;
  readonly selected: string | null;
  readonly onSelect: (key: string) => void;
  /** What was searched for: another search begins without a chosen row. */
  readonly search: string;
}

function List({ rows, selected, onSelect, search }: ListProperties): JSX.Element {
  const { matched, row, setRange } = rows;
  const { active, setActive } = useActive(rows, selected, search);
  const activeKey = row(active)?.key;
  // Beside an open Service the arrows lead from one to the next.
  useEffect(() => {
    if (selected === null || activeKey === undefined || activeKey === selected) return;
    const timer = setTimeout(() => {
      onSelect(activeKey);
    }, PAUSE_MS);
    return () => {
      clearTimeout(timer);
    };
  }, [activeKey, selected, onSelect]);
  return (
    <VirtualList
      label="Services"
      count={matched ?? 0}
      rowHeight={ROW_HEIGHT}
      active={active}
      onActive={setActive}
      onOpen={(index) => {
        const key = row(index)?.key;
        if (key === undefined) return;
        if (key === selected) document.getElementById(SERVICE_ID)?.focus();
        else onSelect(key);
      }}
      onRange={setRange}
      head={HEAD}
      row={(index) => <Row of={row(index)} />}
    />
  );
}

/** The row that the keyboard is at: it follows the Service when rows move, and the one that is open when another one is. */
function useActive(
  { indexOf, row }: ServiceRows,
  selected: string | null,
  search: string,
): { readonly active: number; readonly setActive: (index: number) => void } {
  const [active, setActive] = useState(-1);
  const key = useRef<string | null>(null);
  // Before anything is painted: a key that is pressed at what is seen then is not undone by them.
  useLayoutEffect(() => {
    setActive(-1);
    key.current = null;
  }, [search]);
  useLayoutEffect(() => {
    key.current = selected ?? key.current;
  }, [selected]);
  useLayoutEffect(() => {
    const index = key.current === null ? -1 : indexOf(key.current);
    if (index >= 0) setActive(index);
    else key.current = row(active)?.key ?? key.current;
    // Only rows that are others move it.
  }, [indexOf, selected]);
  const choose = (index: number): void => {
    key.current = row(index)?.key ?? null;
    setActive(index);
  };
  return { active, setActive: choose };
}

const HEAD = (
  <>
    {['Service', 'Type', 'Addresses', 'Ports', 'Endpoints', 'Problems'].map((title) => (
      <span key={title} role="columnheader">
        {title}
      </span>
    ))}
  </>
);

function Row({ of }: { readonly of: ServiceSummary | undefined }): JSX.Element {
  if (of === undefined)
    return (
      <span role="gridcell" class="quiet">
        …
      </span>
    );
  const { key, namespace, name, type, addresses, moreAddresses, ports, morePorts, endpointsUsed, endpoints, problems } =
    of;
  return (
    <>
      <span role="gridcell" class="service-name" title={key}>
        <span class="quiet">{namespace}/</span>
        {name}
      </span>
      <span role="gridcell" class="quiet">
        {type}
      </span>
      <span role="gridcell" class="mono">
        {listed(addresses, moreAddresses)}
      </span>
      <span role="gridcell" class="mono">
        {listed(ports, morePorts)}
      </span>
      <span role="gridcell" class="number">
        {number(endpointsUsed)} <span class="quiet">of {number(endpoints)}</span>
      </span>
      <span role="gridcell" class="problems">
        {problems.map((problem) => (
          <span key={problem} class={`tag ${problem === 'no-endpoints' ? 'warn' : 'bad'}`}>
            {PROBLEMS[problem]}
          </span>
        ))}
      </span>
    </>
  );
}

const PROBLEMS: Readonly<Record<ServiceProblem, string>> = {
  unplanned: 'unplanned',
  'set-aside': 'set aside',
  conflict: 'conflict',
  'no-endpoints': 'no endpoints',
};

function listed(some: readonly string[], more: number): string {
  return `${some.join(', ')}${more > 0 ? ` +${more}` : ''}`;
}
