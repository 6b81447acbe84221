import type { NodeProblem } from '../../page/src/node-answer.js';
import type { NodeRow, NodesReport, NodeState, ProxySummary, ServiceAcross } from './api.js';
import type { CheckedAnswer } from './node-answer.js';

/** The worst first. */
export const NODE_STATES = [
  'no-proxy',
  'no-answer',
  'unhealthy',
  'differs',
  'lags',
  'in-step',
] as const satisfies readonly NodeState[];

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

export function summaryOf(answer: CheckedAnswer): ProxySummary {
  const { release, mode, startedAt, services, problems, moreProblems } = answer;
  return { release, mode, startedAt, services, problems: problems.length + moreProblems };
}

/** Kinds that are reported with the Services. */
const WITH_SERVICES: readonly string[] = ['quarantined', 'unplanned', 'conflict'];

/** Reasons of a proxy's own that are not reported with the Services. */
export function ownReasons({ reasons }: Pick<CheckedAnswer, 'reasons'>): readonly string[] {
  return reasons
    .filter(({ kind }) => !WITH_SERVICES.includes(kind))
    .map(
      ({ family, text, since }) =>
        `${family === null ? '' : `${family}: `}${text}${since === null ? '' : ` (since ${since})`}`,
    );
}
