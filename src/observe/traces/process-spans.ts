import { ROOT_CONTEXT, SpanKind, type Context, type Span } from '@opentelemetry/api';
import type { Family } from '../../base/ip.js';
import type { TracedObject, RequestTrace } from '../../base/tracing.js';
import type { ObjectKey } from '../../state/rows.js';
import type { AcknowledgedSync, Commit, EndedSync, KernelWork } from '../cycle-observer.js';
import type { ProcessTracing, SpanCounter } from '../tracing.js';
import { Changes } from './changes.js';
import type { Exporting } from './exporting.js';
import type { KernelCalls } from './kernel-calls.js';
import { RunSpans, type RunParts } from './run-spans.js';
import { isSampled, traceparent, within, type Spans } from './spans.js';

/** Everything that one process tells of itself in spans: its start, each change, and what goes on without one. */
export class ProcessSpans implements ProcessTracing {
  private readonly changes: Changes;
  /** From the start of the process until the kernel holds everything; null: it does. */
  private start: Span | null;
  /** Under way; null: none is. */
  private run: RunSpans | null = null;

  constructor(
    private readonly spans: Spans,
    private readonly kernel: KernelCalls,
    private readonly exporting: Exporting,
    private mode: string,
  ) {
    this.changes = new Changes(spans);
    this.start = spans.start('start', undefined, { at: 0 });
  }

  /** The process ends. */
  stop(): void {
    if (this.start !== null) this.spans.end(this.start, 'the process ended before the kernel held everything');
    this.start = null;
  }

  countBy(counter: SpanCounter): void {
    this.exporting.countBy(counter);
  }

  setMode(mode: string): void {
    this.mode = mode;
  }

  committing(received: readonly TracedObject[], commit: () => void): void {
    this.changes.committing(received, commit);
  }

  /** Before all sources are complete nothing is on its way to the kernel. */
  committed(commit: Commit): void {
    if (commit.ready) this.changes.committed(commit);
  }

  listed(resource: string, objects: number, since: number): void {
    const attributes = { 'k8s.resource': resource, 'pointsman.objects': objects };
    this.spans.record('list', this.parent(), since, performance.now(), { attributes });
  }

  request(method: string, host: string, target: string): RequestTrace {
    const [path = '', query = ''] = target.split('?');
    const span = this.spans.start(`HTTP ${method}`, this.parent(), {
      kind: SpanKind.CLIENT,
      attributes: {
        'http.request.method': method,
        'server.address': host,
        'url.path': path,
        ...(query === '' ? {} : { 'url.query': query }),
      },
    });
    return {
      headers: { traceparent: traceparent(span) },
      answered: (status) => {
        if (status !== null) span.setAttribute('http.response.status_code', status);
        this.spans.end(span, status === null ? 'no answer' : status >= 400 ? `status ${status}` : null);
      },
    };
  }

  runBegan(full: boolean): void {
    const { followed, count, parent } = this.changes.take();
    const [first, ...others] = followed;
    const begins = this.start === null ? null : within(this.start);
    const span = this.spans.start('sync', begins ?? parent ?? ROOT_CONTEXT, {
      attributes: { 'pointsman.full': full, 'pointsman.changes': count },
      links: (begins === null ? others : followed).map((change) => ({ context: change.span.spanContext() })),
    });
    if (isSampled(span))
      for (const change of followed)
        if (begins !== null || change !== first) change.span.addLink({ context: span.spanContext() });
    this.run = new RunSpans(span, followed, this.runParts());
  }

  deferred(family: Family, services: ReadonlySet<ObjectKey>): void {
    this.changes.deferred(family, services);
  }

  planned(): void {
    this.run?.planned();
  }

  syncBegan(family: Family, suspected: boolean): void {
    this.run?.syncBegan(family, suspected);
  }

  acknowledged({ report }: Pick<AcknowledgedSync, 'report'>): void {
    this.run?.of(report.family)?.acknowledged(report);
  }

  syncEnded({ family, result }: Pick<EndedSync, 'family' | 'result'>): void {
    this.run?.of(family)?.ended(result.type === 'success' ? null : result.error);
  }

  runEnded(error: unknown): void {
    this.run?.ended(error);
    this.run = null;
  }

  during<T>(kind: KernelWork, family: Family, work: () => Promise<T>): Promise<T> {
    if (kind === 'audit') return this.audit(family, work);
    const sync = this.run?.of(family);
    if (sync === undefined) return work();
    return kind === 'apply' ? sync.apply(work) : sync.flows(work);
  }

  private async audit<T>(family: Family, work: () => Promise<T>): Promise<T> {
    const span = this.spans.start(`audit ${family}`, undefined, {
      attributes: { 'pointsman.family': family, 'pointsman.mode': this.mode },
    });
    try {
      const different = isSampled(span) ? await this.kernel.during(within(span), 'compare', work) : await work();
      span.setAttribute('pointsman.different', different === true);
      this.spans.end(span);
      return different;
    } catch (error) {
      this.spans.end(span, error);
      throw error;
    }
  }

  private runParts(): RunParts {
    const { spans, kernel, changes, mode } = this;
    return {
      spans,
      kernel,
      changes,
      mode,
      onComplete: () => {
        if (this.start !== null) spans.end(this.start);
        this.start = null;
      },
    };
  }

  /** Of what no change is the reason. */
  private parent(): Context {
    return this.start === null ? ROOT_CONTEXT : within(this.start);
  }
}
