import type { IncomingMessage, RequestListener, Server, ServerOptions, ServerResponse } from 'node:http';

/** What stands in front of the pages of an endpoint. */
export interface Door {
  /** A server for who comes to it; not listening yet. */
  createServer(options: ServerOptions): Server;
  /** Has a request answered by the pages, or refuses it. */
  admit(request: IncomingMessage, response: ServerResponse, pages: RequestListener): void;
  close(): void;
}

/** Hears what happens at a door, for metrics. */
export interface DoorObserver {
  /** Files of a flag were read after the start, and are used from now on or cannot be. */
  reloaded(flag: string, result: 'applied' | 'refused'): void;
  /** Somebody said who it is, or could not. */
  authenticated(result: 'success' | 'anonymous' | 'failure' | 'error'): void;
  authorized(result: 'allowed' | 'denied' | 'error'): void;
  /** An API server was asked for a judgement. */
  reviewed(kind: string, result: 'answered' | 'failed'): void;
  /** When the certificate that is served ends, in milliseconds since the epoch. */
  certificateEnds(at: number): void;
}
