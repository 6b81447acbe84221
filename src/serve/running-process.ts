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
import type { SilentListener } from '../observe/observations.js';
import type { PortTraffic, ServiceTraffic } from '../observe/telemetry/service-series.js';
import type { PlanSettings } from '../plan/facts.js';
import type { LeftOut } from '../sources/left-out.js';
import type { ObjectKey, Row } from '../state/rows.js';
import type { Snapshot } from '../state/snapshot.js';
import type { ChangeListener } from '../state/store.js';

/** A family as far as it is looked at. */
export type FamilyView = Pick<FamilySync, 'family' | 'table' | 'history'> & {
  readonly ending: Pick<FamilySync['ending'], 'counts' | 'limitation'>;
  readonly dataplane: Pick<FamilyDataplane, 'inspect' | 'resets'>;
};

/** What of the running process may be looked at. */
export interface RunningProcess {
  /** Our own version. */
  readonly release: string;
  readonly host: Host;
  readonly loaded: () => Loaded;
  /** Its document as it is shown. */
  readonly configuration: () => Readonly<Record<string, unknown>>;
  /** What would be in force if nothing were set. */
  readonly defaults: () => DefaultSettings;
  /** Why changed configuration files are not in force; null: they are. */
  readonly refusal: () => string | null;
  /** What planning goes by. */
  readonly planned: () => PlanSettings;
  readonly snapshot: Snapshot;
  /** As of the state: called after each change of it, until what is returned is called. */
  readonly onChange: (listener: ChangeListener) => () => void;
  readonly families: readonly FamilyView[];
  readonly health: HealthState;
  readonly progress: Progress;
  readonly latencies: () => Promise<Latencies>;
  /** As text. */
  readonly metrics: () => Promise<string>;
  readonly sources: () => readonly SourceState[];
  /** What of the sources is not used, and why. */
  readonly sourceErrors: () => readonly string[];
  /** In which versions objects of the API server were read. */
  readonly held: Pick<Sources, 'versionsOf'>;
  /** Names of the sources that have not said all they knew at their start. */
  readonly waitingFor: () => readonly string[];
  /** What went through each port of a Service; absent, or null: it is not counted. */
  readonly trafficOf?: (service: ObjectKey) => readonly PortTraffic[] | null;
  /** Connection attempts to endpoints; absent: nothing counts them. */
  readonly attempts?: {
    readonly ask: () => Promise<AttemptsSeen>;
    readonly seen: () => AttemptsSeen | null;
  };
  /** Of all Services; null: it is not counted. */
  readonly traffic: () => Promise<readonly ServiceTraffic[]> | null;
  /** What rules of others do with packets: with one, or with any. Absent: this platform has no such rules. */
  readonly foreign?: {
    readonly lossesOf: (question: ForeignQuestion) => Promise<ForeignLosses>;
    readonly lossesOfAll: () => Promise<ForeignLosses>;
  };
  /** Service ports whose session affinity has no room for more clients. */
  readonly fullAffinity: (family: Family) => readonly FullAffinity[];
  /** Objects that sources do not use, or not whole. */
  readonly leftOut: () => readonly LeftOut[];
  /** Addresses of ours that are not served. */
  readonly silentListeners: () => readonly SilentListener[];
  /** The kernel was seen not to hold what is planned. */
  readonly suspect: (family: Family) => void;
  /** Takes rows into the state beside those of the sources, until what is returned is called. */
  readonly lend: (rows: readonly Row[]) => () => void;
  /** On the clock of the progress, in milliseconds. */
  readonly now: () => number;
}

/** Since when a change waits for the kernel; null: none does. */
export function pendingMs({ progress: { waitingSince }, now }: RunningProcess): number | null {
  return waitingSince === null ? null : now() - waitingSince;
}
