import type { Clock } from '../../src/base/clock.js';

interface Timer {
  readonly time: number;
  readonly callback: () => void;
}

/** A clock that moves only when told to; callbacks fire in the order of their times. */
export class FakeClock implements Clock {
  private time: number;
  private readonly timers = new Set<Timer>();

  constructor(start = 1000) {
    this.time = start;
  }

  now(): number {
    return this.time;
  }

  callAt(time: number, callback: () => void): () => void {
    const timer = { time, callback };
    this.timers.add(timer);
    return () => {
      this.timers.delete(timer);
    };
  }

  /** Timers that wait. */
  get waiting(): number {
    return this.timers.size;
  }

  /** When the first of them ends; null: none waits. */
  get next(): number | null {
    return this.first(Infinity)?.time ?? null;
  }

  /** The time after `ms` that something took. Callbacks wait until it has ended. */
  elapse(ms: number): number {
    this.time += ms;
    return this.time;
  }

  /** Moves on by `ms`, stopping at every timer on the way and letting promises settle there. */
  async advance(ms: number): Promise<void> {
    const end = this.time + ms;
    await settle();
    for (let timer = this.first(end); timer !== null; timer = this.first(end)) {
      this.time = Math.max(this.time, timer.time);
      this.timers.delete(timer);
      timer.callback();
      await settle();
    }
    this.time = Math.max(this.time, end);
  }

  private first(end: number): Timer | null {
    const due = [...this.timers].filter((timer) => timer.time <= end);
    return due.sort((a, b) => a.time - b.time)[0] ?? null;
  }
}

function settle(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
