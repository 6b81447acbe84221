import type { Clock } from '../../src/base/clock.js';

/** Calls back once something has printed nothing for a time; a limit that follows progress, however long all of it takes. */
export class Silence {
  private cancel: () => void;

  constructor(
    private readonly limitMs: number,
    private readonly onSilence: () => void,
    private readonly clock: Clock,
  ) {
    this.cancel = this.wait();
  }

  /** Something was printed: the time begins anew. */
  broken(): void {
    this.cancel();
    this.cancel = this.wait();
  }

  /** Nothing more is expected. */
  end(): void {
    this.cancel();
  }

  private wait(): () => void {
    return this.clock.callAt(this.clock.now() + this.limitMs, this.onSilence);
  }
}
