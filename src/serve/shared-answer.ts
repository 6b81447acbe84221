import { setImmediate as turn } from 'node:timers/promises';
import { systemClock, type Clock } from '../base/clock.js';
import { spentTime } from '../base/spent-time.js';

/** After making an answer, it rests for so many times as long as that took. */
const RESTS = 9;
/** An answer that takes longer does not keep others waiting: it waits for the kernel or another program. */
const PATIENCE_MS = 1000;

/**
 * Makes costly answers: once for all who ask in the same turn of the event loop or while it rests, and for a tenth of the main thread's time at most. Who asks
 * gets what is made after that. So health checks do not wait, however many ask.
 */
export function sharedAnswer<T>(make: () => Promise<T>, clock: Clock = systemClock): () => Promise<T> {
  let next: Promise<T> | null = null;
  let underWay: Promise<unknown> | null = null;
  let restsUntil = -Infinity;
  const until = (time: number): Promise<void> =>
    new Promise((resolve) => {
      clock.callAt(time, resolve);
    });
  const begin = async (): Promise<T> => {
    if (underWay !== null) await Promise.race([underWay, until(clock.now() + PATIENCE_MS)]);
    if (restsUntil > clock.now()) await until(restsUntil);
    await turn();
    next = null;
    const spent = spentTime();
    const made = make();
    const ended = made
      .catch(() => undefined)
      .then(() => {
        restsUntil = clock.now() + RESTS * spent();
        if (underWay === ended) underWay = null;
      });
    underWay = ended;
    return made;
  };
  return () => (next ??= begin());
}
