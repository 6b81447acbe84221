import type { JSX } from 'preact';
import { useCallback, useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import type {
  ServiceProblem,
  ServiceSort,
  ServiceSummary,
  ServiceType,
} from '../../../../../src/serve/service-answers.js';
import { counted, number } from '../format.js';
import { SEARCH_ID, takeWish, useEscape } from '../keyboard.js';
import { Trouble } from '../parts.js';
import { MILD, PROBLEM_LABELS, PROBLEM_TEXTS } from '../problems.js';
import { go, printRoute, type Route } from '../route.js';
import { useServiceRows, type ServiceFilters, type ServiceRows } from '../service-rows.js';
import { VirtualList } from '../virtual-list.js';
import { SERVICE_ID, ServicePane } from './service.js';

/** As the style sheet has them: of a row of a table, and of a card where the window is narrow. */
const ROW_HEIGHT = { row: 34, card: 84 } as const;
const NARROW = '(max-width: 40rem)';
/** Who types or holds an arrow down goes on before this. */
const PAUSE_MS = 150;

const TYPES: readonly ServiceType[] = ['ClusterIP', 'NodePort', 'LoadBalancer', 'ExternalName'];
const SORTS: readonly (readonly [sort: ServiceSort, text: string])[] = [
  ['name', 'Name'],
  ['type', 'Type'],
  ['port', 'Port'],
  ['endpoints', 'Fewest endpoints'],
  ['most-endpoints', 'Most endpoints'],
  ['problems', 'Worst problem'],
  ['endpoint', 'Endpoint address'],
  ['node', 'Node'],
  ['pod', 'Pod'],
];

/** What the address asks for; what it cannot ask for is left out. */
function filtersOf({ q = '', problems, type, sort }: Route['parameters']): ServiceFilters {
  const problem = (Object.keys(PROBLEM_TEXTS) as ServiceProblem[]).find((each) => each === problems);
  const known = TYPES.find((each) => each === type);
  const [order] = SORTS.find(([each]) => each === sort && each !== 'name') ?? [];
  return {
    q,
    ...(problems === 'only' || problem !== undefined ? { problems: problem ?? 'only' } : {}),
    ...(known === undefined ? {} : { type: known }),
    ...(order === undefined ? {} : { sort: order }),
  };
}

/** All Services, and beside them the one that was chosen. */
export function ServicesView({ route }: { readonly route: Route }): JSX.Element {
  const { item, parameters } = route;
  const filters = filtersOf(parameters);
  const rows = useServiceRows(filters);
  const grid = useRef<HTMLDivElement>(null);
  const held = JSON.stringify(filters);
  const openService = useCallback(
    (key: string | null) => {
      go(
        { view: 'services', item: key, parameters: JSON.parse(held) as Route['parameters'] },
        key !== null && item !== null,
      );
    },
    [held, item],
  );
  const close = (): void => {
    openService(null);
    grid.current?.querySelector<HTMLElement>('[role=grid]')?.focus();
  };
  useEscape(item === null ? null : close);
  return (
    <div class={item === null ? 'services' : 'services split'}>
      <section class="list-pane" ref={grid}>
        <h1 class={item === null ? undefined : 'small'}>Services</h1>
        <Search
          filters={filters}
          onChange={(changed) => {
            go({ view: 'services', item, parameters: { ...filters, ...changed } }, true);
          }}
          onDown={() => grid.current?.querySelector<HTMLElement>('[role=grid]')?.focus()}
        />
        <Found rows={rows} filters={filters} />
        {rows.error !== null && <Trouble>{rows.error}</Trouble>}
        <List rows={rows} selected={item} onSelect={openService} search={held} />
      </section>
      {item !== null && <ServicePane key={item} serviceKey={item} onClose={close} />}
    </div>
  );
}

interface SearchProperties {
  readonly filters: ServiceFilters;
  readonly onChange: (parameters: Readonly<Record<string, string>>) => void;
  readonly onDown: () => void;
}

/** What is typed, which the address follows after a pause. */
function useTyped(q: string, onChange: SearchProperties['onChange']): readonly [string, (typed: string) => void] {
  const [typed, setTyped] = useState(q);
  const latest = useRef(onChange);
  latest.current = onChange;
  /** What this field itself made of the address: it comes back as `q`, when more may have been typed. */
  const shown = useRef(q);
  useEffect(() => {
    if (q !== shown.current) setTyped(q);
    shown.current = q;
  }, [q]);
  useEffect(() => {
    if (typed === q) return;
    const timer = setTimeout(() => {
      shown.current = typed;
      latest.current({ q: typed });
    }, PAUSE_MS);
    return () => {
      clearTimeout(timer);
    };
  }, [typed, q]);
  return [typed, setTyped];
}

function Search({ filters, onChange, onDown }: SearchProperties): JSX.Element {
  const { q = '' } = filters;
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
        placeholder="Name, address, port, ns:… node:… endpoint:…"
        maxLength={200}
        spellcheck={false}
        autocomplete="off"
        value={typed}
        onInput={({ currentTarget }) => {
          setTyped(currentTarget.value);
        }}
        onKeyDown={(event) => {
          if (event.key === 'ArrowDown' || event.key === 'Enter') onDown();
          else if (event.key === 'Escape' && typed !== '') setTyped('');
          else return;
          event.preventDefault();
        }}
      />
      <kbd aria-hidden="true">/</kbd>
      <Filters filters={filters} onChange={onChange} />
    </div>
  );
}

