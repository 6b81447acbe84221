import type { Clock } from '../base/clock.js';
import type { Log } from '../base/log.js';
import type { Snapshot } from '../state/snapshot.js';
import type { Store } from '../state/store.js';
import type { FamilyProgress } from '../record/progress.js';
import type { Sources } from './sources.js';

type Family = Pick<FamilyProgress, 'family' | 'lastUpdated' | 'failure'>;

interface StartProgressParts {
  readonly store: Pick<Store, 'waitingFor'> & { readonly snapshot: Pick<Snapshot, 'ready' | 'serviceCount'> };
  readonly sources: Pick<Sources, 'received'>;
  readonly progress: { readonly families: readonly Family[] };
  readonly clock: Clock;
  readonly log: Log;
}

const EVERY_MS = 5000;

/**
 * Reports to users that wait for the first rules what the process is doing. Nothing of a start that takes less than {@link EVERY_MS}, and nothing while
 * it makes no progress, for which others report the reason.
 */
export class StartProgress {
  private cancelTimer: (() => void) | null = null;
  private reported = '';

  constructor(private readonly parts: StartProgressParts) {}

  /** Goes on until all rules are there, or {@link stop}. */
  start(): void {
    const { clock } = this.parts;
    this.cancelTimer = clock.callAt(clock.now() + EVERY_MS, () => {
      this.look();
    });
  }

  stop(): void {
    this.cancelTimer?.();
  }

  private look(): void {
    const { store, progress } = this.parts;
    const unwritten = progress.families.filter(({ lastUpdated }) => lastUpdated === null);
    if (unwritten.length === 0) return;
    if (!store.snapshot.ready) this.tellReading();
    else if (unwritten.every(({ failure }) => failure === null)) this.tellWriting(unwritten);
    this.start();
  }

  private tellReading(): void {
    const { log, store, sources } = this.parts;
    const fields = { waitingFor: store.waitingFor().join(), ...sources.received() };
    const state = JSON.stringify(fields);
    if (state === this.reported) return;
    this.reported = state;
    log.info(0, 'still reading what there is', fields);
  }

  private tellWriting(families: readonly Family[]): void {
    const { log, store } = this.parts;
    const names = families.map(({ family }) => family).join();
    log.info(0, 'everything is read, still writing rules', { families: names, services: store.snapshot.serviceCount });
  }
}
