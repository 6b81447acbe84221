import type { Family } from '../base/ip.js';
import type { Log } from '../base/log.js';
import type { OwnFootprint } from '../dataplane/footprint.js';
import type { LeftoverAddon } from '../dataplane/leftovers/leftovers.js';
import type { RemovalReport } from '../dataplane/leftovers/removal.js';
import { FOOTPRINTS } from '../dataplane/modes.js';

export interface TakeoverParts {
  readonly addon: LeftoverAddon;
  readonly families: readonly Family[];
  /** Of the mode in force. */
  readonly own: OwnFootprint;
  readonly log: Log;
}

/** Removes what another mode left, beside the syncs, until nothing of it is there. */
export class Takeover {
  private state: 'due' | 'running' | 'done' = 'due';
  private pass: Promise<void> = Promise.resolve();
  /** What the log has said already. */
  private readonly said = new Set<string>();

  constructor(private readonly parts: TakeoverParts) {}

  /**
   * Call it after every full sync in which all families succeeded. Never rejects.
   *
   * @returns once the pass has ended, whether anything was removed; null: no pass was due.
   */
  async proceed(): Promise<boolean | null> {
    if (this.state !== 'due') return null;
    this.state = 'running';
    const { addon, families, own } = this.parts;
    // Loaded when the rules are there: no start waits for it.
    const removal = import('../dataplane/leftovers/leftovers.js').then(({ removeLeftovers }) =>
      removeLeftovers(addon, families, FOOTPRINTS, own),
    );
    this.pass = removal.then((report) => {
      this.report(report);
      if (this.state === 'running')
        this.state = report.waiting.length === 0 && report.problems.length === 0 ? 'done' : 'due';
    });
    await this.pass;
    return (await removal).removed.length > 0;
  }

  /** Removes nothing more, once this resolves: what was a leftover may be of the mode in force from then on. */
  async retire(): Promise<void> {
    this.state = 'done';
    await this.pass;
  }

  private report({ removed, kept, waiting, problems }: RemovalReport): void {
    const { log } = this.parts;
    for (const what of removed) log.info(0, 'removed what another proxy mode left', { what });
    this.sayOnce(kept, (what) => {
      log.info(0, 'left in place, because rules of others need it', { what });
    });
    this.sayOnce(waiting, (what) => {
      log.info(0, 'left in place for now', { what });
    });
    this.sayOnce(
      problems.map(({ message }) => message),
      (message) => {
        log.warn('could not remove what another proxy mode left, will be retried', { error: message });
      },
    );
  }

  private sayOnce(texts: readonly string[], say: (text: string) => void): void {
    for (const text of texts) {
      if (!this.said.has(text)) say(text);
      this.said.add(text);
    }
  }
}
