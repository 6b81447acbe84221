import { systemClock } from '../../../src/base/clock.js';
import { messageOf } from '../../../src/base/error-message.js';
import type { Log } from '../../../src/base/log.js';
import { isMapping, parseMapping, type Mapping } from '../../../src/base/mapping.js';
import { readTextWithin } from '../../../src/base/read-text.js';
import { systemDependencies } from '../../../src/sources/kubernetes/auth/credentials.js';
import { usualKubeconfig } from '../../../src/sources/kubernetes/auth/usual-kubeconfig.js';
import type { ApiConnection } from '../../../src/sources/kubernetes/connection.js';
import { connectToApi } from '../../../src/sources/kubernetes/connect/transport.js';

/** Why the cluster could not be asked; the message is complete. */
export class ClusterError extends Error {
  override readonly name = 'ClusterError';
}

export interface ClusterQuestion {
  readonly method?: 'GET' | 'POST';
  readonly headers?: Readonly<Record<string, string>>;
  /** JSON. */
  readonly body?: string;
  /** The limit of the answer's size. */
  readonly maxBytes: number;
  readonly timeoutMs: number;
  /** Ends the request before that. */
  readonly signal?: AbortSignal;
}

export interface ClusterAnswer {
  readonly status: number;
  readonly body: string;
}

/** Objects at a time of a list, and how large that may get. */
const PAGE = 1000;
const MAX_PAGE_BYTES = 64 << 20;
const LIST_TIMEOUT_MS = 60_000;

const SILENT: Log = { info: () => undefined, warn: () => undefined, error: () => undefined };

/** The API server of a kubeconfig, over the connection that the proxy itself uses: with its rules for TLS, credentials and proxies. */
export class ClusterApi {
  private constructor(private readonly connection: ApiConnection) {}

  /**
   * @param kubeconfig empty: as kubectl finds one, or as a pod.
   * @param context of the kubeconfig; empty: its current one.
   * @throws ClusterError
   */
  static async open(kubeconfig: string, context = ''): Promise<ClusterApi> {
    try {
      const connection = await connectToApi({
        kubeconfig: kubeconfig === '' ? usualKubeconfig(process.env) : kubeconfig,
        context,
        master: '',
        qps: -1,
        burst: 1,
        userAgent: 'pointsman-nodes',
        clock: systemClock,
        log: SILENT,
        dependencies: systemDependencies(SILENT, systemClock),
      });
      return new ClusterApi(connection);
    } catch (error) {
      const message = messageOf(error);
      throw new ClusterError(kubeconfig === '' ? message : `--kubeconfig: ${message}`, { cause: error });
    }
  }

  /** @throws Error of the system, or one about an answer that is too large or late. */
  async ask(path: string, question: ClusterQuestion): Promise<ClusterAnswer> {
    const { method = 'GET', headers = {}, body = '', maxBytes, timeoutMs } = question;
    const timer = AbortSignal.timeout(timeoutMs);
    const signal = question.signal === undefined ? timer : AbortSignal.any([timer, question.signal]);
    try {
      if (method === 'POST') return await this.connection.post(path, body, { signal });
      const accept = headers['Accept'] ?? 'application/json';
      const response = await this.connection.get(path, {}, { accept, headers, signal });
      const tooLong = (): Error => new ClusterError(`an answer of more than ${maxBytes} bytes`);
      return { status: response.status, body: await readTextWithin(response.body, maxBytes, tooLong) };
    } catch (error) {
      if (question.signal?.aborted === true) throw question.signal.reason;
      if (!timer.aborted) throw error;
      throw new ClusterError(`no answer within ${timeoutMs / 1000} s`, { cause: error });
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
      throw new ClusterError(`${collection}: ${messageOf(error)}`, { cause: error });
    }
    const { status, body } = answer;
    const reported = parseMapping(body);
    if (status === 200 && reported !== null) return reported;
    throw new ClusterError(`${collection}: ${status}: ${statusMessage(body) ?? 'an answer that is no list'}`);
  }
}

const METADATA_ONLY = 'application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io,application/json';

/** The message of the API server itself, which is a Status; null: the answer comes from another server. */
export function statusMessage(body: string): string | null {
  const reported = parseMapping(body);
  if (reported?.['kind'] !== 'Status') return null;
  return typeof reported['message'] === 'string' ? reported['message'] : '';
}
