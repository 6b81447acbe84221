import type { HealthReason } from '../serve/ui/api.js';
import type { NodeAnswer, NodeProblem } from '../serve/ui/node-answer.js';
import type { Difference } from './differences.js';

/** How a node's proxy is doing, the worst first. */
export const NODE_STATES = ['no-proxy', 'no-answer', 'unhealthy', 'differs', 'lags', 'in-step'] as const;
export type NodeState = (typeof NODE_STATES)[number];

/** One node of `pointsman nodes -o json`. */
export interface NodeRow {
  readonly node: string;
  readonly state: NodeState;
  /** Null: it has none. */
  readonly pod: string | null;
  /** What its proxy says of itself; null: it gave no answer. */
  readonly proxy: ProxySummary | null;
  /** Whether its health checks say that it is well, where nothing else could be asked; null: not asked, or no answer. */
  readonly healthCheck: boolean | null;
  /** Why it is in this state, and what else is not as it should be, in sentences. */
  readonly why: readonly string[];
  /** Objects that it holds in another version than the API server; of many some. */
  readonly differences: readonly Difference[];
  readonly moreDifferences: boolean;
}

export interface ProxySummary {
  readonly release: string;
  readonly mode: string;
  readonly startedAt: string;
  readonly services: number;
  /** Of Services: how many problems it has of each kind. */
  readonly problems: number;
}

/** A problem of a Service, with all nodes that have it. */
export interface ServiceAcross extends NodeProblem {
  readonly nodes: readonly string[];
}

/** What `pointsman nodes -o json` prints. */
export interface NodesReport {
  /** RFC 3339. */
  readonly at: string;
  readonly counts: Readonly<Record<NodeState, number>>;
  /** The worst first. */
  readonly nodes: readonly NodeRow[];
  /** Of proxies that gave an answer, the most widespread first. */
  readonly services: readonly ServiceAcross[];
}

/** What came of asking one node. */
export interface NodeFinding {
  readonly row: NodeRow;
  readonly problems: readonly NodeProblem[];
}

export function makeReport(at: Date, findings: readonly NodeFinding[]): NodesReport {
  const rows = findings.map(({ row }) => row);
  const counts = Object.fromEntries(
    NODE_STATES.map((state) => [state, rows.filter((row) => row.state === state).length]),
  ) as Record<NodeState, number>;
  const nodes = NODE_STATES.flatMap((state) => rows.filter((row) => row.state === state));
  return { at: at.toISOString(), counts, nodes, services: across(findings) };
}

/** Whether there is nothing to look at. */
export function isWell({ counts, nodes, services }: NodesReport): boolean {
  return counts['in-step'] === nodes.length && services.length === 0 && nodes.every(({ why }) => why.length === 0);
}

function across(findings: readonly NodeFinding[]): readonly ServiceAcross[] {
  const found = new Map<string, ServiceAcross & { readonly nodes: string[] }>();
  for (const { row, problems } of findings)
    for (const each of problems) {
      const key = JSON.stringify([each.problem, each.service, each.text]);
      const same = found.get(key) ?? { ...each, nodes: [] };
      same.nodes.push(row.node);
      found.set(key, same);
    }
  return [...found.values()].sort(
    (one, other) => other.nodes.length - one.nodes.length || (one.service < other.service ? -1 : 1),
  );
}

export function summaryOf({ overview, problems, moreProblems }: NodeAnswer): ProxySummary {
  const { release, mode, startedAt, services } = overview;
  return { release, mode, startedAt, services, problems: problems.length + moreProblems };
}

/** Of what is told with the Services. */
const WITH_SERVICES: readonly HealthReason['kind'][] = ['set-aside', 'unplanned', 'conflict'];

/** Reasons of a proxy's own that are not told with the Services. */
export function ownReasons({ overview: { health } }: NodeAnswer): readonly string[] {
  return health.reasons
    .filter(({ kind }) => !WITH_SERVICES.includes(kind))
    .map(
      ({ family, text, since }) =>
        `${family === null ? '' : `${family}: `}${text}${since === null ? '' : ` (since ${since})`}`,
    );
}
