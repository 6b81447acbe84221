import { CodecError } from '../../../src/sources/kubernetes/codec/errors.js';
import type { Codec, ListMeta, ReceivedObject, WatchEvent } from '../../../src/sources/kubernetes/codec/events.js';
import { TranslateError } from '../../../src/sources/translate/errors.js';
import { Interner } from '../../../src/sources/translate/intern.js';
import type { Row, RowKind } from '../../../src/state/rows.js';

/** What became of one object, in a form that can be compared. */
export interface DecodedObject {
  readonly namespace: string;
  readonly name: string;
  readonly version: string;
  /** Null: not ours to handle. */
  readonly row: Row | null;
  readonly warnings: readonly string[];
  /** Null: the object is good. */
  readonly problem: string | null;
}

export type DecodedEvent =
  { readonly type: string; readonly object: DecodedObject } | Exclude<WatchEvent, { readonly object: ReceivedObject }>;

export interface DecodedList {
  readonly meta: ListMeta;
  readonly objects: readonly DecodedObject[];
}

function decoded(object: ReceivedObject, names: Interner): DecodedObject {
  const { namespace, name, version } = object;
  try {
    const { row, warnings } = object.translate(names);
    return { namespace, name, version, row, warnings: warnings.map(String), problem: null };
  } catch (error) {
    if (!(error instanceof TranslateError) && !(error instanceof CodecError)) throw error;
    return { namespace, name, version, row: null, warnings: [], problem: `${error.name}: ${error.message}` };
  }
}

/** Decodes a watch that arrives in chunks cut at the given offsets. */
export function decodeWatch(codec: Codec, kind: RowKind, bytes: Buffer, cuts: readonly number[] = []): DecodedEvent[] {
  const names = new Interner();
  const events: DecodedEvent[] = [];
  const decoder = codec.watch(kind, (event) => {
    events.push('object' in event ? { type: event.type, object: decoded(event.object, names) } : event);
  });
  for (const chunk of chunks(bytes, cuts)) decoder.push(chunk);
  decoder.end();
  return events;
}

export function decodeList(codec: Codec, kind: RowKind, bytes: Buffer, cuts: readonly number[] = []): DecodedList {
  const names = new Interner();
  const objects: DecodedObject[] = [];
  const decoder = codec.list(kind, (object) => objects.push(decoded(object, names)));
  for (const chunk of chunks(bytes, cuts)) decoder.push(chunk);
  return { meta: decoder.end(), objects };
}

/** Copies, each filled with rubbish once it has been used: nothing may lean on a chunk that is gone. */
function* chunks(bytes: Buffer, cuts: readonly number[]): Iterable<Buffer> {
  let start = 0;
  for (const end of [...cuts, bytes.length]) {
    const chunk = Buffer.from(bytes.subarray(start, end));
    yield chunk;
    chunk.fill(0xaa);
    start = end;
  }
}
