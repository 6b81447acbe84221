import type { Clock } from '../base/clock.js';
import { messageOf } from '../base/error-message.js';
import type { Log } from '../base/log.js';
import type { AttemptCounter, EndpointAttempts as Row } from '../dataplane/contract.js';
import type { OpenMode } from '../dataplane/mode.js';
import { TimeBudget } from '../dataplane/time-budget.js';

/** What became of connection attempts to one endpoint. */
export interface AttemptTally extends Row {
  /** Since its last answer; those of them that it refused. */
  readonly unanswered: number;
  readonly refused: number;
  /** When the last attempt was seen, on the clock. */
  readonly lastAt: number;
}

/** What is known at a moment. */
export interface AttemptsSeen {
  /** For how long it has been counted; null: it is not. */
  readonly countedMs: number | null;
  /** Why it is not counted; null: it is. */
  readonly problem: string | null;
  readonly tallies: ReadonlyMap<string, AttemptTally>;
  /** Endpoints that answered none of their last attempts. */
  readonly silent: readonly AttemptTally[];
}

interface EndpointAttemptsParts {
  /** Of the mode in force. */
  readonly open: OpenMode['attempts'];
  readonly log: Log;
  readonly clock: Clock;
}

/** Who has asked is likely to ask again. */
const ASKED_MS = 60_000;
const EVERY_MS = 5000;
/** What was read so lately is answered again. */
const FRESH_MS = 500;
/** Of the time, for looks that no one waits for. */
const SHARE = 0.01;
/** Fewer attempts prove nothing. */
const LEAST_ATTEMPTS = 3;
/** An attempt is given so long to be answered. */
const GRACE_MS = 1000;

export const NOT_IN_THIS_MODE = 'this mode cannot count connection attempts';

/** Has the kernel count connection attempts while clients ask, and keeps what became of them. */
export class EndpointAttempts {
  private open: OpenMode['attempts'];
  private counter: AttemptCounter | null = null;
  private startedAt = 0;
  private lookedAt = -Infinity;
  private askedUntil = -Infinity;
  /** One thing at a time. */
  private work: Promise<void> = Promise.resolve();
  private cancel: (() => void) | null = null;
  private problem: string | null = null;
  private isEnding = false;
  /** What the kernel had counted when it was last read. */
  private before: ReadonlyMap<string, Row> = new Map();
  private readonly tallies = new Map<string, AttemptTally & { readonly since: number | null }>();
  private readonly budget: TimeBudget;

  constructor(private readonly parts: EndpointAttemptsParts) {
    this.open = parts.open;
    this.budget = new TimeBudget(() => parts.clock.now(), SHARE);
  }

  /** From now on until the process ends. Never rejects. */
  always(): Promise<void> {
    this.askedUntil = Infinity;
    return this.ask().then(() => undefined);
  }

  /** What is known now. Counting goes on for a minute. Never rejects. */
  async ask(): Promise<AttemptsSeen> {
    const { clock } = this.parts;
    this.askedUntil = Math.max(this.askedUntil, clock.now() + ASKED_MS);
    await this.doNext(async () => {
      if (this.counter === null) await this.begin();
      else if (clock.now() - this.lookedAt >= FRESH_MS) await this.look(this.counter);
    });
    return this.seen();
  }

  /** What was known at the last look. */
  seen(): AttemptsSeen {
    const now = this.parts.clock.now();
    const isSilent = ({ unanswered, since }: { readonly unanswered: number; readonly since: number | null }): boolean =>
      unanswered >= LEAST_ATTEMPTS && since !== null && this.lookedAt - since >= GRACE_MS;
    return {
      countedMs: this.counter === null ? null : now - this.startedAt,
      problem: this.problem,
      tallies: this.tallies,
      silent: [...this.tallies.values()].filter(isSilent),
    };
  }

  /** Another mode is in force. */
  follow(open: OpenMode['attempts']): Promise<void> {
    this.open = open;
    return this.doNext(async () => {
      if (this.counter === null) return;
      await this.end();
      await this.begin();
    });
  }

  stop(): Promise<void> {
    this.isEnding = true;
    return this.doNext(() => this.end());
  }

  private doNext(what: () => Promise<void>): Promise<void> {
    this.work = this.work.then(what).then(
      () => undefined,
      (error: unknown) => {
        const message = messageOf(error);
        if (message !== this.problem) this.parts.log.error(error, 'cannot count connection attempts');
        this.problem = message;
      },
    );
    return this.work;
  }

  private async begin(): Promise<void> {
    if (this.isEnding) return;
    if (this.open === null) {
      this.problem = NOT_IN_THIS_MODE;
      return;
    }
    const counter = await this.open();
    try {
      await counter.open();
    } catch (error) {
      // Of one family it may be open.
      await counter.close().catch(() => undefined);
      throw error;
    }
    const { clock } = this.parts;
    this.counter = counter;
    this.problem = null;
    this.before = new Map();
    this.startedAt = clock.now();
    this.lookedAt = clock.now();
    this.schedule();
  }

  private async end(): Promise<void> {
    const { counter } = this;
    this.cancel?.();
    this.counter = null;
    this.tallies.clear();
    await counter?.close();
  }

  private schedule(): void {
    const { clock } = this.parts;
    this.cancel?.();
    this.cancel = clock.callAt(clock.now() + EVERY_MS, () => {
      void this.doNext(async () => {
        const { counter } = this;
        if (counter === null) return;
        this.schedule();
        if (clock.now() >= this.askedUntil) await this.end();
        else if (this.budget.isDue) await this.budget.take(() => this.look(counter));
      });
    });
  }

  private async look(counter: AttemptCounter): Promise<void> {
    const { clock } = this.parts;
    const began = clock.now();
    const rows = await counter.read();
    if (rows === null) {
      // What was counted since the last look is lost.
      await counter.open();
      this.before = new Map();
      return;
    }
    const now = new Map(rows.map((row) => [row.endpoint, row]));
    for (const row of rows) this.add(row, this.before.get(row.endpoint), began);
    for (const endpoint of this.tallies.keys()) if (!now.has(endpoint)) this.tallies.delete(endpoint);
    this.before = now;
    this.lookedAt = began;
  }

  private add(row: Row, before: Row | undefined, at: number): void {
    // Less than before is another counter, from the beginning.
    const more = (of: 'attempts' | 'answers' | 'refusals'): number =>
      row[of] < (before?.[of] ?? 0) ? row[of] : row[of] - (before?.[of] ?? 0);
    const [attempts, answers, refusals] = [more('attempts'), more('answers'), more('refusals')];
    const known = this.tallies.get(row.endpoint) ?? {
      family: row.family,
      endpoint: row.endpoint,
      attempts: 0,
      answers: 0,
      refusals: 0,
      unanswered: 0,
      refused: 0,
      since: null,
      lastAt: at,
    };
    const unanswered = answers > 0 ? 0 : known.unanswered + attempts;
    this.tallies.set(row.endpoint, {
      ...known,
      attempts: known.attempts + attempts,
      answers: known.answers + answers,
      refusals: known.refusals + refusals,
      unanswered,
      refused: answers > 0 ? 0 : known.refused + refusals,
      since: unanswered === 0 ? null : (known.since ?? at),
      lastAt: attempts > 0 ? at : known.lastAt,
    });
  }
}
