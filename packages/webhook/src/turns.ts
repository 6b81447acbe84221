/** Work that pauses where it yields. */
export type Work<T> = Generator<void, T, void>;

interface Waiting {
  readonly bytes: number;
  /** Whether it is over. */
  readonly step: () => boolean;
}

/**
 * Does work of which some takes long. What does not pause is done at once. What pauses goes on later, one step in each turn of the event loop, the oldest
 * first: between two steps, requests that have come meanwhile are answered.
 */
export class Turns {
  private readonly waiting: Waiting[] = [];
  private waitingBytes = 0;
  private isScheduled = false;

  /** @param maxBytes that may wait: beyond, the oldest work is finished at once. */
  constructor(private readonly maxBytes: number) {}

  /**
   * @param bytes that the work keeps.
   * @param isWanted asked before each step but the first: whether it has to go on.
   * @returns null when it is not wanted any more. Rejects with the error of the work.
   */
  run<T>(work: Work<T>, bytes: number, isWanted: () => boolean): Promise<T | null> {
    return new Promise((resolve, reject) => {
      const step = (): boolean => {
        try {
          const { done, value } = work.next();
          if (done === true) resolve(value);
          return done === true;
        } catch (error) {
          reject(error instanceof Error ? error : new Error(String(error)));
          return true;
        }
      };
      if (step()) return;
      const stepIfWanted = (): boolean => {
        if (isWanted()) return step();
        resolve(null);
        return true;
      };
      this.waiting.push({ bytes, step: stepIfWanted });
      this.waitingBytes += bytes;
      while (this.waitingBytes > this.maxBytes) this.finishOldest();
      this.schedule();
    });
  }

  private schedule(): void {
    if (this.isScheduled || this.waiting.length === 0) return;
    this.isScheduled = true;
    setImmediate(() => {
      this.isScheduled = false;
      const [oldest] = this.waiting;
      if (oldest?.step() === true) this.drop();
      this.schedule();
    });
  }

  private finishOldest(): void {
    const [oldest] = this.waiting;
    while (oldest?.step() === false);
    this.drop();
  }

  private drop(): void {
    this.waitingBytes -= this.waiting.shift()?.bytes ?? 0;
  }
}
