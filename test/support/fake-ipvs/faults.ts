import type { Applied } from '../../../src/native/errors.js';
import { KernelError } from '../fake-kernel/kernel-error.js';
import type { SeededRandom } from '../random.js';

/**
 * What can go wrong with a call that changes something: nothing is done; all is done and the answer is lost; one of its objects is refused for want of
 * memory and all else is done; or another errno is answered for the object.
 */
export type IpvsFault = 'refuse' | 'lose-ack' | 'refuse-one' | { readonly errno: string; readonly object: number };

/** What a call of a subsystem does with its operations, each of several objects. */
export interface FakeSubsystem<Operation> {
  /** As errors name it. */
  readonly call: string;
  /** Operations that were done, as calls took them. */
  readonly committed: (readonly Operation[])[];
  readonly sizeOf: (operation: Operation) => number;
  readonly placeOf: (
    operation: Operation,
    element: number,
  ) => { readonly object: string; readonly element: number | null };
  /** Does it for one object; answers the errno, or null. */
  readonly change: (operation: Operation, element: number) => string | null;
}

/** How many calls fail where faults come at random. */
const FAULT_RATE = 0.1;
/** As if each had a message of its own, and all had the same length. */
export const OBJECT_BYTES = 100;

/** Faults to come, of all subsystems of ipvs mode together. */
export class IpvsFaults {
  /** For the next calls that change something; null: nothing goes wrong with one. */
  readonly planned: (IpvsFault | null)[] = [];
  failListings = 0;
  private random: SeededRandom | null = null;

  atRandom(random: SeededRandom | null): void {
    this.random = random;
    if (random === null) this.planned.length = 0;
  }

  /** For a call that lists. */
  list(operation: string): void {
    if (this.failListings > 0) this.failListings--;
    else if (this.random?.chance(FAULT_RATE) !== true) return;
    throw lost(operation, 'ENOBUFS');
  }

  /** A call that changes something. */
  apply<Operation>(operations: readonly Operation[], subsystem: FakeSubsystem<Operation>): Applied {
    const { call, committed, sizeOf, placeOf, change } = subsystem;
    const fault = this.take();
    if (fault === 'refuse') throw lost(call, 'ENOMEM');
    committed.push(operations);
    const objects = operations.reduce((sum, operation) => sum + sizeOf(operation), 0);
    const named = fault !== null && typeof fault === 'object' ? fault : { errno: 'ENOMEM', object: -1 };
    const spared = fault === 'refuse-one' ? Math.floor(objects / 2) : named.object;
    let number = 0;
    const refused = operations.flatMap((operation, index) =>
      Array.from({ length: sizeOf(operation) }, (_, element) => {
        const errno = number++ === spared ? named.errno : change(operation, element);
        return errno === null ? [] : [new KernelError(errno, call, { ...placeOf(operation, element), index })];
      }).flat(),
    );
    if (fault === 'lose-ack') throw lost(call, 'ENOBUFS');
    return { refused, bytes: objects * OBJECT_BYTES };
  }

  private take(): IpvsFault | null {
    if (this.planned.length > 0) return this.planned.shift() ?? null;
    if (this.random?.chance(FAULT_RATE) !== true) return null;
    return this.random.pick<IpvsFault>(['refuse', 'lose-ack', 'refuse-one']);
  }
}

function lost(operation: string, errno: string): KernelError {
  return new KernelError(errno, operation, { object: null, index: null, element: null });
}
