import type { Readable } from 'node:stream';
import { cutMessage } from '../../base/outside-text.js';

/** What a reader or an event sender needs of the API server: where it is and who we are stays behind this. */
export interface ApiConnection {
  /**
   * One GET, list or watch. Resolves when the response's headers are in, whatever its status.
   * `query` is encoded here; `path` is absolute (`/api/v1/services`) and already escaped.
   * Rejects with an `ApiError` when no answer came, and with the signal's reason when it was aborted first.
   */
  get(path: string, query: ApiQuery, options: GetOptions): Promise<ApiResponse>;
  /** POSTs one JSON document and reads the answer's whole body, which is limited to 1 MiB. Rejects as `get` does. */
  post(path: string, body: string, options: PostOptions): Promise<ApiAnswer>;
  /** Ends every request, open watches included, and forgets the credentials. Requests made later reject. */
  close(): void;
}

export type ApiQuery = Readonly<Record<string, string>>;

export interface GetOptions {
  /** The Accept header, as the server is to see it. */
  readonly accept: string;
  /** Sent besides, in small letters. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Ends the request, and its body, by closing the socket. */
  readonly signal: AbortSignal;
  /** How long to wait for the response's headers, in milliseconds, once the request may be sent. Default 60 s. */
  readonly headerTimeoutMs?: number;
}

export interface PostOptions {
  readonly signal: AbortSignal;
  /** It does not count for `qps` and `burst`: the caller has limits of its own. */
  readonly unpaced?: boolean;
}

interface ResponseHead {
  readonly status: number;
  /** Lower-case, without parameters: `application/json`, `application/vnd.kubernetes.protobuf`. Empty when the server gave none. */
  readonly contentType: string;
  /** The delay of `Retry-After`, seconds or date, in milliseconds from now; null when absent or unreadable. */
  readonly retryAfterMs: number | null;
}

export interface ApiResponse extends ResponseHead {
  /**
   * The body, as it arrives. The caller reads it to its end or destroys it: until then it holds a connection.
   * A connection that breaks is an `error` (`ApiError`, or the signal's reason), never a silent end.
   */
  readonly body: Readable;
}

export interface ApiAnswer extends ResponseHead {
  readonly body: string;
}

/**
 * Why no answer came. `connect`: no connection (refused, unreachable, name not found, proxy, timeout); `tls`: a handshake or a certificate that failed;
 * `broken`: the connection ended before its answer did; `timeout`: no headers in time; `credentials`: ours could not be had (the request was not sent);
 * `closed`: the connection was closed by us.
 */
export type ApiErrorCode = 'connect' | 'tls' | 'broken' | 'timeout' | 'credentials' | 'closed';

export class ApiError extends Error {
  override readonly name = 'ApiError';

  /** @param message may hold text of a server's or a proxy's; it is cut. */
  constructor(
    readonly code: ApiErrorCode,
    message: string,
    options?: ErrorOptions,
  ) {
    super(cutMessage(message), options);
  }
}
