import type { ListMeta, ReceivedObject } from '../codec/events.js';
import type { ApiQuery } from '../connection.js';
import { failureOf, SourceFailure } from '../failure.js';
import type { Resource } from '../resources.js';
import type { Exchanger } from './exchange.js';
import type { Inventory, Relist } from './inventory.js';

/** Only asked for when a server cuts a list short although we set no limit. */
const PAGE_SIZE = '500';
/** The limit of a list that is asked for its version only. */
const NO_MORE = '1';

interface Listing {
  readonly relist: Relist;
  readonly version: string;
}

/**
 * Lists a resource unpaged, decoding while it arrives. The first list takes what the server has at hand. A later one takes nothing older than what we have
 * seen, so that a server behind the others does not take us back. When that version is gone, or never was, it takes the newest.
 */
export class Lister {
  private newest = false;

  constructor(
    private readonly resource: Resource,
    private readonly exchanger: Exchanger,
    private readonly inventory: Inventory,
  ) {}

  /**
   * Reads a complete list. Nothing is committed by it.
   *
   * @param seen the last version known; empty for none.
   */
  async list(seen: string, signal: AbortSignal): Promise<Listing> {
    const relist = this.inventory.relist();
    try {
      let meta = await this.page(this.start(seen), relist, signal);
      while (meta.continue !== '') {
        meta = await this.page({ limit: PAGE_SIZE, continue: meta.continue }, relist, signal);
      }
      if (meta.version === '') throw new SourceFailure('undecodable', 'the list has no resource version');
      this.newest = false;
      return { relist, version: meta.version };
    } catch (error) {
      const failure = failureOf(error);
      if (failure.kind === 'expired') this.newest = true;
      throw failure;
    }
  }

  /**
   * Asks whether the server has seen a version. A watch from a future version is answered well and then sends nothing, not even bookmarks, until the server
   * reaches it. Earlier changes stay unknown; a list is refused.
   *
   * @throws SourceFailure of kind `ahead` when it has not.
   */
  async confirm(version: string, signal: AbortSignal): Promise<void> {
    try {
      await this.request({ ...notOlderThan(version), limit: NO_MORE }, () => undefined, signal);
    } catch (error) {
      const failure = failureOf(error);
      // A client that may only watch can go on.
      if (failure.kind !== 'forbidden') throw failure;
    }
  }

  /** The server has not seen the version we know: the next list is to be the newest, however old that is, and is read whole. */
  startAgain(): void {
    this.newest = true;
    this.inventory.distrustVersions();
  }

  private start(seen: string): ApiQuery {
    if (this.newest) return {};
    return seen === '' ? { resourceVersion: '0' } : notOlderThan(seen);
  }

  private page(query: ApiQuery, relist: Relist, signal: AbortSignal): Promise<ListMeta> {
    return this.request(
      query,
      (object) => {
        relist.add(object);
      },
      signal,
    );
  }

  private request(query: ApiQuery, take: (object: ReceivedObject) => void, signal: AbortSignal): Promise<ListMeta> {
    const { resource } = this;
    return this.exchanger.run(
      {
        path: resource.path,
        query: { ...resource.selectors, ...query },
        open: (codec) => codec.list(resource.kind, take),
      },
      signal,
    );
  }
}

function notOlderThan(version: string): ApiQuery {
  return { resourceVersion: version, resourceVersionMatch: 'NotOlderThan' };
}
