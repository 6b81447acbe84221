import { familyOf } from '../base/ip.js';
import { printableLine, printableText } from '../base/printable.js';
import type { Config } from '../config/config.js';
import type { Loaded } from '../config/load.js';
import type { FamilySync } from '../control/family-sync.js';
import type { Progress } from '../control/progress.js';
import { planSettings } from '../control/settings.js';
import { OWN_VERSION } from '../control/sources.js';
import type { Host } from '../host/host.js';
import type { HealthState } from '../observe/health.js';
import type { SourceState } from '../observe/metrics.js';
import { printStatus, type FamilyState, type ProcessStatus } from '../observe/process-status.js';
import type { ForwardingTable } from '../plan/forwarding-table.js';
import { parseQuestion, QuestionError } from '../plan/question.js';
import { printConflict } from '../plan/text.js';
import type { StatusAnswer } from '../serve/status-socket.js';
import type { Snapshot } from '../state/snapshot.js';

/** What of the running process may be looked at. */
export interface RunningProcess {
  readonly host: Host;
  readonly loaded: () => Loaded;
  /** Why changed configuration files are not in force; null: they are. */
  readonly refusal: () => string | null;
  /** What planning goes by. */
  readonly planned: () => Config;
  readonly snapshot: Snapshot;
  readonly families: readonly FamilySync[];
  readonly health: HealthState;
  readonly progress: Progress;
  readonly sources: () => readonly SourceState[];
  /** Names of the sources that have not said all they knew at their start. */
  readonly waitingFor: () => readonly string[];
  /** On the clock of the progress, in milliseconds. */
  readonly now: () => number;
}

/** Where the status socket serves what, and how it is asked. */
export const STATUS_PAGE = '/status';
export const EXPLAIN_PAGE = '/explain';
/** Holds every credential that the process has, so it is served here alone. */
export const HEAP_SNAPSHOT_PAGE = '/heap-snapshot';

/** What the status socket serves. */
export function statusPages(
  running: RunningProcess,
): ReadonlyMap<string, (query: URLSearchParams) => Promise<StatusAnswer>> {
  return new Map<string, (query: URLSearchParams) => Promise<StatusAnswer>>([
    [STATUS_PAGE, (query: URLSearchParams) => answerStatus(running, query)],
    [EXPLAIN_PAGE, (query: URLSearchParams) => answerExplain(running, query)],
    [HEAP_SNAPSHOT_PAGE, answerHeapSnapshot],
  ]);
}

/** An answer in the form asked for. */
export function formatted<Answer>(
  answer: Answer,
  output: string | null,
  print: (answer: Answer) => readonly string[],
): string {
  if (output === 'json') return printableText(`${JSON.stringify(answer, null, 1)}\n`);
  return print(answer)
    .map((line) => `${printableLine(line)}\n`)
    .join('');
}

/** The process stands still while it is taken. */
async function answerHeapSnapshot(): Promise<StatusAnswer> {
  const { getHeapSnapshot } = await import('node:v8');
  return { status: 200, stream: getHeapSnapshot() };
}

function answerStatus(running: RunningProcess, query: URLSearchParams): Promise<StatusAnswer> {
  const text = formatted(processStatus(running), query.get('output'), printStatus);
  return Promise.resolve({ status: 200, text });
}

async function answerExplain(running: RunningProcess, query: URLSearchParams): Promise<StatusAnswer> {
  // Loaded only when it is asked for.
  const { explainRunning, printExplainedPacket } = await import('./explain-packet.js');
  try {
    if (!running.snapshot.ready)
      throw new QuestionError(`the process is still reading ${running.waitingFor().join(', ')}, see pointsman status`);
    const question = parseQuestion(query.get('from') ?? 'external', query.get('to') ?? '');
    const family = familyOf(question.destination);
    const sync = running.families.find(({ table }) => table.family === family);
    if (sync === undefined) throw new QuestionError(`this node does not serve ${family}`);
    const { table, dataplane } = sync;
    const planned = { snapshot: running.snapshot, table, settings: planSettings(running.planned()) };
    const aside = running.progress.of(family)?.aside ?? [];
    const answer = await explainRunning(
      planned,
      running.host,
      dataplane,
      { pendingMs: pendingMs(running), aside },
      question,
    );
    return { status: 200, text: formatted(answer, query.get('output'), printExplainedPacket) };
  } catch (error) {
    if (error instanceof QuestionError) return { status: 400, text: error.message };
    throw error;
  }
}

function pendingMs({ progress: { waitingSince }, now }: RunningProcess): number | null {
  return waitingSince === null ? null : now() - waitingSince;
}

function processStatus(running: RunningProcess): ProcessStatus {
  const { snapshot, health } = running;
  const { version, config } = running.loaded();
  const { rss, heapUsed, external } = process.memoryUsage();
  const uptimeSeconds = process.uptime();
  return {
    version,
    release: OWN_VERSION,
    pid: process.pid,
    mode: config.mode,
    node: config.nodeName,
    startedAt: new Date(Date.now() - uptimeSeconds * 1000).toISOString(),
    uptimeSeconds,
    ready: snapshot.ready,
    gaps: snapshot.gaps,
    sources: running.sources(),
    healthy: health.healthy(),
    nodeEligible: health.nodeEligible,
    pendingMs: pendingMs(running),
    held: health.held(),
    refusedConfiguration: running.refusal(),
    families: running.families.map((sync) => familyState(sync, running)),
    memory: { residentBytes: rss, heapBytes: heapUsed, externalBytes: external },
  };
}

function familyState({ table, history }: FamilySync, { health, progress, now }: RunningProcess): FamilyState {
  const { family } = table;
  const { recent, slowest, failures, repairs } = history;
  return {
    family,
    healthy: health.families().some((status) => status.family === family && status.healthy),
    ...countTable(table),
    pendingFrontends: progress.of(family)?.pendingFrontends ?? 0,
    conflicts: [...table.conflicts()].map(printConflict),
    setAside: (progress.of(family)?.aside ?? []).map(({ since, ...aside }) => ({
      ...aside,
      sinceSeconds: (now() - since) / 1000,
    })),
    unplanned: [...table.unplanned].map(([service, reason]) => ({ service, reason })),
    recentSyncs: recent,
    slowestSyncs: slowest,
    failures,
    repairs,
  };
}

function countTable(table: ForwardingTable): Pick<FamilyState, 'services' | 'frontends' | 'endpoints'> {
  const endpoints = new Map<string, number>();
  let frontends = 0;
  for (const { servicePort, protocol, endpoints: list } of table.frontends()) {
    frontends++;
    const port = `${servicePort}/${protocol}`;
    endpoints.set(port, Math.max(endpoints.get(port) ?? 0, list.count));
  }
  return {
    services: [...table.services()].length,
    frontends,
    endpoints: [...endpoints.values()].reduce((sum, count) => sum + count, 0),
  };
}
