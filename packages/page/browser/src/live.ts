import { parse } from './parse.js';
import { useEffect, useRef, useState } from 'preact/hooks';
import type { History, LiveEvents, Overview, Repair, ServicesChanged, Sync, SyncsHappened } from '../../src/api.js';

export interface LiveState {
  /** `lost`: what is shown is as old as {@link since}. */
  readonly connection: 'connecting' | 'live' | 'lost';
  /** When the connection came to be as it is, by this machine's clock. */
  readonly since: Date;
  readonly overview: Overview | null;
  readonly history: History | null;
  /** More syncs happened than are reported one by one. */
  readonly skippedSyncs: number;
  /** The last repair that happened while the page was open. */
  readonly lastRepair: Repair | null;
  /** Grows when answers about the configuration may have changed. */
  readonly configurationVersion: number;
}

const KEPT_SYNCS = 64;
const KEPT_REPAIRS = 32;
const KEPT_SLOWEST = 10;
const RETRY_MS = { first: 1000, most: 5000 } as const;

/** The process reports at least every 5 s: one that is silent for so long hangs, or cannot be reached. */
const SILENT_MS = 15_000;

type ServicesListener = (changed: ServicesChanged) => void;

/** The one stream of events, and what it has reported. */
class Live {
  state: LiveState = {
    connection: 'connecting',
    since: new Date(),
    overview: null,
    history: null,
    skippedSyncs: 0,
    lastRepair: null,
    configurationVersion: 0,
  };
  readonly listeners = new Set<() => void>();
  readonly servicesListeners = new Set<ServicesListener>();
  /** How far the other machine's clock is ahead of ours. */
  #aheadMs = 0;
  #retryMs: number = RETRY_MS.first;
  #source: EventSource | null = null;
  #silence: ReturnType<typeof setTimeout> | undefined;

  /** Milliseconds since the epoch by the other machine's clock. */
  now(): number {
    return Date.now() + this.#aheadMs;
  }

  open(): void {
    if (this.#source !== null) return;
    const source = new EventSource('./api/events');
    this.#source = source;
    this.#listen(source);
    source.addEventListener('error', () => {
      if (this.state.connection !== 'lost') this.#set({ connection: 'lost', since: new Date() });
      // The browser comes back by itself, but not to a server that has answered with an error.
      if (source.readyState === EventSource.CLOSED) this.#reopen();
    });
    this.#on(source, 'snapshot', ({ overview, history }) => {
      this.#retryMs = RETRY_MS.first;
      this.#synchronize(overview);
      const { connection, configurationVersion } = this.state;
      const since = connection === 'live' ? this.state.since : new Date();
      // Changes in the meantime were not reported.
      this.#set({ connection: 'live', since, overview, history, configurationVersion: configurationVersion + 1 });
      this.#tellServices({ keys: [], more: true, membership: true });
    });
    this.#on(source, 'overview', (overview) => {
      this.#synchronize(overview);
      this.#set({ overview });
    });
    this.#on(source, 'services', (changed) => {
      this.#tellServices(changed);
    });
    this.#on(source, 'syncs', (happened) => {
      const { history, skippedSyncs } = this.state;
      if (history === null) return;
      this.#set({ history: withSyncs(history, happened), skippedSyncs: skippedSyncs + happened.skipped });
    });
    this.#on(source, 'repairs', ({ repairs }) => {
      const { history, lastRepair } = this.state;
      if (history === null) return;
      const all = latestFirst([...repairs, ...history.repairs], KEPT_REPAIRS, ({ at }) => at);
      this.#set({ history: { ...history, repairs: all }, lastRepair: repairs[0] ?? lastRepair });
    });
    this.#on(source, 'configuration', () => {
      this.#set({ configurationVersion: this.state.configurationVersion + 1 });
    });
  }

  #on<Name extends keyof LiveEvents>(source: EventSource, name: Name, receive: (data: LiveEvents[Name]) => void): void {
    source.addEventListener(name, ({ data }: MessageEvent<string>) => {
      this.#listen(source);
      receive(parse(data) as LiveEvents[Name]);
    });
  }

  /** Counts from now on. */
  #listen(source: EventSource): void {
    clearTimeout(this.#silence);
    this.#silence = setTimeout(() => {
      source.close();
      this.#set({ connection: 'lost', since: new Date() });
      this.#reopen();
    }, SILENT_MS);
  }

  #reopen(): void {
    clearTimeout(this.#silence);
    this.#source = null;
    setTimeout(() => {
      this.open();
    }, this.#retryMs);
    this.#retryMs = Math.min(RETRY_MS.most, this.#retryMs * 2);
  }

  #synchronize({ at }: Overview): void {
    this.#aheadMs = Date.parse(at) - Date.now();
  }

  #set(change: Partial<LiveState>): void {
    this.state = { ...this.state, ...change };
    for (const listener of this.listeners) listener();
  }

  #tellServices(changed: ServicesChanged): void {
    for (const listener of this.servicesListeners) listener(changed);
  }
}

export const live = new Live();

export function useLive(): LiveState {
  const [state, setState] = useState(live.state);
  useEffect(() => {
    const changed = (): void => {
      setState(live.state);
    };
    live.listeners.add(changed);
    changed();
    return () => {
      live.listeners.delete(changed);
    };
  }, []);
  return state;
}

/** A number that grows when Services that concern a component may have changed. */
export function useServicesVersion(concerns: (changed: ServicesChanged) => boolean): number {
  const [version, setVersion] = useState(0);
  const latest = useRef(concerns);
  latest.current = concerns;
  useEffect(() => {
    const changed: ServicesListener = (change) => {
      if (change.more || latest.current(change)) setVersion((before) => before + 1);
    };
    live.servicesListeners.add(changed);
    return () => {
      live.servicesListeners.delete(changed);
    };
  }, []);
  return version;
}

/** Milliseconds since the epoch on the other machine, every second anew. */
export function useNow(): number {
  const [now, setNow] = useState(live.now());
  useEffect(() => {
    const timer = setInterval(() => {
      setNow(live.now());
    }, 1000);
    return () => {
      clearInterval(timer);
    };
  }, []);
  return Math.max(now, live.now() - 1000);
}

function withSyncs(history: History, { syncs, latency }: SyncsHappened): History {
  const known = new Set(history.slowest.map(identity));
  const slow = [...history.slowest, ...syncs.filter((sync) => !sync.full && !known.has(identity(sync)))];
  return {
    ...history,
    syncs: latestFirst([...syncs, ...history.syncs], KEPT_SYNCS, ({ endedAt }) => endedAt),
    slowest: slow.sort((one, other) => other.syncMs - one.syncMs).slice(0, KEPT_SLOWEST),
    latency,
  };
}

/** Each once, and of each family no more than so many. */
function latestFirst<Row extends Sync | Repair>(
  rows: readonly Row[],
  most: number,
  at: (row: Row) => string,
): readonly Row[] {
  const once = [...new Map(rows.map((row) => [identity(row), row])).values()];
  const kept = (['IPv4', 'IPv6'] as const).flatMap((family) =>
    once
      .filter((row) => row.family === family)
      .sort((one, other) => other.number - one.number)
      .slice(0, most),
  );
  return kept.sort((one, other) => Date.parse(at(other)) - Date.parse(at(one)));
}

/** What distinguishes syncs, or repairs, from each other. */
export function identity({ family, number }: Sync | Repair): string {
  return `${family} ${number}`;
}
