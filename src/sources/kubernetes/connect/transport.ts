import { request as httpRequest } from 'node:http';
import type { Clock } from '../../../base/clock.js';
import { errorCode } from '../../../base/error-message.js';
import type { Log } from '../../../base/log.js';
import { goPlatform } from '../../../base/platform.js';
import { readTextWithin } from '../../../base/read-text.js';
import { trimEnd } from '../../../base/text.js';
import type { SourceTracing } from '../../../base/tracing.js';
import { hostOf, resolveAccess, SERVICE_ACCOUNT_DIRECTORY, type Access, type Egress } from '../auth/access.js';
import { Credentials, systemDependencies, type CredentialsDependencies, type Identity } from '../auth/credentials.js';
import { Tunnel } from '../auth/egress.js';
import type { ExecObserver } from '../auth/exec-plugin.js';
import type { TlsClient } from '../auth/tls-trust.js';
import {
  ApiError,
  type ApiAnswer,
  type ApiConnection,
  type ApiQuery,
  type ApiResponse,
  type GetOptions,
  type PostOptions,
} from '../connection.js';
import { abortReason, describe, unlessAborted } from './attempt.js';
import { Body } from './body.js';
import { ConnectionPool, type PooledRequest } from './connection-pool.js';
import { printHostPort, proxyAuthorization, type Destination, type LimitSilence } from './dial.js';
import { OpenWatches } from './open-watches.js';
import { RateLimit } from './rate-limit.js';
import { responseHead } from './response-head.js';

export interface ConnectionOptions {
  /** `clientConnection.kubeconfig`; empty: none. */
  readonly kubeconfig: string;
  /** A context of the kubeconfig; absent or empty: its current one. */
  readonly context?: string;
  /** `--master`; empty: none. */
  readonly master: string;
  /** Requests per second, and how many at once; `qps` negative: unlimited. */
  readonly qps: number;
  readonly burst: number;
  readonly userAgent: string;
  readonly clock: Clock;
  readonly log: Log;
  readonly observer?: RequestObserver;
  /** Follows requests. */
  readonly tracing?: Pick<SourceTracing, 'request'>;
  /** Has the kernel end TCP connections whose other end is silent; absent: only idle ones, after 40 s. */
  readonly limitSilence?: LimitSilence | null;
  /** What an egress selection sets for the way. */
  readonly egress?: Egress | null;
  /** Where a pod's service account is; only tests have another. */
  readonly serviceAccountDirectory?: string;
  /** Only tests have others than the system's. */
  readonly dependencies?: CredentialsDependencies;
}

/** Is notified of every request, for metrics. */
export interface RequestObserver extends ExecObserver {
  /** Headers came, or no answer (status null). Times in milliseconds; `host` as in a URL. */
  answered(method: 'GET' | 'POST', host: string, status: number | null, durationMs: number): void;
  /** How long the rate limit held a request back. */
  delayed(method: 'GET' | 'POST', host: string, durationMs: number): void;
  /** Lengths of bodies in bytes. A watch's answer has no meaningful length. */
  requestSized(method: 'GET' | 'POST', host: string, bytes: number): void;
  responseSized(method: 'GET' | 'POST', host: string, bytes: number): void;
  /** A way to a server was made, or given up. */
  transportCreated(): void;
  transportClosed(): void;
}

/**
 * Opens the way to the API server. Connects to nothing yet, but everything configured is checked, files included.
 *
 * @throws KubeconfigError
 */
