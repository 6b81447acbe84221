import { setTimeout as sleep } from 'node:timers/promises';
import { messageOf } from '../../../src/base/error-message.js';
import type { NodeRow, NodesReport } from './api.js';
import type { ClusterApi } from './cluster-api.js';
import { readNodes, readPods, readVersions, type PodPlace, type ProxyPod } from './cluster.js';
import { differencesOf, lasting, type Differences } from './differences.js';
import { readNodeAnswer, type CheckedAnswer } from './node-answer.js';
import { NoAnswer, type ProxyAsker } from './proxy-asker.js';
import { makeReport, ownReasons, summaryOf, type NodeFinding } from './report.js';

/** How many nodes are asked at a time. */
export const AT_ONCE = 32;
/** How long a change may take: after that time each node that differed is looked at again. */
export const PATIENCE_MS = 2000;
/** For all that is asked of one node at a time; its health checks may take a few seconds more. */
export const NODE_MS = 20_000;

interface LookParts {
  readonly api: ClusterApi;
  readonly asker: ProxyAsker;
  readonly place: PodPlace;
  /** Names of the nodes to ask; absent or empty: all. */
  readonly names?: readonly string[];
  /** Only tests have another than {@link PATIENCE_MS}. */
  readonly patienceMs: number;
  /** Only tests have another than {@link NODE_MS}. */
  readonly nodeMs?: number;
}

/** One that answered. */
interface Look {
  readonly pod: ProxyPod;
  readonly answer: CheckedAnswer;
  readonly differences: Differences;
}

/**
 * Asks the proxies of all nodes, and those that differ from the API server a second time.
 *
 * @throws ClusterError when the API server does not answer.
 */
export async function lookAtNodes(parts: LookParts): Promise<NodesReport> {
  const { api, place, names = [], patienceMs } = parts;
  const [known, pods, actual] = await Promise.all([readNodes(api), readPods(api, place, null), readVersions(api)]);
  const nodes = names.length === 0 ? known : [...new Set(names)];
  const look = async (pod: ProxyPod): Promise<Look | NodeFinding> => lookAt(parts, pod, actual);
  const first = await inTurns([...nodes], async (node) => {
    const pod = pods.get(node);
    if (pod !== undefined) return look(pod);
    return known.includes(node) ? withoutPod(node, place) : withoutNode(node);
  });
  if (!first.some(isUnknown))
    return makeReport(
      new Date(),
      first.map((each) => judged(each, null)),
    );
  await sleep(patienceMs);
  const later = await readVersions(api);
  const findings = await inTurns(first, async (each) => {
    if (!isUnknown(each)) return judged(each, null);
    const again = await lookAt(parts, each.pod, later);
    return 'row' in again ? again : judged(again, each);
  });
  return makeReport(new Date(), findings);
}

/** The answer of one node, or why it has no usable one: in any case it ends neither the command nor the look at other nodes. */
async function lookAt(
  { asker, nodeMs = NODE_MS }: LookParts,
  pod: ProxyPod,
  actual: Parameters<typeof differencesOf>[3],
): Promise<Look | NodeFinding> {
  const time = new AbortController();
  const timer = setTimeout(() => {
    time.abort(new Error(`its answers take more than ${nodeMs / 1000} s`));
  }, nodeMs);
  const { signal } = time;
  try {
    const answer = readNodeAnswer(await asker.ask(pod, 'api/node', signal));
    return { pod, answer, differences: await differencesOf(asker, pod, answer, actual, signal) };
  } catch (error) {
    const problem = error instanceof NoAnswer ? error : new NoAnswer(`an unusable answer: ${messageOf(error)}`, true);
    const why = pod.isRunning ? problem.message : `its pod does not run; ${problem.message}`;
    const healthCheck = problem.mayBeWell ? await asker.askHealth(pod) : null;
    return finding({ node: pod.node, pod: pod.name, state: 'no-answer', why: [why], healthCheck });
  } finally {
    clearTimeout(timer);
  }
}

function isUnknown(look: Look | NodeFinding): look is Look {
  return 'answer' in look && look.differences.objects.length + Number(look.differences.more) > 0;
}

/** @param before an earlier look at the same node, by which it differed; null: there was none. */
function judged(look: Look | NodeFinding, before: Look | null): NodeFinding {
  if ('row' in look) return look;
  const { pod, answer } = look;
  const { healthy, pendingMs, held, problems } = answer;
  const still = before === null ? NONE : lasting(before.differences, look.differences);
  const differs = still.objects.length > 0;
  const isLate = pendingMs !== null && pendingMs >= PATIENCE_MS;
  const state = !healthy ? 'unhealthy' : differs ? 'differs' : isLate || before !== null ? 'lags' : 'in-step';
  const shown = differs ? still : (before?.differences ?? NONE);
  const row = {
    ...({ node: pod.node, pod: pod.name, state, proxy: summaryOf(answer) } as const),
    why: [
      ...(isLate ? [`a change waits for the kernel for ${(pendingMs / 1000).toFixed(1)} s`] : []),
      ...(held.length === 0 ? ['it reads nothing from an API server, so there is nothing to compare'] : []),
      ...ownReasons(answer),
    ],
    differences: shown.objects,
    moreDifferences: shown.more,
  };
  return { ...finding(row), problems };
}

const NONE: Differences = { objects: [], more: false };

function withoutPod(node: string, { namespace, selector }: PodPlace): NodeFinding {
  return finding({ node, state: 'no-proxy', why: [`no pod of ${selector} in ${namespace} is on it`] });
}

function withoutNode(node: string): NodeFinding {
  return finding({ node, state: 'no-proxy', why: ['the API server has no Node of this name'] });
}

type FetchedReport = Pick<NodeRow, 'node' | 'state' | 'why'> & Partial<NodeRow>;

function finding(row: FetchedReport): NodeFinding {
  const nothing = { pod: null, proxy: null, healthCheck: null, differences: [], moreDifferences: false };
  return { row: { ...nothing, ...row }, problems: [] };
}

/** {@link AT_ONCE} at a time; answers in the order of what was asked. */
async function inTurns<Item, Answer>(items: readonly Item[], ask: (item: Item) => Promise<Answer>): Promise<Answer[]> {
  const answers: Answer[] = [];
  let next = 0;
  const worker = async (): Promise<void> => {
    for (let at = next++; at < items.length; at = next++) answers[at] = await ask(items[at] as Item);
  };
  await Promise.all(Array.from({ length: Math.min(AT_ONCE, items.length) }, worker));
  return answers;
}
