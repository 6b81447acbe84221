import type { Family } from '../base/ip.js';
import { counted } from '../base/text.js';
import type { SourceState } from './metrics.js';
import { printObservation, type Observation } from './observations.js';
import type { Occurrences, RepairRecord, SyncRecord } from '../record/sync-history.js';

/** The running process in one answer. As JSON it is the answer of `pointsman status -o json`. */
export interface ProcessStatus {
  /** As reported by --version. */
  readonly version: string;
  /** Our own. */
  readonly release: string;
  readonly pid: number;
  readonly mode: string;
  readonly node: string;
  /** RFC 3339. */
  readonly startedAt: string;
  readonly uptimeSeconds: number;
  /** Every source has said all it knew at its start. */
  readonly ready: boolean;
  /** Something could not be read yet: what is not known is left alone. */
  readonly unsynced: boolean;
  readonly sources: readonly SourceState[];
  /** Milliseconds since a packet last came from the API server; null: there is no connection, or the platform does not tell. */
  readonly apiHeardMs: number | null;
  readonly healthy: boolean;
  /** Whether balancers may send here; null: not known. */
  readonly nodeEligible: boolean | null;
  /** Since when the node is not to be sent to, in seconds; null: it is. */
  readonly ineligibleSeconds: number | null;
  /** Since when some sources are unsynced, in seconds; null: all are synced. */
  readonly unsyncedSeconds: number | null;
  /** Sysctls that are not what they should be. */
  readonly sysctls: readonly { readonly problem: string; readonly sinceSeconds: number }[];
  /** Since when a change waits; null: none does. */
  readonly pendingMs: number | null;
  /** Why changes are held back; null: they are not. */
  readonly held: string | null;
  /** Why there is no client certificate, or none to follow the one there is; null: nothing is wanting. */
  readonly clientCertificate: string | null;
  /** Why changed configuration files are not in force; null: they are. */
  readonly refusedConfiguration: string | null;
  /** Since when, in seconds; null: they are. */
  readonly refusedSeconds: number | null;
  /** What the configuration in force asks of the platform and the platform cannot do well, in a sentence; null: nothing is known. */
  readonly limitation: string | null;
  /** What stands in the way of packets beside our rules, warnings first. */
  readonly observations: readonly Observation[];
  readonly families: readonly FamilyState[];
  readonly memory: { readonly residentBytes: number; readonly heapBytes: number; readonly externalBytes: number };
}

interface QuarantineStatus {
  readonly frontend: string;
  /** Null: the plan does not have it any more. */
  readonly servicePort: string | null;
  readonly reason: string;
  readonly sinceSeconds: number;
}

export interface FamilyState {
  readonly family: Family;
  readonly healthy: boolean;
  readonly services: number;
  readonly frontends: number;
  /** Distinct per Service port. */
  readonly endpoints: number;
  readonly pendingFrontends: number;
  readonly conflicts: readonly string[];
  /** Since when there are any, in seconds; null: there are none. */
  readonly conflictsSeconds: number | null;
  /** What Services ask for and the platform does not do. */
  readonly serviceLimitations: readonly string[];
  /** What the mode or this kernel does not do. */
  readonly limitations: readonly string[];
  /** Service ports whose session affinity has no room for more clients. */
  readonly fullAffinity: readonly string[];
  /** Connections to endpoints that are gone: how many were reset since the start, of how many endpoints, and why they go on at present; null: they do not. */
  readonly removedEndpoints: {
    readonly connections: number;
    readonly endpoints: number;
    readonly limitation: string | null;
  };
  /** Frontends that the kernel refuses: they stay as they were, and are tried again. */
  readonly quarantined: readonly QuarantineStatus[];
  /** Services that cannot be planned, which is tried again: they stay as they were. */
  readonly unplanned: readonly { readonly service: string; readonly reason: string }[];
  /** Since when there are any, in seconds; null: there are none. */
  readonly unplannedSeconds: number | null;
  /** Latest first. */
  readonly recentSyncs: readonly SyncRecord[];
  /** Slowest first. */
  readonly slowestSyncs: readonly SyncRecord[];
  readonly failures: Occurrences;
  /** What the kernel no longer held as acknowledged. */
  readonly repairs: Occurrences;
  /** The last external change that was repaired; null: there was none. */
  readonly lastRepair: RepairRecord | null;
  /** Failures beside the rules, which are tried again: listeners for node ports on loopback within seconds, others at each full sync. */
  readonly problems: readonly string[];
}

