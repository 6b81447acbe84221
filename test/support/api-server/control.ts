import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { ListenOptions } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import type { ApiObject } from '../api-objects.js';
import { clusterSlice } from './cluster.js';
import type { FaultRule } from './faults.js';
import { nameOf, resourceOfKind } from './resources.js';
import type { KnownUser, PathRule } from './reviews.js';
import type { ApiServer } from './server.js';

/**
 * What another process asks of a running test API server, as JSON by POST:
 *
 * - `put`, `delete`: objects; `put/timed`: objects, and the answer is when the first was put, in milliseconds of the monotonic clock
 * - `fault`: a fault rule; `faults/clear`: none any more
 * - `watches`: `end`, `reset` or `stall` for every open watch
 * - `down`, `up`: nobody is answered for a while, and every connection breaks; objects and their versions stay
 * - `compact`: the changes so far are forgotten
 * - `tokens`: what is accepted from now on
 * - `signing`: a policy and seconds; what waits is judged by it at once
 * - `reviews`: {@link ReviewRules}, from now on
 * - `churn`: {@link Churn}; answers when it is over
 * - `state`: nothing; answers with versions, requests by resource and operation, Accept headers, connections, events,
 *   and how many reviews of each kind there were
 *
 * @param place an address and a port, or the path of a socket, which reaches across network namespaces.
 */
export async function serveControl(server: ApiServer, place: ListenOptions): Promise<Server> {
  const control = createServer((request, response) => {
    answer(server, request).then(
      (result) => response.end(JSON.stringify(result)),
      (error: unknown) => response.writeHead(400).end(String(error)),
    );
  });
  await new Promise<void>((resolve) => control.listen(place, resolve));
  return control;
}

async function answer(server: ApiServer, request: IncomingMessage): Promise<unknown> {
  let body = '';
  request.setEncoding('utf8');
  for await (const chunk of request) body += String(chunk);
  const command = (request.url ?? '/').slice(1);
  const value: unknown = body === '' ? null : JSON.parse(body);
  switch (command) {
    case 'put':
      server.put(...(value as readonly ApiObject[]));
      return server.store.version;
    case 'put/timed': {
      const at = monotonicMs();
      server.put(...(value as readonly ApiObject[]));
      return at;
    }
    case 'delete':
      for (const object of value as readonly ApiObject[]) {
        server.store.delete(resourceOfKind(object['kind']), nameOf(object));
      }
      return server.store.version;
    case 'fault':
      server.faults.add(value as FaultRule);
      return null;
    case 'faults/clear':
      server.faults.clear();
      return null;
    case 'watches':
      doToWatches(server, value);
      return null;
    case 'down':
      await server.stop();
      return null;
    case 'up':
      await server.start();
      return null;
    case 'compact':
      server.store.compact();
      return null;
    case 'tokens':
      server.tokens = value as readonly string[];
      return null;
    case 'signing':
      Object.assign(server.signing, value);
      server.signing.judge(server.store);
      return null;
    case 'reviews':
      review(server, value as ReviewRules);
      return null;
    case 'churn':
      await churn(server, value as Churn);
      return server.store.version;
    case 'state':
      return state(server);
    default:
      throw new TypeError(`unknown command ${command}`);
  }
}

/** Whom tokens are of, and who may see which paths. */
export interface ReviewRules {
  readonly users: Readonly<Record<string, KnownUser>>;
  readonly rules: readonly PathRule[];
}

function review({ reviews }: ApiServer, { users, rules }: ReviewRules): void {
  reviews.users.clear();
  for (const [token, user] of Object.entries(users)) reviews.users.set(token, user);
  reviews.rules.splice(0, reviews.rules.length, ...rules);
}

function doToWatches(server: ApiServer, what: unknown): void {
  for (const watch of [...server.watches]) {
    if (what === 'end') watch.end();
    else if (what === 'reset') watch.reset();
    else if (what === 'stall') watch.stall();
    else throw new TypeError(`not something to do with watches: ${String(what)}`);
  }
}

/** Changes of the slices of a cluster made by `clusterObjects`, evenly spread; each takes one endpoint away, or at last gives all back. */
interface Churn {
  readonly perSecond: number;
  readonly seconds: number;
  readonly services: number;
  readonly endpoints: number;
}

const CHURN_NODES = 1000;

async function churn(server: ApiServer, { perSecond, seconds, services, endpoints }: Churn): Promise<void> {
  const startedAt = performance.now();
  for (let change = 0; change < perSecond * seconds; change++) {
    const due = startedAt + (change * 1000) / perSecond;
    if (due > performance.now()) await delay(due - performance.now());
    server.put(churnedSlice(change, services, endpoints));
  }
}

/** The slice that one change of a churn is of, as it is then. */
export function churnedSlice(change: number, services: number, endpoints: number): ApiObject {
  const count = Math.min(100, endpoints);
  const notReady = (Math.floor(change / services) + 1) % (count + 1);
  return clusterSlice((change * 7919) % services, 0, count, CHURN_NODES, notReady);
}

/** A clock that all processes of a machine share, in milliseconds. */
export function monotonicMs(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}

function state(server: ApiServer): unknown {
  const requests: Record<string, number> = {};
  const accepts = new Set<string>();
  for (const { resource, operation, headers } of server.requests) {
    const name = `${operation} ${resource}`;
    requests[name] = (requests[name] ?? 0) + 1;
    accepts.add(String(headers['accept']));
  }
  return {
    version: server.store.version,
    requests,
    forbidden: server.forbidden,
    accepts: [...accepts],
    connections: server.connections,
    openConnections: server.openConnections,
    watches: server.watches.size,
    events: server.events,
    serials: [...new Set(server.requests.map(({ serial }) => serial).filter((serial) => serial !== ''))],
    reviews: Object.fromEntries(
      ['TokenReview', 'SubjectAccessReview'].map((kind) => [
        kind,
        server.reviews.asked.filter((each) => each.kind === kind).length,
      ]),
    ),
    signingRequests: server.store.list(resourceOfKind('CertificateSigningRequest')),
  };
}
