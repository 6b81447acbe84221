/** Calls that change the kernel, counted, so that a comparison can detect a call in between. */
export class Calls {
  /** Resolves when no call changes the kernel any more. */
  private underWay: Promise<unknown> = Promise.resolve();
  private count = 0;

  /** @param call is given the mark of its beginning. */
  change<T>(call: (mark: number) => Promise<T>): Promise<T> {
    const called = call(++this.count);
    this.underWay = called.catch(() => undefined);
    return called;
  }

  /** Waits until nothing changes the kernel; answers a mark of that moment. */
  async quiet(): Promise<number> {
    let seen: unknown;
    do {
      seen = this.underWay;
      await seen;
    } while (seen !== this.underWay);
    return this.count;
  }

  /** Whether nothing has begun to change the kernel since a mark. */
  isQuiet(since: number): boolean {
    return this.count === since;
  }
}
