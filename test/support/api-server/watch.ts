import type { ApiObject } from '../api-objects.js';
import type { Answer } from './answer.js';
import { EXPIRED, statusObject, type Encoding, type StatusFields } from './encoding.js';
import { metadataOf, type ServedResource } from './resources.js';
import type { Predicate } from './selectors.js';
import type { ApiStore, StoredEvent } from './store.js';

export interface WatchRequest {
  readonly resource: ServedResource;
  readonly selected: Predicate;
  /** Where to start; null: with the present objects as ADDED events. */
  readonly from: number | null;
  /** The bookmark that ends the initial events is wanted. */
  readonly initialEventsEnd: boolean;
  readonly bookmarks: boolean;
  /** Null: no end. */
  readonly timeoutSeconds: number | null;
  readonly bookmarkMs: number;
}

/** So much is encoded in one turn of the event loop: what a real server has encoded is on its way while it goes on. */
const TURN_BYTES = 256 * 1024;

/** One open watch. */
export class ServedWatch {
  private timers: NodeJS.Timeout[] = [];
  private closed = false;
  /** What has changed since the initial events began, in the state that they are of; null: they have all been sent. */
  private changed: StoredEvent[] | null = null;
  private unsubscribe: () => void = () => undefined;

  constructor(
    private readonly request: WatchRequest,
    private readonly store: ApiStore,
    private readonly encoding: Encoding,
    private readonly answer: Answer,
  ) {}

  get resource(): string {
    return this.request.resource.name;
  }

  start(): void {
    const { request, store } = this;
    if (request.from !== null && request.from < store.oldest) {
      this.error({ ...EXPIRED, message: `${EXPIRED.message}: ${request.from} (${store.oldest})` });
      return;
    }
    this.unsubscribe = store.onEvent((resource, event) => {
      if (resource !== request.resource) return;
      if (this.changed === null) this.change(event);
      else this.changed.push(event);
    });
    if (request.from === null) {
      this.changed = [];
      this.addAll(store.list(request.resource), 0, store.version);
      return;
    }
    for (const event of store.since(request.resource, request.from)) this.change(event);
    this.goOn();
  }

  /** @param version of the state that these objects are. */
  private addAll(objects: readonly ApiObject[], start: number, version: number): void {
    if (this.closed) return;
    let sent = 0;
    let next = start;
    for (; next < objects.length && sent < TURN_BYTES; next++) {
      const object = objects[next];
      if (object !== undefined) sent += this.add(object);
    }
    if (next < objects.length) {
      setImmediate(() => {
        this.addAll(objects, next, version);
      });
      return;
    }
    if (this.request.initialEventsEnd) this.bookmark(true, version);
    const changed = this.changed ?? [];
    this.changed = null;
    for (const event of changed) this.change(event);
    this.goOn();
  }

  /** What comes between changes and after them. */
  private goOn(): void {
    const { request } = this;
    if (request.bookmarks)
      this.every(request.bookmarkMs, () => {
        this.bookmark(false);
      });
    if (request.timeoutSeconds !== null)
      this.every(request.timeoutSeconds * 1000, () => {
        this.end();
      });
  }

  /** Ends it as a timeout does. */
  end(): void {
    this.close();
    this.answer.end();
  }

  /** Breaks its connection. */
  reset(): void {
    this.close();
    this.answer.reset();
  }

  /** Leaves the connection open and says nothing more. */
  stall(): void {
    this.close();
    this.answer.stall();
  }

  bookmark(initialEventsEnd: boolean, version = this.store.version): void {
    const { resource } = this.request;
    // A watch from a version that is still to come is not told that the server has not got there.
    if (version < (this.request.from ?? 0)) return;
    const annotations = initialEventsEnd ? { annotations: { 'k8s.io/initial-events-end': 'true' } } : {};
    this.send('BOOKMARK', {
      kind: resource.kind,
      apiVersion: resource.apiVersion,
      metadata: { resourceVersion: String(version), ...annotations },
    });
  }

  /** An ERROR event, after which a server ends the watch. */
  error(status: StatusFields): void {
    this.send('ERROR', statusObject(status));
    this.end();
  }

  /** Bytes as they are. */
  raw(bytes: Buffer): void {
    this.answer.write(bytes);
  }

  close(): void {
    this.closed = true;
    this.unsubscribe();
    for (const timer of this.timers) clearInterval(timer);
    this.timers = [];
  }

  private every(ms: number, action: () => void): void {
    const timer = setInterval(action, ms);
    timer.unref();
    this.timers.push(timer);
  }

  /** How many bytes that came to. */
  private add(object: ApiObject): number {
    return this.request.selected(object) ? this.send('ADDED', object) : 0;
  }

  /** An object that begins or ceases to match comes or goes, as far as this watch is concerned. */
  private change({ type, object, previous, version }: StoredEvent): void {
    const { selected, from } = this.request;
    if (from !== null && version <= from) return;
    const before = previous !== null && selected(previous);
    const after = type !== 'DELETED' && selected(object);
    if (after) this.send(before ? 'MODIFIED' : 'ADDED', object);
    else if (before) {
      this.send('DELETED', { ...previous, metadata: { ...metadataOf(previous), resourceVersion: String(version) } });
    }
  }

  private send(type: string, object: ApiObject): number {
    const bytes = this.encoding.event(type, object);
    this.answer.write(bytes);
    return bytes.length;
  }
}
