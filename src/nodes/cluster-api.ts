import { request as requestPlain, type IncomingMessage, type OutgoingHttpHeaders } from 'node:http';
import { request as requestTls, type RequestOptions } from 'node:https';
import { KubeConfig } from '@kubernetes/client-node/dist/config.js';
import { messageOf } from '../base/error-message.js';
import { isMapping, parseMapping, type Mapping } from '../base/mapping.js';
import { readTextWithin } from '../base/read-text.js';

/** Why the cluster could not be asked; the message says it all. */
export class ClusterError extends Error {
  override readonly name = 'ClusterError';
}

export interface ClusterQuestion {
  readonly method?: 'GET' | 'POST';
  readonly headers?: Readonly<Record<string, string>>;
  /** JSON. */
  readonly body?: string;
  /** Of the answer. */
  readonly maxBytes: number;
  readonly timeoutMs: number;
}

export interface ClusterAnswer {
  readonly status: number;
  readonly body: string;
}

/** Objects at a time of a list, and how large that may get. */
const PAGE = 1000;
const MAX_PAGE_BYTES = 64 << 20;
const LIST_TIMEOUT_MS = 60_000;

/** What the client takes where it finds nothing. */
const GUESSED = 'http://localhost:8080';

/** The API server of a kubeconfig. */
export class ClusterApi {
  private constructor(
    private readonly config: KubeConfig,
    private readonly server: string,
  ) {}

  /**
   * @param kubeconfig empty: as kubectl finds one, or as a pod.
   * @throws ClusterError
   */
  static open(kubeconfig: string): ClusterApi {
    const config = new KubeConfig();
    try {
      if (kubeconfig === '') config.loadFromDefault();
      else config.loadFromFile(kubeconfig);
    } catch (error) {
      throw new ClusterError(`--kubeconfig: ${kubeconfig}: ${messageOf(error)}`, { cause: error });
    }
    const server = config.getCurrentCluster()?.server ?? '';
    if (kubeconfig === '' && server === GUESSED)
      throw new ClusterError('there is no kubeconfig: give one with --kubeconfig or KUBECONFIG');
    // Without TLS there is nothing to verify, which the client wants to be told.
    if (server.startsWith('http:'))
      config.clusters = config.clusters.map((cluster) => ({ ...cluster, skipTLSVerify: true }));
    if (!URL.canParse(server))
      throw new ClusterError(`--kubeconfig: ${kubeconfig}: its current context names no cluster with a server`);
    return new ClusterApi(config, server.replace(/\/$/, ''));
  }

  /** @throws Error of the system, or one that says that the answer is too large or late. */
  async ask(
    path: string,
    { method = 'GET', headers = {}, body, maxBytes, timeoutMs }: ClusterQuestion,
  ): Promise<ClusterAnswer> {
    const options: RequestOptions = {};
    await this.config.applyToHTTPSOptions(options);
    const url = new URL(`${this.server}${path}`);
    const start = url.protocol === 'http:' ? requestPlain : requestTls;
    const signal = AbortSignal.timeout(timeoutMs);
    const own = options.headers as OutgoingHttpHeaders | undefined;
    const asked = { ...options, method, signal, headers: { ...own, ...headers } };
    try {
      const response = await new Promise<IncomingMessage>((resolve, reject) => {
        start(url, asked, resolve).once('error', reject).end(body);
      });
      const tooLong = (): Error => new ClusterError(`an answer of more than ${maxBytes} bytes`);
      return { status: response.statusCode ?? 0, body: await readTextWithin(response, maxBytes, tooLong) };
    } catch (error) {
      throw signal.aborted ? new ClusterError(`no answer within ${timeoutMs / 1000} s`, { cause: error }) : error;
    }
  }

  /**
   * Every object of a collection.
   *
   * @param isMetadata whether only `metadata` is wanted.
   * @throws ClusterError
   */
  async *list(path: string, query: Readonly<Record<string, string>>, isMetadata: boolean): AsyncGenerator<Mapping> {
    const accept = isMetadata ? METADATA_ONLY : 'application/json';
    let next: string | null = '';
    while (next !== null) {
      const parameters = new URLSearchParams({
        ...query,
        limit: String(PAGE),
        ...(next === '' ? {} : { continue: next }),
      });
      const page = await this.page(`${path}?${parameters.toString()}`, accept);
      const { items, metadata } = page;
      for (const item of Array.isArray(items) ? items : []) if (isMapping(item)) yield item;
      const more = isMapping(metadata) ? metadata['continue'] : null;
      next = typeof more === 'string' && more !== '' ? more : null;
    }
  }

  private async page(path: string, accept: string): Promise<Mapping> {
    const [collection = ''] = path.split('?', 1);
    let answer: ClusterAnswer;
    try {
      answer = await this.ask(path, {
        headers: { Accept: accept },
        maxBytes: MAX_PAGE_BYTES,
        timeoutMs: LIST_TIMEOUT_MS,
      });
    } catch (error) {
      throw new ClusterError(`${this.server}${collection}: ${messageOf(error)}`, { cause: error });
    }
    const { status, body } = answer;
    const said = parseMapping(body);
    if (status === 200 && said !== null) return said;
    throw new ClusterError(
      `${this.server}${collection}: ${status}: ${statusMessage(body) ?? 'an answer that is no list'}`,
    );
  }
}

const METADATA_ONLY = 'application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io,application/json';

/** What the API server itself says, which is a Status; null: it is somebody else who says it. */
export function statusMessage(body: string): string | null {
  const said = parseMapping(body);
  if (said?.['kind'] !== 'Status') return null;
  return typeof said['message'] === 'string' ? said['message'] : '';
}
