import { credentials } from '@grpc/grpc-js';
import type { Tracer } from '@opentelemetry/api';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-grpc';
import { resourceFromAttributes } from '@opentelemetry/resources';
import {
  AlwaysOffSampler,
  BatchSpanProcessor,
  ParentBasedSampler,
  TraceIdRatioBasedSampler,
  TracerProvider,
  type ReadableSpan,
  type SpanExporter,
  type SpanProcessor,
} from '@opentelemetry/sdk-trace';
import { messageOf } from '../../base/error-message.js';
import type { Log } from '../../base/log.js';
import type { SpanCounter } from '../tracing.js';

/** How long a collector has to take a batch. A process that ends waits no longer, for batches under way or its last ones. */
const EXPORT_TIMEOUT_MS = 900;
/** Spans that wait, those under way included: further ones are dropped. */
const MAX_WAITING = 4096;
const MAX_BATCH = 512;
const BATCH_EVERY_MS = 1000;

interface ExportingOptions {
  /** `host:port`, `dns://[authority]/host:port` or `unix:///path`. */
  readonly endpoint: string;
  /** Of a million traces; null: of none that begins here. */
  readonly samplingRatePerMillion: number | null;
  /** What the spans are of. */
  readonly resource: Readonly<Record<string, string>>;
  readonly version: string;
  readonly log: Log;
  /** Only tests have another. */
  readonly exportTimeoutMs?: number;
}

/** Spans on their way to the collector. One that is away or slow costs spans, which are counted, and nothing else. */
export class Exporting {
  readonly tracer: Tracer;
  private readonly provider: TracerProvider;
  private readonly queue: CountedQueue;

  constructor(options: ExportingOptions) {
    const { endpoint, samplingRatePerMillion: rate, resource, version, log } = options;
    const timeoutMs = options.exportTimeoutMs ?? EXPORT_TIMEOUT_MS;
    const exporter = new OTLPTraceExporter({
      url: exporterUrl(endpoint),
      credentials: credentials.createInsecure(),
      timeoutMillis: timeoutMs,
    });
    this.queue = new CountedQueue(exporter, timeoutMs, endpoint, log);
    this.provider = new TracerProvider({
      resource: resourceFromAttributes(resource),
      sampler: new ParentBasedSampler({
        root: rate === null ? new AlwaysOffSampler() : new TraceIdRatioBasedSampler(rate / 1_000_000),
      }),
      spanProcessors: [this.queue],
    });
    this.tracer = this.provider.getTracer('pointsman', version);
  }

  countBy(counter: SpanCounter): void {
    this.queue.counter = counter;
  }

  /** Sends what waits, as far as the collector takes it within a second. */
  async stop(): Promise<void> {
    this.queue.ending = true;
    await this.provider.shutdown().catch(() => undefined);
  }
}

/** The exporter takes what stands in a URL for the name of a host. */
function exporterUrl(endpoint: string): string {
  if (endpoint.startsWith('unix:')) return endpoint;
  return `http://${endpoint.replace(/^dns:\/\/[^/]*\/?/, '')}`;
}

/** A bounded queue in front of the library's, which drops what it has no room for without saying how many; and an exporter that is listened to. */
class CountedQueue implements SpanProcessor {
  counter: SpanCounter | null = null;
  /** Failures from now on are not reported. */
  ending = false;
  private readonly batches: BatchSpanProcessor;
  private waiting = 0;
  private failure: string | null = null;

  constructor(
    exporter: SpanExporter,
    timeoutMs: number,
    private readonly endpoint: string,
    private readonly log: Log,
  ) {
    this.batches = new BatchSpanProcessor({
      exporter: {
        export: (spans, done) => {
          exporter.export(spans, (result) => {
            this.exported(spans.length, result.error ?? null);
            done(result);
          });
        },
        shutdown: () => exporter.shutdown(),
      },
      maxQueueSize: MAX_WAITING,
      maxExportBatchSize: MAX_BATCH,
      scheduledDelayMillis: BATCH_EVERY_MS,
      exportTimeoutMillis: 2 * timeoutMs,
    });
  }

  onStart(): void {
    // Only ends matter.
  }

  onEnd(span: ReadableSpan): void {
    if (this.waiting >= MAX_WAITING) {
      this.counter?.spansEnded('dropped', 1);
      return;
    }
    this.waiting++;
    this.batches.onEnd(span);
  }

  forceFlush(): Promise<void> {
    return this.batches.forceFlush();
  }

  shutdown(): Promise<void> {
    return this.batches.shutdown();
  }

  /** Speaks when it breaks and when it works again. */
  private exported(count: number, error: Error | null): void {
    const { endpoint, log } = this;
    this.waiting -= count;
    this.counter?.spansEnded(error === null ? 'exported' : 'dropped', count);
    if (this.ending) return;
    if (error === null && this.failure !== null) log.info(0, 'traces are sent again', { endpoint });
    if (error !== null && this.failure === null)
      log.error(error, 'traces cannot be sent and are dropped', { endpoint });
    this.failure = error === null ? null : messageOf(error);
  }
}
