import { messageOf } from '../base/error-message.js';
import type { Family } from '../base/ip.js';
import { changesMode, compareConfigs, concernsApi, printChange, type FieldChange } from '../config/compare.js';
import type { Config } from '../config/config.js';
import { gateStates } from '../config/gates.js';
import type { Loaded } from '../config/load.js';
import type { OpenMode } from '../dataplane/mode.js';
import { everythingOn, footprintsOn } from '../dataplane/modes.js';
import type { KernelSettings } from '../host/host.js';
import type { Logger } from '../observe/log.js';
import type { ProxyMetrics } from '../observe/metrics.js';
import type { ProcessTracing } from '../observe/tracing.js';
import type { HealthState } from '../record/health.js';
import { ConfigWatch, type ConfigOutcome } from './config-watch.js';
import type { KernelValues } from './kernel-values.js';
import type { Loop } from './loop.js';
import { countedMode, replacementMode, type Machine } from './mode.js';
import { cycleSettings, healthTimeoutMs, kernelSettings } from './settings.js';
import type { NextApi, Sources } from './sources.js';
import type { CycleMode, SyncCycle } from './sync-cycle.js';
import { Takeover } from './takeover.js';

/** What follows the configuration. */
interface ReconfigurationParts {
  readonly machine: Machine;
  /** Those that the process serves, in every mode. */
  readonly families: readonly Family[];
  readonly log: Logger;
  readonly cycle: Pick<SyncCycle, 'follow' | 'changed' | 'retireMode' | 'replaceMode' | 'guardedBy'>;
  readonly loop: Pick<Loop, 'setIntervals'>;
  readonly kernelValues: Pick<KernelValues, 'apply'>;
  readonly sources: Pick<Sources, 'connect' | 'follow'>;
  readonly listeners: { follow(loaded: Loaded): Promise<void> };
  readonly attempts: { follow(open: OpenMode['attempts']): void };
  readonly health: Pick<HealthState, 'refusal' | 'timeoutMs'>;
  readonly metrics: Pick<ProxyMetrics, 'setFeatures' | 'setMode' | 'configChanged'>;
  readonly tracing: Pick<ProcessTracing, 'setMode'> | null;
  readonly applyOomScore: () => Promise<void>;
  readonly warnOfMode: () => void;
  /** A changed configuration is not taken over. */
  readonly onRefused: (why: string) => void;
  /** The process cannot go on. */
  readonly onFatal: (reason: string, error: Error) => void;
}

/**
 * The configuration in force, and what happens when its files change. No signal asks for that: SIGHUP has no handler on
 * Linux, and ends the process on Windows.
 *
 *     files differ (config-watch.ts) → invalid, or the same in other words: nothing follows
 *       → what may be refused: the mode opens, the API server answers, the log's outputs open, addresses are listened on,
 *         the mode in force removes no leftovers any more, sysctls of both modes hold
 *       → in force at once: settings, mode, intervals, log; one full sync follows
 *       → what is tried until it succeeds: sysctls, the score for oom
 *       → the other API server is read instead of the former one
 */
export class Reconfiguration {
  /** As it was loaded. */
  loaded: Loaded;
  /** The same, but this node has its former name until its Node has been read by the new one. */
  config: Config;
  /** Those of a mode that is about to come, or whose rules may still forward: its sysctls hold as well. */
  private besides: readonly Config[] = [];
  private stopped = false;

  constructor(
    loaded: Loaded,
    private readonly parts: ReconfigurationParts,
  ) {
    this.loaded = loaded;
    this.config = loaded.config;
  }

  /** @param argv the process's own arguments, with which files are loaded again. */
  watch(argv: readonly string[]): ConfigWatch {
    return new ConfigWatch({ argv, inForce: () => this.loaded, onOutcome: (outcome) => this.filesChanged(outcome) });
  }

  /** The process is about to end, with the configuration in force. */
  stop(): void {
    this.stopped = true;
  }

  kernelSettings(): KernelSettings {
    return kernelSettings(this.config, this.parts.cycle.guardedBy, this.besides);
  }

  /** Changed files have been read; false: nothing has come of them yet, and trying again may help. */
  async filesChanged(outcome: ConfigOutcome): Promise<boolean> {
    const { log, health } = this.parts;
    const { warnings } = this.loaded;
    const { refusal } = health;
    try {
      if (outcome.type === 'refused') throw outcome.error;
      if (!(await this.apply(outcome))) return false;
    } catch (error) {
      this.refuse(error);
      return false;
    }
    for (const warning of outcome.warnings) if (!warnings.includes(warning)) log.warn(warning);
    if (outcome.type === 'apply')
      log.info(0, 'configuration changed', { changes: outcome.changes.map(printChange).join('; ') });
    else if (refusal !== null) log.info(0, 'configuration is valid again');
    return true;
  }

  private refuse(error: unknown): void {
    const { log, health, metrics, onRefused } = this.parts;
    const why = messageOf(error);
    // It was tried again.
    if (why === health.refusal) return;
    log.error(error, 'changed configuration refused, the current one stays in force');
    health.refusal = why;
    metrics.configChanged('refused');
    onRefused(why);
  }

