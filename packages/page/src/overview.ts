import { least } from '../../../src/base/extremes.js';
import { formatTimestamp } from '../../../src/base/timestamp.js';
import type { SourceState } from '../../../src/observe/metrics.js';
import type { FamilyView, RunningProcess } from '../../../src/serve/running-process.js';
import type { FamilyOverview, Health, HealthReason, Overview, SourceOverview } from './api.js';

/** The whole process in small. Costs little however large the cluster is: it is made twice a second while a page is open. */
export function overview(running: RunningProcess): Overview {
  const { version, config } = running.loaded();
  const { rss, heapUsed, external } = process.memoryUsage();
  return {
    release: running.release,
    version,
    mode: config.mode,
    node: config.nodeName,
    pid: process.pid,
    startedAt: STARTED_AT,
    at: new Date().toISOString(),
    health: health(running),
    families: running.families.map((sync) => familyOverview(sync, running)),
    sources: running.sources().map(sourceOverview),
    services: running.snapshot.serviceCount,
    memory: { residentBytes: rss, heapBytes: heapUsed, externalBytes: external },
  };
}

/** The start of the process. */
const STARTED_AT = new Date(Date.now() - process.uptime() * 1000).toISOString();

/** The wall time of a moment on the clock of the progress. */
export function wallTime({ now }: Pick<RunningProcess, 'now'>, at: number): string {
  return new Date(Date.now() - (now() - at)).toISOString();
}

function familyOverview({ table, history }: FamilyView, running: RunningProcess): FamilyOverview {
  const { family } = table;
  const progress = running.progress.of(family);
  const status = running.health.families().find((each) => each.family === family);
  const lastUpdated = status?.lastUpdated ?? null;
  const waitingSince = progress?.waitingSince ?? null;
  return {
    family,
    healthy: status?.healthy ?? false,
    ...table.counts,
    pendingFrontends: progress?.pendingFrontends ?? 0,
    pendingMs: waitingSince === null ? null : running.now() - waitingSince,
    syncedAt: lastUpdated === null ? null : formatTimestamp(lastUpdated),
    conflicts: table.conflictCount,
    quarantined: progress?.quarantined.length ?? 0,
    unplanned: table.unplanned.size,
    syncs: history.syncs,
    failures: history.failures.count,
    repairs: history.repairs.count,
  };
}

function sourceOverview({ source, synced, sinceLastEventMs, failures }: SourceState): SourceOverview {
  const lastEventAt = sinceLastEventMs === null ? null : new Date(Date.now() - sinceLastEventMs).toISOString();
  const happened = Object.entries(failures).filter(([, count]) => count > 0);
  return { source, synced, lastEventAt, failures: happened.map(([kind, count]) => ({ kind, count })) };
}

function health(running: RunningProcess): Health {
  const reasons = [...ofProcess(running), ...running.families.flatMap((sync) => ofFamily(sync, running))];
  return {
    healthy: running.health.healthy(),
    nodeEligible: running.health.nodeEligible,
    reasons: [
      ...reasons.filter(({ severity }) => severity === 'bad'),
      ...reasons.filter(({ severity }) => severity === 'warning'),
    ],
  };
}

type Said = Partial<Pick<HealthReason, 'family' | 'since'>>;

function reason(
  severity: HealthReason['severity'],
  kind: HealthReason['kind'],
  text: string,
  { family = null, since = null }: Said = {},
): HealthReason {
  return { severity, kind, family, text, since };
}

/** When a reason began that health remembers. */
function since({ health: { onsets } }: RunningProcess, onset: string): Pick<HealthReason, 'since'> {
  return { since: timeOrNull(onsets.of(onset)) };
}

function ofProcess(running: RunningProcess): readonly HealthReason[] {
  const { health, snapshot } = running;
  const held = health.held();
  const refused = running.refusal();
  const { nodeEligible } = health;
  return [
    ...(snapshot.ready
      ? []
      : [
          reason('bad', 'reading', `still reading ${running.waitingFor().join(', ')}: until then no rule is touched`, {
            since: STARTED_AT,
          }),
        ]),
    ...(held === null
      ? []
      : [reason('bad', 'held', `changes are held back: ${held}`, { since: timeOrNull(health.heldSince()) })]),
    ...(nodeEligible === true
      ? []
      : [
          reason(
            'bad',
            'node',
            `out of rotation for load balancers: the node is ${nodeEligible === null ? 'unknown' : 'leaving'}`,
            since(running, 'node'),
          ),
        ]),
    ...(snapshot.unsynced
      ? [
          reason(
            'warning',
            'unsynced',
            'some sources could not be read yet: rules of what they may hold stay',
            since(running, 'unsynced'),
          ),
        ]
      : []),
    ...health.sysctls.map((text) => reason('warning', 'sysctl', text, since(running, `sysctl ${text}`))),
    ...(refused === null
      ? []
      : [
          reason(
            'warning',
            'configuration',
            `changed files are rejected, the former configuration is in force: ${refused}`,
            since(running, 'configuration'),
          ),
        ]),
  ];
}

function timeOrNull(time: bigint | null): string | null {
  return time === null ? null : formatTimestamp(time);
}

function ofFamily({ table }: FamilyView, running: RunningProcess): readonly HealthReason[] {
  const { family } = table;
  const progress = running.progress.of(family);
  const status = running.health.families().find((each) => each.family === family);
  const drift = running.health.drift().find((each) => each.family === family);
  const failure = progress?.failure ?? null;
  const waiting = progress?.waitingSince ?? null;
  const waitingSince = waiting === null ? null : wallTime(running, waiting);
  return [
    ...(status?.lastUpdated === null
      ? [reason('bad', 'not-synced', 'no sync has ended yet', { family, since: STARTED_AT })]
      : []),
    ...(failure === null
      ? []
      : [reason('bad', 'failing', `the last sync failed: ${failure}`, { family, since: waitingSince })]),
    ...(status !== undefined && status.lastUpdated !== null && !status.healthy
      ? [reason('bad', 'late', 'a change waits too long for the kernel', { family, since: waitingSince })]
      : []),
    ...(drift === undefined
      ? []
      : [
          reason(
            'warning',
            'drift',
            `${drift.process ?? 'an unknown process'} changed the rules, which are being repaired`,
            {
              family,
              since: formatTimestamp(drift.since),
            },
          ),
        ]),
    ...ofServices({ table }, running),
  ];
}

/** Problems of Services that are not, or not in full, as they should be. */
function ofServices({ table }: Pick<FamilyView, 'table'>, running: RunningProcess): readonly HealthReason[] {
  const { family } = table;
  const quarantined = running.progress.of(family)?.quarantined ?? [];
  const conflicts = table.conflictCount;
  return [
    ...(quarantined.length === 0
      ? []
      : [
          reason(
            'warning',
            'quarantined',
            `${quarantined.length} frontends are quarantined: the kernel rejects them, and their old rules stay`,
            {
              family,
              since: wallTime(running, least(quarantined.map((each) => each.since))),
            },
          ),
        ]),
    ...(table.unplanned.size === 0
      ? []
      : [
          reason('warning', 'unplanned', `${table.unplanned.size} Services cannot be planned`, {
            family,
            ...since(running, `unplanned ${family}`),
          }),
        ]),
    ...(conflicts === 0
      ? []
      : [
          reason('warning', 'conflict', `${conflicts} claims on addresses that another Service has`, {
            family,
            ...since(running, `conflict ${family}`),
          }),
        ]),
  ];
}