export async function connectToApi(options: ConnectionOptions): Promise<ApiConnection> {
  const { kubeconfig, context = '', master, egress = null, log } = options;
  const dependencies = options.dependencies ?? systemDependencies(log, options.clock);
  const serviceAccountDirectory = options.serviceAccountDirectory ?? SERVICE_ACCOUNT_DIRECTORY;
  const access = await resolveAccess({
    kubeconfig,
    context,
    master,
    env: dependencies.env,
    egress,
    serviceAccountDirectory,
  });
  for (const warning of access.warnings) log.warn(`${access.origin}: ${warning}`);
  const credentials = new Credentials(access, dependencies, options.observer ?? null);
  await credentials.check();
  const way = access.proxy;
  const proxy = way?.type === 'tunnel' ? new Tunnel(way, dependencies) : way;
  if (proxy instanceof Tunnel) await proxy.check();
  const proxyName = proxy instanceof Tunnel ? proxy.access.name : (proxy?.host ?? null);
  log.info(0, 'API server', { server: access.server.href, from: access.origin, proxy: proxyName });
  options.observer?.transportCreated();
  return new HttpConnection(access, proxy, credentials, options, dependencies);
}

interface Request {
  readonly method: 'GET' | 'POST';
  readonly target: string;
  readonly headers: Readonly<Record<string, string | number>>;
  readonly body: string | null;
  readonly isWatch: boolean;
  readonly unpaced?: boolean;
  readonly headerTimeoutMs: number;
  readonly signal: AbortSignal;
}

const HEADER_TIMEOUT_MS = 60_000;
const POST_TIMEOUT_MS = 30_000;
const MAX_ANSWER_BYTES = 1 << 20;

class HttpConnection implements ApiConnection {
  private readonly pool = new ConnectionPool();
  private readonly limit: RateLimit;
  private readonly host: string;
  private readonly open = new Set<AbortController>();
  private readonly watches: OpenWatches;
  private closed = false;

  constructor(
    private readonly access: Access,
    private readonly proxy: Destination['proxy'],
    private readonly credentials: Credentials,
    private readonly options: ConnectionOptions,
    { clock, wallClock }: CredentialsDependencies,
  ) {
    this.watches = new OpenWatches({
      clock,
      wallClock,
      refresh: () => this.refresh(),
      dueInMs: () => credentials.dueInMs,
    });
    this.host = access.server.host;
    this.limit = new RateLimit(options.qps, options.burst, () => clock.now());
  }

  get(path: string, query: ApiQuery, options: GetOptions): Promise<ApiResponse> {
    return this.send({
      method: 'GET',
      target: this.target(path, query),
      headers: { ...options.headers, Accept: options.accept },
      body: null,
      isWatch: 'watch' in query,
      headerTimeoutMs: options.headerTimeoutMs ?? HEADER_TIMEOUT_MS,
      signal: options.signal,
    });
  }

  async post(path: string, body: string, options: PostOptions): Promise<ApiAnswer> {
    const type = 'application/json';
    const response = await this.send({
      method: 'POST',
      target: this.target(path, {}),
      headers: { Accept: type, 'Content-Type': type, 'Content-Length': Buffer.byteLength(body), Connection: 'close' },
      body,
      isWatch: false,
      unpaced: options.unpaced === true,
      headerTimeoutMs: POST_TIMEOUT_MS,
      signal: options.signal,
    });
    return { ...response, body: await this.readText(response) };
  }

  close(): void {
    if (!this.closed) this.options.observer?.transportClosed();
    this.closed = true;
    for (const controller of this.open) controller.abort(closedError());
    this.pool.destroy();
    this.credentials.close();
  }

  private target(path: string, query: ApiQuery): string {
    const search = new URLSearchParams(query).toString();
    return `${trimEnd(this.access.server.pathname, '/')}${path}${search === '' ? '' : `?${search}`}`;
  }

  private async readText(response: ApiResponse): Promise<string> {
    const timer = setTimeout(() => {
      response.body.destroy(
        new ApiError('timeout', `${this.host}: no whole answer within ${POST_TIMEOUT_MS / 1000} s`),
      );
    }, POST_TIMEOUT_MS);
    try {
      return await readTextWithin(
        response.body,
        MAX_ANSWER_BYTES,
        () => new ApiError('broken', `${this.host}: answer longer than ${MAX_ANSWER_BYTES} bytes`),
      );
    } finally {
      clearTimeout(timer);
    }
  }

