import { PassThrough } from 'node:stream';
import {
  ApiError,
  type ApiAnswer,
  type ApiConnection,
  type ApiQuery,
  type ApiResponse,
  type GetOptions,
} from '../../../src/sources/kubernetes/connection.js';
import type { ApiObject } from '../api-objects.js';
import { statusObject, type StatusFields } from './encoding.js';

/** A request that waits for the test to answer it. */
export class FakeRequest {
  private readonly body = new PassThrough();

  constructor(
    readonly path: string,
    readonly query: ApiQuery,
    readonly options: GetOptions,
    private readonly resolve: (response: ApiResponse) => void,
    private readonly reject: (error: Error) => void,
  ) {
    // Its reader hears of errors as well; when nobody reads, they are nobody's.
    this.body.on('error', () => undefined);
    options.signal.addEventListener('abort', () => {
      reject(options.signal.reason as Error);
      this.body.destroy(options.signal.reason as Error);
    });
  }

  /** `list`, `watch` or `watchlist`. */
  get operation(): string {
    if (this.query['watch'] === undefined) return 'list';
    return this.query['sendInitialEvents'] === undefined ? 'watch' : 'watchlist';
  }

  get aborted(): boolean {
    return this.options.signal.aborted;
  }

  /** Headers of a good answer; its body is JSON and comes by what follows. */
  open(contentType = 'application/json'): this {
    this.head(200, contentType, null);
    return this;
  }

  event(type: string, object: ApiObject): this {
    return this.write(`${JSON.stringify({ type, object })}\n`);
  }

  bookmark(resource: { readonly kind: string; readonly apiVersion: string }, version: string, end = false): this {
    const annotations = end ? { annotations: { 'k8s.io/initial-events-end': 'true' } } : {};
    return this.event('BOOKMARK', { ...resource, metadata: { resourceVersion: version, ...annotations } });
  }

  write(text: string | Buffer): this {
    this.body.write(text);
    return this;
  }

  end(text = ''): void {
    this.body.end(text);
  }

  /** The connection breaks. */
  break(): void {
    this.body.destroy(new ApiError('broken', 'the connection was reset'));
  }

  /** No connection at all. */
  refuse(): void {
    this.reject(new ApiError('connect', 'connection refused'));
  }

  fail(status: StatusFields, retryAfterMs: number | null = null): void {
    this.head(status.code, 'application/json', retryAfterMs);
    this.end(JSON.stringify(statusObject(status)));
  }

  list(kind: string, version: string, items: readonly ApiObject[]): void {
    this.open();
    this.end(JSON.stringify({ kind: `${kind}List`, apiVersion: 'v1', metadata: { resourceVersion: version }, items }));
  }

  private head(status: number, contentType: string, retryAfterMs: number | null): void {
    this.resolve({ status, contentType, retryAfterMs, body: this.body });
  }
}

/** A connection whose other end is the test. */
export class FakeConnection implements ApiConnection {
  readonly requests: FakeRequest[] = [];

  get(path: string, query: ApiQuery, options: GetOptions): Promise<ApiResponse> {
    return new Promise((resolve, reject) => {
      this.requests.push(new FakeRequest(path, query, options, resolve, reject));
    });
  }

  post(): Promise<ApiAnswer> {
    return Promise.reject(new ApiError('closed', 'this connection only reads'));
  }

  close(): void {
    for (const request of this.requests) request.break();
  }
}
