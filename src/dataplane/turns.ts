/** When something may be done again that is to take a share of the time. */
export class Turns {
  private dueAt = -Infinity;

  /** @param now milliseconds on a clock that only goes forward. */
  constructor(
    private readonly now: () => number,
    private readonly share: number,
  ) {}

  get isDue(): boolean {
    return this.now() >= this.dueAt;
  }

  async take<T>(work: () => Promise<T>): Promise<T> {
    const startedAt = this.now();
    try {
      return await work();
    } finally {
      const endedAt = this.now();
      this.dueAt = startedAt + (endedAt - startedAt) / this.share;
    }
  }
}
