import { setImmediate as nextTurn } from 'node:timers/promises';

const TURN_MS = 10;

const NEVER = new AbortController().signal;

/** Long work gives the rest of the event loop its turn: `if (pacer.due()) await pacer.rest()` between its steps. */
export class Pacer {
  private since = performance.now();

  /** @param stopped the work's result is no longer wanted. */
  constructor(readonly stopped: AbortSignal = NEVER) {}

  due(): boolean {
    return performance.now() - this.since > TURN_MS;
  }

  async rest(): Promise<void> {
    await nextTurn();
    this.since = performance.now();
  }
}
