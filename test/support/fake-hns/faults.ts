import type { SeededRandom } from '../random.js';

/**
 * What can go wrong with a call that changes something: nothing is done; all is done and the answer is lost; the connection goes after half of it; one of its
 * operations is refused for want of memory; or another error is answered for an operation.
 */
export type HnsFault =
  'refuse' | 'lose-answer' | 'halve' | 'refuse-one' | { readonly errno: string; readonly operation: number };

const FAULT_RATE = 0.1;

/** Faults to come. */
export class HnsFaults {
  /** For the next calls that change something; null: nothing goes wrong with one. */
  readonly planned: (HnsFault | null)[] = [];
  failListings = 0;
  private random: SeededRandom | null = null;

  atRandom(random: SeededRandom | null): void {
    this.random = random;
    if (random === null) this.planned.length = 0;
  }

  /** Whether a call that lists fails. */
  failsListing(): boolean {
    if (this.failListings > 0) {
      this.failListings--;
      return true;
    }
    return this.random?.chance(FAULT_RATE) === true;
  }

  take(): HnsFault | null {
    if (this.planned.length > 0) return this.planned.shift() ?? null;
    if (this.random?.chance(FAULT_RATE) !== true) return null;
    return this.random.pick<HnsFault>(['refuse', 'lose-answer', 'halve', 'refuse-one']);
  }
}
