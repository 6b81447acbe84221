import { createHash } from 'node:crypto';
import { resolve } from 'node:path';
import { Archive, archivePlace } from '../../../src/base/archive.js';
import { messageOf } from '../../../src/base/error-message.js';
import { CONTROLS, printableText } from '../../../src/base/printable.js';
import { planText } from '../../../src/serve/plan-stream.js';
import { ClusterApi, ClusterError, statusMessage } from './cluster-api.js';
import { POD_PLACE, readNodes, readPods, type ProxyPod } from './cluster.js';
import { NoAnswer, ProxyAsker, TIMEOUT_MS } from './proxy-asker.js';

interface ReportedNodes {
  /** Empty: as kubectl finds one. */
  readonly kubeconfig: string;
  /** Empty: its current one. */
  readonly context: string;
  /** Empty: all nodes. */
  readonly node: string;
  /** Namespace of the proxies' pods; empty: the one of {@link POD_PLACE}. */
  readonly namespace: string;
  readonly selector: string;
  /** What is written; empty: named after node and time, in this folder. */
  readonly file: string;
}

/** Nodes that are asked at a time: what they answered is in memory until it is written. */
const AT_ONCE = 8;
/** The time of a node, for all of its parts. */
const NODE_MS = 60_000;
/** Bytes of one node's parts, as they are written. The plan of 250,000 endpoints takes some 20 MB, and is left out of a report of many. */
const MOST_BYTES = 64 << 20;
const MOST_BYTES_OF_MANY = 8 << 20;
const LOG_LINES = 2000;
const LONGEST_FOLDER = 60;

interface Part {
  readonly name: string;
  readonly what: string;
  /** Below `/ui/` of the proxy; null: it is asked of the API server. */
  readonly page: string | null;
  /** Only where one node is asked: it is long. */
  readonly isLong?: boolean;
}

const PARTS: readonly Part[] = [
  { name: 'overview.json', what: 'health and its reasons, sources, counts', page: 'api/overview' },
  { name: 'triage.json', what: 'problems by kind, and what stands in the way of packets', page: 'api/triage' },
  {
    name: 'configuration.json',
    what: 'the configuration and the flags in force, without credentials',
    page: 'api/configuration',
  },
  { name: 'history.json', what: 'the last syncs, repairs and failures', page: 'api/history' },
  {
    name: 'problems.json',
    what: 'Services with a problem, at most 500',
    page: 'api/services?problems=only&limit=500',
  },
  { name: 'metrics.txt', what: 'metrics, as Prometheus reads them', page: 'api/metrics' },
  {
    name: 'plan.txt',
    what: 'what the process has planned, as pointsman plan prints it',
    page: 'api/plan',
    isLong: true,
  },
  { name: 'log.txt', what: `the last ${LOG_LINES} lines of the log`, page: null },
];

interface Terminal {
  readonly write: (text: string) => Promise<void>;
  readonly complain: (text: string) => void;
}

/** What came of one node. */
interface NodeReport {
  readonly node: string;
  readonly files: readonly { readonly name: string; readonly text: string }[];
  /** A line for each part. */
  readonly lines: readonly string[];
  readonly isWhole: boolean;
}

/**
 * Writes one archive about the proxies of one node or of all, asked through the API server. The exit status: 0 it is whole, 1 a part could not be read, 2 there
 * is none.
 */
export async function bugreportOf(asked: ReportedNodes, { write, complain }: Terminal): Promise<0 | 1 | 2> {
  const now = new Date();
  const subject = asked.node === '' ? 'all-nodes' : folderOf(asked.node);
  const path = archivePlace(asked.file, subject, now);
  try {
    const lines = await reportInto(path, asked, now);
    const said = [`${path ?? 'standard output'}:`, ...lines.texts.map((line) => `  ${line}`)];
    if (path === null) complain(said.join('\n'));
    else await write(`${said.join('\n')}\n`);
    return lines.isWhole ? 0 : 1;
  } catch (error) {
    if (!(error instanceof ClusterError)) throw error;
    complain(error.message);
    return 2;
  }
}

interface Lines {
  readonly texts: readonly string[];
  readonly isWhole: boolean;
}

