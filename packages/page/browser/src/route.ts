import { useEffect, useState } from 'preact/hooks';

/** What is shown, by the part of the address after `#`. */
export interface Route {
  readonly view: View;
  /** What of the view: `namespace/name` of a Service. Null: nothing in particular. */
  readonly item: string | null;
  /** What its form holds. */
  readonly parameters: Readonly<Record<string, string>>;
}

export const VIEWS = ['overview', 'services', 'explain', 'history', 'configuration'] as const;
export type View = (typeof VIEWS)[number];

/** An empty part shows the overview. */
function parseRoute(hash: string): Route {
  const [path = '', query = ''] = hash.replace(/^#\/?/, '').split('?', 2);
  const [first = '', ...rest] = path.split('/');
  const view = VIEWS.find((each) => each === first) ?? 'overview';
  const item = view === 'services' && rest.length === 2 ? rest.map(decoded).join('/') : null;
  return { view, item, parameters: Object.fromEntries(new URLSearchParams(query)) };
}

/** As {@link parseRoute} reads it; parameters that are empty are left out. */
export function printRoute({ view, item = null, parameters = {} }: Partial<Route> & Pick<Route, 'view'>): string {
  const path = [view, ...(item?.split('/') ?? [])].map(encodeURIComponent).join('/');
  const query = new URLSearchParams(Object.entries(parameters).filter(([, value]) => value !== '')).toString();
  return `#/${path}${query === '' ? '' : `?${query}`}`;
}

/** @param replace whether going back leads to where one was before. */
export function go(route: Partial<Route> & Pick<Route, 'view'>, replace = false): void {
  const hash = printRoute(route);
  if (hash === location.hash) return;
  if (!replace) location.hash = hash;
  else {
    history.replaceState(null, '', hash);
    dispatchEvent(new HashChangeEvent('hashchange'));
  }
}

export function useRoute(): Route {
  const [route, setRoute] = useState(() => parseRoute(location.hash));
  useEffect(() => {
    const changed = (): void => {
      setRoute(parseRoute(location.hash));
    };
    addEventListener('hashchange', changed);
    return () => {
      removeEventListener('hashchange', changed);
    };
  }, []);
  return route;
}

/** An address that a user typed need not be well formed. */
function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
