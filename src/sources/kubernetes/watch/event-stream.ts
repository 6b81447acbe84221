import type { TracedObject, SourceTracing } from '../../../base/tracing.js';
import type { SourceWriter, StateChange } from '../../../state/writer.js';
import { CodecError } from '../codec/errors.js';
import type { Codec, ReceivedObject, WatchDecoder, WatchEvent } from '../codec/events.js';
import { failureOfStatus, SourceFailure } from '../failure.js';
import type { Resource } from '../resources.js';
import type { BodyDecoder } from './exchange.js';
import type { Inventory, Relist } from './inventory.js';

/** What a stream of events reports to its owner. */
export interface StreamListener {
  /** An event came; before it is used. */
  event(type: 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK' | 'ERROR'): void;
  /** The initial events are complete and committed. */
  listed(version: string, uncertain: boolean): void;
  /** All up to this version has been committed. */
  advanced(version: string): void;
}

interface StreamSettings {
  readonly resource: Resource;
  readonly inventory: Inventory;
  readonly writer: SourceWriter;
  readonly listener: StreamListener;
  /** Null: there is no observer of changes. */
  readonly tracing: SourceTracing | null;
  /** Whether the stream begins with initial events. */
  readonly initial: boolean;
}

/**
 * Takes one watch's events to the state. The events of one turn of the event loop are one commit. All initial events are one commit, made when the server has
 * reported that they are complete.
 */
export class EventStream implements BodyDecoder<void> {
  private readonly decoder: WatchDecoder;
  private relist: Relist | null;
  private pending: StateChange[] = [];
  /** The origin of the pending changes, if there is an observer. */
  private received: TracedObject[] = [];
  private version: string | null = null;
  private flushing = false;
  /** When the chunk came that is being decoded, and the one with the first of what is pending. */
  private chunkAt = 0;
  private pendingSince = 0;

  constructor(
    codec: Codec,
    private readonly settings: StreamSettings,
  ) {
    this.relist = settings.initial ? settings.inventory.relist() : null;
    this.decoder = codec.watch(settings.resource.kind, (event) => {
      this.take(event);
    });
  }

  push(chunk: Buffer, receivedAt: number): void {
    this.chunkAt = receivedAt;
    try {
      this.decoder.push(chunk);
    } catch (error) {
      this.flush();
      throw error;
    }
    if (this.version === null || this.flushing) return;
    // One read of a socket brings many chunks, all in one turn: together they are one commit.
    this.flushing = true;
    // It costs less than a microtask by its name, which has a context of its own.
    void Promise.resolve().then(() => {
      this.flush();
    });
  }

  end(): void {
    this.flush();
    this.decoder.end();
    if (this.relist !== null) throw new SourceFailure('truncated', 'the initial events ended early');
  }

  private flush(): void {
    this.flushing = false;
    if (this.pending.length > 0) {
      const changes = this.pending;
      this.pending = [];
      this.apply(changes);
    }
    if (this.version !== null) this.settings.listener.advanced(this.version);
    this.version = null;
  }

  private apply(changes: readonly StateChange[]): void {
    const { tracing, writer } = this.settings;
    if (tracing === null) {
      writer.apply(changes, this.pendingSince);
      return;
    }
    const { received } = this;
    this.received = [];
    tracing.committing(received, () => {
      writer.apply(changes, this.pendingSince);
    });
  }

  private take(event: WatchEvent): void {
    const { listener, inventory } = this.settings;
    if (event.type === 'undecodable') {
      inventory.countUndecodable();
      throw event.error;
    }
    listener.event(event.type);
    if (event.type === 'ERROR') throw this.failure(failureOfStatus(0, event.status, null));
    if (event.type === 'BOOKMARK') {
      this.bookmark(event.version, event.initialEventsEnd);
      return;
    }
    if (this.relist !== null) takeInitial(this.relist, event.type, event.object);
    else this.takeLive(event.type, event.object);
  }

  private takeLive(type: 'ADDED' | 'MODIFIED' | 'DELETED', object: ReceivedObject): void {
    const { inventory, tracing, resource } = this.settings;
    const change = type === 'DELETED' ? inventory.remove(object) : inventory.upsert(object);
    if (change !== null && this.pending.push(change) === 1) this.pendingSince = this.chunkAt;
    if (object.version === '') throw new CodecError('an object without a resource version');
    if (tracing !== null && change !== null) {
      const { namespace, name, version: resourceVersion } = object;
      this.received.push({ type, kind: resource.kind, namespace, name, resourceVersion });
    }
    this.version = object.version;
  }

  private bookmark(version: string, initialEventsEnd: boolean): void {
    if (version === '') throw new CodecError('a bookmark without a resource version');
    if (this.relist === null) {
      this.version = version;
      return;
    }
    if (!initialEventsEnd) throw new SourceFailure('rejected', 'the server does not mark the end of initial events');
    const { relist } = this;
    this.relist = null;
    this.settings.writer.apply(relist.commit());
    this.settings.listener.listed(version, relist.uncertain);
  }

  /**
   * A server that cannot give initial events may report it by an internal error after a good start. Any error without another meaning counts as that, as a
   * list makes progress where waiting might not.
   */
  private failure(failure: SourceFailure): SourceFailure {
    return this.relist !== null && failure.kind === 'unavailable' && failure.retryAfterMs === null
      ? new SourceFailure('rejected', failure.message)
      : failure;
  }
}

function takeInitial(relist: Relist, type: 'ADDED' | 'MODIFIED' | 'DELETED', object: ReceivedObject): void {
  if (type === 'DELETED') relist.drop(object);
  else relist.add(object);
}