  /**
   * Takes over another configuration. Rejects when that is not possible; what was in force stays. Not to be called again
   * before.
   *
   * @returns false: the process is about to end, and nothing has changed.
   */
  async apply(loaded: Loaded): Promise<boolean> {
    const { health, metrics, kernelValues, sources } = this.parts;
    const changes = compareConfigs(this.loaded.config, loaded.config);
    const mode = changesMode(changes) ? await this.openMode(loaded.config) : null;
    const api = changes.some(concernsApi) ? await sources.connect(loaded.config) : null;
    let beginLog: () => void;
    try {
      beginLog = await this.prepare(loaded, changes, mode !== null);
    } catch (error) {
      api?.source?.connection.close();
      throw error;
    }
    if (this.stopped) {
      api?.source?.connection.close();
      return false;
    }
    // From here on nothing is refused, and all that runs depend on changes at once.
    health.refusal = null;
    this.loaded = loaded;
    metrics.setFeatures(gateStates(loaded.document.featureGates));
    // The same in other words.
    if (changes.length === 0) return true;
    this.follow(loaded.config, mode);
    beginLog();
    await kernelValues.apply();
    if (changes.some(({ field }) => field === 'oomScoreAdj')) await this.parts.applyOomScore();
    if (api !== null) await this.followApi(api);
    if (loaded.config.kubernetes === null) this.renamed(loaded.config.nodeName);
    metrics.configChanged('applied');
    if (changes.some(({ field }) => field === 'mode')) this.parts.warnOfMode();
    return true;
  }

  private openMode(config: Config): Promise<OpenMode> {
    const { machine, families, log } = this.parts;
    return replacementMode(config, machine, families, log);
  }

  /** All that may be refused. @returns what begins to write the log by the new settings. */
  private async prepare(loaded: Loaded, changes: readonly FieldChange[], changesMode: boolean): Promise<() => void> {
    const { log, listeners } = this.parts;
    const isOfLog = changes.some(({ field }) => field.startsWith('logging.'));
    const beginLog = isOfLog ? await log.prepare(loaded.config.logging) : () => undefined;
    await listeners.follow(loaded);
    if (changesMode) await this.makeRoom(loaded.config);
    return beginLog;
  }

  /** For the mode of another configuration. */
  private async makeRoom(config: Config): Promise<void> {
    const { cycle, kernelValues } = this.parts;
    await cycle.retireMode();
    const former = this.besides;
    this.besides = [...former, config];
    await kernelValues.apply();
    this.besides = [...former, this.config].filter(({ mode }) => mode !== config.mode);
  }

  /** A sync in between would take rules by the former settings for a guard of the new ones. @param mode null: the one in force stays. */
  private follow(config: Config, mode: OpenMode | null): void {
    const { cycle, attempts, metrics, tracing, health, loop } = this.parts;
    this.config = { ...config, nodeName: this.config.nodeName };
    if (mode !== null) {
      cycle.replaceMode(this.cycleMode(mode));
      attempts.follow(mode.attempts);
      metrics.setMode(countedMode(config, mode));
      tracing?.setMode(config.mode);
    }
    this.followSettings();
    health.timeoutMs = healthTimeoutMs(config);
    loop.setIntervals({ minIntervalMs: config.minSyncPeriod, fullIntervalMs: config.syncPeriod });
  }

  private followSettings(): void {
    const { cycle } = this.parts;
    cycle.follow(cycleSettings(this.config));
    cycle.changed(null);
  }

  /** Objects of this node are recognized by another name. */
  renamed(nodeName: string): void {
    if (nodeName === this.config.nodeName) return;
    this.config = { ...this.config, nodeName };
    this.followSettings();
  }

  /** Without a source nothing would come any more, so another process has to try. */
  private async followApi(api: NextApi): Promise<void> {
    const { sources, onFatal } = this.parts;
    try {
      await sources.follow(api);
    } catch (error) {
      onFatal('FailedToFollowConfiguration', new Error(`kubernetes: cannot be read from now on: ${messageOf(error)}`));
    }
  }

  /** A mode with the leftovers that it removes. */
  private cycleMode(mode: OpenMode): CycleMode {
    const { machine, log } = this.parts;
    return cycleMode(mode, this.config, machine, log, () => {
      this.leftoversRemoved();
    });
  }

  /** The sysctls of modes that were in force before go with their rules. */
  leftoversRemoved(): void {
    if (this.besides.length === 0) return;
    this.besides = [];
    void this.parts.kernelValues.apply();
  }
}

/** @param onFinished nothing of other modes is left. */
export function cycleMode(
  mode: OpenMode,
  { serviceTelemetry }: Pick<Config, 'serviceTelemetry'>,
  { addon, host }: Machine,
  log: Logger,
  onFinished: () => void,
): CycleMode {
  const { families, own } = mode;
  const all = serviceTelemetry === null ? everythingOn(host.platform) : footprintsOn(host.platform);
  return { ...mode, takeover: new Takeover({ addon, families, all, own, log, onFinished }) };
}
