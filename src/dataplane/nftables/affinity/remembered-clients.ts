import { setTimeout as sleep } from 'node:timers/promises';
import type { Family } from '../../../base/ip.js';
import type { NftablesAddon, NftOperation } from '../../../native/contract.js';
import type { FamilyTable, FrontendKey } from '../../../plan/types.js';
import type { SyncReport } from '../../contract.js';
import { parseClientsMap } from '../names.js';
import { lostEndpoints } from '../slots.js';
import type { FrontendStep } from '../sync-plan.js';
import { clientKeysOf, parseAffinityChain } from './chains.js';
import { FORGETTING_BYTES, forgetClients, staleClients, type StaleClients } from './clients.js';

/** A removal waits for maps of at most so many clients: a listing takes some 2 µs for each, and more if there are very many. */
const FEW_CLIENTS = 8192;
/** If there are more maps, it waits for none. */
const FEW_MAPS = 256;
/** Searches beside syncs look at so many maps at a time, so that no more clients have to be held. */
const MAPS_AT_ONCE = 64;
/** Searches beside syncs rest for this many times as long as the last one took. */
const REST = 4;

type Addon = Pick<NftablesAddon, 'nftElements' | 'nftTransact'>;

/** A search beside syncs that has not begun. */
interface Search {
  readonly keys: Set<FrontendKey>;
  readonly done: Promise<void>;
}

/**
 * The clients of session affinity that syncs make the kernel forget. Only clients of Service ports that lose an endpoint are
 * listed.
 */
export class RememberedClients {
  /** Frontends whose clients may be wrong once the kernel acknowledges, and the keys by which these are remembered. */
  private readonly concerned = new Map<FrontendKey, readonly FrontendKey[]>();
  /** Frontends that had many clients when they were listed last. */
  private readonly large = new Set<FrontendKey>();
  /** Searches beside syncs that have not ended. */
  private searches = 0;
  private waiting: Search | null = null;
  /** Resolves when the last search beside syncs has ended. */
  private last: Promise<void> = Promise.resolve();
  /** When the next may begin, by {@link now}. */
  private restUntil = 0;

  /**
   * @param onFailure called when a search failed: a full sync has to make up for it.
   * @param now milliseconds on a clock that only goes forward.
   */
  constructor(
    private readonly addon: Addon,
    private readonly family: Family,
    private readonly onFailure: () => void,
    private readonly now: () => number,
  ) {}

  /**
   * A client may only be kept if its endpoint still serves its frontend. If a key no longer remembers clients, there is nothing
   * to do: its clients are not looked up, and its map goes or is emptied before it is used again.
   */
  note({ key: frontend, current, next }: FrontendStep): void {
    const kept = keysOf(current).filter((key) => keysOf(next).includes(key));
    if (kept.length === 0) return;
    const lost =
      lostEndpoints(this.family, current.endpoints, next.endpoints).length > 0 ||
      lostEndpoints(this.family, current.localEndpoints, next.localEndpoints).length > 0;
    if (lost) this.concerned.set(frontend, kept);
  }

  /** The kernel refused the step that was noted: its endpoints are still those of the clients. */
  keep(frontend: FrontendKey): void {
    this.concerned.delete(frontend);
  }

  /** The table does not have these sets any more. */
  dropped(sets: Iterable<string>): void {
    for (const key of keysOfMaps(sets)) this.large.delete(key);
  }

  /** Whether a step was noted that may concern clients. */
  get hasConcerned(): boolean {
    return this.concerned.size > 0;
  }

  private get concernedKeys(): readonly FrontendKey[] {
    return this.concerned.size === 0 ? [] : [...new Set([...this.concerned.values()].flat())];
  }

