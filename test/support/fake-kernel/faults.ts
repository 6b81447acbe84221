import type { SeededRandom } from '../random.js';

/** What can go wrong between a process and its kernel. */
export type Fault =
  /** The kernel refuses the transaction at one of its operations; null: as a whole. */
  | { readonly type: 'refuse'; readonly errno: string; readonly operation: number | null }
  /** The transaction is committed, but its answer is lost: the outcome is not known. */
  | { readonly type: 'lose-ack' }
  | { readonly type: 'fail-list'; readonly errno: string }
  /** The listing ends early: of every set the elements from the given part on are missing. */
  | { readonly type: 'truncate-list'; readonly part: number }
  | { readonly type: 'fail-flows'; readonly errno: string };

type Call = 'transact' | 'list' | 'flows';

const CALLS: Readonly<Record<Fault['type'], Call>> = {
  refuse: 'transact',
  'lose-ack': 'transact',
  'fail-list': 'list',
  'truncate-list': 'list',
  'fail-flows': 'flows',
};

/** Faults to come: by name, each for the next call of its kind, and by rate. */
export class Faults {
  private readonly planned: Fault[] = [];
  private random: SeededRandom | null = null;
  private rate = 0;
  /** How many happened. */
  happened = 0;

  next(fault: Fault): void {
    this.planned.push(fault);
  }

  /** Forgets faults that nothing has met. */
  clear(): void {
    this.planned.length = 0;
    this.random = null;
  }

  /** Lets every call fail with a probability. Listings fail whole: a truncated one says something untrue, which only a later full sync can find out. */
  atRandom(random: SeededRandom, rate = 0.1): void {
    this.random = random;
    this.rate = rate;
  }

  take(call: Call): Fault | null {
    const index = this.planned.findIndex(({ type }) => CALLS[type] === call);
    const [fault = this.drawn(call)] = index < 0 ? [] : this.planned.splice(index, 1);
    if (fault !== null) this.happened++;
    return fault;
  }

  private drawn(call: Call): Fault | null {
    const { random } = this;
    if (random?.chance(this.rate) !== true) return null;
    switch (call) {
      case 'transact':
        return random.pick<Fault>([
          { type: 'refuse', errno: 'EINTR', operation: null },
          { type: 'refuse', errno: 'ENOMEM', operation: 0 },
          { type: 'lose-ack' },
        ]);
      case 'list':
        return { type: 'fail-list', errno: 'ENOBUFS' };
      case 'flows':
        return { type: 'fail-flows', errno: 'ENOBUFS' };
    }
  }
}
