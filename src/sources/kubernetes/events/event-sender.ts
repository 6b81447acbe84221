import { sleep, type Clock } from '../../../base/clock.js';
import { messageOf } from '../../../base/error-message.js';
import type { EventLimit, EventRecorder, EventSubject, ProxyEvent } from '../../../base/events.js';
import type { Log } from '../../../base/log.js';
import { cutText } from '../../../base/outside-text.js';
import { RateLimit } from '../connect/rate-limit.js';
import type { ApiConnection } from '../connection.js';
import { eventBody, eventPath, MAX_NOTE, PROXY_CONTROLLER } from './event-body.js';
import { lookUpUid } from './event-subject.js';

export interface EventSenderOptions {
  /** The name by which users look for its events; kube-proxy's where it is not given. */
  readonly controller?: string;
  /** The system's name, by which kube-proxy too signs its events. */
  readonly hostname: string;
  /** How often events are sent: those that are over it wait. A `qps` of 0: as they come. */
  readonly rates: { readonly qps: number; readonly burst: number };
  /** Events over the limit are dropped; null: there is no limit. */
  readonly limit: EventLimit | null;
  readonly clock: Clock;
  /** As Math.random, which it is where it is not given. */
  readonly random?: () => number;
  /** Nanoseconds since the epoch. */
  readonly wallClock: () => bigint;
  readonly log: Log;
}

/** An event that is to be sent. */
interface WaitingEvent {
  readonly event: ProxyEvent;
  readonly at: bigint;
}

/** What one attempt came to. */
type Outcome =
  | { readonly type: 'delivered' }
  /** Trying again would come to the same. */
  | { readonly type: 'refused'; readonly why: string }
  | { readonly type: 'failed'; readonly why: string; readonly retryAfterMs: number | null };

/** The same event is not sent again before this time is over. */
const REPEAT_MS = 600_000;
/** So many events are remembered for that, the last ones. */
const REMEMBERED = 1000;
export const QUEUED = 100;
/** Over this time nodes spread what all of them find alike. */
const SPREAD_MS = 10_000;
/** As {@link RateLimit} has it. */
const UNLIMITED = -1;
const ATTEMPTS = 5;
const RETRY_MS = 2000;
const RETRY_FACTOR = 3;
const RETRY_MAX_MS = 60_000;
/** For one attempt, with what is looked up before it. */
const ATTEMPT_MS = 30_000;

/**
 * Posts events to the API server (events.k8s.io/v1), one at a time, in the background and without hurry. No failure makes a caller wait: the queue is
 * bounded, attempts are few, and what cannot be delivered is dropped with a line at `-v 2`.
 */
export class EventSender implements EventRecorder {
  private readonly stopper = new AbortController();
  private readonly limit: RateLimit;
  private readonly reported = new Map<string, number>();
  private queue: WaitingEvent[] = [];
  /** What calls off those whose time has not come. */
  private readonly spread = new Set<() => void>();
  private connection: ApiConnection | null = null;
  /** There is no cluster to send events to. */
  private alone = false;
  private sending: Promise<void> | null = null;
  private lastAt = 0n;

  constructor(private readonly options: EventSenderOptions) {
    const { qps, burst } = options.rates;
    this.limit = new RateLimit(qps === 0 ? UNLIMITED : qps, burst, () => options.clock.now());
  }

  record(given: ProxyEvent): void {
    const event = { ...given, note: cutText(given.note, MAX_NOTE) };
    if (this.alone || this.stopper.signal.aborted || this.isKnown(event)) return;
    if (this.queue.length + this.spread.size >= QUEUED) {
      this.drop(event, 'too many wait');
      return;
    }
    if (this.options.limit?.(event) === false) {
      this.drop(event, 'over the limits of --event-rate-limit-config');
      return;
    }
    const waiting = { event, at: this.time() };
    if (event.finding === undefined) this.enqueue(waiting);
    else this.enqueueLater(waiting);
  }

  private enqueue(waiting: WaitingEvent): void {
    this.queue.push(waiting);
    this.send();
  }

  private enqueueLater(waiting: WaitingEvent): void {
    const { clock, random = Math.random } = this.options;
    const cancel = clock.callAt(clock.now() + SPREAD_MS * random(), () => {
      this.spread.delete(cancel);
      this.enqueue(waiting);
    });
    this.spread.add(cancel);
  }

