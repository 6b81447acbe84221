import { setTimeout as sleep } from 'node:timers/promises';
import type { Family } from '../../base/ip.js';
import type { NftablesAddon, NftOperation } from '../../native/contract.js';
import type { FamilyTable, FrontendKey } from '../../plan/types.js';
import type { SyncReport } from '../contract.js';
import { FORGETTING_BYTES, forgetClients, staleClients, type Forget } from './clients.js';
import { timeoutsOfFrontend } from './frontend-elements.js';
import { packSticky, type PackedKey } from './keys.js';
import { NFT_FAMILY, TABLE, clientEndpointsSet } from './names.js';
import { lostEndpoints, NO_SLOTS } from './slots.js';
import type { FrontendStep } from './sync-plan.js';

/** A removal waits this long at most for the clients that go with it. */
const PATIENCE_MS = 50;
/** Searches beside syncs rest for this many times as long as the last one took. */
const REST = 4;
/** Of more endpoints than these it is taken for granted that some have clients. */
const ENDPOINTS_ASKED = 256;

type Addon = Pick<NftablesAddon, 'nftElements' | 'nftHas' | 'nftTransact'>;

/** A search beside syncs that has not begun. */
interface Search {
  readonly forget: Map<FrontendKey, Forget>;
  timeouts: readonly number[];
  everybody: boolean;
  readonly done: Promise<void>;
}

/**
 * The clients of session affinity that have to be forgotten because of what syncs do. Whether an endpoint has any the kernel answers in constant time,
 * so a Service whose clients are elsewhere costs nothing more. Only to find them all clients have to be listed.
 */
export class RememberedClients {
  /** Frontends whose clients may no longer be right once the kernel acknowledges. */
  private readonly forget = new Map<FrontendKey, Forget>();
  /** Where those clients are sent, as {@link clientEndpointsSet} has it. */
  private readonly endpoints = new Set<PackedKey>();
  /** A search failed, so that nobody knows which of its clients are left. */
  private unsure = false;
  /** How long it took to look for stale clients the last time. */
  private tookMs = 0;
  /** Searches beside syncs that have not ended. */
  private asides = 0;
  private waiting: Search | null = null;
  /** Settles when the last search beside syncs has ended. */
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

  /** A client may only be kept if its endpoint still serves its frontend in the same way. */
  note({ key, current, next }: FrontendStep): void {
    if (timeoutsOfFrontend(current).length === 0) return;
    const treatment = (chain: string | null): string | undefined => chain?.replace(/-\d+/g, '');
    const all = treatment(current.chain) !== treatment(next.chain);
    const lost = [
      ...lostEndpoints(this.family, current.endpoints, all ? NO_SLOTS : next.endpoints),
      ...lostEndpoints(this.family, current.localEndpoints, all ? NO_SLOTS : next.localEndpoints),
    ];
    if (lost.length === 0) return;
    for (const endpoint of lost) this.endpoints.add(packSticky(key, endpoint));
    if (all || !this.forget.has(key)) this.forget.set(key, all ? 'all' : 'gone');
  }

  /** The kernel refused the step that was noted: its endpoints are still those of the clients. */
  keep(key: FrontendKey): void {
    this.forget.delete(key);
  }

  /**
   * What forgets clients in the transaction that removes their endpoint, so that none of them is sent there in between, as far as it fits. A new
   * connection of theirs that passes the hooks just then may still be remembered, so {@link forgetRest} looks again. With so many clients that
   * listing them takes long, only that: the removal must not wait for it.
   */
  async ofRemoved(table: FamilyTable, timeouts: readonly number[], maxBytes: number): Promise<readonly NftOperation[]> {
    if (this.tookMs > PATIENCE_MS || !(await this.someRemembered(timeouts))) return [];
    const forgettings = await staleClients(this.addon, table, timeouts, this.forget);
    return forgettings.slice(0, Math.floor(maxBytes / FORGETTING_BYTES)).flat();
  }