  /**
   * Operations that forget clients in the transaction that removes their endpoint, as far as they fit, so that no client is
   * sent there in between. A new connection of a client that passes the hooks just then may still be remembered, so
   * {@link forgetRest} looks again. If so many clients take long to list, only {@link forgetRest} does: the removal must not
   * wait for it.
   */
  async ofRemoved(table: FamilyTable, maxBytes: number): Promise<readonly NftOperation[]> {
    const keys = this.concernedKeys.filter((key) => !this.large.has(key));
    if (keys.length === 0 || keys.length > FEW_MAPS) return [];
    const stale = await staleClients(this.addon, table, keys);
    this.noteSizes(keys, stale);
    const forgettings = stale.flatMap((each) => (this.large.has(each.key) ? [] : each.forgettings));
    return forgettings.slice(0, Math.floor(maxBytes / FORGETTING_BYTES)).flat();
  }

  /**
   * After the acknowledgement. Clients that are found quickly are forgotten at once. Otherwise the search goes on beside
   * further syncs, which must not wait.
   *
   * @param all names of sets, if the clients in all of them are looked at.
   */
  async forgetRest(table: FamilyTable, all: Iterable<string> | null): Promise<Pick<SyncReport, 'background'>> {
    const concerned = this.concernedKeys;
    this.concerned.clear();
    if (all === null && concerned.length === 0) return {};
    if (all === null && this.searches === 0 && concerned.length <= FEW_MAPS) {
      const few = concerned.filter((key) => !this.large.has(key));
      if (few.length > 0) await this.search(table, few);
      const many = concerned.filter((key) => this.large.has(key));
      if (many.length === 0) return {};
      return this.searchRest(table, many);
    }
    return this.searchRest(table, [...concerned, ...keysOfMaps(all ?? [])]);
  }

  /** Looks at every client in the maps among these sets, beside syncs. */
  async checkAll(table: FamilyTable, sets: Iterable<string>): Promise<void> {
    await this.beside(table, keysOfMaps(sets));
  }

  private searchRest(table: FamilyTable, keys: readonly FrontendKey[]): Pick<SyncReport, 'background'> {
    if (keys.length === 0) return {};
    const background = this.beside(table, keys);
    // The caller gets the failure, if it still waits.
    background.catch(() => undefined);
    return { background };
  }

  /** One search at a time, and not all the time: what comes meanwhile is looked for in one more. */
  private beside(table: FamilyTable, keys: readonly FrontendKey[]): Promise<void> {
    if (keys.length === 0) return Promise.resolve();
    const search = (this.waiting ??= this.enqueue(table));
    for (const key of keys) search.keys.add(key);
    return search.done;
  }

  private enqueue(table: FamilyTable): Search {
    this.searches++;
    let took = 0;
    const keys = new Set<FrontendKey>();
    const begin = async (): Promise<void> => {
      const rest = this.restUntil - this.now();
      if (rest > 0) await sleep(rest);
      this.waiting = null;
      const startedAt = this.now();
      const all = [...keys];
      for (let start = 0; start < all.length; start += MAPS_AT_ONCE)
        await this.search(table, all.slice(start, start + MAPS_AT_ONCE));
      took = this.now() - startedAt;
    };
    const done = this.last.then(begin).finally(() => {
      this.searches--;
      this.restUntil = this.now() + took * REST;
    });
    this.last = done.catch(() => undefined);
    return { keys, done };
  }

  private async search(table: FamilyTable, keys: readonly FrontendKey[]): Promise<void> {
    try {
      this.noteSizes(keys, await forgetClients(this.addon, table, keys));
    } catch (error) {
      // For the full sync that makes up for it.
      this.onFailure();
      throw error;
    }
  }

  private noteSizes(keys: readonly FrontendKey[], listed: readonly StaleClients[]): void {
    for (const key of keys) this.large.delete(key);
    for (const { key, count } of listed) if (count > FEW_CLIENTS) this.large.add(key);
  }
}

/** The keys by which a frontend's clients are found. */
function keysOf({ finds, findsLocal }: FrontendStep['current']): readonly FrontendKey[] {
  if (finds === null && findsLocal === null) return [];
  return [finds, findsLocal].flatMap((name) => {
    const chain = name === null ? null : parseAffinityChain(name);
    return chain === null ? [] : clientKeysOf(chain);
  });
}

function keysOfMaps(sets: Iterable<string>): readonly FrontendKey[] {
  return [...sets].map(parseClientsMap).filter((key) => key !== null);
}