/** @throws ClusterError */
async function reportInto(path: string | null, asked: ReportedNodes, now: Date): Promise<Lines> {
  const { kubeconfig, context, node } = asked;
  const place = {
    namespace: asked.namespace || POD_PLACE.namespace,
    selector: asked.selector || POD_PLACE.selector,
  };
  const api = await ClusterApi.open(kubeconfig, context);
  const pods = await readPods(api, place, node === '' ? null : node);
  const nodes = node === '' ? await readNodes(api) : [node];
  if (node !== '' && !pods.has(node))
    throw new ClusterError(`--node: ${node}: no pod of ${place.selector} in ${place.namespace} is on it`);
  const archive = await written(path, () => Archive.create(path === null ? null : resolve(path), now));
  try {
    const lines: Lines[] = [];
    const asker = new ProxyAsker(api);
    const parts = PARTS.filter(({ isLong }) => node !== '' || isLong !== true);
    for (let from = 0; from < nodes.length; from += AT_ONCE) {
      const some = nodes.slice(from, from + AT_ONCE);
      const most = node === '' ? MOST_BYTES_OF_MANY : MOST_BYTES;
      const reports = await Promise.all(
        some.map((each) => reportOf({ node: each, pod: pods.get(each) ?? null, parts, most }, api, asker)),
      );
      for (const { node: name, files, lines: texts, isWhole } of reports) {
        const named = files.map((file) => ({
          name: `pointsman/${folderOf(name)}/${file.name}`,
          content: Buffer.from(file.text),
        }));
        await written(path, () => archive.add(named));
        lines.push({ texts, isWhole });
      }
    }
    const all = { texts: lines.flatMap(({ texts }) => texts), isWhole: lines.every(({ isWhole }) => isWhole) };
    const about = Buffer.from(aboutText(node, now, all.texts));
    await written(path, () => archive.add([{ name: 'pointsman/README', content: about }]));
    await written(path, () => archive.end());
    return all;
  } catch (error) {
    await archive.abandon();
    throw error;
  }
}

async function written<Answer>(path: string | null, write: () => Promise<Answer>): Promise<Answer> {
  try {
    return await write();
  } catch (error) {
    throw new ClusterError(`${path ?? 'standard output'}: ${messageOf(error)}`, { cause: error });
  }
}

function aboutText(node: string, now: Date, lines: readonly string[]): string {
  return [
    `pointsman bugreport of ${node === '' ? 'all nodes' : `node ${node}`}, ${now.toISOString()}, through the API server`,
    '',
    'Names and addresses of Services, endpoints and nodes are included; credentials, keys and the environment are not.',
    'Not included is what only a node can read: dump.txt and diff.txt (the rules in the kernel, and how they differ from the plan), foreign rules,',
    'sysctls, modules and routes. The metrics address does not serve them. Run `pointsman bugreport` in the pod of the node.',
    ...(node === '' ? ['Nor are plans: use `--node NAME`.'] : []),
    '',
    ...lines,
    '',
  ].join('\n');
}

/** One node, the parts that it is asked for, and the bytes that all of them may take. */
interface Question {
  readonly node: string;
  readonly pod: ProxyPod | null;
  readonly parts: readonly Part[];
  readonly most: number;
}

async function reportOf({ node, pod, parts, most }: Question, api: ClusterApi, asker: ProxyAsker): Promise<NodeReport> {
  if (pod === null) return { node, files: [], lines: [`${node}: no pod of the proxy is on it`], isWhole: false };
  const signal = AbortSignal.timeout(NODE_MS);
  const files: NodeReport['files'][number][] = [];
  const lines: string[] = [];
  let isWhole = true;
  let left = most;
  for (const { name, what, page } of parts) {
    const at = `${folderOf(node)}/${name}`;
    try {
      const answer = page === null ? await logOf(pod, api, signal, left) : await asker.askText(pod, page, signal, left);
      const text = printed(name === 'plan.txt' ? planText(answer) : answer, left);
      left -= Buffer.byteLength(text);
      files.push({ name, text });
      lines.push(`${at}: ${what}`);
    } catch (error) {
      const problem = printableText(error instanceof NoAnswer ? error.message : messageOf(error));
      files.push({ name, text: `could not be read: ${problem}\n` });
      lines.push(`${at}: ${what}; could not be read: ${problem}`);
      isWhole = false;
    }
  }
  return { node, files, lines, isWhole };
}

/** @throws NoAnswer where it takes more bytes once control characters are escaped, each of which takes up to six. */
function printed(text: string, most: number): string {
  let bytes = Buffer.byteLength(text);
  for (const [control] of text.matchAll(CONTROLS)) {
    bytes += 6 - Buffer.byteLength(control);
    if (bytes > most) throw new NoAnswer(`more than the ${most} bytes that are left for this node`, true);
  }
  return printableText(text);
}

async function logOf(
  { namespace, name }: ProxyPod,
  api: ClusterApi,
  signal: AbortSignal,
  maxBytes: number,
): Promise<string> {
  const pod = `/api/v1/namespaces/${encodeURIComponent(namespace)}/pods/${encodeURIComponent(name)}`;
  const question = { maxBytes, timeoutMs: TIMEOUT_MS, signal };
  const { status, body } = await api.ask(`${pod}/log?tailLines=${LOG_LINES}`, question);
  if (status === 200) return body;
  throw new ClusterError(`${status} by the API server: ${statusMessage(body) ?? body.slice(0, 200)}`);
}

/** A node's name as that of a folder: names in an archive are short. One that has to be changed keeps apart from others by its digest. */
function folderOf(node: string): string {
  const name = node.replace(/[^-.\w]/g, '_').slice(0, LONGEST_FOLDER);
  if (name === node) return name;
  const digest = createHash('sha256').update(node).digest('hex').slice(0, 16);
  return `${name.slice(0, LONGEST_FOLDER - digest.length - 1)}-${digest}`;
}
