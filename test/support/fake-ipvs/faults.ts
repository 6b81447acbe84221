import { KernelError } from '../fake-kernel/kernel-error.js';
import type { SeededRandom } from '../random.js';

/**
 * What can go wrong with a call that changes something: nothing is done; all is done and the answer is lost; one of its objects is refused for want of
 * memory and all else is done; or another errno is answered for the object.
 */
export type IpvsFault = 'refuse' | 'lose-ack' | 'refuse-one' | { readonly errno: string; readonly object: number };

/** How many calls fail where faults come at random. */
const FAULT_RATE = 0.1;

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

  /**
   * A call that changes something.
   *
   * @param objects how many it is of.
   * @param change does it but for one object, whose number and errno are given; answers what the kernel refused.
   */
  change(
    operation: string,
    objects: number,
    change: (spared: number, errno: string) => readonly KernelError[],
  ): readonly KernelError[] {
    const fault = this.take();
    if (fault === 'refuse') throw lost(operation, 'ENOMEM');
    if (fault !== null && typeof fault === 'object') return change(fault.object, fault.errno);
    const answer = change(fault === 'refuse-one' ? Math.floor(objects / 2) : -1, 'ENOMEM');
    if (fault === 'lose-ack') throw lost(operation, 'ENOBUFS');
    return answer;
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
