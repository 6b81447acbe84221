import { formatted } from './formatted.js';
import type { RunningProcess } from './running-process.js';
import type { StatusAnswer } from './status-socket.js';

/** Where the status socket serves what, and how it is asked. */
export const STATUS_PAGE = '/status';
export const EXPLAIN_PAGE = '/explain';
/** What goes through Services, where it is counted. */
export const TRAFFIC_PAGE = '/traffic';
/** The forwarding table: `planText()` makes what `pointsman plan` prints of it. */
export const PLAN_PAGE = '/plan';
export const METRICS_PAGE = '/metrics';
/** How the process was started. Credentials may be among its arguments, so they are for commands and not to be kept. */
export const ARGUMENTS_PAGE = '/arguments';
/** Serves a Service of the test itself while the asker is connected. */
export const SELFTEST_PAGE = '/selftest';
/** Holds every credential that the process has, so it is served here alone. */
export const HEAP_SNAPSHOT_PAGE = '/heap-snapshot';

/** What the status socket serves. */
export function statusPages(
  running: RunningProcess,
): ReadonlyMap<string, (query: URLSearchParams) => Promise<StatusAnswer>> {
  return new Map<string, (query: URLSearchParams) => Promise<StatusAnswer>>([
    [STATUS_PAGE, (query: URLSearchParams) => answerStatus(running, query)],
    [EXPLAIN_PAGE, (query: URLSearchParams) => answerExplain(running, query)],
    [TRAFFIC_PAGE, () => answerTraffic(running)],
    [PLAN_PAGE, () => answerPlan(running)],
    [METRICS_PAGE, async () => ({ status: 200, text: await running.metrics() })],
    [ARGUMENTS_PAGE, () => Promise.resolve({ status: 200, text: JSON.stringify(argumentsOf()) })],
    [SELFTEST_PAGE, (query: URLSearchParams) => answerSelftest(running, query)],
    [HEAP_SNAPSHOT_PAGE, answerHeapSnapshot],
  ]);
}

/** The process stands still while it is taken. */
async function answerHeapSnapshot(): Promise<StatusAnswer> {
  const { getHeapSnapshot } = await import('node:v8');
  return { status: 200, stream: getHeapSnapshot() };
}

async function answerPlan(running: RunningProcess): Promise<StatusAnswer> {
  // Loaded only when it is asked for.
  const { planStream } = await import('./plan-stream.js');
  return { status: 200, stream: planStream(running) };
}

/** What a process was started with. */
export interface ProcessArguments {
  readonly argv: readonly string[];
  /** What relative paths are relative to. */
  readonly folder: string;
}

function argumentsOf(): ProcessArguments {
  return { argv: process.argv.slice(2), folder: process.cwd() };
}

async function answerStatus(running: RunningProcess, query: URLSearchParams): Promise<StatusAnswer> {
  // Loaded only when it is asked for.
  const { statusAnswer } = await import('./status-answer.js');
  return statusAnswer(running, query.get('output'));
}

async function answerTraffic(running: RunningProcess): Promise<StatusAnswer> {
  const traffic = await running.traffic();
  if (traffic === null)
    return {
      status: 400,
      text: 'traffic is not counted: set --service-telemetry, in a DaemonSet among the arguments of its container',
    };
  return { status: 200, text: JSON.stringify(traffic) };
}

async function answerSelftest(running: RunningProcess, query: URLSearchParams): Promise<StatusAnswer> {
  // Loaded only when it is asked for.
  const { lendService, readEndpoint } = await import('./selftest-service.js');
  const given = query.getAll('endpoint').map(readEndpoint);
  const wrong = given.find((each) => typeof each === 'string');
  if (wrong !== undefined) return { status: 400, text: wrong };
  const endpoints = given.filter((each) => typeof each !== 'string');
  return await lendService(running, Number(query.get('block')), endpoints);
}

async function answerExplain(running: RunningProcess, query: URLSearchParams): Promise<StatusAnswer> {
  // Loaded only when it is asked for.
  const { explainPacket, isForwarded, printExplainedPacket } = await import('./explain-packet.js');
  const answer = await explainPacket(running, query.get('from') ?? 'external', query.get('to') ?? '');
  if ('problem' in answer) return { status: 400, text: answer.problem };
  const text = formatted(answer, query.get('output'), printExplainedPacket);
  return { status: 200, text, well: isForwarded(answer) };
}
