import { systemClock } from '../base/clock.js';
import { messageOf } from '../base/error-message.js';
import type { Log } from '../base/log.js';
import type { WallClock } from '../base/timestamp.js';
import type { Config } from '../config/config.js';
import { ConfigError } from '../config/errors.js';
import type { FamilySync } from '../control/family-sync.js';
import type { Machine } from '../control/mode.js';
import type { Sources } from '../control/sources.js';
import type { ChangeLog } from '../observe/change-log.js';
import type { CycleObserver } from '../observe/cycle-observer.js';
import type { ProxyMetrics } from '../observe/metrics.js';
import type { RotatedFile } from '../observe/rotated-file.js';
import type { ServiceTelemetry } from '../observe/telemetry/service-telemetry.js';
import type { ObjectKey, RowKind } from '../state/rows.js';
import type { Attempts } from './attempts.js';

interface ChangeObserversParts {
  /** In force. */
  readonly config: () => Config;
  readonly sources: Pick<Sources, 'versionOf'>;
  readonly families: readonly Pick<FamilySync, 'table' | 'dataplane'>[];
  readonly machine: Machine;
  readonly attempts: Pick<Attempts, 'always' | 'ask'>;
  readonly metrics: Pick<ProxyMetrics, 'show'>;
  readonly wallClock: WallClock;
  readonly log: Log;
}

/** Observers of changes on their way to the kernel, each if flags ask for it. */
export interface ChangeObservers {
  /** All of them. */
  readonly observers: readonly CycleObserver[];
  readonly telemetry: ServiceTelemetry | null;
  /** Why lines of the change log are lost now; null: they are not. */
  readonly logFault: () => string | null;
  /**
   * Opens the change log. Changes may be observed before.
   *
   * @throws ConfigError when there can be no such file.
   */
  prepare(): Promise<void>;
  close(): Promise<void>;
}

const NOTHING = (): Promise<void> => Promise.resolve();

export const NO_OBSERVERS: ChangeObservers = {
  observers: [],
  telemetry: null,
  logFault: () => null,
  prepare: NOTHING,
  close: NOTHING,
};

export async function openChangeObservers(parts: ChangeObserversParts): Promise<ChangeObservers> {
  const [changeLog, file] = (await makeChangeLog(parts)) ?? [null, null];
  const telemetry = await openCounts(parts);
  return {
    observers: [changeLog, telemetry].filter((each) => each !== null),
    telemetry,
    logFault: () => file?.fault ?? null,
    prepare: async () => {
      try {
        await file?.prepare();
      } catch (error) {
        throw new ConfigError('CONFIG_INVALID', null, [`--change-log-path: ${messageOf(error)}`]);
      }
    },
    close: async () => {
      telemetry?.stop();
      await changeLog?.close();
    },
  };
}

/** Where changes of the kernel are written down; null: nowhere. */
async function makeChangeLog({
  config,
  sources,
  wallClock,
  log,
}: ChangeObserversParts): Promise<readonly [ChangeLog, RotatedFile] | null> {
  const { changeLog } = config();
  if (changeLog === null) return null;
  // Loaded only where it is used: it is a file of its own. So is the next.
  const { ChangeLog, changeLogFile } = await import('../observe/change-log.js');
  const now = (): number => Number(wallClock() / 1_000_000n);
  const file = changeLogFile(changeLog, log, now);
  const parts = {
    versionOf: (kind: RowKind, key: ObjectKey) => sources.versionOf(kind, key),
    labels: () => ({ node: config().nodeName, mode: config().mode }),
    now,
  };
  return [new ChangeLog(file, parts), file];
}

/** What goes through Services, counted; null: it is not. */
async function openCounts(parts: ChangeObserversParts): Promise<ServiceTelemetry | null> {
  const { config, families, machine, attempts, metrics, log } = parts;
  const { serviceTelemetry } = config();
  if (serviceTelemetry === null) return null;
  const { openTelemetry } = await import('./telemetry.js');
  const { localAddresses } = machine.host;
  const { conntrack } = machine.addon;
  const telemetry = await openTelemetry({
    config: serviceTelemetry,
    conntrack,
    families,
    localAddresses,
    attempts,
    log,
    clock: systemClock,
  });
  metrics.show(() => telemetry.families());
  return telemetry;
}
