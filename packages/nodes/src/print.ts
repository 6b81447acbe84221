import { greatest } from '../../../src/base/extremes.js';
import { trimEnd } from '../../../src/base/text.js';
import type { Difference, NodeRow, NodesReport, NodeState, ServiceAcross } from './api.js';
import { NODE_STATES } from './report.js';

/** As many of a row, a Service's nodes and rows of Services are named. */
const SHOWN_DIFFERENCES = 3;
const SHOWN_NODES = 5;
const SHOWN_SERVICES = 50;

const STATE_WORDS: Readonly<Record<NodeState, string>> = {
  'no-proxy': 'NO PROXY',
  'no-answer': 'NO ANSWER',
  unhealthy: 'NOT HEALTHY',
  differs: 'DIFFERS',
  lags: 'lags',
  'in-step': 'in step',
};

const PROBLEM_WORDS: Readonly<Record<ServiceAcross['problem'], string>> = {
  unplanned: 'cannot be planned',
  quarantined: 'quarantined, because the kernel refuses it',
  conflict: 'in conflict',
};

export interface Shown {
  /** Nodes in step as well. */
  readonly all: boolean;
  /** Columns that few need as well. */
  readonly isWide: boolean;
}

/** The report for people: nodes that are not in step or have something to report, then Services, then how many there are of each kind. */
export function printReport(report: NodesReport, { all, isWide }: Shown): readonly string[] {
  const { nodes, services, counts } = report;
  const shown = nodes.filter(({ state, why }) => all || state !== 'in-step' || why.length > 0);
  const table = shown.length === 0 ? [] : columns([HEADER, ...shown.map(cellsOf)], isWide ? HEADER.length : NARROW);
  const rows = table.flatMap((line, index) => [line, ...(index === 0 ? [] : moreOf(shown[index - 1]))]);
  const more = services.length - SHOWN_SERVICES;
  const counted = NODE_STATES.filter((state) => counts[state] > 0).map(
    (state) => `${counts[state]} ${STATE_WORDS[state]}`,
  );
  return [
    ...rows,
    ...(services.length === 0 || rows.length === 0 ? [] : ['']),
    ...services.slice(0, SHOWN_SERVICES).map((service) => printService(service, nodes.length)),
    ...(more > 0 ? [`and ${more} more; -o json has all`] : []),
    ...(rows.length + services.length === 0 ? [] : ['']),
    `${nodes.length} ${nodes.length === 1 ? 'node' : 'nodes'}${counted.length === 0 ? '' : `: ${counted.reverse().join(', ')}`}`,
  ];
}

const HEADER = ['NODE', 'STATE', 'MODE', 'RELEASE', 'SERVICES', 'PROBLEMS', 'POD', 'STARTED', 'DIFFERENCES'];
/** How many of the columns are always there. */
const NARROW = 7;

function cellsOf({ node, state, proxy, pod, differences, moreDifferences }: NodeRow): readonly string[] {
  const { mode = '-', release = '-', services = '-', problems = '-', startedAt = '-' } = proxy ?? {};
  const differing = `${differences.length}${moreDifferences ? '+' : ''}`;
  const cells = [node, STATE_WORDS[state], mode, release, String(services), String(problems), pod ?? '-'];
  return [...cells, startedAt, differing];
}

function moreOf(row: NodeRow | undefined): readonly string[] {
  if (row === undefined) return [];
  const { why, healthCheck, differences, moreDifferences } = row;
  const rest = differences.length - SHOWN_DIFFERENCES;
  return [
    ...why,
    ...(healthCheck === null ? [] : [`its health check ${healthCheck ? 'passes' : 'FAILS'}`]),
    ...differences.slice(0, SHOWN_DIFFERENCES).map(printDifference),
    ...(rest > 0 || moreDifferences ? [`and ${moreDifferences ? 'at least ' : ''}${Math.max(rest, 1)} more`] : []),
  ].map((line) => `  ${line}`);
}

function printDifference({ resource, object, held, actual }: Difference): string {
  const what = `${resource} ${object}`;
  if (held === null) return `${what} is not there; the API server has version ${actual ?? ''}`;
  if (actual === null) return `${what} is still there in version ${held}; the API server no longer has it`;
  return `${what} is there in version ${held}; the API server has ${actual}`;
}

function printService({ service, problem, text, nodes }: ServiceAcross, total: number): string {
  const names = nodes.slice(0, SHOWN_NODES).join(', ');
  const rest = nodes.length - SHOWN_NODES;
  const where =
    nodes.length === total && total > 1 ? `all ${total} nodes` : `${names}${rest > 0 ? ` and ${rest} more` : ''}`;
  return `${service} ${PROBLEM_WORDS[problem]} on ${where}: ${text}`;
}

/** Cells below each other, of as many columns. */
function columns(rows: readonly (readonly string[])[], count: number): readonly string[] {
  const shown = rows.map((cells) => cells.slice(0, count));
  const widths = HEADER.slice(0, count).map((_, column) => greatest(shown.map((cells) => cells[column]?.length ?? 0)));
  return shown.map((cells) => trimEnd(cells.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join('  '), ' '));
}
