import { messageOf } from '../../../src/base/error-message.js';
import { isMapping, parseMapping, type Mapping } from '../../../src/base/mapping.js';
import { cutMessage } from '../../../src/base/outside-text.js';
import { PASSED_TOKEN_HEADER } from '../../../src/base/passed-token.js';
import type { ProxyPod } from './cluster.js';
import { statusMessage, type ClusterAnswer, type ClusterApi, type ClusterQuestion } from './cluster-api.js';

/** Why a node's proxy gave no answer, for people. */
export class NoAnswer extends Error {
  override readonly name = 'NoAnswer';

  /** @param mayBeWell whether something is there, so that its health checks are worth asking. */
  constructor(
    message: string,
    readonly mayBeWell: boolean,
  ) {
    super(cutMessage(message));
  }
}

/** An API server takes longer only for a node that is gone. */
export const TIMEOUT_MS = 10_000;
export const HEALTH_TIMEOUT_MS = 5000;
/** A part of the versions of the largest cluster is a tenth of it. */
const MAX_BYTES = 4 << 20;
const MAX_HEALTH_BYTES = 256 << 10;
/** As whom proxies are asked that want to know, in the namespace of their pods. */
const SERVICE_ACCOUNT = 'pointsman-nodes';
/** The shortest that the API server gives. */
const TOKEN_SECONDS = 600;

type Scheme = 'http' | 'https';
type AskLimits = Pick<ClusterQuestion, 'maxBytes'> & { readonly signal: AbortSignal };

/** Asks proxies through the API server, which reaches their pods. */
export class ProxyAsker {
  /** What each pod was last found to speak. */
  private readonly schemes = new Map<string, Scheme>();
  /** Pods whose proxies authenticate their clients. */
  private readonly asking = new Set<string>();
  /** Token of the ServiceAccount, asked for once; resolves to null where there is none to be had. */
  private token: Promise<string | null> | null = null;

  constructor(private readonly api: ClusterApi) {}

  /** Tokens end: the next proxy that wants one is shown another. */
  renew(): void {
    this.token = null;
  }

  /**
   * What a page below a proxy's `/ui/` answers.
   *
   * @param page such as `api/node`.
   * @param signal ends the request, and those that it takes besides.
   * @throws NoAnswer
   */
  async ask(pod: ProxyPod, page: string, signal: AbortSignal): Promise<Mapping> {
    const answer = await this.askAuthenticated(pod, `ui/${page}`, signal, MAX_BYTES);
    const reported = answer.status === 200 ? parseMapping(answer.body) : null;
    if (reported !== null) return reported;
    throw await this.refusal(answer, pod);
  }

  /** As {@link ask}, where what is answered is any text. */
  async askText(pod: ProxyPod, page: string, signal: AbortSignal, maxBytes: number): Promise<string> {
    const answer = await this.askAuthenticated(pod, `ui/${page}`, signal, maxBytes);
    if (answer.status === 200) return answer.body;
    throw await this.refusal(answer, pod);
  }

  private async refusal(answer: ClusterAnswer, pod: ProxyPod): Promise<NoAnswer> {
    return refusal(answer, pod, this.asking.has(pod.name) && (await this.token) === null);
  }

  /** Whether its health checks report it as healthy; null: they report nothing. */
  async askHealth(pod: ProxyPod): Promise<boolean | null> {
    try {
      const path = pathTo(pod, 'http', pod.healthPort, 'healthz');
      const { body } = await this.api.ask(path, { maxBytes: MAX_HEALTH_BYTES, timeoutMs: HEALTH_TIMEOUT_MS });
      const healthy = parseMapping(body)?.['healthy'];
      return typeof healthy === 'boolean' ? healthy : null;
    } catch {
      return null;
    }
  }

  /** Asks without a token first: a proxy that authenticates no clients receives no token, and no proxy receives one without TLS. */
  private async askAuthenticated(
    pod: ProxyPod,
    page: string,
    signal: AbortSignal,
    maxBytes: number,
  ): Promise<ClusterAnswer> {
    const ask = (token: string | null): Promise<ClusterAnswer> =>
      this.askEitherWay(pod, page, token, { signal, maxBytes });
    if (this.asking.has(pod.name)) return ask(await this.tokenFor(pod));
    const answer = await ask(null);
    const isAsked = [401, 403].includes(answer.status) && statusMessage(answer.body) === null;
    if (!isAsked || this.schemes.get(pod.name) !== 'https') return answer;
    this.asking.add(pod.name);
    const token = await this.tokenFor(pod);
    return token === null ? answer : ask(token);
  }

  private tokenFor({ namespace }: ProxyPod): Promise<string | null> {
    return (this.token ??= this.requestToken(namespace));
  }