  /**
   * After the acknowledgement. Clients that are found quickly are forgotten at once. Otherwise it goes on beside further syncs, which must not wait.
   *
   * @param everybody whether every client is looked at.
   */
  async forgetRest(
    table: FamilyTable,
    timeouts: readonly number[],
    everybody: boolean,
  ): Promise<Pick<SyncReport, 'aside'>> {
    const some = await this.someRemembered(timeouts);
    const forget = new Map(this.forget);
    this.forget.clear();
    this.endpoints.clear();
    this.unsure = false;
    if (timeouts.length === 0 || (!some && !everybody)) return {};
    if (everybody || this.asides > 0 || this.tookMs > PATIENCE_MS) {
      const aside = this.beside(table, timeouts, forget, everybody);
      // The caller hears of a failure, if it still listens.
      aside.catch(() => undefined);
      return { aside };
    }
    await this.search(table, timeouts, forget, false);
    return {};
  }

  /** Looks at every client, beside syncs. */
  async checkAll(table: FamilyTable, timeouts: readonly number[]): Promise<void> {
    if (timeouts.length > 0) await this.beside(table, timeouts, new Map(), true);
  }

  /** Whether an endpoint that was noted may have clients. */
  private async someRemembered(timeouts: readonly number[]): Promise<boolean> {
    if (timeouts.length === 0) return false;
    if (this.unsure || this.endpoints.size > ENDPOINTS_ASKED) return true;
    if (this.endpoints.size === 0) return false;
    const keys = Buffer.from([...this.endpoints].join(''), 'latin1');
    const length = keys.length / this.endpoints.size;
    for (const seconds of timeouts) {
      const held = await this.addon.nftHas(NFT_FAMILY[this.family], TABLE, clientEndpointsSet(seconds), length, keys);
      if (held.includes(true)) return true;
    }
    return false;
  }

  /** One search at a time, and not all the time: what comes meanwhile is looked for in one more. */
  private beside(
    table: FamilyTable,
    timeouts: readonly number[],
    forget: ReadonlyMap<FrontendKey, Forget>,
    everybody: boolean,
  ): Promise<void> {
    const search = (this.waiting ??= this.enqueue(table));
    addForget(search.forget, forget);
    search.timeouts = timeouts;
    search.everybody ||= everybody;
    return search.done;
  }

  private enqueue(table: FamilyTable): Search {
    this.asides++;
    const begin = async (): Promise<void> => {
      const rest = this.restUntil - this.now();
      if (rest > 0) await sleep(rest);
      this.waiting = null;
      await this.search(table, search.timeouts, search.forget, search.everybody);
    };
    const done = this.last.then(begin).finally(() => {
      this.asides--;
      this.restUntil = this.now() + this.tookMs * REST;
    });
    const search: Search = { forget: new Map(), timeouts: [], everybody: false, done };
    this.last = done.catch(() => undefined);
    return search;
  }

  private async search(
    table: FamilyTable,
    timeouts: readonly number[],
    forget: ReadonlyMap<FrontendKey, Forget>,
    everybody: boolean,
  ): Promise<void> {
    const startedAt = this.now();
    try {
      if (forget.size > 0) await forgetClients(this.addon, table, timeouts, forget);
      if (everybody) await forgetClients(this.addon, table, timeouts, 'check-all');
      this.tookMs = this.now() - startedAt;
    } catch (error) {
      // For the full sync that makes up for it. Clients that come until then are right where they are, so by then only those go whose endpoint is gone.
      for (const key of forget.keys()) if (!this.forget.has(key)) this.forget.set(key, 'gone');
      this.unsure = true;
      this.onFailure();
      throw error;
    }
  }
}

function addForget(to: Map<FrontendKey, Forget>, from: ReadonlyMap<FrontendKey, Forget>): void {
  for (const [key, mode] of from) if (mode === 'all' || !to.has(key)) to.set(key, mode);
}