function Filters({ filters, onChange }: Omit<SearchProperties, 'onDown'>): JSX.Element {
  const { problems, type = '', sort = 'name' } = filters;
  return (
    <>
      <Choice
        id="type"
        label="Type"
        value={type}
        of={[['', 'all'], ...TYPES.map((each) => [each, each] as const)]}
        onChange={(chosen) => {
          onChange({ type: chosen });
        }}
      />
      <Choice
        id="sort"
        label="Sort by"
        value={sort}
        of={SORTS}
        onChange={(chosen) => {
          onChange({ sort: chosen });
        }}
      />
      <OnlyProblems
        checked={problems !== undefined}
        onChange={(checked) => {
          onChange({ problems: checked ? 'only' : '' });
        }}
      />
    </>
  );
}

interface ChoiceProperties {
  readonly id: string;
  readonly label: string;
  readonly value: string;
  readonly of: readonly (readonly [value: string, text: string])[];
  readonly onChange: (value: string) => void;
}

function Choice({ id, label, value, of, onChange }: ChoiceProperties): JSX.Element {
  return (
    <div class="choice">
      <label class="quiet" for={id}>
        {label}
      </label>
      <select
        id={id}
        value={value}
        onChange={({ currentTarget }) => {
          onChange(currentTarget.value);
        }}
      >
        {of.map(([each, text]) => (
          <option key={each} value={each}>
            {text}
          </option>
        ))}
      </select>
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
  rows: { matched, total, isCurrent },
  filters: { q, problems, type },
}: {
  readonly rows: ServiceRows;
  readonly filters: ServiceFilters;
}): JSX.Element {
  const isFiltered = q !== '' || problems !== undefined || type !== undefined;
  const text =
    matched === null
      ? 'Asking the process…'
      : isFiltered
        ? `${number(matched)} of ${counted(total, 'Service')}`
        : counted(total, 'Service');
  return (
    <>
      <p class="found quiet" role="status">
        {text}
        {problems !== undefined && problems !== 'only' && ` ${PROBLEM_TEXTS[problems]}`}
      </p>
      {matched === 0 && isCurrent && (
        <p class="nothing">
          {!isFiltered ? (
            'There is no Service.'
          ) : problems !== undefined && q === '' && type === undefined ? (
            'No Service has this problem.'
          ) : (
            <>
              No Service matches. <a href={printRoute({ view: 'services' })}>Show all</a>
            </>
          )}
        </p>
      )}
    </>
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
  const rowHeight = useRowHeight();
  /** The row that the arrows chose beside an open Service: it is opened after a pause. */
  const [wanted, setWanted] = useState<string | null>(null);
  useEffect(() => {
    if (wanted === null || selected === null || wanted === selected) return;
    const timer = setTimeout(() => {
      setWanted(null);
      onSelect(wanted);
    }, PAUSE_MS);
    return () => {
      clearTimeout(timer);
    };
  }, [wanted, selected, onSelect]);
  return (
    <VirtualList
      label="Services"
      count={matched ?? 0}
      rowHeight={rowHeight}
      active={active}
      onActive={(index) => {
        setActive(index);
        setWanted(row(index)?.key ?? null);
      }}
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

function useRowHeight(): number {
  const [isNarrow, setNarrow] = useState(() => matchMedia(NARROW).matches);
  useEffect(() => {
    const query = matchMedia(NARROW);
    const changed = (): void => {
      setNarrow(query.matches);
    };
    query.addEventListener('change', changed);
    changed();
    return () => {
      query.removeEventListener('change', changed);
    };
  }, []);
  return isNarrow ? ROW_HEIGHT.card : ROW_HEIGHT.row;
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
    // No other row stands for a Service that is not among them.
    else if (selected !== null) setActive(-1);
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
          <span key={problem} class={`tag ${MILD.includes(problem) ? 'warn' : 'bad'}`}>
            {PROBLEM_LABELS[problem]}
          </span>
        ))}
      </span>
    </>
  );
}

function listed(some: readonly string[], more: number): string {
  return `${some.join(', ')}${more > 0 ? ` +${more}` : ''}`;
}
