import type { Registry } from 'prom-client';
import { Definitions } from './instruments.js';
import type { SpanCounter } from './tracing.js';

/** Counts spans where traces are sent. */
export class SpanMetrics extends Definitions implements SpanCounter {
  private readonly spans = this.counter(
    'trace_spans_total',
    'Sampled spans by whether the collector accepted them in time.',
    ['result'],
  );

  constructor(registry: Registry) {
    super(registry, 'pointsman_', '');
    for (const result of ['exported', 'dropped'] as const) this.spansEnded(result, 0);
  }

  spansEnded(result: 'exported' | 'dropped', count: number): void {
    this.spans.inc({ result }, count);
  }
}