/** A status for people. */
export function printStatus(status: ProcessStatus): string[] {
  const { version, release, pid, mode, node, ready, unsynced, healthy, pendingMs, held, memory } = status;
  const { clientCertificate } = status;
  return [
    `pointsman ${release} for Kubernetes ${version}, ${mode} on ${node}, process ${pid}, up ${printSeconds(status.uptimeSeconds)}`,
    `${healthy ? 'healthy' : 'NOT healthy'}${printWarnings(status)}${printEligible(status)}`,
    ...status.observations.flatMap(printObservation).map((line) => `  ${line}`),
    `sources: ${ready ? 'all read' : 'still reading'}${unsynced ? `, some unsynced${printFor(status.unsyncedSeconds)}: what could not be read is left alone` : ''}`,
    ...status.sources.map(printSource),
    ...(status.apiHeardMs === null ? [] : [`API server: last packet ${printSeconds(status.apiHeardMs / 1000)} ago`]),
    `changes waiting: ${pendingMs === null ? 'none' : `for ${Math.round(pendingMs)} ms`}`,
    ...(held === null ? [] : [`changes are held back: ${held}`]),
    ...(clientCertificate === null ? [] : [`client certificate: ${clientCertificate}`]),
    ...(status.limitation === null ? [] : [`limitation: ${status.limitation}`]),
    ...status.sysctls.map(({ problem, sinceSeconds }) => `sysctl${printFor(sinceSeconds)}: ${problem}`),
    ...status.families.flatMap(printFamily),
    ...printLimitations(status),
    `memory: ${megabytes(memory.residentBytes)} resident, ${megabytes(memory.heapBytes)} heap, ${megabytes(memory.externalBytes)} external`,
  ];
}

function printWarnings({ observations }: ProcessStatus): string {
  const count = observations.filter(({ severity }) => severity === 'warning').length;
  return count === 0 ? '' : `, with ${count} ${count === 1 ? 'warning' : 'warnings'}`;
}

function printEligible({ nodeEligible, ineligibleSeconds }: ProcessStatus): string {
  return nodeEligible === true
    ? ''
    : `, out of rotation for load balancers${printFor(ineligibleSeconds)}: the node is ${nodeEligible === null ? 'unknown' : 'leaving'}`;
}

/** Null: it is not known. */
function printFor(seconds: number | null): string {
  return seconds === null ? '' : ` for ${printSeconds(seconds)}`;
}

function printSource({ source, synced, sinceLastEventMs, failures }: SourceState): string {
  const received = sinceLastEventMs === null ? '' : `, last event ${printSeconds(sinceLastEventMs / 1000)} ago`;
  const failed = Object.entries(failures)
    .filter(([, count]) => count > 0)
    .map(([kind, count]) => `, ${count} × ${kind}`);
  return `  ${source}: ${synced ? 'read' : 'not read yet'}${received}${failed.join('')}`;
}

function printRemoved({ removedEndpoints: { connections, endpoints, limitation } }: FamilyState): string[] {
  const subject = '  connections to removed endpoints';
  return [
    ...(connections === 0 ? [] : [`${subject}: ${connections} reset, of ${counted(endpoints, 'endpoint')}`]),
    ...(limitation === null ? [] : [`${subject} go on: ${limitation}`]),
  ];
}

