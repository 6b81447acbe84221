import { MAX_TIMEOUT_MS } from './timeout.js';

/** Monotonic time, handed in so that tests can own it. */
export interface Clock {
  /** Monotonic milliseconds; the origin means nothing. */
  now(): number;
  /**
   * Calls back once, when `now() >= time` and never in the caller's own turn: a time that has come already means after the current burst
   * of events. Returns what cancels it.
   */
  callAt(time: number, callback: () => void): () => void;
}

export const systemClock: Clock = {
  now: () => performance.now(),
  callAt(time, callback) {
    let cancel: () => void;
    const wait = (): void => {
      const delay = time - performance.now();
      if (delay <= 0) {
        const immediate = setImmediate(callback);
        cancel = () => {
          clearImmediate(immediate);
        };
        return;
      }
      // A timer may fire up to a millisecond before its time: look again rather than be early.
      const timer = setTimeout(wait, Math.min(Math.ceil(delay), MAX_TIMEOUT_MS));
      cancel = () => {
        clearTimeout(timer);
      };
    };
    wait();
    return () => {
      cancel();
    };
  },
};

/** A clock for what ends before the process does: once it is stopped nobody is called back any more. */
export class StoppableClock implements Clock {
  private readonly pending = new Set<() => void>();
  private stopped = false;

  constructor(private readonly clock: Clock) {}

  now(): number {
    return this.clock.now();
  }

  callAt(time: number, callback: () => void): () => void {
    if (this.stopped) return () => undefined;
    const cancelTimer = this.clock.callAt(time, () => {
      this.pending.delete(cancel);
      callback();
    });
    const cancel = (): void => {
      this.pending.delete(cancel);
      cancelTimer();
    };
    this.pending.add(cancel);
    return cancel;
  }

  stop(): void {
    this.stopped = true;
    for (const cancel of this.pending) cancel();
  }
}

/** Resolves after `ms`, or at once when the signal is or becomes aborted. */
export function sleep(ms: number, clock: Clock, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) {
      resolve();
      return;
    }
    const wake = (): void => {
      cancel();
      signal.removeEventListener('abort', wake);
      resolve();
    };
    const cancel = clock.callAt(clock.now() + ms, wake);
    signal.addEventListener('abort', wake);
  });
}
