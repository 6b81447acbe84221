import type { Family } from '../base/ip.js';
import type { Log } from '../base/log.js';
import type { Footprint, OwnFootprint } from '../dataplane/removal/footprint.js';
import type * as Leftovers from '../dataplane/removal/remove.js';
import { Removal, type RemovalReport } from '../dataplane/removal/removal.js';

interface TakeoverParts {
  readonly addon: Leftovers.LeftoverAddon;
  readonly families: readonly Family[];
  /** Of all modes that this platform has. */
  readonly all: readonly Footprint[];
  /** Of the mode in force. */
  readonly own: OwnFootprint;
  readonly log: Log;
  /** Called when nothing is left that has to go. */
  readonly onFinished: () => void;
}

/** What a pass over the leftovers came to. */
export interface TakeoverPass {
  /** Whether anything was removed. */
  readonly removed: boolean;
  /** Whether nothing is left that has to go. */
  readonly finished: boolean;
  /** See {@link RemovalReport.goneFlows}. */
  readonly goneFlows: RemovalReport['goneFlows'];
}

/** Removes what another mode left, beside the syncs, until nothing of it is there. */
export class Takeover {
  private state: 'due' | 'running' | 'done' = 'due';
  private pass: Promise<unknown> = Promise.resolve();
  /** What the log has said already. */
  private readonly reported = new Set<string>();

  constructor(
    private readonly parts: TakeoverParts,
    /** Called when the rules are there: no start waits for it. */
    private readonly load: () => Promise<Pick<typeof Leftovers, 'removeLeftovers'>> = () =>
      import('../dataplane/removal/remove.js'),
  ) {}

  /**
   * Call it after every full sync in which all families succeeded. Never rejects.
   *
   * @returns once the pass has ended; null: none was due.
   */
  async proceed(): Promise<TakeoverPass | null> {
    if (this.state !== 'due') return null;
    this.state = 'running';
    const pass = this.remove();
    this.pass = pass;
    return await pass;
  }

  /** Removes nothing more, once this resolves: what was a leftover may be of the mode in force from then on. */
  async retire(): Promise<void> {
    this.state = 'done';
    await this.pass;
  }

  private async remove(): Promise<TakeoverPass> {
    const { addon, families, all, own } = this.parts;
    const removal = new Removal();
    const leftovers = await removal.attempt(null, this.load);
    const report = (await leftovers?.removeLeftovers(addon, families, all, own)) ?? removal;
    this.report(report);
    const finished = report.waiting.length === 0 && report.problems.length === 0;
    if (this.state === 'running') {
      this.state = finished ? 'done' : 'due';
      if (finished) this.parts.onFinished();
    }
    return { removed: report.removed.length > 0, finished, goneFlows: report.goneFlows };
  }

  private report({ removed, kept, waiting, problems }: RemovalReport): void {
    const { log } = this.parts;
    for (const what of removed) log.info(0, 'removed rules of another proxy mode', { what });
    this.sayOnce(kept, (what) => {
      log.info(0, 'left in place, because rules of others need it', { what });
    });
    this.sayOnce(waiting, (what) => {
      log.info(0, 'left in place for now', { what });
    });
    this.sayOnce(
      problems.map(({ message }) => message),
      (message) => {
        log.warn('could not remove rules of another proxy mode, will be retried', { error: message });
      },
    );
  }

  private sayOnce(texts: readonly string[], say: (text: string) => void): void {
    for (const text of texts) {
      if (!this.reported.has(text)) say(text);
      this.reported.add(text);
    }
  }
}
