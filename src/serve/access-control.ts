import type { IncomingMessage, Server, ServerOptions, ServerResponse } from 'node:http';
import type { Clock } from '../base/clock.js';
import type { IPAddress } from '../base/ip.js';
import type { Log } from '../base/log.js';
import type { SecuredConfig } from '../config/secured.js';
import type { AccessObserver } from '../observe/access-metrics.js';
import type { ApiConnection } from '../sources/kubernetes/connection.js';

/** Answers a request; the error for which it could not, which has been answered and reported. */
export type Pages = (request: IncomingMessage, response: ServerResponse) => Promise<unknown>;

/** What stands in front of the pages of an endpoint. */
export interface AccessControl {
  /** A server for who comes to it; not listening yet. */
  createServer(options: ServerOptions): Server;
  /** Has a request answered by the pages, or refuses it. */
  admit(request: IncomingMessage, response: ServerResponse, pages: Pages): void;
  /** Why Events about requests are lost now; null: they are not, or there are none. */
  auditFault(): string | null;
  /** Resolves when all that was to be written has been. */
  close(): Promise<void>;
}

/** What access control is opened with. */
export interface AccessControlParts {
  readonly config: SecuredConfig;
  readonly nodeName: string;
  /** Those that this node has now. */
  readonly addresses: () => readonly IPAddress[];
  /** To the API server that is read from; null: there is none just now. */
  readonly api: () => ApiConnection | null;
  /** When that API server was last heard of, in milliseconds since the epoch; null: never. */
  readonly receivedAt: () => number | null;
  /** To a webhook, by its kubeconfig. */
  readonly connect: (kubeconfig: string) => Promise<ApiConnection>;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  readonly clock: Clock;
  readonly log: Log;
  readonly observer: AccessObserver;
}
