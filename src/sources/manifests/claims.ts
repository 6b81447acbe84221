import { refOf, type Row, type RowRef } from '../../state/rows.js';
import type { StateChange } from '../../state/writer.js';
import { printRef, type Objects, type RefKey } from './content.js';
import { ProblemList, type Problem } from './problems.js';

const NOTHING: Objects = new Map();

/** Which file of a location speaks for each object: of several, the first by name, whatever the order they were read in. */
export class Claims {
  private readonly files = new Map<string, Objects>();
  /** The files that have an object, sorted. Objects that one file has alone share one array. */
  private readonly holders = new Map<RefKey, readonly string[]>();
  private readonly contested = new Map<RefKey, RowRef>();
  private readonly touched = new Map<RefKey, RowRef>();

  objectsOf(file: string): Objects {
    return this.files.get(file) ?? NOTHING;
  }

  /** Sets what a file holds. */
  replace(file: string, objects: Objects): void {
    const before = this.objectsOf(file);
    const alone = [file];
    for (const [key, row] of before) if (!objects.has(key)) this.drop(key, row, file);
    for (const [key, row] of objects) {
      if (before.get(key) !== row) this.touched.set(key, refOf(row));
      if (!before.has(key)) this.claim(key, row, file, alone);
    }
    if (objects.size === 0) this.files.delete(file);
    else this.files.set(file, objects);
  }

  /** What has to be reported to the state since the last call. */
  takeChanges(): readonly StateChange[] {
    const changes = [...this.touched].map(([key, ref]): StateChange => {
      const row = this.winner(key);
      return row === undefined ? { type: 'remove', ref } : { type: 'upsert', row };
    });
    this.touched.clear();
    return changes;
  }

  /** Objects in several files: one error for each file whose version does not count. */
  duplicates(): readonly Problem[] {
    const problems = new ProblemList();
    for (const [key, ref] of this.contested) {
      const [first = '', ...others] = this.holders.get(key) ?? [];
      const message = `is also in ${first}, whose version counts`;
      const object = printRef(ref);
      for (const file of others) problems.add({ severity: 'error', file, document: null, object, message });
    }
    return problems.all();
  }

  private winner(key: RefKey): Row | undefined {
    const [file] = this.holders.get(key) ?? [];
    return file === undefined ? undefined : this.files.get(file)?.get(key);
  }

  private claim(key: RefKey, row: Row, file: string, alone: readonly string[]): void {
    const others = this.holders.get(key);
    this.holders.set(key, others === undefined ? alone : [...others, file].sort());
    if (others !== undefined) this.contested.set(key, refOf(row));
  }

  private drop(key: RefKey, row: Row, file: string): void {
    this.touched.set(key, refOf(row));
    const others = (this.holders.get(key) ?? []).filter((holder) => holder !== file);
    if (others.length === 0) this.holders.delete(key);
    else this.holders.set(key, others);
    if (others.length < 2) this.contested.delete(key);
  }
}
