import { Server, ServerCredentials, type sendUnaryData, type ServerUnaryCall } from '@grpc/grpc-js';
import { fieldsOf, type Fields } from './api-server/protobuf-reader.js';

/** A span as a collector got it. Times in nanoseconds since the epoch. */
export interface CollectedSpan {
  readonly traceId: string;
  readonly spanId: string;
  /** Empty: none. */
  readonly parentId: string;
  readonly name: string;
  readonly kind: number;
  readonly start: bigint;
  readonly end: bigint;
  readonly attributes: Readonly<Record<string, string | number | boolean>>;
  readonly events: readonly string[];
  /** Ids of the spans that it names. */
  readonly links: readonly string[];
  /** Of its status: 2 is an error. */
  readonly status: number;
  readonly resource: Readonly<Record<string, string | number | boolean>>;
}

type Exported = ServerUnaryCall<Buffer, Buffer>;

/** A collector that speaks OTLP over gRPC, by the protocol's own numbers, and keeps what it gets. */
export class OtlpCollector {
  readonly spans: CollectedSpan[] = [];
  /** What the next batches wait for. */
  held: Promise<unknown> = Promise.resolve();
  private server: Server | null = null;
  port = 0;

  get endpoint(): string {
    return `127.0.0.1:${this.port}`;
  }

  /** Listens; one that was stopped comes back where it was. */
  async start(): Promise<void> {
    const server = new Server();
    const raw = (bytes: Buffer): Buffer => bytes;
    const path = '/opentelemetry.proto.collector.trace.v1.TraceService/Export';
    const codec = { requestDeserialize: raw, requestSerialize: raw, responseDeserialize: raw, responseSerialize: raw };
    server.addService(
      { export: { path, requestStream: false, responseStream: false, ...codec } },
      {
        export: (call: Exported, answer: sendUnaryData<Buffer>) => {
          void this.held.then(() => {
            this.spans.push(...readRequest(call.request));
            answer(null, Buffer.alloc(0));
          });
        },
      },
    );
    this.port = await new Promise((resolve, reject) => {
      server.bindAsync(this.endpoint, ServerCredentials.createInsecure(), (error, port) => {
        if (error === null) resolve(port);
        else reject(error);
      });
    });
    this.server = server;
  }

  stop(): void {
    this.server?.forceShutdown();
    this.server = null;
  }

  /** Spans of a name, in the order of their starts. */
  named(name: string): readonly CollectedSpan[] {
    return this.spans.filter((span) => span.name === name).sort((one, other) => (one.start < other.start ? -1 : 1));
  }

  childrenOf({ spanId }: CollectedSpan): readonly CollectedSpan[] {
    return this.spans
      .filter(({ parentId }) => parentId === spanId)
      .sort((one, other) => (one.start < other.start ? -1 : 1));
  }

  /** A span and what is below it, by names and indents. */
  tree(span: CollectedSpan, depth = 0): readonly string[] {
    return [
      `${'  '.repeat(depth)}${span.name}`,
      ...this.childrenOf(span).flatMap((child) => this.tree(child, depth + 1)),
    ];
  }
}

function messages(fields: Fields, field: number): readonly Fields[] {
  return buffers(fields, field).map(fieldsOf);
}

function buffers(fields: Fields, field: number): readonly Buffer[] {
  return (fields.get(field) ?? []).flatMap((value) => (typeof value === 'bigint' ? [] : [value]));
}

function text(fields: Fields, field: number): string {
  return buffers(fields, field)[0]?.toString('utf8') ?? '';
}

function hex(fields: Fields, field: number): string {
  return buffers(fields, field)[0]?.toString('hex') ?? '';
}

function readRequest(bytes: Buffer): readonly CollectedSpan[] {
  return messages(fieldsOf(bytes), 1).flatMap((resourceSpans) => {
    const resource = messages(resourceSpans, 1).map((fields) => attributesOf(fields, 1))[0] ?? {};
    return messages(resourceSpans, 2).flatMap((scope) => messages(scope, 2).map((span) => readSpan(span, resource)));
  });
}

function readSpan(fields: Fields, resource: CollectedSpan['resource']): CollectedSpan {
  const time = (field: number): bigint => buffers(fields, field)[0]?.readBigUInt64LE() ?? 0n;
  return {
    traceId: hex(fields, 1),
    spanId: hex(fields, 2),
    parentId: hex(fields, 4),
    name: text(fields, 5),
    kind: Number(fields.get(6)?.[0] ?? 0),
    start: time(7),
    end: time(8),
    attributes: attributesOf(fields, 9),
    events: messages(fields, 11).map((event) => text(event, 2)),
    links: messages(fields, 13).map((link) => hex(link, 2)),
    status: Number(messages(fields, 15)[0]?.get(3)?.[0] ?? 0),
    resource,
  };
}

function attributesOf(fields: Fields, field: number): CollectedSpan['attributes'] {
  return Object.fromEntries(
    messages(fields, field).map((pair) => {
      const [value = new Map()] = messages(pair, 2);
      return [text(pair, 1), valueOf(value)];
    }),
  );
}

function valueOf(value: Fields): string | number | boolean {
  if (value.has(1)) return text(value, 1);
  if (value.has(2)) return value.get(2)?.[0] === 1n;
  if (value.has(3)) return Number(value.get(3)?.[0]);
  return buffers(value, 4)[0]?.readDoubleLE() ?? 0;
}
