import { rowsEqual } from './equal.js';
import type { Row } from './rows.js';

/** A change of what the table holds for a key: `null` where it held or holds nothing. */
export interface TableEdit<R> {
  readonly before: R | null;
  readonly after: R | null;
}

/**
 * The rows of one kind. If several sources know the same object, the one registered first counts; when it drops the object, the next one's row takes its
 * place.
 */
export class KindTable<R extends Row> {
  /** What each source reports, in order of registration. */
  private readonly sources: Map<string, R>[] = [];
  /** Objects, however many sources know them. */
  private objects = 0;

  get(key: string): R | undefined {
    return this.believed(key)?.get(key);
  }

  get size(): number {
    return this.objects;
  }

  *rows(): IterableIterator<R> {
    for (const rows of this.sources) for (const [key, row] of rows) if (this.believed(key) === rows) yield row;
  }

  /** What one source reports about one object; `null` row: it knows no such object. Null when the table holds what it held. */
  set(key: string, source: number, row: R | null): TableEdit<R> | null {
    const before = this.get(key) ?? null;
    const rows = this.rowsOf(source);
    if (row === null) rows.delete(key);
    else rows.set(key, row);
    const after = this.get(key) ?? null;
    if (before === after) return null;
    if (before === null) this.objects++;
    else if (after === null) this.objects--;
    else if (rowsEqual(before, after)) {
      // The old row object stays, so that a comparison by identity sees no change.
      this.believed(key)?.set(key, before);
      return null;
    }
    return { before, after };
  }

  /** The rows of the first source that knows an object. */
  private believed(key: string): Map<string, R> | undefined {
    for (const rows of this.sources) if (rows.has(key)) return rows;
    return undefined;
  }

  private rowsOf(source: number): Map<string, R> {
    while (this.sources.length < source) this.sources.push(new Map());
    return (this.sources[source] ??= new Map());
  }
}
