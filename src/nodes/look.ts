import { setTimeout as sleep } from 'node:timers/promises';
import { isMapping, type Mapping } from '../base/mapping.js';
import type { NodeAnswer } from '../serve/ui/node-answer.js';
import type { NodeRow, NodesReport } from './api.js';
import type { ClusterApi } from './cluster-api.js';
import { readNodes, readPods, readVersions, type PodPlace, type ProxyPod } from './cluster.js';
import { differencesOf, lasting, type Differences } from './differences.js';
import { NoAnswer, type ProxyAsker } from './proxy-asker.js';
import { makeReport, ownReasons, summaryOf, type NodeFinding } from './report.js';

/** How many nodes are asked at a time. */
export const AT_ONCE = 32;
/** How long a change may take: after that time whoever differed is looked at again. */
export const PATIENCE_MS = 2000;

export interface LookParts {
  readonly api: ClusterApi;
  readonly asker: ProxyAsker;
  readonly place: PodPlace;
  /** Only tests have another than {@link PATIENCE_MS}. */
  readonly patienceMs: number;
}

/** One that answered. */
interface Look {
  readonly pod: ProxyPod;
  readonly answer: NodeAnswer;
  readonly differences: Differences;
}

/**
 * Asks the proxies of all nodes, and those that differ from the API server a second time.
 *
 * @throws ClusterError when the API server does not answer.
 */
export async function lookAtNodes(parts: LookParts): Promise<NodesReport> {
  const { api, place, patienceMs } = parts;
  const [nodes, pods, actual] = await Promise.all([readNodes(api), readPods(api, place, null), readVersions(api)]);
  const look = async (pod: ProxyPod): Promise<Look | NodeFinding> => lookAt(parts, pod, actual);
  const first = await inTurns([...nodes], async (node) => {
    const pod = pods.get(node);
    return pod === undefined ? withoutPod(node, place) : look(pod);
  });
  if (!first.some(isDoubtful))
    return makeReport(
      new Date(),
      first.map((each) => judged(each, null)),
    );
  await sleep(patienceMs);
  const later = await readVersions(api);
  const findings = await inTurns(first, async (each) => {
    if (!isDoubtful(each)) return judged(each, null);
    const again = await lookAt(parts, each.pod, later);
    return 'row' in again ? again : judged(again, each);
  });
  return makeReport(new Date(), findings);
}

async function lookAt(
  { asker }: LookParts,
  pod: ProxyPod,
  actual: Parameters<typeof differencesOf>[3],
): Promise<Look | NodeFinding> {
  try {
    const answer = readAnswer(await asker.ask(pod, 'api/node'));
    return { pod, answer, differences: await differencesOf(asker, pod, answer, actual) };
  } catch (error) {
    if (!(error instanceof NoAnswer)) throw error;
    const why = pod.isRunning ? error.message : `its pod does not run; ${error.message}`;
    const healthCheck = error.mayBeWell ? await asker.askHealth(pod) : null;
    return finding({ node: pod.node, pod: pod.name, state: 'no-answer', why: [why], healthCheck });
  }
}

/** A proxy of another release, or who stands in its place, may answer something else, which is no reason to say nothing of the others. @throws NoAnswer */
function readAnswer(said: Mapping): NodeAnswer {
  const { overview, held, problems, pendingMs, moreProblems } = said;
  const isUnderstood =
    isOverview(overview) &&
    areMappings(held, (each) => areTexts(each, 'resource') && Array.isArray(each['sums'])) &&
    areMappings(problems, (each) => areTexts(each, 'service', 'problem', 'text')) &&
    (pendingMs === null || typeof pendingMs === 'number') &&
    typeof moreProblems === 'number';
  if (isUnderstood) return said as unknown as NodeAnswer;
  throw new NoAnswer('an answer that this release does not understand', true);
}

function isOverview(overview: unknown): boolean {
  if (!isMapping(overview) || !areTexts(overview, 'release', 'mode', 'startedAt')) return false;
  const { health, services } = overview;
  return (
    typeof services === 'number' &&
    isMapping(health) &&
    areMappings(health['reasons'], (each) => areTexts(each, 'text'))
  );
}

function areMappings(value: unknown, fits: (each: Mapping) => boolean): boolean {
  return Array.isArray(value) && value.every((each) => isMapping(each) && fits(each));
}

function areTexts(mapping: Mapping, ...names: readonly string[]): boolean {
  return names.every((name) => typeof mapping[name] === 'string');
}

function isDoubtful(look: Look | NodeFinding): look is Look {
  return 'answer' in look && look.differences.objects.length + Number(look.differences.more) > 0;
}

/** @param before an earlier look at the same node, by which it differed; null: there was none. */
function judged(look: Look | NodeFinding, before: Look | null): NodeFinding {
  if ('row' in look) return look;
  const { pod, answer } = look;
  const { overview, pendingMs, held, problems } = answer;
  const still = before === null ? NONE : lasting(before.differences, look.differences);
  const differs = still.objects.length > 0;
  const isLate = pendingMs !== null && pendingMs >= PATIENCE_MS;
  const state = !overview.health.healthy
    ? 'unhealthy'
    : differs
      ? 'differs'
      : isLate || before !== null
        ? 'lags'
        : 'in-step';
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

type Told = Pick<NodeRow, 'node' | 'state' | 'why'> & Partial<NodeRow>;

function finding(row: Told): NodeFinding {
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
