import { createServer as createPlainServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import { TLSSocket } from 'node:tls';
import type { ApiObject } from '../api-objects.js';
import { Answer } from './answer.js';
import {
  bodyObject,
  encodingFor,
  statusObject,
  tooLargeVersion,
  type Encoding,
  type StatusFields,
} from './encoding.js';
import { eventProblem, eventTargetOf, type EventTarget } from './events.js';
import { Faults, type Fault, type Operation } from './faults.js';
import { Lists } from './list.js';
import { certifiedClient, type CertifiedClient } from './client.js';
import { DEFAULTS, type ApiServerOptions, type WatchListSupport } from './options.js';
import { accessOf, allows } from './rbac.js';
import { keyOf, nameOf, targetOf, type Target } from './resources.js';
import { ServedReviews } from './reviews.js';
import { selection, type Predicate } from './selectors.js';
import { ServedSigning } from './signing.js';
import { ApiStore } from './store.js';
import { ServedWatch } from './watch.js';

/** A request as it came. */
export interface RecordedRequest extends CertifiedClient {
  readonly method: string;
  readonly path: string;
  readonly query: Readonly<Record<string, string>>;
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
  readonly resource: string;
  readonly operation: Operation;
}

/** An API server of the few kinds a node's proxy reads, whose misbehaviour can be arranged. */
export class ApiServer {
  readonly store = new ApiStore();
  readonly faults = new Faults();
  readonly reviews = new ServedReviews();
  readonly signing: ServedSigning;
  readonly requests: RecordedRequest[] = [];
  /** Event objects that clients posted. */
  readonly events: ApiObject[] = [];
  /** What was asked for of resources, in the terms of a rule, as `watch apps/daemonsets`. */
  readonly asked = new Set<string>();
  /** What of it was refused for want of a rule. */
  readonly forbidden: string[] = [];
  readonly watches = new Set<ServedWatch>();
  /** May be changed while it runs. */
  tokens: readonly string[];
  watchList: WatchListSupport;
  /** A limit put to every list that asks for none; 0: none. */
  pageAnyway = 0;
  /** Connections made so far, and the most at one time. */
  connections = 0;
  peakConnections = 0;
  private lastPort: number;
  private readonly sockets = new Set<Socket>();
  private readonly lists = new Lists(this.store);
  private readonly options: ApiServerOptions;
  private readonly server: Server;

  constructor(options: Partial<ApiServerOptions> = {}) {
    this.options = { ...DEFAULTS, ...options };
    this.signing = new ServedSigning(this.options.signer);
    this.lastPort = this.options.port;
    this.tokens = this.options.tokens;
    this.watchList = this.options.watchList;
    const { tls } = this.options;
    const onRequest = (request: IncomingMessage, response: ServerResponse): void => {
      void this.serve(request, response);
    };
    this.server =
      tls === null
        ? createPlainServer(onRequest)
        : createTlsServer(
            {
              key: tls.key,
              cert: tls.cert,
              ...(tls.clientCa === null ? {} : { ca: tls.clientCa, requestCert: true, rejectUnauthorized: false }),
            },
            onRequest,
          );
    this.server.keepAliveTimeout = 120_000;
    this.server.on('connection', (socket: Socket) => {
      this.count(socket);
    });
  }

  get openConnections(): number {
    return this.sockets.size;
  }

  get listening(): boolean {
    return this.server.listening;
  }

  get port(): number {
    return (this.server.address() as AddressInfo).port;
  }

  get url(): string {
    return `${this.options.tls === null ? 'http' : 'https'}://${this.options.address}:${this.port}`;
  }

  /** Listens; a server that was stopped comes back where it was. */
  async start(port = this.lastPort): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      this.server.once('error', reject);
      this.server.listen(port, this.options.address, resolve);
    });
    this.lastPort = this.port;
  }

  /** Breaks every connection and stops listening; `start` may follow. */
  stop(): Promise<void> {
    for (const watch of this.watches) watch.close();
    this.watches.clear();
    for (const socket of this.sockets) socket.destroy();
    return new Promise((resolve) => {
      this.server.close(() => {
        resolve();
      });
    });
  }

  put(...objects: readonly ApiObject[]): void {
    for (const object of objects) this.store.put(object);
  }

  private count(socket: Socket): void {
    this.connections++;
    this.sockets.add(socket);
    this.peakConnections = Math.max(this.peakConnections, this.sockets.size);
    socket.on('close', () => this.sockets.delete(socket));
    socket.on('error', () => undefined);
  }

  private async serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? '/', 'http://server');
    const body = await readBody(request);
    const encoding = encodingFor(request.headers.accept ?? '*/*');
    const target = targetOf(url.pathname);
    const operation = operationOf(request.method ?? 'GET', url, target);
    const resource = target?.resource.name ?? url.pathname.split('/').at(-1) ?? '';
    this.requests.push({
      method: request.method ?? 'GET',
      path: url.pathname,
      query: Object.fromEntries(url.searchParams),
      headers: request.headers,
      resource,
      operation,
      ...certifiedClient(request.socket),
    });
    const fault = this.faults.take(resource, operation);
    const answer = new Answer(response, fault);
    if (fault?.type === 'reset') answer.reset();
    if (fault?.type === 'reset' || fault?.type === 'hang') return;
    if (encoding === null) response.writeHead(406).end();
    else if (fault?.type === 'status') failWith(response, encoding, fault);
    else if (!this.admits(request))
      fail(answer, encoding, { code: 401, reason: 'Unauthorized', message: 'Unauthorized' });
    else if (this.forbids(request)) fail(answer, encoding, FORBIDDEN);
    else {
      const [method, contentType] = [request.method ?? 'GET', request.headers['content-type'] ?? ''];
      this.route({ url, body, contentType, encoding, target, operation, answer, fault, method });
    }
  }

  private admits(request: IncomingMessage): boolean {
    const clientCa = this.options.tls?.clientCa ?? null;
    if (this.tokens.length === 0 && clientCa === null) return true;
    const token = /^Bearer (.+)$/.exec(request.headers.authorization ?? '')?.[1];
    const certified = clientCa !== null && request.socket instanceof TLSSocket && request.socket.authorized;
    return certified || (token !== undefined && this.tokens.includes(token));
  }

  private forbids(request: IncomingMessage): boolean {
    const { rules } = this.options;
    const access = accessOf(request);
    if (access === null) return false;
    const asked = `${access.verb} ${access.apiGroup}/${access.resource}`;
    this.asked.add(asked);
    if (rules === null || allows(rules, access)) return false;
    this.forbidden.push(asked);
    return true;
  }

  private route(call: Call): void {
    const { target, answer, encoding, url, body } = call;
    const events = eventTargetOf(url.pathname);
    const review = call.method === 'POST' ? this.reviews.answer(url.pathname, body.toString()) : null;
    if (review !== null) send(answer, 201, { contentType: 'application/json', bytes: Buffer.from(review) });
    else if (events !== null && call.method === 'POST') this.takeEvent(call, events);
    else if (url.pathname === '/readyz') send(answer, 200, { contentType: 'text/plain', bytes: Buffer.from('ok') });
    else if (url.pathname === '/version') {
      send(answer, 200, { contentType: 'application/json', bytes: Buffer.from(this.options.version) });
    } else if (target === null || this.options.without.includes(target.resource.name)) {
      fail(answer, encoding, NOT_FOUND);
    } else if (call.operation === 'write') this.write(call, target);
    else if (target.name !== null) this.get(call, target);
    else this.select(call, target);
  }

  private takeEvent({ answer, encoding, body, contentType }: Call, target: EventTarget): void {
    let event: ApiObject;
    try {
      event = bodyObject(contentType, body);
    } catch (error) {
      fail(answer, encoding, { code: 400, reason: 'BadRequest', message: String(error) });
      return;
    }
    const taken = this.events.some((other) => sameName(other, event));
    const problem = taken ? ALREADY_EXISTS : eventProblem(event, target);
    if (problem !== null) {
      fail(answer, encoding, problem);
      return;
    }
    this.events.push(event);
    send(answer, 201, { contentType: encoding.contentType, bytes: encoding.object(event) });
  }

  private get({ answer, encoding }: Call, target: Target): void {
    const object = this.store.get(target.resource, { namespace: target.namespace ?? '', name: target.name ?? '' });
    if (object === null) fail(answer, encoding, NOT_FOUND);
    else send(answer, 200, { contentType: encoding.contentType, bytes: encoding.object(object) });
  }

  private write({ method, answer, encoding, body }: Call, target: Target): void {
    if (method === 'DELETE') {
      const name = { namespace: target.namespace ?? '', name: target.name ?? '' };
      if (this.store.delete(target.resource, name) === null) fail(answer, encoding, NOT_FOUND);
      else send(answer, 200, { contentType: 'application/json', bytes: Buffer.from('{}') });
      return;
    }
    const object: ApiObject = { ...(JSON.parse(body.toString()) as ApiObject), kind: target.resource.kind };
    const problem = method === 'POST' ? this.signing.problem(this.store, object) : null;
    if (problem !== null) {
      fail(answer, encoding, problem);
      return;
    }
    const stored = this.store.put(object);
    send(answer, method === 'POST' ? 201 : 200, { contentType: encoding.contentType, bytes: encoding.object(stored) });
    // It is there before anybody judges it.
    setImmediate(() => {
      this.signing.judge(this.store);
    });
  }

  private select(call: Call, target: Target): void {
    const { url, encoding, answer } = call;
    const query = url.searchParams;
    let selected: Predicate;
    try {
      const chosen = selection(query.get('labelSelector') ?? '', query.get('fieldSelector') ?? '');
      selected = (object) =>
        (target.namespace === null || nameOf(object).namespace === target.namespace) && chosen(object);
    } catch (error) {
      fail(answer, encoding, { code: 400, reason: 'BadRequest', message: String(error) });
      return;
    }
    if (call.operation !== 'list') {
      this.watch(call, target, selected);
      return;
    }
    if (this.pageAnyway > 0 && !query.has('limit')) {
      query.set('limit', String(this.pageAnyway));
      query.delete('resourceVersion');
    }
    const result = this.lists.list(target.resource, selected, query);
    if (result.type === 'error') fail(answer, encoding, result.status);
    else send(answer, 200, { contentType: encoding.contentType, bytes: encoding.list(result.list) });
  }

  private watch({ url, encoding, answer, fault, operation }: Call, target: Target, selected: Predicate): void {
    const query = url.searchParams;
    const listed = operation === 'watchlist' && this.watchList !== 'ignored';
    const problem = listed ? this.watchListProblem(query) : null;
    if (problem !== null) {
      fail(answer, encoding, problem);
      return;
    }
    const version = query.get('resourceVersion') ?? '';
    const from = operation === 'watchlist' || version === '' || version === '0' ? null : Number(version);
    const seconds = query.get('timeoutSeconds');
    const watch = new ServedWatch(
      {
        resource: target.resource,
        selected,
        from,
        initialEventsEnd: listed,
        bookmarks: query.get('allowWatchBookmarks') !== null,
        timeoutSeconds: seconds === null ? null : Number(seconds),
        bookmarkMs: this.options.bookmarkMs,
      },
      this.store,
      encoding,
      answer,
    );
    answer.head(200, { 'content-type': encoding.watchContentType });
    if (fault?.type === 'errorEvent') watch.error(fault);
    else if (listed && this.watchList === 'errorEvent') watch.error(NO_PROGRESS);
    else if (listed && Number(version) > this.store.version)
      watch.error(tooLargeVersion(Number(version), this.store.version));
    else this.keep(watch, answer);
  }

  private keep(watch: ServedWatch, answer: Answer): void {
    this.watches.add(watch);
    answer.onClose(() => {
      watch.close();
      this.watches.delete(watch);
    });
    watch.start();
  }

  private watchListProblem(query: URLSearchParams): StatusFields | null {
    const allowed = this.watchList !== 'invalid' && query.get('resourceVersionMatch') === 'NotOlderThan';
    const message = 'ListOptions.meta.k8s.io "" is invalid: sendInitialEvents: Forbidden';
    return allowed ? null : { code: 422, reason: 'Invalid', message };
  }
}

