import { packedKey } from '../../../src/base/endpoint-list.js';
import type { NftCommand, NftTransaction } from '../../../src/native/contract.js';
import type { SeededRandom } from '../random.js';
import { KernelError } from './kernel-error.js';

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

/** What a transaction does to one thing, as `add element frontends`, `add rule pick-8`; elements with their key, one character a byte. */
export type Refuses = (what: string, key: string) => boolean;

/** Faults to come: by name, each for the next call of its kind, and by rate. */
export class Faults {
  private readonly planned: Fault[] = [];
  private random: SeededRandom | null = null;
  private rate = 0;
  /** How many happened. */
  happened = 0;
  /** What no transaction may do, for as long as it is said. */
  refuses: Refuses | null = null;
  /** What the kernel says of what it {@link refuses}. */
  names: 'element' | 'operation' | 'nothing' = 'element';

  /** Why the kernel takes a transaction never; null: because of nothing in it. */
  refused({ operations }: NftTransaction): KernelError | null {
    const { refuses } = this;
    if (refuses === null) return null;
    for (const [index, operation] of operations.entries()) {
      const isElements = operation.type === 'elements';
      const objects = isElements ? [] : operation.commands.map(printCommand);
      for (const object of objects) if (refuses(object, '')) return this.refusal({ object, index, element: null });
      for (let element = 0; isElements && element < operation.count; element++) {
        const { verb, set, keys, keyLength } = operation;
        const object = `${verb} element ${set}`;
        if (refuses(object, packedKey(keys, element * keyLength, keyLength)))
          return this.refusal({ object, index, element });
      }
    }
    return null;
  }

  private refusal(place: {
    readonly object: string;
    readonly index: number;
    readonly element: number | null;
  }): KernelError {
    const nothing = { object: null, index: null, element: null };
    const reported = {
      element: place,
      operation: { ...place, object: `elements of operation ${place.index}`, element: null },
      nothing,
    };
    return new KernelError('EINVAL', 'nft transaction', reported[this.names]);
  }

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

/** As the addon does it. */
function printCommand(command: NftCommand): string {
  type Objects = Readonly<Record<string, { readonly name?: string; readonly chain?: string }>>;
  const [verb = '', objects = {}] = Object.entries(command as Readonly<Record<string, Objects>>)[0] ?? [];
  const [kind = '', body = {}] = Object.entries(objects)[0] ?? [];
  return `${verb} ${kind} ${body.name ?? body.chain ?? ''}`;
}
