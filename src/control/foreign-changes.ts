import { nextLook, type Clock } from '../base/clock.js';
import type { Log } from '../base/log.js';
import type { WatchForeignChanges } from '../dataplane/contract.js';
import type { CycleObservers } from '../observe/cycle-observer.js';
import type { Drift } from './drift.js';
import type { FamilySync } from './family-sync.js';

interface ForeignChangesParts {
  readonly drift: Pick<Drift, 'noticed' | 'suspect'>;
  readonly observers: CycleObservers;
  readonly clock: Clock;
  readonly log: Log;
}

/** How often at the least modes are probed whose kernel reports no external changes. */
const PROBE_MS = 1000;

/** Finds what others do to our tables: by what the kernel tells, and by looking. */
export class ForeignChanges {
  private end: (() => void) | null = null;
  private endProbes: (() => void) | null = null;
  private failed = false;
  /** Families that wait until their rules are permitted, each with the function that ends its wait. */
  private readonly waits = new Map<FamilySync, () => void>();

  constructor(private readonly parts: ForeignChangesParts) {}

  /**
   * Listens from now on. Where the kernel does not let us, the periodic check remains; the next call tries again.
   *
   * @param watch null: external changes are not reported; audits and probes have to find it.
   */
  watch(watch: WatchForeignChanges | null, families: readonly FamilySync[]): void {
    const { drift, log } = this.parts;
    if (this.endProbes === null && families.some(({ dataplane }) => dataplane.polls)) this.probeFromNowOn(families);
    if (this.end !== null || watch === null) return;
    try {
      this.end = watch((change) => {
        drift.noticed(change);
      });
    } catch (error) {
      if (this.failed) return;
      this.failed = true;
      log.error(error, 'cannot watch the ruleset, only the periodic check finds external changes');
    }
  }

  /**
   * The kernel forbade a change of a family's rules. It does not report when that ends, as when the owner of a table leaves, and the loop's retries are rarer
   * with time. So it is probed every second.
   */
  awaitPermission(sync: FamilySync): void {
    const { clock } = this.parts;
    const { dataplane } = sync;
    if (dataplane.polls || this.waits.has(sync)) return;
    const cancel = clock.callAt(clock.now() + PROBE_MS, () => {
      void this.probe(sync).then((isPermitted) => {
        if (this.waits.get(sync) !== cancel) return;
        this.waits.delete(sync);
        if (!isPermitted && sync.dataplane === dataplane) this.awaitPermission(sync);
      });
    });
    this.waits.set(sync, cancel);
  }

  /** A change of a family's rules was taken. */
  permitted(sync: FamilySync): void {
    this.waits.get(sync)?.();
    this.waits.delete(sync);
  }

  /** Beside the loop, so that no change waits for it. What it finds is repaired as if it had been reported. */
  async audit(sync: FamilySync): Promise<void> {
    const { drift, observers, log, clock } = this.parts;
    const { family, dataplane } = sync;
    const startedAt = clock.now();
    try {
      const different = await observers.during('audit', family, () => dataplane.audit());
      // What it says is about rules that go.
      if (sync.dataplane !== dataplane) return;
      if (different) drift.suspect(family, null);
      observers.notify('audited', family, different ? 'different' : 'intact');
      const auditMs = Math.round((clock.now() - startedAt) * 1000) / 1000;
      log.info(4, 'audited', { family, different, auditMs });
    } catch (error) {
      if (sync.dataplane !== dataplane) return;
      observers.notify('audited', family, 'failed');
      log.info(2, 'audit failed', { family, error: String(error) });
    }
  }

  /** Listens and looks no more, until {@link watch} is called again. */
  stop(): void {
    this.end?.();
    this.end = null;
    this.endProbes?.();
    this.endProbes = null;
    for (const sync of [...this.waits.keys()]) this.permitted(sync);
  }

  /** Each within a second after the one before has ended, when others look too, or when there may be something to find. */
  private probeFromNowOn(families: readonly FamilySync[]): void {
    let ended = false;
    let cancel = (): void => undefined;
    const probe = (): void => {
      cancel();
      void Promise.all(families.map((sync) => this.probe(sync))).then(wait);
    };
    const wait = (): void => {
      if (!ended) cancel = this.untilNextProbe(families, probe);
    };
    this.endProbes = () => {
      ended = true;
      cancel();
    };
    wait();
  }

  /** Calls back once. Answers what ends it. */
  private untilNextProbe(families: readonly FamilySync[], probe: () => void): () => void {
    const { clock } = this.parts;
    const waits = new Set(families.map(({ dataplane }) => dataplane.awaitChange));
    if (waits.has(null)) return clock.callAt(nextLook(clock.now(), PROBE_MS), probe);
    const ends = [...waits].map((awaitChange) => awaitChange?.(probe));
    return () => {
      for (const end of ends) end?.();
    };
  }

  private async probe(sync: FamilySync): Promise<boolean> {
    const { drift, log } = this.parts;
    const { family, dataplane } = sync;
    try {
      const different = await dataplane.probe();
      if (!different || sync.dataplane !== dataplane) return false;
      drift.suspect(family, null);
      return true;
    } catch (error) {
      log.info(4, 'cannot check for external changes', { family, error: String(error) });
      return false;
    }
  }
}
