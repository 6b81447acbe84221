import type { RowKind } from '../../../state/rows.js';
import { hasMagic, MAGIC_BYTES, readKind, UNKNOWN } from './envelope.js';
import { CodecError, TruncatedError } from './errors.js';
import { received, type ListDecoder, type ListMeta, type ObjectSink } from './events.js';
import { FrameCutter, type Framing } from './frames.js';
import { ProtobufObject } from './protobuf-object.js';
import { BYTES, Cursor, tagOf } from './wire.js';

/** A list's metadata and its items have the same field numbers in every kind of list. */
const LIST = { METADATA: tagOf(1, BYTES), ITEMS: tagOf(2, BYTES) };
const LIST_META = { VERSION: tagOf(2, BYTES), CONTINUE: tagOf(3, BYTES) };

/** Longest tag and length together. */
const MAX_HEADER_BYTES = 15;

/**
 * Walks a list while its bytes arrive. A list is an envelope with one large field; each field of the envelope but that one, and each field of
 * the list within it, is a frame.
 */
export class ProtobufListDecoder implements ListDecoder, Framing {
  private readonly cutter = new FrameCutter(this);
  private readonly cursor = new Cursor();
  private level: 'magic' | 'envelope' | 'list' = 'magic';
  /** Bytes of the list still to come. */
  private left = 0;
  private kind = '';
  private listed = false;
  private meta: ListMeta | null = null;

  constructor(
    private readonly itemKind: RowKind,
    private readonly sink: ObjectSink,
  ) {}

  push(chunk: Buffer): void {
    this.cutter.push(chunk);
  }

  end(): ListMeta {
    const complete = this.level === 'envelope' && this.listed && this.cutter.clean;
    if (!complete) throw new TruncatedError('the list ended early');
    if (this.meta === null) throw new CodecError('the list has no metadata');
    return this.meta;
  }

  measure(bytes: Buffer, start: number, end: number): number {
    if (this.level === 'magic') return MAGIC_BYTES;
    const header = this.header(bytes, start, end);
    if (header === null) return 0;
    const { tag, size, length } = header;
    if (this.level === 'envelope') return tag === UNKNOWN.RAW ? size : size + length;
    if (size + length > this.left) throw new CodecError('a field of the list does not fit in it');
    return size + length;
  }

  take(bytes: Buffer, start: number, end: number): void {
    if (this.level === 'magic') this.takeMagic(bytes, start, end);
    else if (this.level === 'envelope') this.takeEnvelopeField(bytes, start, end);
    else this.takeListField(bytes, start, end);
  }

  private takeMagic(bytes: Buffer, start: number, end: number): void {
    if (!hasMagic(bytes, start, end)) throw new CodecError('the list lacks the prefix of the Kubernetes API');
    this.level = 'envelope';
  }

  private takeEnvelopeField(bytes: Buffer, start: number, end: number): void {
    const header = this.header(bytes, start, end);
    if (header?.tag === UNKNOWN.RAW) {
      if (this.listed) throw new CodecError('two lists in one envelope');
      if (this.kind !== `${this.itemKind}List`) {
        throw new CodecError(`a list of kind ${JSON.stringify(this.kind)}, not ${this.itemKind}List`);
      }
      this.listed = true;
      this.left = header.length;
      if (this.left > 0) this.level = 'list';
      return;
    }
    this.cursor.reset(bytes, start, end);
    if (this.cursor.tag() === UNKNOWN.TYPE_META) this.kind = readKind(this.cursor);
  }

  private takeListField(bytes: Buffer, start: number, end: number): void {
    const { cursor } = this;
    this.left -= end - start;
    if (this.left === 0) this.level = 'envelope';
    cursor.reset(bytes, start, end);
    const tag = cursor.tag();
    if (tag === LIST.METADATA) this.meta = readListMeta(cursor);
    if (tag !== LIST.ITEMS) return;
    cursor.enter();
    const { position } = cursor;
    this.sink(received(() => new ProtobufObject(this.itemKind, bytes, position, end, cursor)));
  }

  /** A field's tag, the size of tag and length, and the length; null while they are not all there. */
  private header(
    bytes: Buffer,
    start: number,
    end: number,
  ): { readonly tag: number; readonly size: number; readonly length: number } | null {
    const limit = Math.min(end, start + MAX_HEADER_BYTES);
    const tagEnd = varintEnd(bytes, start, limit);
    if (tagEnd === 0) return this.incomplete(end - start);
    this.cursor.reset(bytes, start, limit);
    const tag = this.cursor.tag();
    if ((tag & 7) !== BYTES) throw new CodecError(`field ${tag >> 3} of a list or its envelope has another wire type`);
    if (varintEnd(bytes, tagEnd, limit) === 0) return this.incomplete(end - start);
    const length = this.cursor.integer();
    if (length < 0) throw new CodecError('a field of negative length');
    return { tag, size: this.cursor.position - start, length };
  }

  private incomplete(available: number): null {
    if (available >= MAX_HEADER_BYTES) throw new CodecError('the length of a field makes no sense');
    return null;
  }
}

/** Where the number that begins at `start` ends; 0 when that is not before `end`. */
function varintEnd(bytes: Buffer, start: number, end: number): number {
  for (let at = start; at < end; at++) if ((bytes[at] ?? 0) < 0x80) return at + 1;
  return 0;
}

function readListMeta(cursor: Cursor): ListMeta {
  let version = '';
  let rest = '';
  const outer = cursor.enter();
  for (let tag = cursor.tag(); tag !== 0; tag = cursor.tag()) {
    if (tag === LIST_META.VERSION) version = cursor.text();
    else if (tag === LIST_META.CONTINUE) rest = cursor.text();
    else cursor.skip(tag);
  }
  cursor.leave(outer);
  return { version, continue: rest };
}
