import type { ObjectKey } from '../state/rows.js';

/** How many changes, and how many triggers of one Service, are remembered while the kernel takes none; what comes later is not measured. */
const MAX_CHANGES = 10_000;
const MAX_TRIGGERS = 100;

/** What the kernel has just acknowledged. */
export interface AcknowledgedTimes {
  /** When each change was committed to the state, on the monotonic clock in milliseconds. */
  readonly commits: readonly number[];
  /** When what the changes tell of happened in the cluster, in milliseconds since the epoch. */
  readonly triggers: readonly number[];
}

type Triggers = Map<ObjectKey, number[]>;

/** Times of one family's changes on their way to the kernel. A change stays until a sync that took it has been acknowledged, however many fail. */
export class ChangeTimes {
  private queued: number[] = [];
  private taken: number[] = [];
  private queuedTriggers: Triggers = new Map();
  private takenTriggers: Triggers = new Map();

  committed(at: number): void {
    if (this.queued.length + this.taken.length < MAX_CHANGES) this.queued.push(at);
  }

  triggered(service: ObjectKey, at: number): void {
    addTo(this.queuedTriggers, service, [at]);
  }

  /** Of a Service that loses a slice nothing is known: its slices' times are of their last update. */
  forgetTriggers(service: ObjectKey): void {
    this.queuedTriggers.delete(service);
    this.takenTriggers.delete(service);
  }

  /** A sync takes all there is. */
  take(): void {
    this.taken.push(...this.queued);
    this.queued = [];
    for (const [service, times] of this.queuedTriggers) addTo(this.takenTriggers, service, times);
    this.queuedTriggers = new Map();
  }

  /** The kernel acknowledged all that was taken. */
  acknowledge(): AcknowledgedTimes {
    const commits = this.taken;
    const triggers = [...this.takenTriggers.values()].flat();
    this.taken = [];
    this.takenTriggers = new Map();
    return { commits, triggers };
  }

  /** When the oldest change that is not acknowledged was committed; null when there is none. */
  oldest(): number | null {
    return this.taken[0] ?? this.queued[0] ?? null;
  }
}

function addTo(triggers: Triggers, service: ObjectKey, times: readonly number[]): void {
  const held = triggers.get(service);
  if (held === undefined) triggers.set(service, [...times]);
  else held.push(...times.slice(0, Math.max(0, MAX_TRIGGERS - held.length)));
}
