import type { Row, RowKind } from '../../../state/rows.js';
import type { Interner } from '../../translate/intern.js';
import type { Translation } from '../../translate/metadata.js';
import { CodecError } from './errors.js';
import { INITIAL_EVENTS_END, type ReceivedObject } from './events.js';
import { METADATA, translateMessage } from './messages.js';
import { readMetadata, type Metadata } from './metadata.js';
import type { Cursor } from './wire.js';

/** An object within a frame: its metadata has been read, the rest has not. */
export class ProtobufObject implements ReceivedObject {
  private readonly metadata: Metadata;

  /** @throws CodecError when the object does not identify itself. */
  constructor(
    private readonly kind: RowKind,
    private readonly bytes: Buffer,
    private readonly start: number,
    private readonly end: number,
    private readonly cursor: Cursor,
  ) {
    this.metadata = findMetadata(bytes, start, end, cursor);
  }

  get namespace(): string {
    return this.metadata.namespace;
  }

  get name(): string {
    return this.metadata.name;
  }

  get version(): string {
    return this.metadata.resourceVersion;
  }

  get initialEventsEnd(): boolean {
    return this.metadata.annotations[INITIAL_EVENTS_END] === 'true';
  }

  translate(names: Interner): Translation<Row> {
    this.cursor.reset(this.bytes, this.start, this.end);
    return translateMessage(this.kind, this.cursor, this.metadata, names);
  }
}

/** Usually the first field; protobuf allows any place. */
function findMetadata(bytes: Buffer, start: number, end: number, cursor: Cursor): Metadata {
  cursor.reset(bytes, start, end);
  for (let tag = cursor.tag(); tag !== 0; tag = cursor.tag()) {
    if (tag === METADATA) return readMetadata(cursor);
    cursor.skip(tag);
  }
  throw new CodecError('an object has no metadata');
}
