import { MAX_TIMEOUT_MS } from './timeout.js';

const LONG_SLEEP_MS = 100;

/** How often to poll what has no notification, so that a change is seen within a second. */
export const BEAT_MS = 900;

/**
 * When to look next at what was looked at `from` then, `periodMs` later at the latest. All periodic checks happen at the same times, multiples of
 * {@link BEAT_MS}, where their periods allow it: in a process that sleeps, waking costs several times what a look does.
 */
export function nextLook(from: number, periodMs: number): number {
  const beat = Math.floor((from + periodMs) / BEAT_MS) * BEAT_MS;
  return beat > from ? beat : from + periodMs;
}

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
      // A timer may fire up to a millisecond before its time: look again rather than be early. After a long sleep, to wake twice costs more than to be late.
      const spare = delay > LONG_SLEEP_MS ? 1 : 0;
      const timer = setTimeout(wait, Math.min(Math.ceil(delay) + spare, MAX_TIMEOUT_MS));
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

/** A clock for work that ends before the process does: a stopped clock makes no more callbacks. */
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
