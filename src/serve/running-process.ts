import type { Family } from '../base/ip.js';
import type { DefaultSettings } from '../config/defaults.js';
import type { Loaded } from '../config/load.js';
import type { FullAffinity } from '../control/affinity-overflow.js';
import type { AttemptsSeen } from '../control/endpoint-attempts.js';
import type { FamilySync } from '../control/family-sync.js';
import type { Progress } from '../record/progress.js';
import type { Sources } from '../control/sources.js';
import type { FamilyDataplane } from '../dataplane/contract.js';
import type { ForeignLosses, ForeignQuestion } from '../dataplane/foreign/losses.js';
import type { Host } from '../host/host.js';
import type { HealthState } from '../record/health.js';
import type { Latencies, SourceState } from '../observe/metrics.js';
import type { CrowdingClient, LogFault, SilentListener } from '../observe/observations.js';
import type { PortTraffic } from '../observe/telemetry/service-series.js';
import type { CountedTraffic } from '../observe/telemetry/service-telemetry.js';
import type { PlanSettings } from '../plan/facts.js';
import type { LeftOut } from '../sources/left-out.js';
import type { ObjectKey, Row } from '../state/rows.js';
import type { Snapshot } from '../state/snapshot.js';
import type { ChangeListener } from '../state/store.js';

/** The visible part of a family. */
export type FamilyView = Pick<FamilySync, 'family' | 'table' | 'history'> & {
  readonly ending: Pick<FamilySync['ending'], 'counts' | 'limitation'>;
  readonly dataplane: Pick<FamilyDataplane, 'inspect' | 'resets'>;
};

/** The visible state of the running process. */
export interface RunningProcess {
  /** Our own version. */
  readonly release: string;
  readonly host: Host;
  readonly loaded: () => Loaded;
  /** Its configuration document as it is printed. */
  readonly configuration: () => Readonly<Record<string, unknown>>;
  /** The settings without any flag or file. */
  readonly defaults: () => DefaultSettings;
  /** Why changed configuration files are not in force; null: they are. */
  readonly refusal: () => string | null;
  /** The settings of the current plan. */
  readonly planned: () => PlanSettings;
  readonly snapshot: Snapshot;
  /** Calls the listener after each change of the state. Returns the function that ends this. */
  readonly onChange: (listener: ChangeListener) => () => void;
  readonly families: readonly FamilyView[];
  readonly health: HealthState;
  readonly progress: Progress;
  readonly latencies: () => Promise<Latencies>;
  /** As text. */
  readonly metrics: () => Promise<string>;
  readonly sources: () => readonly SourceState[];
  /** Unused parts of the sources, with the reasons. */
  readonly sourceErrors: () => readonly string[];
  /** The way to the API server, and the resource versions of the objects read from it. */
  readonly kubernetes: Pick<Sources, 'api' | 'versionsOf'>;
  /** Names of the unsynced sources. */
  readonly waitingFor: () => readonly string[];
  /** The traffic of each port of a Service; absent, or null: not counted. */
  readonly trafficOf?: (service: ObjectKey) => readonly PortTraffic[] | null;
  /** Connection attempts to endpoints; absent: nothing counts them. */
  readonly attempts?: {
    readonly ask: () => Promise<AttemptsSeen>;
    readonly seen: () => AttemptsSeen | null;
  };
  /** The traffic of all Services; null: not counted. */
  readonly traffic: () => Promise<CountedTraffic> | null;
  /** The effect of foreign rules on one packet, or on any. Absent: not supported on this platform. */
  readonly foreign?: {
    readonly lossesOf: (question: ForeignQuestion) => Promise<ForeignLosses>;
    readonly lossesOfAll: () => Promise<ForeignLosses>;
  };
  /** Service ports whose session affinity has no room for more clients. */
  readonly fullAffinity: (family: Family) => readonly FullAffinity[];
  /** Node ports on loopback that cannot be listened on, a line each. */
  readonly loopbackFailures: (family: Family) => readonly string[];
  /** Objects that sources skip, whole or in part. */
  readonly leftOut: () => readonly LeftOut[];
  /** Our listening addresses that could not be opened. */
  readonly silentListeners: () => readonly SilentListener[];
  /** Clients of our listeners that take more than their share. */
  readonly crowding: () => readonly CrowdingClient[];
  /** Log files of flags that lose lines. */
  readonly logFaults: () => readonly LogFault[];
  /** Reports that the kernel differs from the plan. */
  readonly suspect: (family: Family) => void;
  /** Adds rows to the state next to those of the sources. Returns the function that removes them. */
  readonly lend: (rows: readonly Row[]) => () => void;
  /** On the clock of the progress, in milliseconds. */
  readonly now: () => number;
}

/** Since when a change waits for the kernel; null: none does. */
export function pendingMs({ progress: { waitingSince }, now }: RunningProcess): number | null {
  return waitingSince === null ? null : now() - waitingSince;
}

/** Null: it does not hold. */
export function secondsSince({ health: { onsets, wallClock } }: RunningProcess, onset: string): number | null {
  const began = onsets.of(onset);
  return began === null ? null : Number(wallClock() - began) / 1e9;
}
