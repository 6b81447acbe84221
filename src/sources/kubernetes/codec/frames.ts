import { CodecError } from './errors.js';

/** No object of the API comes near this: etcd takes 1.5 MiB. */
export const MAX_FRAME_BYTES = 16 * 1024 * 1024;
const SPARE_BYTES = 64 * 1024;

/** Bytes of a frame whose rest has not come yet. One buffer is used again and again, and let go when a large frame made it large. */
export class Carry {
  private buffer = Buffer.allocUnsafeSlow(SPARE_BYTES);
  private used = 0;

  get length(): number {
    return this.used;
  }

  /** Its bytes are those from 0 to `length`; valid until the next `append` or `clear`. */
  get bytes(): Buffer {
    return this.buffer;
  }

  /** @throws CodecError when the frame grows too long. */
  append(source: Uint8Array, start: number, end: number): void {
    const length = this.used + end - start;
    checkFrameLength(length);
    if (length > this.buffer.length) {
      const larger = Buffer.allocUnsafeSlow(Math.max(length, this.buffer.length * 2));
      this.buffer.copy(larger, 0, 0, this.used);
      this.buffer = larger;
    }
    this.buffer.set(source.subarray(start, end), this.used);
    this.used = length;
  }

  clear(): void {
    this.used = 0;
    if (this.buffer.length > 16 * SPARE_BYTES) this.buffer = Buffer.allocUnsafeSlow(SPARE_BYTES);
  }
}

/** @throws CodecError when no frame may be so long. */
function checkFrameLength(length: number): void {
  if (length > MAX_FRAME_BYTES) {
    throw new CodecError(`a frame of ${length} bytes or more, where ${MAX_FRAME_BYTES} is the most`);
  }
}

/** Finds the ends of frames and takes the frames. */
export interface Framing {
  /** Length of the frame that begins at `start`, which may reach beyond `end`; 0 while too little of it is there to know. */
  measure(bytes: Buffer, start: number, end: number): number;
  /** One whole frame; the bytes are valid during the call only. */
  take(bytes: Buffer, start: number, end: number): void;
}

/** Cuts a stream into frames that begin with their length, copying only those that lie across chunks. */
export class FrameCutter {
  private readonly carry = new Carry();
  /** Length of the frame in `carry`; 0 while unknown. */
  private expected = 0;

  constructor(private readonly framing: Framing) {}

  /** Whether the stream so far ends with a frame's end. */
  get clean(): boolean {
    return this.carry.length === 0;
  }

  /** @throws CodecError when a frame's length makes no sense. */
  push(chunk: Buffer): void {
    let at = 0;
    while (at < chunk.length) at = this.carry.length === 0 ? this.cut(chunk, at) : this.complete(chunk, at);
  }

  private cut(chunk: Buffer, at: number): number {
    const length = this.framing.measure(chunk, at, chunk.length);
    checkFrameLength(length);
    const end = at + length;
    if (length > 0 && end <= chunk.length) {
      this.framing.take(chunk, at, end);
      return end;
    }
    this.expected = length;
    this.carry.append(chunk, at, chunk.length);
    return chunk.length;
  }

  private complete(chunk: Buffer, at: number): number {
    const { carry, framing } = this;
    // The length is encoded in a few bytes, which may come one by one.
    const wanted = this.expected === 0 ? 1 : this.expected - carry.length;
    const end = Math.min(chunk.length, at + wanted);
    carry.append(chunk, at, end);
    if (this.expected === 0) {
      this.expected = framing.measure(carry.bytes, 0, carry.length);
      checkFrameLength(this.expected);
    }
    if (this.expected === carry.length) {
      framing.take(carry.bytes, 0, carry.length);
      carry.clear();
      this.expected = 0;
    }
    return end;
  }
}
