import type { JSX } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { ConfigurationView } from './views/configuration.js';
import { ExplainView } from './views/explain.js';
import { HistoryView } from './views/history.js';
import { OverviewView } from './views/overview.js';
import { ServicesView } from './views/services.js';
import { clockTime } from './format.js';
import { useSearchKey } from './keyboard.js';
import { live, useLive, type LiveState } from './live.js';
import { Dot } from './parts.js';
import { printRoute, useRoute, VIEWS, type Route, type View } from './route.js';
import { chooseTheme, chosenTheme, THEMES, type Theme } from './theme.js';

const TITLES: Readonly<Record<View, string>> = {
  overview: 'Overview',
  services: 'Services',
  explain: 'Explain',
  history: 'History',
  configuration: 'Configuration',
};

export function App(): JSX.Element {
  const route = useRoute();
  const state = useLive();
  const main = useRef<HTMLElement>(null);
  useEffect(() => {
    live.open();
  }, []);
  useSearchKey();
  useViewChange(route, main);
  return (
    <div class="shell">
      <a
        class="skip"
        href="#content"
        onClick={(event) => {
          event.preventDefault();
          main.current?.focus();
        }}
      >
        Skip to the content
      </a>
      <div>
        <header class="bar">
          <Brand node={state.overview?.node ?? null} />
          <nav class="views" aria-label="Views">
            {VIEWS.map((view) => (
              <a key={view} href={printRoute({ view })} aria-current={view === route.view ? 'page' : undefined}>
                {TITLES[view]}
              </a>
            ))}
          </nav>
          <div class="bar-end">
            <Connection state={state} />
            <ThemeSwitch />
          </div>
        </header>
        {state.connection === 'lost' && <Lost state={state} />}
      </div>
      <main class="content" id="content" tabIndex={-1} ref={main}>
        <Shown route={route} state={state} />
      </main>
      <Announcements state={state} />
    </div>
  );
}

function Shown({ route, state }: { readonly route: Route; readonly state: LiveState }): JSX.Element {
  switch (route.view) {
    case 'overview':
      return <OverviewView state={state} />;
    case 'services':
      return <ServicesView route={route} />;
    case 'explain':
      return <ExplainView route={route} />;
    case 'history':
      return <HistoryView state={state} />;
    case 'configuration':
      return <ConfigurationView version={state.configurationVersion} />;
  }
}

function Brand({ node }: { readonly node: string | null }): JSX.Element {
  return (
    <a class="brand" href={printRoute({ view: 'overview' })} title={node ?? undefined}>
      <svg
        viewBox="0 0 16 16"
        fill="none"
        stroke="currentColor"
        stroke-width="2"
        stroke-linecap="round"
        aria-hidden="true"
      >
        <path d="M1 12.5H15" opacity="0.35" />
        <path d="M1 12.5C7.5 12.5 8 3.5 15 3.5" />
      </svg>
      <span>pointsman</span>
      {node !== null && <span class="node">{node}</span>}
    </a>
  );
}

const CONNECTIONS = { connecting: 'Connecting…', live: 'Live', lost: 'Reconnecting…' } as const;

function Connection({ state: { connection } }: { readonly state: LiveState }): JSX.Element {
  return (
    <span class="connection">
      <Dot tone={connection === 'live' ? 'good' : 'warn'} />
      {CONNECTIONS[connection]}
    </span>
  );
}

function Lost({ state: { since, overview } }: { readonly state: LiveState }): JSX.Element {
  const told =
    overview === null
      ? 'Nothing has been heard of it yet.'
      : `What is shown is as of ${clockTime(since.toISOString())}.`;
  return <p class="banner">The process cannot be reached; trying again. {told}</p>;
}

const THEME_NAMES: Readonly<Record<Theme, string>> = { system: 'as the system has it', light: 'light', dark: 'dark' };
const THEME_ICONS: Readonly<Record<Theme, JSX.Element>> = {
  system: <path d="M8 1.5A6.5 6.5 0 0 0 8 14.5ZM8 1.5A6.5 6.5 0 0 1 8 14.5" />,
  light: (
    <path d="M8 5a3 3 0 1 0 0 6a3 3 0 0 0 0-6M8 1v1.5M8 13.5V15M1 8h1.5M13.5 8H15M3 3l1 1M12 12l1 1M3 13l1-1M12 4l1-1" />
  ),
  dark: <path d="M13.5 9.5A6 6 0 0 1 6.5 2.5A6 6 0 1 0 13.5 9.5Z" />,
};

function ThemeSwitch(): JSX.Element {
  const [theme, setTheme] = useState(chosenTheme);
  const next = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length] ?? 'system';
  const label = `Colours: ${THEME_NAMES[theme]}. Switch to ${THEME_NAMES[next]}`;
  return (
    <button
      type="button"
      class="theme"
      aria-label={label}
      title={label}
      onClick={() => {
        chooseTheme(next);
        setTheme(next);
      }}
    >
      <svg
        viewBox="0 0 16 16"
        fill={theme === 'system' ? 'currentColor' : 'none'}
        fill-opacity="0.25"
        stroke="currentColor"
        stroke-width="1.4"
        stroke-linecap="round"
        stroke-linejoin="round"
        aria-hidden="true"
      >
        {THEME_ICONS[theme]}
      </svg>
    </button>
  );
}

/** What changes without being asked for, in words, and only when it matters. */
function Announcements({ state }: { readonly state: LiveState }): JSX.Element {
  const { connection, overview, lastRepair } = state;
  const health =
    overview === null
      ? ''
      : overview.health.healthy
        ? 'The node is healthy.'
        : `Not healthy: ${overview.health.reasons[0]?.text ?? ''}`;
  const repair =
    lastRepair === null
      ? ''
      : `Repaired, ${lastRepair.family}: ${lastRepair.process ?? 'somebody'} had changed the rules, ${lastRepair.differences} put right.`;
  return (
    <div class="unseen" role="status">
      <p>{connection === 'lost' ? 'The process cannot be reached; trying again.' : health}</p>
      <p>{repair}</p>
    </div>
  );
}

/** Another view begins at its top: for eyes, and for the keyboard. */
function useViewChange({ view }: Route, main: { readonly current: HTMLElement | null }): void {
  const shown = useRef<View | null>(null);
  useEffect(() => {
    document.title = `${TITLES[view]} – pointsman`;
    if (shown.current !== null && shown.current !== view) {
      scrollTo(0, 0);
      // What the view itself gave the focus keeps it.
      if (main.current?.contains(document.activeElement) === false) main.current.focus({ preventScroll: true });
    }
    shown.current = view;
  }, [view, main]);
}
