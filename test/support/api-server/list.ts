import type { ApiObject } from '../api-objects.js';
import { EXPIRED, tooLargeVersion, type StatusFields } from './encoding.js';
import type { ListParts } from './protobuf.js';
import type { ServedResource } from './resources.js';
import type { Predicate } from './selectors.js';
import type { ApiStore } from './store.js';

export type ListResult =
  { readonly type: 'list'; readonly list: ListParts } | { readonly type: 'error'; readonly status: StatusFields };

interface Continuation {
  readonly version: number;
  readonly start: number;
}

/** Lists, whole or in pages; the pages of one list are of one version. */
export class Lists {
  private readonly snapshots = new Map<number, readonly ApiObject[]>();

  constructor(private readonly store: ApiStore) {}

  list(resource: ServedResource, selected: Predicate, query: URLSearchParams): ListResult {
    const token = query.get('continue');
    if (token !== null && token !== '') return this.rest(resource, selected, token, limitOf(query));
    const asked = Number(query.get('resourceVersion') ?? '');
    if (Number.isNaN(asked)) return error(400, 'BadRequest', 'resourceVersion: Invalid value');
    if (asked > this.store.version) return { type: 'error', status: tooLargeVersion(asked, this.store.version) };
    const items = this.store.list(resource).filter(selected);
    // As the watch cache does: whoever takes any version gets all of it.
    const limit = query.get('resourceVersion') === '0' ? 0 : limitOf(query);
    return { type: 'list', list: this.page(resource, items, { version: this.store.version, start: 0 }, limit) };
  }

  private rest(resource: ServedResource, selected: Predicate, token: string, limit: number): ListResult {
    const from = decodeToken(token);
    if (from === null) return error(400, 'BadRequest', 'invalid continue token');
    const items = this.snapshots.get(from.version);
    if (items === undefined || from.version < this.store.oldest) {
      const { version } = this.store;
      this.snapshots.set(version, this.store.list(resource).filter(selected));
      return { type: 'error', status: { ...EXPIRED, continue: encodeToken({ ...from, version }) } };
    }
    return { type: 'list', list: this.page(resource, items, from, limit) };
  }

  private page(
    resource: ServedResource,
    items: readonly ApiObject[],
    { version, start }: Continuation,
    limit: number,
  ): ListParts {
    const end = limit === 0 ? items.length : Math.min(items.length, start + limit);
    const metadata: ApiObject = { resourceVersion: String(version) };
    if (end < items.length) {
      this.snapshots.set(version, items);
      metadata['continue'] = encodeToken({ version, start: end });
      metadata['remainingItemCount'] = items.length - end;
    }
    return { apiVersion: resource.apiVersion, kind: resource.kind, metadata, items: items.slice(start, end) };
  }
}

function limitOf(query: URLSearchParams): number {
  return Math.max(0, Number(query.get('limit') ?? 0) || 0);
}

function encodeToken(continuation: Continuation): string {
  return Buffer.from(JSON.stringify(continuation)).toString('base64');
}

function decodeToken(token: string): Continuation | null {
  try {
    const { version, start } = JSON.parse(Buffer.from(token, 'base64').toString()) as Partial<Continuation>;
    return typeof version === 'number' && typeof start === 'number' ? { version, start } : null;
  } catch {
    return null;
  }
}

function error(code: number, reason: string, message: string): ListResult {
  return { type: 'error', status: { code, reason, message } };
}
