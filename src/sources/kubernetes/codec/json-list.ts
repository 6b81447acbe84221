import { isMapping } from '../../../base/mapping.js';
import type { RowKind } from '../../../state/rows.js';
import { CodecError, TruncatedError } from './errors.js';
import { received, type ListDecoder, type ListMeta, type ObjectSink } from './events.js';
import { Carry } from './frames.js';
import { jsonObject, parseJson, textOf } from './json-values.js';

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;
const COMMA = 0x2c;

/** Nesting of an item's brackets counts from 1: the list is 1, its array of items 2, an item 3. */
const IN_LIST = 1;
const IN_ITEMS = 2;

/** What the list's own text ends with where its items begin. */
const ITEMS_KEY = /(^|[^\\])"items"\s*:\s*$/;
const ITEMS_KEY_REACH = 64;
const BLANK = /^\s*$/;

/**
 * Cuts the items out of a list while its bytes arrive, so that neither the list's text nor its parsed form is ever whole in memory. What
 * is left, the list without its items, is parsed at the end.
 */
export class JsonListDecoder implements ListDecoder {
  private readonly item = new Carry();
  /** The list's text without what is between the brackets of its items. */
  private readonly shell = new Carry();
  private depth = 0;
  private inText = false;
  private escaped = false;
  private inItems = false;
  private items = 0;

  constructor(
    private readonly itemKind: RowKind,
    private readonly sink: ObjectSink,
  ) {}

  push(chunk: Buffer): void {
    let at = 0;
    while (at < chunk.length) at = this.inItems ? this.scanItems(chunk, at) : this.scanShell(chunk, at);
  }

  end(): ListMeta {
    if (this.depth !== 0 || this.inText) throw new TruncatedError('the list ended early');
    const { bytes, length } = this.shell;
    const list = parseJson(bytes, 0, length);
    if (!isMapping(list)) throw new CodecError('the list is no mapping');
    const kind = textOf(list, 'kind');
    if (kind !== `${this.itemKind}List`) {
      throw new CodecError(`a list of kind ${JSON.stringify(kind)}, not ${this.itemKind}List`);
    }
    const { metadata } = list;
    if (!isMapping(metadata)) throw new CodecError('the list has no metadata');
    return { version: textOf(metadata, 'resourceVersion'), continue: textOf(metadata, 'continue') };
  }

  /** Goes on outside of the items; returns where it stopped. */
  private scanShell(chunk: Buffer, start: number): number {
    for (let at = start; at < chunk.length; at++) {
      const byte = chunk[at] ?? 0;
      if (this.inText) this.scanText(byte);
      else if (byte === QUOTE) this.inText = true;
      else if (byte === OPEN_BRACE || byte === OPEN_BRACKET) {
        this.depth++;
        if (this.depth !== IN_ITEMS || byte !== OPEN_BRACKET) continue;
        this.shell.append(chunk, start, at);
        const opensItems = this.endsWithItemsKey();
        this.shell.append(chunk, at, at + 1);
        this.inItems = opensItems;
        return at + 1;
      } else if (byte === CLOSE_BRACE || byte === CLOSE_BRACKET) this.close();
    }
    this.shell.append(chunk, start, chunk.length);
    return chunk.length;
  }

  private close(): void {
    this.depth--;
    if (this.depth < 0) throw new CodecError('the list closes more brackets than it opens');
  }

  private endsWithItemsKey(): boolean {
    const { bytes, length } = this.shell;
    return ITEMS_KEY.test(bytes.toString('latin1', Math.max(0, length - ITEMS_KEY_REACH), length));
  }

  private scanText(byte: number): void {
    if (this.escaped) this.escaped = false;
    else if (byte === BACKSLASH) this.escaped = true;
    else if (byte === QUOTE) this.inText = false;
  }

  /** Goes on within the items; returns where it stopped. The state is kept in locals: every byte of a list comes through here. */
  private scanItems(chunk: Buffer, start: number): number {
    const { length } = chunk;
    let { depth, inText, escaped } = this;
    let from = start;
    let at = start;
    for (; at < length; at++) {
      const byte = chunk[at] ?? 0;
      if (inText) {
        if (escaped) escaped = false;
        else if (byte === QUOTE) inText = false;
        else if (byte === BACKSLASH) escaped = true;
      } else if (byte === QUOTE) inText = true;
      else if (byte === OPEN_BRACE || byte === OPEN_BRACKET) depth++;
      else if (byte === CLOSE_BRACE || byte === CLOSE_BRACKET) {
        depth--;
        if (depth === IN_LIST) {
          this.takeItem(chunk, from, at, true);
          this.inItems = false;
          this.shell.append(chunk, at, at + 1);
          at++;
          from = at;
          break;
        }
      } else if (byte === COMMA && depth === IN_ITEMS) {
        this.takeItem(chunk, from, at);
        from = at + 1;
      }
    }
    if (from < at) this.item.append(chunk, from, at);
    this.depth = depth;
    this.inText = inText;
    this.escaped = escaped;
    return at;
  }

  private takeItem(chunk: Buffer, start: number, end: number, last = false): void {
    const { item } = this;
    if (item.length === 0) {
      this.emit(chunk, start, end, last);
      return;
    }
    item.append(chunk, start, end);
    this.emit(item.bytes, 0, item.length, last);
    item.clear();
  }

  private emit(bytes: Buffer, start: number, end: number, last: boolean): void {
    if (last && this.items === 0 && BLANK.test(bytes.toString('latin1', start, end))) return;
    this.items++;
    const item = parseJson(bytes, start, end);
    this.sink(received(() => jsonObject(this.itemKind, item)));
  }
}
