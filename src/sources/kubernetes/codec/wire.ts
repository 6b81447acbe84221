import { CodecError } from './errors.js';

/** The protobuf wire types that the API uses; groups are refused. */
export const VARINT = 0;
const FIXED64 = 1;
export const BYTES = 2;
const FIXED32 = 5;

/** A field's number and wire type in one number, as they stand in the encoding. */
export function tagOf(field: number, wireType: number): number {
  return field * 8 + wireType;
}

/** A part of the bytes being read. A view on them, as a Buffer, would cost as much as reading a small object. */
export interface Range {
  readonly start: number;
  readonly end: number;
}

const MAX_VARINT_BYTES = 10;
const LONGEST_SHARED = 64;
const SHARED_TEXTS = 8192;
/** How many places a text may have. */
const STEPS = 4;
const WORD = 2 ** 32;

/**
 * Walks protobuf messages in place. One cursor serves a whole object: `enter` narrows it to a nested message, whose fields are walked until
 * `tag` is 0, and `leave` widens it again. Every method throws {@link CodecError} when the bytes end early or make no sense; a cursor
 * never leaves the bytes it was given.
 */
export class Cursor {
  private bytes: Buffer = EMPTY;
  private at = 0;
  private end = 0;
  /** Where all of it begins and ends. */
  private origin = 0;
  private limit = 0;

  reset(bytes: Buffer, start: number, end: number): void {
    this.bytes = bytes;
    this.at = start;
    this.end = end;
    this.origin = start;
    this.limit = end;
  }

  /** Back to the beginning of what `reset` gave. */
  rewind(): void {
    this.at = this.origin;
    this.end = this.limit;
  }

  get position(): number {
    return this.at;
  }

  /** The next field of the present message; 0 at its end. */
  tag(): number {
    if (this.at === this.end) return 0;
    const first = this.bytes[this.at] ?? 0;
    if (first >= 8 && first < 0x80) {
      this.at++;
      return first;
    }
    const tag = this.unsigned();
    if (tag < 8) throw new CodecError('a protobuf field has the number 0');
    return tag;
  }

  /** A nested message's fields come next. Returns what `leave` wants. */
  enter(): number {
    const length = this.length();
    const outer = this.end;
    this.end = this.at + length;
    return outer;
  }

  leave(outer: number): void {
    this.at = this.end;
    this.end = outer;
  }

  /** What the cursor walks. */
  get source(): Buffer {
    return this.bytes;
  }

  /** Where in {@link source} the bytes of this field are, which are passed over. */
  range(): Range {
    const start = this.pass();
    return { start, end: this.at };
  }

  /** As {@link range}; returns where they begin, and {@link position} is where they end. */
  pass(): number {
    const length = this.length();
    const start = this.at;
    this.at += length;
    return start;
  }

  text(): string {
    const start = this.pass();
    return start === this.at ? '' : this.bytes.toString('utf8', start, this.at);
  }

  /** A text that many objects have, such as a node's name: mostly a string that was made before, as making one costs more than finding it. */
  sharedText(): string {
    const start = this.pass();
    const length = this.at - start;
    if (length > LONGEST_SHARED) return this.bytes.toString('utf8', start, this.at);
    let hash = length;
    for (let index = start; index < this.at; index++) hash = Math.imul(hash, 31) + (this.bytes[index] ?? 0);
    const home = (hash ^ (hash >>> 13)) & (SHARED_TEXTS - 1);
    let place = home;
    for (let step = 0; step < STEPS; step++, place = (place + 1) & (SHARED_TEXTS - 1)) {
      const held = shared[place];
      if (held === undefined) return (shared[place] = this.bytes.toString('utf8', start, this.at));
      // Only a text in ASCII has as many characters as bytes and is matched.
      if (held.length === length && this.matches(held, start)) return held;
    }
    return (shared[home] = this.bytes.toString('utf8', start, this.at));
  }

  /** Which of some texts in ASCII this is; null when it is another, of which no string is made. */
  oneOf(texts: readonly string[]): string | null {
    const start = this.pass();
    const length = this.at - start;
    for (const text of texts) if (text.length === length && this.matches(text, start)) return text;
    return null;
  }

  boolean(): boolean {
    return this.integer() !== 0;
  }

  /** An int32 or int64; beyond 2⁵³ rounded. */
  integer(): number {
    const first = this.bytes[this.at];
    if (first !== undefined && first < 0x80 && this.at < this.end) {
      this.at++;
      return first;
    }
    let low = 0;
    let high = 0;
    let scale = 1;
    for (let count = 0; count < MAX_VARINT_BYTES; count++) {
      const byte = this.byte();
      const bits = byte & 0x7f;
      if (count < 4) low += bits * scale;
      else high += bits * scale;
      scale = count === 3 ? 1 : scale * 128;
      if (byte < 0x80) return this.signed(low, high);
    }
    throw new CodecError('a protobuf number has more than ten bytes');
  }

  /** Skips the value of an unused field. */
  skip(tag: number): void {
    switch (tag & 7) {
      case VARINT:
        this.integer();
        return;
      case FIXED64:
        this.advance(8);
        return;
      case BYTES:
        this.advance(this.length());
        return;
      case FIXED32:
        this.advance(4);
        return;
      default:
        throw new CodecError(`a protobuf field has the unknown wire type ${tag & 7}`);
    }
  }

  /** Two's complement of 64 bits, of which `low` holds 28 and `high` the rest. */
  private signed(low: number, high: number): number {
    const negative = high >= 2 ** 35;
    if (!negative) return high * 2 ** 28 + low;
    const upper = Math.floor(high / 16) % WORD;
    const lower = (high % 16) * 2 ** 28 + low;
    return (upper - WORD) * WORD + lower;
  }

  private unsigned(): number {
    const value = this.integer();
    if (value < 0 || value >= WORD) throw new CodecError('a protobuf tag is out of range');
    return value;
  }

  /** Length of what follows, known to lie within the present message. */
  private length(): number {
    const first = this.bytes[this.at] ?? 0;
    if (first < 0x80 && first < this.end - this.at) {
      this.at++;
      return first;
    }
    const length = this.integer();
    if (length < 0 || length > this.end - this.at) {
      throw new CodecError(`a protobuf field of ${length} bytes does not fit in its message`);
    }
    return length;
  }

  private byte(): number {
    const byte = this.at < this.end ? this.bytes[this.at] : undefined;
    if (byte === undefined) throw new CodecError('a protobuf message ends in the middle of a number');
    this.at++;
    return byte;
  }

  private matches(text: string, start: number): boolean {
    for (let index = 0; index < text.length; index++) {
      if (this.bytes[start + index] !== text.charCodeAt(index)) return false;
    }
    return true;
  }

  private advance(count: number): void {
    if (count > this.end - this.at) throw new CodecError('a protobuf message ends in the middle of a field');
    this.at += count;
  }
}

/** Adds an item to a list that is null while it is empty. The first one is not pushed, as an array that was takes room for 17. */
export function append<T>(list: T[] | null, item: T): T[] {
  if (list === null) return [item];
  list.push(item);
  return list;
}

const EMPTY = Buffer.alloc(0);
/** Texts by hash. A text that finds its places taken takes the first of them, so that the size of the table stays the same. */
const shared = new Array<string | undefined>(SHARED_TEXTS);
