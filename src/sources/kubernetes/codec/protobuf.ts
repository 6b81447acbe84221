import type { RowKind } from '../../../state/rows.js';
import { openEnvelope, readStatus } from './envelope.js';
import { CodecError, TruncatedError } from './errors.js';
import { received, type ApiStatus, type Codec, type EventSink, type WatchDecoder, type WatchEvent } from './events.js';
import { FrameCutter, type Framing } from './frames.js';
import { ProtobufListDecoder } from './protobuf-list.js';
import { ProtobufObject } from './protobuf-object.js';
import { BYTES, Cursor, tagOf, type Range } from './wire.js';

export const PROTOBUF_CODEC: Codec = {
  watch: (kind, sink) => new ProtobufWatchDecoder(kind, sink),
  list: (kind, sink) => new ProtobufListDecoder(kind, sink),
  status: (body) => {
    try {
      const cursor = new Cursor();
      const { kind, raw } = openEnvelope(body, { start: 0, end: body.length }, cursor);
      return kind === 'Status' ? statusOf(body, raw, cursor) : null;
    } catch (error) {
      if (error instanceof CodecError) return null;
      throw error;
    }
  },
};

function statusOf(bytes: Buffer, { start, end }: Range, cursor: Cursor): ApiStatus {
  cursor.reset(bytes, start, end);
  return readStatus(cursor);
}

const LENGTH_BYTES = 4;
/** Field numbers of meta/v1 WatchEvent and of runtime.RawExtension. */
const WATCH_EVENT = { TYPE: tagOf(1, BYTES), OBJECT: tagOf(2, BYTES) };
const RAW_EXTENSION = { RAW: tagOf(1, BYTES) };

/** Frames of a 4-byte big-endian length and a WatchEvent. */
class ProtobufWatchDecoder implements WatchDecoder, Framing {
  private readonly cutter = new FrameCutter(this);
  private readonly cursor = new Cursor();

  constructor(
    private readonly kind: RowKind,
    private readonly sink: EventSink,
  ) {}

  push(chunk: Buffer): void {
    this.cutter.push(chunk);
  }

  end(): void {
    if (!this.cutter.clean) throw new TruncatedError('the watch ended in the middle of an event');
  }

  measure(bytes: Buffer, start: number, end: number): number {
    return end - start < LENGTH_BYTES ? 0 : LENGTH_BYTES + bytes.readUInt32BE(start);
  }

  take(bytes: Buffer, start: number, end: number): void {
    let event: WatchEvent;
    try {
      event = this.decode(bytes, start + LENGTH_BYTES, end);
    } catch (error) {
      if (!(error instanceof CodecError)) throw error;
      event = { type: 'undecodable', error };
    }
    this.sink(event);
  }

  private decode(bytes: Buffer, start: number, end: number): WatchEvent {
    const { cursor } = this;
    cursor.reset(bytes, start, end);
    let type = '';
    let object: Range | null = null;
    for (let tag = cursor.tag(); tag !== 0; tag = cursor.tag()) {
      if (tag === WATCH_EVENT.TYPE) type = cursor.sharedText();
      else if (tag === WATCH_EVENT.OBJECT) object = readRawExtension(cursor);
      else cursor.skip(tag);
    }
    if (object === null) throw new CodecError(`a watch event of type ${JSON.stringify(type)} has no object`);
    const { kind, raw } = openEnvelope(bytes, object, cursor);
    if (type === 'ERROR') {
      if (kind !== 'Status') throw new CodecError(`an ERROR event with a ${kind}`);
      return { type, status: statusOf(bytes, raw, cursor) };
    }
    if (kind !== this.kind) throw new CodecError(`an event of kind ${JSON.stringify(kind)}, not ${this.kind}`);
    const read = (): ProtobufObject => new ProtobufObject(this.kind, bytes, raw.start, raw.end, cursor);
    switch (type) {
      case 'BOOKMARK': {
        const { version, initialEventsEnd } = read();
        return { type, version, initialEventsEnd };
      }
      case 'ADDED':
      case 'MODIFIED':
      case 'DELETED':
        return { type, object: received(read) };
      default:
        throw new CodecError(`a watch event of the unknown type ${JSON.stringify(type)}`);
    }
  }
}

function readRawExtension(cursor: Cursor): Range | null {
  let raw: Range | null = null;
  const outer = cursor.enter();
  for (let tag = cursor.tag(); tag !== 0; tag = cursor.tag()) {
    if (tag === RAW_EXTENSION.RAW) raw = cursor.range();
    else cursor.skip(tag);
  }
  cursor.leave(outer);
  return raw;
}
