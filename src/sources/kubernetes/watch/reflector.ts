import type { Backoff } from '../../../base/backoff.js';
import { sleep } from '../../../base/clock.js';
import type { Log } from '../../../base/log.js';
import type { SourceTracing } from '../../../base/tracing.js';
import type { SourceWriter } from '../../../state/writer.js';
import type { ApiQuery } from '../connection.js';
import { failureOf, SourceFailure, type FailureKind } from '../failure.js';
import type { Resource } from '../resources.js';
import { apiBackoff, type Dependencies } from '../timing.js';
import { EventStream, type StreamListener } from './event-stream.js';
import type { Exchanger } from './exchange.js';
import type { Inventory } from './inventory.js';
import { Lister } from './lister.js';
import { noEvents, type EventName, type ResourceStatus } from './status.js';
import { Trouble } from './trouble.js';

interface ReflectorOptions {
  readonly resource: Resource;
  readonly exchanger: Exchanger;
  readonly inventory: Inventory;
  readonly writer: SourceWriter;
  /** Null: there is no observer of changes. */
  readonly tracing: SourceTracing | null;
  readonly log: Log;
  readonly dependencies: Dependencies;
  /** Unknown state is requested again after this time, in milliseconds. */
  readonly configSyncPeriodMs: number;
  /** Done before each request, on the same connection; must not reject. Answers in how many milliseconds it has to be done again; null: whenever it is. */
  readonly before: (signal: AbortSignal, isFailing: boolean) => Promise<number | null>;
  /** Called after the first attempt, however it ended, and when it was the first sync. */
  readonly settled: (synced: boolean) => void;
}

/** Initial events that failed so often in a row are given up for a list. */
const MAX_STREAMED_ATTEMPTS = 3;

/**
 * Keeps the state in step with one resource: initial events or a list, then a watch from there, and again from where it was when the watch
 * ends. Whatever goes wrong, what the state holds stays until something newer is complete.
 */
export class Reflector implements StreamListener {
  private readonly stopper = new AbortController();
  private readonly backoff: Backoff;
  private readonly trouble: Trouble;
  private readonly lister: Lister;
  private running: Promise<void> = Promise.resolve();
  /** Where to watch from; null when everything has to be read anew. */
  private version: string | null = null;
  /** The last version the state stood at. */
  private seen = '';
  /** The server was out of reach since: what comes back may be restored from a backup. */
  private lost = false;
  /** When the request began that is under way. */
  private turnAt = 0;
  private synced = false;
  private watchingSince: number | null = null;
  private lastEventAt: number | null = null;
  private readonly events = noEvents();
  private lists = 0;
  private watches = 0;
  /** When initial events may be asked for again, after the server refused. */
  private streamingFrom = Number.NEGATIVE_INFINITY;
  /** A watch lasts no longer, in seconds. */
  private mostSeconds = Infinity;
  private streamedAttempts = 0;
  /** When everything was last read anew at once, without backing off. */
  private restartedAt = Number.NEGATIVE_INFINITY;
  /** When to read everything anew, as an object could not be read; null when all could. */
  private uncertainUntil: number | null = null;

  constructor(private readonly options: ReflectorOptions) {
    const { resource, exchanger, inventory, log, dependencies } = options;
    this.backoff = apiBackoff(dependencies.timing, dependencies.random);
    this.trouble = new Trouble(resource.name, log);
    this.lister = new Lister(resource, exchanger, inventory);
  }

  start(): void {
    this.running = this.run();
  }

  /** Resolves when nothing more will be applied. */
  async stop(): Promise<void> {
    this.stopper.abort();
    await this.running;
  }

  status(): ResourceStatus {
    const { resource, inventory, dependencies } = this.options;
    return {
      resource: resource.name,
      synced: this.synced,
      watching: this.watchingSince !== null,
      version: this.seen,
      objects: inventory.size,
      sinceLastEventMs: this.lastEventAt === null ? null : dependencies.clock.now() - this.lastEventAt,
      events: { ...this.events },
      lists: this.lists,
      watches: this.watches,
      failures: { ...this.trouble.counts },
      trouble: this.trouble.present,
      ...inventory.faults,
    };
  }

  event(type: EventName): void {
    this.events[type]++;
  }

  listed(version: string, uncertain: boolean): void {
    const { resource, inventory, tracing, dependencies, configSyncPeriodMs, settled } = this.options;
    const now = dependencies.clock.now();
    this.lists++;
    this.streamedAttempts = 0;
    this.uncertainUntil = uncertain ? now + configSyncPeriodMs : null;
    this.advanced(version);
    this.trouble.over();
    this.synced = true;
    tracing?.listed(resource.name, inventory.size, this.turnAt);
    settled(true);
  }

  advanced(version: string): void {
    this.lastEventAt = this.options.dependencies.clock.now();
    this.version = version;
    this.seen = version;
  }

  private async run(): Promise<void> {
    const { dependencies, settled } = this.options;
    const { signal } = this.stopper;
    while (!this.stopping()) {
      const delay = await this.turn();
      if (this.stopping()) return;
      settled(this.synced);
      if (delay > 0) await sleep(delay, dependencies.clock, signal);
    }
  }

