import type { Context, Span } from '@opentelemetry/api';
import type { Family } from '../../base/ip.js';
import type { SyncReport } from '../../dataplane/contract.js';
import type { Changes, FollowedChange } from './changes.js';
import type { KernelCalls } from './kernel-calls.js';
import { isSampled, within, type Spans } from './spans.js';

/** Of repairs so many are reported. */
const MOST_REPAIRS = 20;

export interface RunParts {
  readonly spans: Spans;
  readonly kernel: KernelCalls;
  readonly changes: Changes;
  readonly mode: string;
  /** Called when everything has been in the kernel once. */
  readonly onComplete: () => void;
}

/** The spans of one run. */
export class RunSpans {
  private readonly syncs = new Map<Family, FamilySpans>();
  private readonly startedAt = performance.now();
  private readonly context: Context;

  constructor(
    private readonly span: Span,
    private readonly followed: readonly FollowedChange[],
    private readonly parts: RunParts,
  ) {
    this.context = within(span);
  }

  planned(): void {
    this.parts.spans.record('plan', this.context, this.startedAt, performance.now());
  }

  /** A family's sync; undefined: it has not begun. */
  of(family: Family): FamilySpans | undefined {
    return this.syncs.get(family);
  }

  syncBegan(family: Family, suspected: boolean): void {
    const { spans, mode } = this.parts;
    const attributes = { 'pointsman.family': family, 'pointsman.mode': mode, 'pointsman.suspected': suspected };
    const span = spans.start(`sync ${family}`, this.context, { attributes });
    this.syncs.set(family, new FamilySpans(family, span, this.followed, this.parts));
  }

  ended(error: unknown): void {
    if (error === null) this.parts.onComplete();
    this.parts.spans.end(this.span, error);
  }
}

/** The spans of one family's sync. */
class FamilySpans {
  private readonly context: Context;
  private appliedAt = 0;
  private isAcknowledged = false;

  constructor(
    private readonly family: Family,
    private readonly span: Span,
    private readonly followed: readonly FollowedChange[],
    private readonly parts: RunParts,
  ) {
    this.context = within(span);
  }

  async apply<T>(work: () => Promise<T>): Promise<T> {
    const report = isSampled(this.span) ? await this.parts.kernel.during(this.context, 'diff', work) : await work();
    this.appliedAt = performance.now();
    return report;
  }

  acknowledged(report: SyncReport): void {
    const { span } = this;
    this.isAcknowledged = true;
    this.parts.spans.record('acknowledge', this.context, this.appliedAt, performance.now());
    span.setAttributes({
      'pointsman.full': report.full,
      'pointsman.transactions': report.transactions,
      'pointsman.element_operations': report.elementOperations,
      'pointsman.rule_operations': report.ruleOperations,
      'pointsman.bytes': report.bytes,
      'pointsman.repairs': report.repairs.length,
      'pointsman.quarantined': report.quarantined.length,
    });
    for (const repair of report.repairs.slice(0, MOST_REPAIRS)) span.addEvent('repair', { 'pointsman.repair': repair });
  }

  async flows<T>(work: () => Promise<T>): Promise<T> {
    if (!isSampled(this.span)) return await work();
    const { spans, kernel } = this.parts;
    const span = spans.start('stale flows', this.context);
    try {
      const done = await kernel.during(within(span), null, work);
      spans.end(span);
      return done;
    } catch (error) {
      spans.end(span, error);
      throw error;
    }
  }

  ended(error: unknown): void {
    const { spans, changes } = this.parts;
    spans.end(this.span, error);
    if (error === null && this.isAcknowledged) changes.arrived(this.followed, this.family);
  }
}
