import type { NftTraceEvent } from '../../native/contract.js';
import type { TracedPackets } from './connection.js';
import { hasPassed, type Passage, type PassageReader } from './passage.js';

/** An endpoint may take so long to answer, and a client that knocks in vain repeats itself after a second. */
const ANSWER_MS = 900;
/** Between two hooks of one packet there are microseconds. A busy machine may need longer: {@link ANSWER_MS}. */
const QUIET_MS = 200;

interface Watched {
  readonly request: Passage;
  answer: Passage | null;
  seenAt: number;
}

/** Finds out when all is known of a connection, in the order in which that is so. */
export class ConnectionWatch {
  /** Connections by the client's and the Service's address and port. */
  private readonly watched = new Map<string, Watched>();
  private readonly answers = new Set<Passage>();
  private readonly reported = new Set<string>();
  private readonly ready: TracedPackets[] = [];
  private wake: (() => void) | null = null;
  private timer: NodeJS.Timeout | null = null;
  private judgement: NodeJS.Immediate | null = null;

  constructor(
    private readonly reader: PassageReader,
    private readonly own: string,
  ) {}

  read(events: readonly NftTraceEvent[]): void {
    const now = performance.now();
    for (const event of events) {
      const passage = this.reader.read(event);
      if (passage === null) continue;
      if (passage.kind === 'answer') this.answers.add(passage);
      else this.note(passage, now);
    }
    this.match(now);
    this.settle();
  }

  /** Null: nothing within that time. */
  async next(milliseconds: number): Promise<TracedPackets | null> {
    const deadline = performance.now() + milliseconds;
    for (;;) {
      const packets = this.ready.shift();
      if (packets !== undefined) return packets;
      const left = deadline - performance.now();
      // Incomplete traces are reported as far as they are known.
      if (left <= 0) return this.finish();
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, left);
        this.wake = () => {
          clearTimeout(timer);
          resolve();
        };
      });
      this.wake = null;
    }
  }

  close(): void {
    this.stopTimers();
  }

  private stopTimers(): void {
    if (this.timer !== null) clearTimeout(this.timer);
    if (this.judgement !== null) clearImmediate(this.judgement);
    this.timer = null;
    this.judgement = null;
  }

  private finish(): TracedPackets | null {
    const [first] = this.watched;
    if (first === undefined) return null;
    this.tell(...first);
    return this.ready.shift() ?? null;
  }

  private note(request: Passage, now: number): void {
    const headers = request.steps[0]?.headers;
    if (headers === undefined) return;
    const key = `${headers.protocol} ${headers.source} ${headers.destination}`;
    if (this.reported.has(key)) return;
    const known = this.watched.get(key);
    if (known?.request === request) known.seenAt = now;
    // Another packet of a connection that is known already adds nothing.
    if (known === undefined) this.watched.set(key, { request, answer: null, seenAt: now });
  }

  /** An answer goes to the client in the end, from any source that its packets showed. */
  private match(now: number): void {
    for (const answer of this.answers) {
      const last = answer.steps.at(-1)?.headers;
      const found = [...this.watched.values()].find(
        ({ request, answer: known }) => known === null && request.steps[0]?.headers.source === last?.destination,
      );
      if (found === undefined) continue;
      found.answer = answer;
      found.seenAt = now;
      this.answers.delete(answer);
    }
  }

  private settle(): void {
    this.stopTimers();
    const now = performance.now();
    let soonest = Infinity;
    for (const [key, watched] of this.watched) {
      const left = watched.seenAt + this.patience(watched) - now;
      if (left <= 0) this.tell(key, watched);
      else soonest = Math.min(soonest, left);
    }
    if (soonest < Infinity)
      this.timer = setTimeout(() => {
        // After a busy moment reports may be waiting that are older than the timer: they are read first.
        this.judgement = setImmediate(() => {
          this.settle();
        });
      }, soonest);
  }

  /** How long nothing more has to come for all to be known. */
  private patience({ request, answer }: Watched): number {
    const isKnown = answer === null ? isDropped(request) : isDropped(answer) || this.isOver(answer);
    return isKnown ? QUIET_MS : ANSWER_MS;
  }

  private isOver(passage: Passage): boolean {
    return hasPassed(passage, this.own, 'postrouting') || hasPassed(passage, this.own, 'input');
  }

  private tell(key: string, { request, answer }: Watched): void {
    this.watched.delete(key);
    this.reported.add(key);
    this.ready.push({ request, answer });
    this.wake?.();
  }
}

function isDropped({ steps }: Passage): boolean {
  return steps.some(({ verdict }) => verdict === 'drop');
}
