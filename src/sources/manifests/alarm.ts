import { MAX_TIMEOUT_MS } from '../../base/timeout.js';

/** A sleep that can be cut short, also by a ring that came before it. */
export class Alarm {
  private timer: NodeJS.Timeout | null = null;
  private wake: (() => void) | null = null;
  /** When to wake at the latest, in the clock of `performance.now()`. */
  private deadline = Number.POSITIVE_INFINITY;

  /** Makes the present or next sleep end within `ms`. */
  ring(ms: number): void {
    this.deadline = Math.min(this.deadline, performance.now() + ms);
    if (this.wake !== null) this.arm();
  }

  async sleep(ms: number): Promise<void> {
    this.ring(ms);
    await new Promise<void>((resolve) => {
      this.wake = resolve;
      this.arm();
    });
  }

  private arm(): void {
    if (this.timer !== null) clearTimeout(this.timer);
    const delay = Math.max(0, this.deadline - performance.now());
    this.timer = setTimeout(
      () => {
        if (delay > MAX_TIMEOUT_MS) this.arm();
        else this.end();
      },
      Math.min(delay, MAX_TIMEOUT_MS),
    );
  }

  private end(): void {
    const { wake } = this;
    this.timer = null;
    this.wake = null;
    this.deadline = Number.POSITIVE_INFINITY;
    wake?.();
  }
}
