import { systemClock } from '../../../src/base/clock.js';
import { messageOf } from '../../../src/base/error-message.js';
import type { Log } from '../../../src/base/log.js';
import { isMapping, parseMapping, type Mapping } from '../../../src/base/mapping.js';
import { cutMessage } from '../../../src/base/outside-text.js';
import { readTextWithin } from '../../../src/base/read-text.js';
import { systemDependencies } from '../../../src/sources/kubernetes/auth/credentials.js';
import { usualKubeconfig } from '../../../src/sources/kubernetes/auth/usual-kubeconfig.js';
import { connectToApi } from '../../../src/sources/kubernetes/connect/transport.js';
import type { ApiConnection, ApiQuery } from '../../../src/sources/kubernetes/connection.js';
import { SERVICE_CIDRS, SERVICES, type Resource } from '../../../src/sources/kubernetes/resources.js';
import type { ClusterAnswers, ObjectPage } from './checked-input.js';
import { ofFile, type Finding } from './findings.js';

/** What a running cluster keeps of its own configuration. */

interface ClusterOptions {
  /** Empty: as kubectl would find it. */
  readonly kubeconfig: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Gets all objects, so many at a time. */
  readonly take: (page: ObjectPage) => void;
}

/** ConfigMaps as kubeadm writes them. Other keys are unknown here. */
const NAMESPACE = 'kube-system';
const CONFIG_MAPS: readonly { readonly name: string; readonly keys: readonly string[] }[] = [
  { name: 'kubeadm-config', keys: ['ClusterConfiguration'] },
  { name: 'kube-proxy', keys: ['config.conf', 'kubeconfig.conf'] },
  { name: 'kubelet-config', keys: ['kubelet'] },
];

const OBJECTS: readonly Pick<Resource, 'kind' | 'apiVersion' | 'path'>[] = [
  { kind: 'Node', apiVersion: 'v1', path: '/api/v1/nodes' },
  SERVICES,
  SERVICE_CIDRS,
];

/** Objects in an answer. */
const PAGE_SIZE = '500';
/** The limit of one answer. An object has 1.5 MiB at most, and few have a hundredth of that. */
const MAX_ANSWER_BYTES = 256 << 20;
const ANSWER_MS = 60_000;

/** Reads what it may, and reports the rest. Nothing is thrown. */
export async function readCluster(options: ClusterOptions): Promise<ClusterAnswers> {
  const notes: string[] = [];
  const log: Log = {
    info: () => undefined,
    warn: (message) => notes.push(message),
    error: (error, message) => notes.push(`${message}: ${messageOf(error)}`),
  };
  const unreadable: string[] = [];
  const reading = new Reading(options.take, unreadable);
  let connection: ApiConnection | null = null;
  try {
    connection = await connectToApi({
      kubeconfig: options.kubeconfig === '' ? usualKubeconfig(options.env) : options.kubeconfig,
      master: '',
      qps: -1,
      burst: 1,
      userAgent: 'pointsman-check',
      clock: systemClock,
      log,
      dependencies: { ...systemDependencies(log, systemClock), env: options.env },
    });
    await reading.all(connection);
  } catch (error) {
    unreadable.push(`the cluster: ${messageOf(error)}`);
  } finally {
    connection?.close();
  }
  const { release, texts, findings } = reading;
  return { release, texts, findings, unreadable, notes };
}

/** The API server will answer nothing else either. */
class RefusedError extends Error {}

class Reading {
  release: number | null = null;
  readonly texts: (readonly [file: string, text: string])[] = [];
  readonly findings: Finding[] = [];

  constructor(
    private readonly take: (page: ObjectPage) => void,
    private readonly unreadable: string[],
  ) {}

  /** @throws ApiError where no answer comes, RefusedError where we are not let in. */
  async all(connection: ApiConnection): Promise<void> {
    const version = await this.#ask(connection, 'the version of the API server', '/version');
    this.release = releaseOf(version);
    for (const { name, keys } of CONFIG_MAPS) await this.#configMap(connection, name, keys);
    for (const resource of OBJECTS) await this.#objects(connection, resource);
  }