  /** Asks by TLS or without, whichever the pod speaks. */
  private async askEitherWay(
    pod: ProxyPod,
    page: string,
    token: string | null,
    limits: AskLimits,
  ): Promise<ClusterAnswer> {
    const first = this.schemes.get(pod.name) ?? (pod.saysTls ? 'https' : 'http');
    const answer = await this.askBy(first, pod, page, token, limits);
    if (!isOtherScheme(answer)) {
      this.schemes.set(pod.name, first);
      return answer;
    }
    const other = first === 'http' ? 'https' : 'http';
    const second = await this.askBy(other, pod, page, token, limits);
    if (isOtherScheme(second)) return answer;
    this.schemes.set(pod.name, other);
    return second;
  }

  private async askBy(
    scheme: Scheme,
    pod: ProxyPod,
    page: string,
    token: string | null,
    limits: AskLimits,
  ): Promise<ClusterAnswer> {
    const headers = token === null || scheme === 'http' ? {} : { [PASSED_TOKEN_HEADER]: `Bearer ${token}` };
    try {
      const path = pathTo(pod, scheme, pod.metricsPort, page);
      return await this.api.ask(path, { headers, timeoutMs: TIMEOUT_MS, ...limits });
    } catch (error) {
      throw new NoAnswer(messageOf(error), true);
    }
  }

  /** For ten minutes, which is of no use but to read pages of proxies. Null: there is no such ServiceAccount, or we may not be it. */
  private async requestToken(namespace: string): Promise<string | null> {
    const path = `/api/v1/namespaces/${encodeURIComponent(namespace)}/serviceaccounts/${SERVICE_ACCOUNT}/token`;
    const body = JSON.stringify({
      apiVersion: 'authentication.k8s.io/v1',
      kind: 'TokenRequest',
      spec: { expirationSeconds: TOKEN_SECONDS },
    });
    try {
      const answer = await this.api.ask(path, {
        method: 'POST',
        body,
        maxBytes: 1 << 20,
        timeoutMs: TIMEOUT_MS,
      });
      const status = parseMapping(answer.body)?.['status'];
      const token = isMapping(status) ? status['token'] : null;
      return typeof token === 'string' && token !== '' ? token : null;
    } catch {
      return null;
    }
  }
}

function pathTo({ namespace, name }: ProxyPod, scheme: Scheme, port: number, page: string): string {
  const target = `${scheme}:${encodeURIComponent(name)}:${port}`;
  return `/api/v1/namespaces/${encodeURIComponent(namespace)}/pods/${target}/proxy/${page}`;
}

const REFUSED = /connection refused/i;
const UNREACHED = /refused|time-?out|timed out|no route|unreachable|deadline|no such host/i;

/** Whether an answer shows that the other end speaks TLS where we did not, or the other way round. */
function isOtherScheme({ status, body }: ClusterAnswer): boolean {
  if (status === 400) return /HTTP request to an HTTPS server/.test(body);
  return status >= 500 && body.includes(PROXY_FAILED) && !UNREACHED.test(body);
}

/** The answer of an API server that cannot reach a pod. */
const PROXY_FAILED = 'error trying to reach service';
const WHAT_TO_DO = 'see docs/nodes.md';

/** @param isAnonymous whether we were asked for a token and had none. */
function refusal({ status, body }: ClusterAnswer, pod: ProxyPod, isAnonymous: boolean): NoAnswer {
  const reported = statusMessage(body);
  const text = (reported ?? pageError(body) ?? body).trim();
  if (text.includes(PROXY_FAILED) && REFUSED.test(text))
    return new NoAnswer(
      `nothing listens on port ${pod.metricsPort} of the node's address: metricsBindAddress is loopback by default; ${WHAT_TO_DO}`,
      true,
    );
  if (text.includes(PROXY_FAILED)) return new NoAnswer(`the API server cannot reach it: ${text}`, true);
  if (reported !== null) return new NoAnswer(`${status} by the API server: ${text}`, false);
  if (status === 404) return new NoAnswer('404: it has no such page, so it is kube-proxy or an earlier release', true);
  const asWhom = isAnonymous
    ? `, and no token could be obtained for the ServiceAccount ${pod.namespace}/${SERVICE_ACCOUNT}`
    : '';
  if (status === 401 || status === 403)
    return new NoAnswer(`${status} by the proxy: ${text}${asWhom}; ${WHAT_TO_DO}`, true);
  return new NoAnswer(`${status} by the proxy: ${text}`, true);
}

/** The content of a page of ours; null: it is none. */
function pageError(body: string): string | null {
  const error = parseMapping(body)?.['error'];
  return typeof error === 'string' ? error : null;
}
