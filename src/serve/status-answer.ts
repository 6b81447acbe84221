import { limitationOf } from '../config/scheduler.js';
import { printFullAffinity } from '../control/affinity-overflow.js';
import { printStatus, type FamilyState, type ProcessStatus } from '../observe/process-status.js';
import { printConflictPair, printLimitation } from '../plan/text.js';
import { formatted } from './formatted.js';
import { observedNode } from './observed-node.js';
import { pendingMs, secondsSince, type FamilyView, type RunningProcess } from './running-process.js';
import type { StatusAnswer } from './status-socket.js';

/** How many of the last syncs a status has. */
const SHOWN_SYNCS = 5;

/** What `pointsman status` is answered. */
export async function statusAnswer(running: RunningProcess, output: string | null): Promise<StatusAnswer> {
  const status = { ...processStatus(running), observations: await observedNode(running) };
  const isWell = status.healthy && status.observations.every(({ severity }) => severity !== 'warning');
  return { status: 200, text: formatted(status, output, printStatus), well: isWell };
}

function processStatus(running: RunningProcess): Omit<ProcessStatus, 'observations'> {
  const { snapshot, health } = running;
  const { version, config } = running.loaded();
  const { rss, heapUsed, external } = process.memoryUsage();
  const uptimeSeconds = process.uptime();
  const { sysctls } = health;
  return {
    version,
    release: running.release,
    pid: process.pid,
    mode: config.mode,
    node: config.nodeName,
    startedAt: new Date(Date.now() - uptimeSeconds * 1000).toISOString(),
    uptimeSeconds,
    ready: snapshot.ready,
    unsynced: snapshot.unsynced,
    sources: running.sources(),
    apiHeardMs: health.apiHeardMs(),
    healthy: health.healthy(),
    nodeEligible: health.nodeEligible,
    ineligibleSeconds: secondsSince(running, 'node'),
    unsyncedSeconds: secondsSince(running, 'unsynced'),
    sysctls: sysctls.map((problem) => ({ problem, sinceSeconds: secondsSince(running, `sysctl ${problem}`) ?? 0 })),
    pendingMs: pendingMs(running),
    held: health.held(),
    clientCertificate: health.certificate,
    refusedConfiguration: running.refusal(),
    refusedSeconds: secondsSince(running, 'configuration'),
    limitation: limitationOf(config),
    families: running.families.map((sync) => familyState(sync, running)),
    memory: { residentBytes: rss, heapBytes: heapUsed, externalBytes: external },
  };
}

/** A tenant decides how many there are. */
const SHOWN_FINDINGS = 100;

function firstOf<Finding>(findings: readonly Finding[], print: (finding: Finding) => string): readonly string[] {
  const shown = findings.slice(0, SHOWN_FINDINGS).map(print);
  const more = findings.length - shown.length;
  return more === 0 ? shown : [...shown, `and ${more} more`];
}

function familyState({ table, history, ending, dataplane }: FamilyView, running: RunningProcess): FamilyState {
  const { health, progress, now } = running;
  const { family } = table;
  const { slowest, failures, repairs, problems } = history;
  return {
    family,
    healthy: health.families().some((status) => status.family === family && status.healthy),
    ...table.counts,
    pendingFrontends: progress.of(family)?.pendingFrontends ?? 0,
    conflicts: firstOf(table.conflictPairs(), printConflictPair),
    conflictsSeconds: secondsSince(running, `conflict ${family}`),
    serviceLimitations: firstOf([...table.limitations()], printLimitation),
    removedEndpoints: { ...ending.counts, limitation: ending.limitation(dataplane) },
    fullAffinity: firstOf(running.fullAffinity(family), printFullAffinity),
    limitations: (progress.of(family)?.limitations ?? []).map(({ text }) => text),
    quarantined: (progress.of(family)?.quarantined ?? []).map(({ since, ...quarantined }) => ({
      ...quarantined,
      sinceSeconds: (now() - since) / 1000,
    })),
    unplanned: [...table.unplanned].map(([service, reason]) => ({ service, reason })),
    unplannedSeconds: secondsSince(running, `unplanned ${family}`),
    recentSyncs: history.recent(SHOWN_SYNCS),
    slowestSyncs: slowest,
    failures,
    repairs,
    lastRepair: history.recentlyRepaired[0] ?? null,
    problems: [...problems, ...firstOf(running.loopbackFailures(family), (text) => text)],
  };
}
