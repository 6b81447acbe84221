import { systemClock } from '../../base/clock.js';

/** A sleep that can be cut short, also by a ring that came before it. */
export class PollTimer {
  private cancel = (): void => undefined;
  private wake: (() => void) | null = null;
  /** When to wake at the latest, on the system's clock. */
  private deadline = Number.POSITIVE_INFINITY;

  /** Makes the present or next sleep end within `ms`. */
  ring(ms: number): void {
    this.deadline = Math.min(this.deadline, systemClock.now() + ms);
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
    this.cancel();
    this.cancel = systemClock.callAt(this.deadline, () => {
      this.end();
    });
  }

  private end(): void {
    const { wake } = this;
    this.wake = null;
    this.deadline = Number.POSITIVE_INFINITY;
    wake?.();
  }
}
