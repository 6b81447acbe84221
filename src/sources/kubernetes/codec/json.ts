import { isMapping, type Mapping } from '../../../base/mapping.js';
import type { RowKind } from '../../../state/rows.js';
import { CodecError, TruncatedError } from './errors.js';
import {
  INITIAL_EVENTS_END,
  received,
  type Codec,
  type EventSink,
  type WatchDecoder,
  type WatchEvent,
} from './events.js';
import { Carry } from './frames.js';
import { JsonListDecoder } from './json-list.js';
import { jsonObject, parseJson, statusOf, textOf } from './json-values.js';

export const JSON_CODEC: Codec = {
  watch: (kind, sink) => new JsonWatchDecoder(kind, sink),
  list: (kind, sink) => new JsonListDecoder(kind, sink),
  status: (body) => {
    try {
      const value = parseJson(body, 0, body.length);
      return isMapping(value) && value['kind'] === 'Status' ? statusOf(value) : null;
    } catch (error) {
      if (error instanceof CodecError) return null;
      throw error;
    }
  },
};

const NEWLINE = 0x0a;

/** One event per line. */
class JsonWatchDecoder implements WatchDecoder {
  private readonly carry = new Carry();

  constructor(
    private readonly kind: RowKind,
    private readonly sink: EventSink,
  ) {}

  push(chunk: Buffer): void {
    let start = 0;
    for (let end = chunk.indexOf(NEWLINE); end >= 0; end = chunk.indexOf(NEWLINE, start)) {
      this.line(chunk, start, end);
      start = end + 1;
    }
    if (start < chunk.length) this.carry.append(chunk, start, chunk.length);
  }

  end(): void {
    if (this.carry.length > 0) throw new TruncatedError('the watch ended in the middle of an event');
  }

  private line(chunk: Buffer, start: number, end: number): void {
    if (this.carry.length === 0) {
      if (end > start) this.take(chunk, start, end);
      return;
    }
    this.carry.append(chunk, start, end);
    this.take(this.carry.bytes, 0, this.carry.length);
    this.carry.clear();
  }

  private take(bytes: Buffer, start: number, end: number): void {
    let event: WatchEvent;
    try {
      event = this.decode(parseJson(bytes, start, end));
    } catch (error) {
      if (!(error instanceof CodecError)) throw error;
      event = { type: 'undecodable', error };
    }
    this.sink(event);
  }

  private decode(value: unknown): WatchEvent {
    if (!isMapping(value)) throw new CodecError('a watch event is no mapping');
    const { type, object } = value;
    if (!isMapping(object)) throw new CodecError(`a watch event of type ${JSON.stringify(type)} has no object`);
    const kind = textOf(object, 'kind');
    if (type === 'ERROR') {
      if (kind !== 'Status') throw new CodecError(`an ERROR event with a ${kind}`);
      return { type, status: statusOf(object) };
    }
    if (kind !== this.kind) throw new CodecError(`an event of kind ${JSON.stringify(kind)}, not ${this.kind}`);
    switch (type) {
      case 'BOOKMARK':
        return { type, version: jsonObject(this.kind, object).version, initialEventsEnd: endsInitialEvents(object) };
      case 'ADDED':
      case 'MODIFIED':
      case 'DELETED':
        return { type, object: received(() => jsonObject(this.kind, object)) };
      default:
        throw new CodecError(`a watch event of the unknown type ${JSON.stringify(type)}`);
    }
  }
}

function endsInitialEvents(object: Mapping): boolean {
  const metadata = object['metadata'];
  const annotations = isMapping(metadata) ? metadata['annotations'] : null;
  return isMapping(annotations) && annotations[INITIAL_EVENTS_END] === 'true';
}
