/**
 * Names of one list in one text, as what begins all of them and a line for what each has beside it; empty where one has no name. Names of the pods of a
 * ReplicaSet differ in five characters.
 */

/** What {@link PackedNames} made; empty: none has a name. */
export type NamesText = string;

const MOST_NAME_BYTES = 253;
const NEWLINE = 0x0a;
const INITIAL_BYTES = 1 << 14;
/** Room for 1,000 of the longest; room for more is not kept for the next list. */
const KEPT_BYTES = 1 << 18;

/** Packs names while they come in, from their bytes. One is filled again and again. */
export class PackedNames {
  /** One after the other, and nothing between them. */
  private bytes = new Uint8Array(INITIAL_BYTES);
  private ends: number[] = [];
  private count = 0;
  /** The end of all names that were added. */
  private end = 0;
  /** The same with the one that is added next. */
  private nextEnd = 0;
  /** How many bytes all begin with, so that each has one left; null: there is none yet. */
  private shared: number | null = null;
  private firstStart = 0;

  clear(): void {
    if (this.bytes.length > KEPT_BYTES) {
      this.bytes = new Uint8Array(INITIAL_BYTES);
      this.ends = [];
    }
    this.count = 0;
    this.end = 0;
    this.nextEnd = 0;
    this.shared = null;
  }

  /** What is added next has no name. */
  none(): void {
    this.nextEnd = this.end;
  }

  /** What is added next has this name, unless it is too long or has a byte that is not printable ASCII. */
  next(bytes: Uint8Array, start: number, end: number): void {
    this.none();
    const length = end - start;
    if (length > MOST_NAME_BYTES) return;
    this.makeRoom(length);
    for (let index = 0; index < length; index++) {
      const byte = bytes[start + index] ?? 0;
      if (byte <= 0x20 || byte >= 0x7f) return;
      this.bytes[this.end + index] = byte;
    }
    this.nextEnd = this.end + length;
  }

  /** As {@link next}. */
  nextText(name: string): void {
    this.none();
    if (name.length > MOST_NAME_BYTES) return;
    const bytes = Buffer.from(name, 'utf8');
    this.next(bytes, 0, bytes.length);
  }

  add(): void {
    const { end: start, nextEnd: end } = this;
    if (end > start) this.share(start, end);
    this.ends[this.count++] = end;
    this.end = end;
  }

  /** All that was added since {@link clear}. */
  text(): NamesText {
    const { shared, firstStart, bytes, ends, count } = this;
    if (shared === null) return '';
    const packed = Buffer.allocUnsafe(shared + this.end + count);
    packed.set(bytes.subarray(firstStart, firstStart + shared));
    let at = shared;
    let start = 0;
    for (let index = 0; index < count; index++) {
      packed[at++] = NEWLINE;
      const end = ends[index] ?? start;
      for (let from = start + shared; from < end; from++) packed[at++] = bytes[from] ?? 0;
      start = end;
    }
    return packed.toString('latin1', 0, at);
  }

  private share(start: number, end: number): void {
    const length = end - start;
    if (this.shared === null) {
      this.firstStart = start;
      this.shared = length - 1;
      return;
    }
    const most = Math.min(this.shared, length - 1);
    let same = 0;
    while (same < most && this.bytes[this.firstStart + same] === this.bytes[start + same]) same++;
    this.shared = same;
  }

  private makeRoom(length: number): void {
    if (this.end + length <= this.bytes.length) return;
    const larger = new Uint8Array(this.bytes.length * 2);
    larger.set(this.bytes);
    this.bytes = larger;
  }
}
