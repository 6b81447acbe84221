import type { WallClock } from '../base/timestamp.js';

/** When reasons of ill health began: each from its first report until it is reported as over. */
export class Onsets {
  private readonly began = new Map<string, bigint>();

  constructor(private readonly wallClock: WallClock) {}

  /** @param reason a kind, and whatever else distinguishes it from others of that kind. */
  note(reason: string, holds: boolean): void {
    if (!holds) this.began.delete(reason);
    else if (!this.began.has(reason)) this.began.set(reason, this.wallClock());
  }

  /** Of this kind exactly these reasons hold. */
  noteAll(kind: string, texts: readonly string[]): void {
    const reasons = new Set(texts.map((text) => `${kind} ${text}`));
    for (const known of this.began.keys())
      if (known.startsWith(`${kind} `) && !reasons.has(known)) this.began.delete(known);
    for (const reason of reasons) this.note(reason, true);
  }

  /** In nanoseconds since the epoch; null: it does not hold. */
  of(reason: string): bigint | null {
    return this.began.get(reason) ?? null;
  }
}