  /** One request as its caller sees it: held back by the rate limit, and made a second time with other credentials where the first are refused. */
  private async send(request: Request): Promise<ApiResponse> {
    if (this.closed) throw closedError();
    const controller = new AbortController();
    const { signal } = controller;
    const forward = (): void => {
      controller.abort(abortReason(request.signal));
    };
    const release = (): void => {
      this.open.delete(controller);
      request.signal.removeEventListener('abort', forward);
    };
    if (request.signal.aborted) throw abortReason(request.signal);
    request.signal.addEventListener('abort', forward, { once: true });
    this.open.add(controller);
    try {
      const delay = request.unpaced === true ? 0 : await this.limit.take(signal);
      if (delay > 0) this.options.observer?.delayed(request.method, this.host, delay);
      const response = await this.sendIdentified({ ...request, signal });
      response.body.once('close', release);
      return response;
    } catch (error) {
      release();
      throw signal.aborted ? abortReason(signal) : error;
    }
  }

  private async sendIdentified(request: Request): Promise<ApiResponse> {
    const identity = await this.identity(request.signal);
    const response = await this.exchange(request, identity);
    if (response.status !== 401 || !(await this.renew(identity, request.signal))) return response;
    response.body.destroy();
    return this.exchange(request, await this.identity(request.signal));
  }

  /** Renews what is due without a request for it. Files and commands that fail report it themselves. */
  private async refresh(): Promise<TlsClient | null | undefined> {
    try {
      const { tls } = await this.credentials.current();
      this.pool.use(tls);
      return tls;
    } catch {
      this.pool.closeIdle();
      return undefined;
    }
  }

  private async identity(signal: AbortSignal): Promise<Identity> {
    try {
      return await unlessAborted(this.credentials.current(), signal);
    } catch (error) {
      throw new ApiError('credentials', `${this.access.origin}: ${describe(error)}`, { cause: error });
    }
  }

  private async renew(identity: Identity, signal: AbortSignal): Promise<boolean> {
    try {
      return await unlessAborted(this.credentials.renew(identity), signal);
    } catch (error) {
      if (signal.aborted) throw error;
      this.options.log.error(error, 'the API server refuses the credentials, and others cannot be had');
      return false;
    }
  }

  /** A connection that the server closed while it was idle shows nothing about the server: a GET is sent again over a new one. */
  private async exchange(request: Request, identity: Identity): Promise<ApiResponse> {
    this.pool.use(identity.tls);
    this.watches.use(identity.tls);
    const startedAt = performance.now();
    const { method, target, body } = request;
    const { observer, tracing } = this.options;
    const trace = tracing?.request(method, this.host, target);
    const sent = trace === undefined ? request : { ...request, headers: { ...request.headers, ...trace.headers } };
    observer?.requestSized(method, this.host, body === null ? 0 : Buffer.byteLength(body));
    const answered = (status: number | null): void => {
      observer?.answered(method, this.host, status, performance.now() - startedAt);
      trace?.answered(status);
    };
    try {
      let response = await this.exchangeOnce(sent, identity);
      if (response === 'stale') {
        this.pool.closeIdle();
        response = await this.exchangeOnce(sent, identity);
      }
      if (response === 'stale')
        throw new ApiError('broken', `${this.host}: the connection was closed before the answer`);
      answered(response.status);
      if (response.status !== 401) this.credentials.accepted(identity);
      return response;
    } catch (error) {
      answered(null);
      throw error;
    }
  }

