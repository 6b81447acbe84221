import type { Row, RowKind } from '../../../state/rows.js';
import type { Interner } from '../../translate/intern.js';
import type { Translation } from '../../translate/metadata.js';
import { CodecError } from './errors.js';

/** What the API server reports about a failure (meta/v1 Status), as much of it as we act upon. */
export interface ApiStatus {
  /** HTTP status; 0 when not given. */
  readonly code: number;
  /** Empty when not given. */
  readonly reason: string;
  readonly message: string;
  /** Seconds; null when not given. */
  readonly retryAfterSeconds: number | null;
  /** The reasons of `details.causes`. */
  readonly causes: readonly string[];
}

/** An object as it came: who it is at once, the rest on demand and only until the call that brought it returns. */
export interface ReceivedObject {
  /** Empty for cluster-scoped objects. */
  readonly namespace: string;
  readonly name: string;
  /** Its resource version. */
  readonly version: string;
  /** Why the object does not identify itself. Its name is empty then. */
  readonly nameless?: CodecError;
  /** @throws CodecError when the bytes are not such an object, TranslateError naming every field that is wrong. */
  translate(names: Interner): Translation<Row>;
}

/** `undecodable`: an event of which not even the type is known. */
export type WatchEvent =
  | { readonly type: 'ADDED' | 'MODIFIED' | 'DELETED'; readonly object: ReceivedObject }
  | { readonly type: 'BOOKMARK'; readonly version: string; readonly initialEventsEnd: boolean }
  | { readonly type: 'ERROR'; readonly status: ApiStatus }
  | { readonly type: 'undecodable'; readonly error: Error };

/** The bookmark that ends the initial events of a WatchList carries it with the value "true" (KEP-3157). */
export const INITIAL_EVENTS_END = 'k8s.io/initial-events-end';

/** Decodes one watch response, however its bytes are cut into chunks. */
export interface WatchDecoder {
  /** @throws CodecError when the rest of the stream cannot be made sense of. */
  push(chunk: Buffer): void;
  /** @throws CodecError when the stream ended within an event. */
  end(): void;
}

/** A list's own metadata. */
export interface ListMeta {
  readonly version: string;
  /** Token for the rest of the list; empty when this was all. */
  readonly continue: string;
}

/** Decodes one list response, however its bytes are cut into chunks. */
export interface ListDecoder {
  /** @throws CodecError when the rest of the list cannot be made sense of. */
  push(chunk: Buffer): void;
  /** @throws CodecError when the list is not complete. */
  end(): ListMeta;
}

/** Reads an object of a list or of an event. One that does not identify itself is left out alone: the others do not depend on it. */
export function received(read: () => ReceivedObject): ReceivedObject {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof CodecError)) throw error;
    const translate = (): never => {
      throw error;
    };
    return { namespace: '', name: '', version: '', nameless: error, translate };
  }
}

export type ObjectSink = (object: ReceivedObject) => void;
export type EventSink = (event: WatchEvent) => void;

/** The two encodings of the API. */
export interface Codec {
  watch(kind: RowKind, sink: EventSink): WatchDecoder;
  list(kind: RowKind, sink: ObjectSink): ListDecoder;
  /** The Status in an error answer's body; null when there is none. Never throws. */
  status(body: Buffer): ApiStatus | null;
}
