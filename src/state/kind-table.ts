import { rowsEqual } from './equal.js';
import type { Row } from './rows.js';

interface Claim<R> {
  readonly source: number;
  row: R;
}

/** A change of what the table holds for a key: `null` where it held or holds nothing. */
export interface TableEdit<R> {
  readonly before: R | null;
  readonly after: R | null;
}

/**
 * The rows of one kind. Of several sources that know the same object the one registered first is believed; when it drops the object the
 * next one's row takes its place.
 */
export class KindTable<R extends Row> {
  private readonly held = new Map<string, Claim<R>>();
  /** Rows of the sources that are not believed at present, in order of registration; only for objects that several sources know. */
  private readonly waiting = new Map<string, readonly Claim<R>[]>();

  get(key: string): R | undefined {
    return this.held.get(key)?.row;
  }

  get size(): number {
    return this.held.size;
  }

  *rows(): IterableIterator<R> {
    for (const claim of this.held.values()) yield claim.row;
  }

  /** What one source says about one object; `null` row: it knows no such object. Null when the table holds what it held. */
  set(key: string, source: number, row: R | null): TableEdit<R> | null {
    const holder = this.held.get(key);
    const rest = this.waiting.get(key);
    if (rest === undefined && (holder === undefined || holder.source === source)) {
      return this.hold(key, holder, row === null ? undefined : { source, row });
    }
    const claims = [...(holder === undefined ? [] : [holder]), ...(rest ?? [])].filter(
      (claim) => claim.source !== source,
    );
    if (row !== null) claims.push({ source, row });
    const [first, ...others] = claims.sort((one, other) => one.source - other.source);
    if (others.length === 0) this.waiting.delete(key);
    else this.waiting.set(key, others);
    return this.hold(key, holder, first);
  }

  private hold(key: string, before: Claim<R> | undefined, after: Claim<R> | undefined): TableEdit<R> | null {
    if (after === undefined) {
      if (before === undefined) return null;
      this.held.delete(key);
      return { before: before.row, after: null };
    }
    const held = before?.row ?? null;
    if (held !== null && rowsEqual(held, after.row)) {
      // The old row object stays, so that whoever compares by identity sees no change.
      after.row = held;
      if (before?.source !== after.source) this.held.set(key, after);
      return null;
    }
    // What the same source says anew takes the old one's place where it is.
    if (before?.source === after.source) before.row = after.row;
    else this.held.set(key, after);
    return { before: held, after: after.row };
  }
}