  async #configMap(connection: ApiConnection, name: string, keys: readonly string[]): Promise<void> {
    const file = `ConfigMap ${NAMESPACE}/${name}`;
    const configMap = await this.#ask(connection, file, `/api/v1/namespaces/${NAMESPACE}/configmaps/${name}`);
    if (configMap === null) return;
    const data = isMapping(configMap['data']) ? configMap['data'] : {};
    for (const key of keys) {
      const text = data[key];
      if (typeof text === 'string') this.texts.push([`${file}, key ${key}`, text]);
      else this.#warn(file, `has no key ${key}`);
    }
  }

  /** Page after page, so that a large cluster is not in memory as a whole. */
  async #objects(connection: ApiConnection, { kind, apiVersion, path }: (typeof OBJECTS)[number]): Promise<void> {
    const file = `${kind}s`;
    for (let next: string | null = ''; next !== null;) {
      const query: ApiQuery = { limit: PAGE_SIZE, ...(next === '' ? {} : { continue: next }) };
      const list = await this.#ask(connection, file, path, query);
      const items = Array.isArray(list?.['items']) ? (list['items'] as readonly unknown[]) : [];
      this.take({ file, kind, apiVersion, items });
      next = continuationOf(list);
    }
  }

  /** Null where there is no usable answer, which has been reported. */
  async #ask(connection: ApiConnection, file: string, path: string, query: ApiQuery = {}): Promise<Mapping | null> {
    const { status, answer } = await get(connection, path, query);
    const message = typeof answer?.['message'] === 'string' ? cutMessage(answer['message']) : `status ${status}`;
    if (status === 200 && answer !== null) return answer;
    // The next page, of what has changed since the first one.
    if (status === 410 && continuationOf(answer) !== null) return answer;
    if (status === 401) throw new RefusedError(`the API server does not accept the credentials: ${message}`);
    if (status === 403) this.#warn(file, `may not be read: ${message}`);
    // Before Kubernetes 1.33 there are none.
    else if (status === 404 && path !== SERVICE_CIDRS.path) this.#warn(file, 'is not there');
    else if (status === 200) this.unreadable.push(`${file}: the answer is no object of JSON`);
    else if (status !== 404) this.unreadable.push(`${file}: ${message}`);
    return null;
  }

  #warn(file: string, problem: string): void {
    this.findings.push(ofFile('warning', 'not-read', file, problem));
  }
}

/** @throws ApiError, or Error where an answer has no end. */
async function get(
  connection: ApiConnection,
  path: string,
  query: ApiQuery,
): Promise<{ readonly status: number; readonly answer: Mapping | null }> {
  const controller = new AbortController();
  const { signal } = controller;
  const timer = setTimeout(() => {
    controller.abort(new Error(`${path}: no whole answer within ${ANSWER_MS / 1000} s`));
  }, ANSWER_MS);
  try {
    const { status, body } = await connection.get(path, query, { accept: 'application/json', signal });
    const tooLong = (): Error => new Error(`${path}: answer longer than ${MAX_ANSWER_BYTES} bytes`);
    return { status, answer: parseMapping(await readTextWithin(body, MAX_ANSWER_BYTES, tooLong)) };
  } finally {
    clearTimeout(timer);
  }
}

/** The continuation of a list; null: that was all of it. */
function continuationOf(list: Mapping | null): string | null {
  const metadata = isMapping(list?.['metadata']) ? list['metadata'] : {};
  const { continue: next } = metadata;
  return typeof next === 'string' && next !== '' ? next : null;
}

/** Some clouds put a plus sign behind it. */
function releaseOf(version: Mapping | null): number | null {
  const { major, minor } = version ?? {};
  const [digits] = typeof minor === 'string' ? (/^\d{1,3}/.exec(minor) ?? []) : [];
  return major === '1' && digits !== undefined ? Number(digits) : null;
}