  private callOff(): void {
    for (const cancel of this.spread) cancel();
    this.spread.clear();
  }

  /** From now on events are sent there, first those that came before; null: there is no recipient. */
  start(connection: ApiConnection | null): void {
    this.connection = connection;
    this.alone = connection === null;
    if (this.alone) {
      this.queue = [];
      this.callOff();
    }
    this.send();
  }

  /** Resolves when all events are delivered or given up, or the time is over. */
  async flush(timeoutMs: number): Promise<void> {
    const enough = new AbortController();
    const { clock } = this.options;
    await Promise.race([this.sending, sleep(timeoutMs, clock, enough.signal)]);
    enough.abort();
  }

  /** Drops what waits. */
  stop(): void {
    this.queue = [];
    this.callOff();
    this.stopper.abort();
  }

  /** Whether it was sent not long ago; otherwise it counts as sent now. */
  private isKnown({ regarding, reason, note, finding = note }: ProxyEvent): boolean {
    const key = JSON.stringify([regarding, reason, finding]);
    const now = this.options.clock.now();
    const reportedAt = this.reported.get(key);
    if (reportedAt !== undefined && now - reportedAt < REPEAT_MS) return true;
    this.reported.delete(key);
    this.reported.set(key, now);
    const [oldest] = this.reported.keys();
    if (this.reported.size > REMEMBERED && oldest !== undefined) this.reported.delete(oldest);
    return false;
  }

  /** Every event has a time of its own: its name is made of it. */
  private time(): bigint {
    const now = this.options.wallClock();
    this.lastAt = now > this.lastAt ? now : this.lastAt + 1n;
    return this.lastAt;
  }

  private send(): void {
    if (this.connection === null || this.sending !== null || this.queue.length === 0) return;
    this.sending = this.sendAll().finally(() => {
      this.sending = null;
      this.send();
    });
  }

  private async sendAll(): Promise<void> {
    const { signal } = this.stopper;
    for (let waiting = this.queue.shift(); waiting !== undefined; waiting = this.queue.shift()) {
      try {
        await this.limit.take(signal);
        await this.deliver(waiting);
      } catch (error) {
        if (signal.aborted) return;
        this.drop(waiting.event, messageOf(error));
      }
    }
  }

  private async deliver(waiting: WaitingEvent): Promise<void> {
    const { clock } = this.options;
    const { signal } = this.stopper;
    let wait = RETRY_MS;
    let why = '';
    for (let attempt = 1; attempt <= ATTEMPTS; attempt++) {
      // Each by the way that there is by then.
      if (this.connection === null) return;
      const outcome = await this.attempt(this.connection, waiting);
      if (outcome.type === 'delivered' || signal.aborted) return;
      ({ why } = outcome);
      if (outcome.type === 'refused') break;
      if (attempt < ATTEMPTS) await sleep(Math.min(outcome.retryAfterMs ?? wait, RETRY_MAX_MS), clock, signal);
      wait *= RETRY_FACTOR;
    }
    this.drop(waiting.event, why);
  }

  private async attempt(connection: ApiConnection, { event, at }: WaitingEvent): Promise<Outcome> {
    const signal = AbortSignal.any([this.stopper.signal, AbortSignal.timeout(ATTEMPT_MS)]);
    try {
      const uid = await lookUpUid(connection, event.regarding, signal);
      const { hostname, controller = PROXY_CONTROLLER } = this.options;
      const body = eventBody(event, { at, uid, hostname, controller });
      const { status, retryAfterMs } = await connection.post(eventPath(event.regarding), body, { signal });
      // A conflict: an earlier attempt arrived, and only its answer was lost; or another node was first to report what all find.
      if ((status >= 200 && status < 300) || status === 409) return { type: 'delivered' };
      const why = `status ${status}`;
      const transient = status === 401 || status === 429 || status >= 500;
      return transient ? { type: 'failed', why, retryAfterMs } : { type: 'refused', why };
    } catch (error) {
      return { type: 'failed', why: messageOf(error), retryAfterMs: null };
    }
  }

  private drop({ regarding, reason, note }: ProxyEvent, why: string): void {
    this.options.log.info(2, 'An event is dropped', { object: printSubject(regarding), reason, note, why });
  }
}

function printSubject({ kind, namespace, name }: EventSubject): string {
  return `${kind} ${namespace === '' ? name : `${namespace}/${name}`}`;
}
