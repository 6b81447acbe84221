import type { Clock } from '../../../base/clock.js';

/** Above this rate chunks are held back. Changes of which each waits for the one before do not come so fast. */
const FLOOD_PER_SECOND = 400;
const WINDOW_MS = 1000;
const HOLD_MS = 8;
/** A pause that no flood has: the count before it, initial events mostly, predicts nothing. */
const PAUSE_MS = 50;

/**
 * Hands chunks on as they come; in a flood, what comes within 8 ms together, as a network card moderates its interrupts. An event that wakes the process by
 * itself finds every cache cold and costs several times what it costs among others. Whether there is a flood is decided once in a second, and a pause of 50 ms ends it.
 */
export class Coalescer {
  private count = 0;
  private since: number;
  private last: number;
  private flood = false;
  private held: Buffer[] = [];
  private heldSince = 0;
  private cancel: (() => void) | null = null;

  /** @param take gets a chunk and when it, or one that it was held back with, came; must not throw. */
  constructor(
    private readonly clock: Clock,
    private readonly take: (chunk: Buffer, receivedAt: number) => void,
  ) {
    this.since = clock.now();
    this.last = this.since;
  }

  push(chunk: Buffer): void {
    const now = this.clock.now();
    this.observe(now);
    if (!this.flood) {
      this.flush();
      this.take(chunk, now);
      return;
    }
    if (this.held.push(chunk) === 1) this.heldSince = now;
    this.cancel ??= this.clock.callAt(now + HOLD_MS, () => {
      this.flush();
    });
  }

  /** Hands on what is held back. */
  flush(): void {
    this.cancel?.();
    this.cancel = null;
    if (this.held.length === 0) return;
    const { held } = this;
    this.held = [];
    for (const chunk of held) this.take(chunk, this.heldSince);
  }

  private observe(now: number): void {
    const elapsed = now - this.since;
    const paused = now - this.last >= PAUSE_MS;
    this.last = now;
    if (paused || elapsed >= WINDOW_MS) {
      this.flood = !paused && (this.count * 1000) / elapsed >= FLOOD_PER_SECOND;
      this.count = 0;
      this.since = now;
    }
    this.count++;
  }
}
