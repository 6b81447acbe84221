import type { ForeignLosses, ForeignQuestion } from '../dataplane/foreign/losses.js';
import type { NativeAddon } from '../native/contract.js';

/** A page that is open asks every two seconds. */
const KEPT_MS = 5000;

/** What rules of others do with packets; what reads them is loaded when they are first asked for. */
export class Foreign {
  private kept: { readonly until: number; readonly answer: Promise<ForeignLosses> } | null = null;

  constructor(private readonly addon: NativeAddon) {}

  /** Read anew: a user that asks for one packet has often just changed something. */
  async lossesOf(question: ForeignQuestion): Promise<ForeignLosses> {
    return (await import('../dataplane/foreign/losses.js')).lossesOf(this.addon, question);
  }

  /** As it was some seconds ago at most. */
  async lossesOfAll(): Promise<ForeignLosses> {
    const now = performance.now();
    if (this.kept === null || now > this.kept.until) {
      const answer = import('../dataplane/foreign/losses.js').then(({ lossesOfAll }) => lossesOfAll(this.addon));
      answer.catch(() => undefined);
      this.kept = { until: now + KEPT_MS, answer };
    }
    return await this.kept.answer;
  }
}
