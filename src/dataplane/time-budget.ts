/** When something may be done again that is to take a share of the time. */
export class TimeBudget {
  private dueAt = -Infinity;
  private tookBefore = Infinity;

  /**
   * @param now milliseconds on a clock that only goes forward.
   * @param spent what the work has cost so far, in milliseconds of that clock or of a processor.
   */
  constructor(
    private readonly now: () => number,
    private readonly share: number,
    private readonly spent: () => number = now,
  ) {}

  get isDue(): boolean {
    return this.now() >= this.dueAt;
  }

  async take<T>(work: () => Promise<T>): Promise<T> {
    const [startedAt, spentBefore] = [this.now(), this.spent()];
    try {
      return await work();
    } finally {
      const took = this.spent() - spentBefore;
      // A turn that took longer than the one before may have waited for a core or a lock, which costs no processor time.
      // So only the second turn that takes so long counts.
      this.dueAt = startedAt + Math.min(took, this.tookBefore) / this.share;
      this.tookBefore = took;
    }
  }
}
