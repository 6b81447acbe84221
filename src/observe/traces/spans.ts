import {
  ROOT_CONTEXT,
  SpanStatusCode,
  trace,
  TraceFlags,
  type Context,
  type HrTime,
  type Span,
  type SpanOptions,
  type Tracer,
} from '@opentelemetry/api';
import { messageOf } from '../../base/error-message.js';

/** The wall clock may run away so far from the monotonic one before it is followed: it was set. */
const MAX_DRIFT_MS = 100;

interface SpanStart extends Omit<SpanOptions, 'startTime' | 'root'> {
  /** On performance.now's clock, in milliseconds; now where it is not given. */
  readonly at?: number;
}

/**
 * Starts and ends spans. All times come from one clock: the library takes each span's from the system's, in whole milliseconds, by which what follows
 * may begin before what it follows.
 */
export class Spans {
  /** From performance.now's clock to the epoch, in milliseconds. */
  private offset = Date.now() - performance.now();

  constructor(private readonly tracer: Tracer) {}

  start(name: string, parent: Context = ROOT_CONTEXT, { at = performance.now(), ...rest }: SpanStart = {}): Span {
    return this.tracer.startSpan(name, { ...rest, startTime: this.time(at) }, parent);
  }

  /** One that has ended, and that nothing is below: where its parent is not sampled there is none. */
  record(name: string, parent: Context, at: number, endedAt: number, rest: Omit<SpanStart, 'at'> = {}): void {
    const above = trace.getSpan(parent);
    if (above === undefined || isSampled(above)) this.start(name, parent, { ...rest, at }).end(this.time(endedAt));
  }

  /** @param error null: it succeeded. */
  end(span: Span, error: unknown = null): void {
    if (error !== null) span.setStatus({ code: SpanStatusCode.ERROR, message: messageOf(error) });
    span.end(this.time(performance.now()));
  }

  private time(at: number): HrTime {
    const drift = Date.now() - performance.now() - this.offset;
    if (Math.abs(drift) > MAX_DRIFT_MS) this.offset += drift;
    const milliseconds = this.offset + at;
    const seconds = Math.floor(milliseconds / 1000);
    return [seconds, Math.round((milliseconds - seconds * 1000) * 1e6)];
  }
}

/** What a span's children are started in. */
export function within(span: Span): Context {
  return trace.setSpan(ROOT_CONTEXT, span);
}

export function isSampled(span: Span): boolean {
  return (span.spanContext().traceFlags & TraceFlags.SAMPLED) !== 0;
}

/** The header of W3C Trace Context. */
export function traceparent(span: Span): string {
  const { traceId, spanId, traceFlags } = span.spanContext();
  return `00-${traceId}-${spanId}-${traceFlags.toString(16).padStart(2, '0')}`;
}