  private stopping(): boolean {
    return this.stopper.signal.aborted;
  }

  /** One request, and what comes of it. Returns how long to wait before the next, in milliseconds. Never rejects. */
  private async turn(): Promise<number> {
    const { clock } = this.options.dependencies;
    const againMs = await this.options.before(this.stopper.signal, this.trouble.present !== null);
    this.mostSeconds = againMs === null ? Infinity : Math.max(1, Math.ceil(againMs / 1000));
    this.turnAt = clock.now();
    try {
      if (this.uncertainUntil !== null && clock.now() >= this.uncertainUntil) this.version = null;
      if (this.version !== null) await this.resume(this.version);
      else if (!this.mayStream() || !(await this.streamInitial())) {
        await this.list();
        return 0;
      }
      return this.provenHealthy() ? 0 : this.backoff.next();
    } catch (error) {
      if (this.stopping()) return 0;
      this.provenHealthy();
      return this.recover(failureOf(error));
    } finally {
      this.watchingSince = null;
    }
  }

  /** Whether the watch that ended lived long enough to prove that the trouble before it is over. */
  private provenHealthy(): boolean {
    const { clock, timing } = this.options.dependencies;
    const healthy = this.watchingSince !== null && clock.now() - this.watchingSince >= timing.healthyMs;
    if (healthy) this.backoff.reset();
    return healthy;
  }

  private mayStream(): boolean {
    return this.streamedAttempts < MAX_STREAMED_ATTEMPTS && this.options.dependencies.clock.now() >= this.streamingFrom;
  }

  private async list(): Promise<void> {
    const { relist, version } = await this.lister.list(this.seen, this.stopper.signal);
    if (this.stopping()) return;
    this.options.writer.apply(relist.commit());
    this.listed(version, relist.uncertain);
  }

  /**
   * KEP-3157: the list as the first events of the watch, of a state no older than that at the request. Resolves at the end of the watch, or
   * with false when the server refuses.
   */
  private async streamInitial(): Promise<boolean> {
    this.streamedAttempts++;
    try {
      await this.stream({ sendInitialEvents: 'true', resourceVersionMatch: 'NotOlderThan' }, true);
      return true;
    } catch (error) {
      const failure = failureOf(error);
      if (this.version !== null || failure.kind !== 'rejected') throw failure;
      const { clock } = this.options.dependencies;
      this.streamingFrom = clock.now() + this.options.configSyncPeriodMs;
      this.options.log.info(2, `The API server does not stream lists, so they are requested: ${failure.message}`, {
        resource: this.options.resource.name,
      });
      return false;
    }
  }

  /** Watches on from a version, which a server that was out of reach is asked about first. */
  private async resume(version: string): Promise<void> {
    if (this.lost) await this.lister.confirm(version, this.stopper.signal);
    this.lost = false;
    await this.stream({ resourceVersion: version }, false);
  }

  private stream(query: ApiQuery, initial: boolean): Promise<void> {
    const { resource, exchanger, inventory, writer, tracing, dependencies } = this.options;
    const { timing, random } = dependencies;
    const seconds = Math.min(this.mostSeconds, Math.round(timing.watchSeconds * (1 + random())));
    this.watches++;
    return exchanger.run(
      {
        path: resource.path,
        query: {
          ...resource.selectors,
          watch: '1',
          allowWatchBookmarks: 'true',
          timeoutSeconds: String(seconds),
          ...query,
        },
        open: (codec) => {
          if (!initial) this.trouble.over();
          this.watchingSince = dependencies.clock.now();
          return new EventStream(codec, { resource, inventory, writer, tracing, listener: this, initial });
        },
      },
      this.stopper.signal,
    );
  }

  private recover(failure: SourceFailure): number {
    this.trouble.report(failure);
    if (STARTS_OVER.includes(failure.kind)) this.version = null;
    if (failure.kind === 'ahead') this.lister.startAgain();
    if (failure.kind === 'unavailable' || failure.kind === 'silent') this.lost = true;
    if (failure.kind === 'expired' && this.mayRestart()) return 0;
    const delay = this.backoff.next();
    if (failure.retryAfterMs === null || failure.retryAfterMs === 0) return delay;
    const { timing, random } = this.options.dependencies;
    return Math.min(failure.retryAfterMs, timing.retryAfterMaxMs) * (1 + RETRY_AFTER_JITTER * random());
  }

  /**
   * Whether everything may be read anew at once. A server that reports a version as gone is there and well, so the failures that led here are over:
   * waiting longer for having waited would only keep the node behind. Not more often than the longest backoff, in case it repeats the answer.
   */
  private mayRestart(): boolean {
    const { clock, timing } = this.options.dependencies;
    const now = clock.now();
    if (now - this.restartedAt < timing.backoffMaxMs) return false;
    this.restartedAt = now;
    this.backoff.reset();
    return true;
  }
}

/** Failures after which watching on from the same version is no use. */
const STARTS_OVER: readonly FailureKind[] = ['expired', 'ahead', 'undecodable', 'rejected'];
/** What chance adds to a time the server asked us to wait. */
const RETRY_AFTER_JITTER = 0.1;
