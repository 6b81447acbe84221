/** Time as the loop sees it, so that tests can own it. */
export interface Clock {
  /** Monotonic milliseconds; the origin means nothing. */
  now(): number;
  /**
   * Calls back once, when `now() >= time` and never in the caller's own turn: a time that has come already means after the current burst
   * of events. Returns what cancels it.
   */
  callAt(time: number, callback: () => void): () => void;
}

/** Longest delay setTimeout takes, 24.8 days; it fires at once for anything longer. */
const MAX_TIMEOUT_MS = 2 ** 31 - 1;

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
