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