/** A request on its way through. */
interface Call {
  readonly method: string;
  readonly url: URL;
  readonly body: Buffer;
  readonly contentType: string;
  readonly encoding: Encoding;
  readonly target: Target | null;
  readonly operation: Operation;
  readonly answer: Answer;
  readonly fault: Fault | null;
}

const NOT_FOUND: StatusFields = {
  code: 404,
  reason: 'NotFound',
  message: 'the server could not find the requested resource',
  details: {},
};

const FORBIDDEN: StatusFields = { code: 403, reason: 'Forbidden', message: 'forbidden: no rule allows it' };

const ALREADY_EXISTS: StatusFields = { code: 409, reason: 'AlreadyExists', message: 'the event already exists' };

function sameName(one: ApiObject, other: ApiObject): boolean {
  return keyOf(nameOf(one)) === keyOf(nameOf(other));
}

const NO_PROGRESS: StatusFields = {
  code: 500,
  reason: 'InternalError',
  message:
    'a watch stream was requested by the client but the required storage feature RequestWatchProgress is disabled',
};

function operationOf(method: string, url: URL, target: Target | null): Operation {
  if (method !== 'GET') return 'write';
  if (target !== null && target.name !== null) return 'get';
  const watch = url.searchParams.get('watch');
  if (watch !== '1' && watch !== 'true') return 'list';
  return url.searchParams.get('sendInitialEvents') === 'true' ? 'watchlist' : 'watch';
}

function send(answer: Answer, status: number, content: { readonly contentType: string; readonly bytes: Buffer }): void {
  answer.head(status, { 'content-type': content.contentType });
  answer.write(content.bytes);
  answer.end();
}

/** A time to wait is said twice, as the real server does: in the Status and in a header. */
function fail(answer: Answer, encoding: Encoding, status: StatusFields): void {
  const seconds = status.details?.['retryAfterSeconds'];
  answer.head(status.code, {
    'content-type': encoding.contentType,
    ...(typeof seconds === 'number' ? { 'retry-after': String(seconds) } : {}),
  });
  answer.write(encoding.object(statusObject(status)));
  answer.end();
}

function failWith(response: ServerResponse, encoding: Encoding, fault: Fault & { readonly type: 'status' }): void {
  const { code, reason = '', message = `fault ${code}`, retryAfter, body } = fault;
  response.writeHead(code, {
    'content-type': body === undefined ? encoding.contentType : 'text/plain',
    ...(retryAfter === undefined ? {} : { 'retry-after': String(retryAfter) }),
  });
  response.end(body ?? encoding.object(statusObject({ code, reason, message })));
}

async function readBody(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}
