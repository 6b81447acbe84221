import type { JSX } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { ConfigurationView } from './views/configuration.js';
import { ExplainView } from './views/explain.js';
import { HistoryView } from './views/history.js';
import { OverviewView } from './views/overview.js';
import { ServicesView } from './views/services.js';
import { clockTime } from './format.js';
import { useHelpKey, useSearchKey } from './keyboard.js';
import { live, useLive, type LiveState } from './live.js';
import { Dot } from './parts.js';
import { printRoute, useRoute, VIEWS, type Route, type View } from './route.js';
import { Brand, ThemeSwitch } from './shell.js';

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
    <div class={state.connection === 'lost' ? 'shell stale' : 'shell'}>
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
          <Brand node={state.overview?.node ?? null} href={printRoute({ view: 'overview' })} />
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
      <Help />
    </div>
  );
}

const KEYS = [
  ['/', 'search Services'],
  ['↑ ↓ Page Up Page Down Home End', 'choose a row'],
  ['Enter', 'open the chosen Service, then go into it'],
  ['Escape', 'clear the search, close the Service'],
  ['?', 'show these keys'],
] as const;

function Help(): JSX.Element {
  const dialog = useRef<HTMLDialogElement>(null);
  useHelpKey(() => {
    if (dialog.current?.open === false) dialog.current.showModal();
  });
  return (
    <dialog
      class="help"
      aria-labelledby="help"
      ref={dialog}
      onKeyDown={(event) => {
        // The browser closes the dialog, and nothing behind it. For a moment after that the focus is still here.
        if (event.key === 'Escape' && event.currentTarget.open) event.stopPropagation();
      }}
    >
      <h2 id="help">Keys</h2>
      <dl class="facts">
        {KEYS.map(([keys, what]) => (
          <div key={keys}>
            <dt>
              <kbd>{keys}</kbd>
            </dt>
            <dd>{what}</dd>
          </div>
        ))}
      </dl>
      <form method="dialog">
        <button class="button plain">Close</button>
      </form>
    </dialog>
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

const CONNECTIONS = { connecting: 'Connecting…', live: 'Live', lost: 'Reconnecting…' } as const;

function Connection({ state: { connection } }: { readonly state: LiveState }): JSX.Element {
  return (
    <span class="connection">
      <Dot tone={connection === 'live' ? 'good' : connection === 'lost' ? 'bad' : 'warn'} />
      {CONNECTIONS[connection]}
    </span>
  );
}

function Lost({ state: { since, overview } }: { readonly state: LiveState }): JSX.Element {
  const lastContact =
    overview === null ? 'It has not answered yet.' : `What is shown is as of ${clockTime(since.toISOString())}.`;
  return <p class="banner">The process cannot be reached; trying again. {lastContact}</p>;
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
      : `Repaired, ${lastRepair.family}: ${lastRepair.process ?? 'an unknown process'} had changed the rules, ${lastRepair.differences} put right.`;
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
