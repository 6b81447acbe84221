import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Test } from 'tap';
import { PASSED_TOKEN_HEADER } from '../../../src/base/passed-token.js';
import { boundPort, shut } from '../../../src/serve/listener.js';

/** What is behind a pod's port: what answers there, or what the API server says when it cannot reach it; null: it never answers. */
export type Backend = ((request: IncomingMessage, response: ServerResponse) => unknown) | string | null;

export interface FrontPod {
  readonly name: string;
  readonly node: string;
  readonly command?: readonly string[];
  readonly phase?: string;
  /** By port, as `http:10249`; what is not there is refused. */
  readonly backends: Readonly<Record<string, Backend>>;
}

type Versions = Readonly<Record<string, string>>;

const REFUSED = 'dial tcp 10.0.0.5:10249: connect: connection refused';
const PAGE = 3;

/** As much of an API server as asks proxies of nodes: lists in pages, tokens of ServiceAccounts, and the way to pods, on which it takes `Authorization` away. */
export class ClusterFront {
  nodes: readonly string[] = [];
  pods: readonly FrontPod[] = [];
  /** Where the pods are, and what fits them; null: whatever is asked for. */
  namespace = 'kube-system';
  selector: string | null = null;
  services: Versions = {};
  slices: Versions = {};
  /** Of the ServiceAccount; null: there is none. */
  token: string | null = null;
  /** What is refused, by the beginning of its path. */
  forbidden: string | null = null;
  readonly asked: string[] = [];
  /** Where the ServiceAccount's token was sent, as `https:proxy-a:10249`. */
  readonly reported = new Set<string>();
  /** Called when versions are listed. */
  onList: () => void = () => undefined;
  /** Requests that are on their way to pods, and the most at one time. */
  under = 0;
  peak = 0;
  kubeconfig = '';

  answer(request: IncomingMessage, response: ServerResponse): void {
    const url = new URL(request.url ?? '/', 'http://cluster');
    const { pathname } = url;
    this.asked.push(`${request.method ?? ''} ${pathname}`);
    const proxied = /^\/api\/v1\/namespaces\/[^/]+\/pods\/(https?):([^:/]+):(\d+)\/proxy(\/.*)$/.exec(pathname);
    if (this.forbidden !== null && pathname.startsWith(this.forbidden)) sendStatus(response, 403, 'forbidden: no rule');
    else if (proxied !== null) this.proxy(proxied, url, request, response);
    else if (/\/pods\/[^/]+\/log$/.test(pathname)) response.end(`log of ${pathname.split('/').at(-2) ?? ''}\n`);
    else if (pathname.endsWith('/serviceaccounts/pointsman-nodes/token')) this.sendToken(response);
    else this.list(url, request, response);
  }

  private sendToken(response: ServerResponse): void {
    if (this.token === null) sendStatus(response, 404, 'serviceaccounts "pointsman-nodes" not found');
    else sendJson(response, 201, { kind: 'TokenRequest', status: { token: this.token } });
  }

  private proxy(
    [, scheme = '', name = '', port = '', path = '']: RegExpExecArray,
    url: URL,
    request: IncomingMessage,
    response: ServerResponse,
  ): void {
    this.peak = Math.max(this.peak, ++this.under);
    response.once('close', () => this.under--);
    const pod = this.pods.find((each) => each.name === name);
    if (pod === undefined) {
      sendStatus(response, 404, `pods "${name}" not found`);
      return;
    }
    const backend = pod.backends[`${scheme}:${port}`] ?? (`${scheme}:${port}` in pod.backends ? null : REFUSED);
    if (PASSED_TOKEN_HEADER in request.headers) this.reported.add(`${scheme}:${name}:${port}`);
    delete request.headers.authorization;
    request.url = `${path}${url.search}`;
    if (typeof backend === 'string') sendStatus(response, 503, `error trying to reach service: ${backend}`);
    else backend?.(request, response);
  }

  private list({ pathname, searchParams }: URL, { headers }: IncomingMessage, response: ServerResponse): void {
    const items = this.collection(pathname, searchParams);
    if (items === null) {
      sendStatus(response, 404, 'not found');
      return;
    }
    const from = Number(searchParams.get('continue') ?? '0');
    const isMetadata = (headers.accept ?? '').includes('as=PartialObjectMetadataList');
    const page = items.slice(from, from + PAGE);
    sendJson(response, 200, {
      metadata: from + PAGE < items.length ? { continue: String(from + PAGE) } : {},
      items: isMetadata ? page.map(({ metadata }) => ({ metadata })) : page,
    });
  }

  private collection(path: string, query: URLSearchParams): readonly { readonly metadata: object }[] | null {
    const objects = (versions: Versions): readonly { readonly metadata: object }[] =>
      Object.entries(versions).map(([key, resourceVersion]) => {
        const [namespace, name] = key.split('/');
        return { metadata: { namespace, name, resourceVersion } };
      });
    switch (path) {
      case '/api/v1/nodes':
        return this.nodes.map((name) => ({ metadata: { name } }));
      case `/api/v1/namespaces/${this.namespace}/pods`:
        return this.pods
          .filter(() => [null, query.get('labelSelector')].includes(this.selector))
          .filter(({ node }) => [null, `spec.nodeName=${node}`].includes(query.get('fieldSelector')))
          .map(({ name, node, command = [], phase = 'Running' }) => ({
            metadata: { name },
            spec: { nodeName: node, containers: [{ command, ports: [{ name: 'metrics', containerPort: 10_249 }] }] },
            status: { phase },
          }));
      case '/api/v1/services':
        if (!query.has('continue')) this.onList();
        return objects(this.services);
      case '/apis/discovery.k8s.io/v1/endpointslices':
        return objects(this.slices);
      default:
        return null;
    }
  }
}

/** One that listens, and a kubeconfig for it. */
export async function clusterFront(t: Test): Promise<ClusterFront> {
  const front = new ClusterFront();
  const server = createServer((request, response) => {
    front.answer(request, response);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const folder = mkdtempSync(join(tmpdir(), 'nodes-'));
  front.kubeconfig = join(folder, 'kubeconfig');
  writeFileSync(front.kubeconfig, kubeconfigOf(boundPort(server) ?? 0));
  t.teardown(async () => {
    await shut(server);
    rmSync(folder, { recursive: true });
  });
  return front;
}

function kubeconfigOf(port: number): string {
  const cluster = { server: `http://127.0.0.1:${port}` };
  return JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 'test',
    clusters: [{ name: 'test', cluster }],
    users: [{ name: 'test', user: { token: 'of-the-operator' } }],
    contexts: [{ name: 'test', context: { cluster: 'test', user: 'test' } }],
  });
}

function sendJson(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { 'Content-Type': 'application/json' }).end(JSON.stringify(body));
}

function sendStatus(response: ServerResponse, code: number, message: string): void {
  sendJson(response, code, { kind: 'Status', apiVersion: 'v1', status: 'Failure', message, code });
}

/** Answers as a proxy behind access control that wants a token: by 401 without, and by 403 for another. */
export function behindAccessControl(
  token: string,
  pages: Exclude<Backend, string | null>,
): Exclude<Backend, string | null> {
  return (request, response) => {
    const shown = request.headers[PASSED_TOKEN_HEADER];
    if (shown === `Bearer ${token}`) return pages(request, response);
    const [status, text] = shown === undefined ? [401, 'Unauthorized: no token'] : [403, 'Forbidden (user="x")'];
    return response.writeHead(status).end(`${text}\n`);
  };
}