  private exchangeOnce(request: Request, identity: Identity): Promise<ApiResponse | 'stale'> {
    const { method, body, isWatch, headerTimeoutMs, signal } = request;
    return new Promise((resolve, reject) => {
      const outgoing = httpRequest(this.requestOptions(request, identity));
      let response: Body | null = null;
      const end = (error: Error): void => void (response ?? outgoing).destroy(error);
      const abort = (): void => {
        end(abortReason(signal));
      };
      const timer = setTimeout(() => {
        end(new ApiError('timeout', `${this.host}: no answer within ${headerTimeoutMs / 1000} s`));
      }, headerTimeoutMs);
      signal.addEventListener('abort', abort, { once: true });
      outgoing.on('response', (incoming) => {
        clearTimeout(timer);
        const coding = incoming.headers['content-encoding'] ?? 'identity';
        if (coding !== 'identity') {
          end(this.unwanted(`in content coding ${coding}`));
          return;
        }
        response = new Body(
          incoming,
          (error) => this.describe(error),
          (length) => {
            if (!isWatch) this.options.observer?.responseSized(method, this.host, length);
          },
        );
        if (isWatch) this.watches.add(response, identity.tls);
        resolve({ ...responseHead(incoming), body: response });
      });
      outgoing.on('error', (error) => {
        if (method === 'GET' && outgoing.reusedSocket && !signal.aborted && isReset(error)) resolve('stale');
        else reject(this.describe(error));
      });
      const release = (): void => {
        clearTimeout(timer);
        signal.removeEventListener('abort', abort);
      };
      // Without a listener the request would report nothing any more.
      outgoing.on('upgrade', (_incoming, socket) => {
        release();
        socket.destroy();
        reject(this.unwanted('101'));
      });
      outgoing.on('close', release);
      outgoing.end(body ?? undefined);
      if (signal.aborted) abort();
    });
  }

  private unwanted(answer: string): ApiError {
    return new ApiError('broken', `${this.host}: answered ${answer}, which was not requested`);
  }

  private requestOptions({ method, target, headers, signal }: Request, identity: Identity): PooledRequest {
    const { proxy } = this;
    const { server } = this.access;
    const { tls } = identity;
    // A proxy that reads the request itself needs the server's name in it.
    const readingProxy = tls === null && (proxy?.type === 'http' || proxy?.type === 'https') ? proxy : null;
    const authorization = readingProxy === null ? null : proxyAuthorization(readingProxy);
    return {
      ...(method === 'POST' ? this.pool.single : { agent: this.pool }),
      method,
      path: readingProxy === null ? target : `${server.origin}${target}`,
      setHost: false,
      headers: {
        Host: server.host,
        'User-Agent': this.options.userAgent,
        ...headers,
        ...identity.headers,
        ...(authorization === null ? {} : { 'Proxy-Authorization': authorization }),
      },
      destination: this.destination(tls),
      dialSignal: signal,
    };
  }

  private destination(tls: Identity['tls']): Destination {
    const { server } = this.access;
    const port = server.port === '' ? (server.protocol === 'https:' ? 443 : 80) : Number(server.port);
    const { userAgent, limitSilence = null } = this.options;
    return { host: hostOf(server), port, proxy: this.proxy, tls, userAgent, limitSilence };
  }

  private describe(error: Error): Error {
    if (error instanceof ApiError || error.name === 'AbortError') return error;
    const kind = /^(ERR_SSL|EPROTO)/.test(errorCode(error) ?? '') ? 'tls' : 'broken';
    return new ApiError(
      kind,
      `${printHostPort(hostOf(this.access.server), this.destination(null).port)}: ${describe(error)}`,
      {
        cause: error,
      },
    );
  }
}

function isReset(error: NodeJS.ErrnoException): boolean {
  return error.code === 'ECONNRESET' || error.code === 'EPIPE';
}

function closedError(): ApiError {
  return new ApiError('closed', 'the connection to the API server was closed by us');
}

/** What the server sees of us; kube-proxy's form, so that rules and dashboards that know `kube-proxy/` keep working. */
export function userAgent(kubernetesVersion: string, ownVersion: string): string {
  return `kube-proxy/${kubernetesVersion} (${goPlatform()}) pointsman/${ownVersion}`;
}
