import type { Clock } from '../../../src/base/clock.js';

/** The limit of each kind; beyond it the longest unused answer is forgotten. */
const CAPACITY = 1024;

/** Answers that hold for a while. Concurrent callers of the same key get the same answer, also while it is being found out. */
export class Remembered<T> {
  /** The longest unused first. Those by one rule do not push out those by another. */
  private readonly held = new Map<string, Map<string, { readonly answer: T; readonly until: number }>>();
  private readonly pending = new Map<string, Promise<T>>();

  /**
   * @param keeping how long an answer holds, in milliseconds, 0 for not at all, and a word for its kind.
   */
  constructor(
    private readonly clock: Clock,
    private readonly keeping: (answer: T) => { readonly kind: string; readonly forMs: number },
  ) {}

  /** @param find is called when there is no answer; if it rejects, so does this, and nothing is remembered. */
  async get(key: string, find: () => Promise<T>): Promise<T> {
    const remembered = this.recall(key);
    if (remembered !== null) return remembered;
    const pending = this.pending.get(key) ?? this.findOut(key, find);
    this.pending.set(key, pending);
    return pending;
  }

  private recall(key: string): T | null {
    for (const kept of this.held.values()) {
      const entry = kept.get(key);
      if (entry === undefined) continue;
      kept.delete(key);
      if (entry.until <= this.clock.now()) continue;
      kept.set(key, entry);
      return entry.answer;
    }
    return null;
  }

  private async findOut(key: string, find: () => Promise<T>): Promise<T> {
    try {
      const answer = await find();
      const { kind, forMs } = this.keeping(answer);
      if (forMs > 0) this.keep(kind, key, { answer, until: this.clock.now() + forMs });
      return answer;
    } finally {
      this.pending.delete(key);
    }
  }

  private keep(kind: string, key: string, entry: { readonly answer: T; readonly until: number }): void {
    const kept = this.held.get(kind) ?? new Map<string, typeof entry>();
    this.held.set(kind, kept);
    const [oldest] = kept.keys();
    if (kept.size >= CAPACITY && oldest !== undefined) kept.delete(oldest);
    kept.set(key, entry);
  }
}