function printFamily(state: FamilyState): string[] {
  const {
    family,
    services,
    frontends,
    endpoints,
    conflicts,
    serviceLimitations,
    fullAffinity,
    quarantined,
    unplanned,
  } = state;
  const { failures, recentSyncs, slowestSyncs, conflictsSeconds, unplannedSeconds } = state;
  return [
    `${family}: ${state.healthy ? 'in sync' : 'NOT in sync'}, ${counted(services, 'Service')}, ${counted(frontends, 'frontend')}, ${counted(endpoints, 'endpoint')}, ${counted(state.pendingFrontends, 'frontend')} pending`,
    ...printOccurrences('failed syncs', failures),
    printRepairs(state),
    ...printRemoved(state),
    ...(conflicts.length === 0 ? [] : [`  in conflict${printFor(conflictsSeconds)}:`]),
    ...[...conflicts, ...serviceLimitations, ...fullAffinity].map((text) => `  ${text}`),
    ...state.problems.map((text) => `  problem: ${text}`),
    ...quarantined.map(printQuarantined),
    ...unplanned.map(
      ({ service, reason }) =>
        `  cannot be planned${printFor(unplannedSeconds)}, and stays as it was: ${service}: ${reason}`,
    ),
    ...printSyncs('last syncs', recentSyncs),
    ...printSyncs('slowest', slowestSyncs),
  ];
}

/** Most are the same for both families. */
function printLimitations({ families }: ProcessStatus): readonly string[] {
  const found = new Map<string, Family[]>();
  for (const { family, limitations } of families)
    for (const text of limitations) found.set(text, [...(found.get(text) ?? []), family]);
  return [...found].map(([text, of]) => `limitation of ${of.join(' and ')}: ${text}`);
}

function printQuarantined({ frontend, servicePort, reason, sinceSeconds }: QuarantineStatus): string {
  const whose = servicePort === null ? '' : ` of ${servicePort}`;
  return `  quarantined for ${printSeconds(sinceSeconds)}: ${frontend}${whose}, which the kernel refuses: ${reason}`;
}

function printOccurrences(what: string, { count, last }: Occurrences): string[] {
  return [`  ${what}: ${count}${last === null ? '' : `, last at ${last.at}: ${last.text}`}`];
}

/** The last external change in the words of the log: by whom, how much, repaired in how long. */
function printRepairs({ repairs: { count }, lastRepair }: FamilyState): string {
  if (lastRepair === null) return `  repairs: ${count}`;
  const { at, process, differences, seconds, texts } = lastRepair;
  const time = seconds === null ? '' : ` in ${seconds.toFixed(3)} s`;
  const rest = differences > texts.length ? ', …' : '';
  return `  repairs: ${count}, last at ${at}: an external change by ${process ?? 'unknown'}, ${counted(differences, 'difference')} repaired${time}: ${texts.join('; ')}${rest}`;
}

function printSyncs(title: string, syncs: readonly SyncRecord[]): string[] {
  if (syncs.length === 0) return [`  ${title}: none`];
  return [`  ${title}:`, ...syncs.map((sync) => `    ${printSync(sync)}`)];
}

function printSync(sync: SyncRecord): string {
  const { endedAt, full, syncMs, elementOperations, ruleOperations, frontends, servicePorts } = sync;
  const names = servicePorts.join(', ') + (frontends > servicePorts.length ? ', …' : '');
  const what = `${elementOperations} elements, ${ruleOperations} rules`;
  return `${endedAt}  ${syncMs.toFixed(1)} ms${full ? ', full' : ''}, ${what}${names === '' ? '' : `: ${names}`}`;
}

function printSeconds(seconds: number): string {
  const whole = Math.floor(seconds);
  const parts = [
    [Math.floor(whole / 86_400), 'd'],
    [Math.floor(whole / 3600) % 24, 'h'],
    [Math.floor(whole / 60) % 60, 'm'],
    [whole % 60, 's'],
  ] as const;
  const first = parts.findIndex(([value]) => value > 0);
  return parts
    .slice(first < 0 ? 3 : first)
    .slice(0, 2)
    .map(([value, unit]) => `${value}${unit}`)
    .join(' ');
}

function megabytes(bytes: number): string {
  return `${Math.round(bytes / 1_000_000)} MB`;
}
