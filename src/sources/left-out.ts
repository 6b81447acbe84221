import type { ObjectKey, RowRef } from '../state/rows.js';

/** An object that its source does not use, or of which it leaves out a part. */
export interface LeftOut {
  readonly ref: RowRef;
  /** The Service that it is, or is of, as `namespace/name`; null: none, or it is not known. */
  readonly service: ObjectKey | null;
  /** Nothing of this version of the object is used: its last good version stays, if there was one. */
  readonly isWhole: boolean;
  /** Which fields, and why; bounded. */
  readonly text: string;
}
