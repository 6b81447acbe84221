/*
 * The states of a key, and what leads from one to another. Pending: what is desired is not what is held. Only a key that is pending can be claimed, unknown or
 * quarantined.
 *
 *                      desire (another value)                    claim
 *     ┌─────────────┐ ───────────────────────▶ ┌─────────┐ ───────────────▶ ┌─────────┐
 *     │ as desired  │                          │ pending │ ◀─── refuse ──── │ claimed │
 *     └─────────────┘ ◀─────────────────────── └─────────┘                  └─────────┘
 *            ▲         desire, readBack (the    │       ▲                      │     │
 *            │         value that is held)      │       │ readBack             │     │
 *            │                         quarantined │   ┌─────────┐ ◀──── lose ────┘     │
 *            │                                  │   │ unknown │                      │
 *            │                                  ▼   └─────────┘                      │
 *            │                          ┌─────────────┐  due (after a pause, or at   │
 *            │                          │ quarantined │  once when another value is  │
 *            │                          └─────────────┘  desired), then claim        │
 *            └───────────────────────────── acknowledge ─────────────────────────────┘
 */

/** How long a key that was quarantined waits, in milliseconds. */
interface QuarantineBackoff {
  /** After it was quarantined first. */
  readonly initialMs: number;
  /** No wait is longer. */
  readonly maxMs: number;
  /** Each wait is this many times as long as the one before. */
  readonly factor: number;
}

const BACKOFF: QuarantineBackoff = { initialMs: 1000, maxMs: 60_000, factor: 2 };

export interface LedgerOptions<Value> {
  readonly same: (one: Value, other: Value) => boolean;
  /** Milliseconds on a clock that only goes forward. */
  readonly now: () => number;
  readonly backoff?: QuarantineBackoff;
}

/** A key that others do not wait for. Times are of the ledger's clock. */
interface Quarantine {
  readonly reason: string;
  readonly since: number;
  /** From then on it is {@link Ledger.due}. */
  readonly retryAt: number;
}

/**
 * Keys that one transaction brings from what the kernel holds to what is desired. Ends once, with the kernel's answer. A
 * value that is desired after the claim began stays pending.
 */
export interface Claim {
  /** The kernel holds what was desired when the claim began. */
  acknowledge(): void;
  /** The kernel did nothing of it: all are sent again, but what {@link Ledger.quarantine} takes out. */
  refuse(): void;
  /** It is unknown whether the kernel did it. */
  lose(): void;
}

interface QuarantineEntry<Value> extends Quarantine {
  /** The value that the kernel refused; undefined: that the key be absent. */
  readonly refused: Value | undefined;
  /** 0: it has not been tried since something new is known of it. */
  readonly waitMs: number;
}

/** The due key with the smallest rank is tried first: see {@link Ledger.due}. */
function rank({ waitMs, retryAt }: Pick<QuarantineEntry<unknown>, 'waitMs' | 'retryAt'>): number {
  return waitMs === 0 ? -retryAt - 1 : retryAt;
}

/** The desired values of a claim's keys when it began. */
class ClaimedValues<Key, Value> {
  readonly keys: Key[] = [];
  readonly values: (Value | undefined)[] = [];
  /** Made when it is asked for: mostly nothing is desired while a claim is under way. */
  private index: ReadonlySet<Key> | null = null;

  add(key: Key, value: Value | undefined): void {
    this.keys.push(key);
    this.values.push(value);
  }

  has(key: Key): boolean {
    return (this.index ??= new Set(this.keys)).has(key);
  }
}

/**
 * The desired values, the values that the kernel acknowledged, and the difference of both, which is pending. Only the
 * kernel's answer changes what is acknowledged, so a failure needs no undoing: everything not acknowledged is still
 * pending. Reading removes nothing.
 *
 * Only the acknowledged values and the difference are kept, and each operation but {@link readBackAll} costs what it names, independent of the table's size.
 *
 * A key is unknown or quarantined only while it is pending. No value is `undefined`, which stands for absence.
 */
export class Ledger<Key, Value> {
  private held = new Map<Key, Value>();
  /** The desired values of pending keys; undefined: the key is to be absent. Every other key is desired as it is held. */
  private readonly pendingValues = new Map<Key, Value | undefined>();
  private readonly claims = new Set<ClaimedValues<Key, Value>>();
  private readonly unknownKeys = new Set<Key>();
  private isAllUnknown = false;
  private changes = 0;
  private readonly quarantines = new Map<Key, QuarantineEntry<Value>>();
  /** For quarantined keys: the value that the kernel held before an external change altered it. */
  private readonly formers = new Map<Key, Value>();
  private readonly backoff: QuarantineBackoff;

  constructor(private readonly options: LedgerOptions<Value>) {
    this.backoff = options.backoff ?? BACKOFF;
  }

  /** The values that the kernel acknowledged, or showed when read back. For {@link unknown} keys those acknowledged before. */
  get acknowledged(): ReadonlyMap<Key, Value> {
    return this.held;
  }

  /** Another number after every change of {@link acknowledged}. */
  get version(): number {
    return this.changes;
  }

  /**
   * Keys whose claim was lost. They are pending until they are read back, or until another claim of them is acknowledged. See
   * {@link allUnknown} too.
   */
  get unknown(): ReadonlySet<Key> {
    return this.unknownKeys;
  }

  /** Whether nothing is known of any key: everything desired is pending. */
  get allUnknown(): boolean {
    return this.isAllUnknown;
  }

  /** Nothing is known any more, until {@link readBackAll}. A ledger of a kernel that may hold something begins with it. */
  markAllUnknown(): void {
    this.isAllUnknown = true;
  }

  /** Keys that are pending and that the kernel refused. */
  get quarantined(): ReadonlyMap<Key, Quarantine> {
    return this.quarantines;
  }

  /** Keys that are quarantined and that an external change altered, with what the kernel held of them before. */
  get damaged(): ReadonlyMap<Key, Value> {
    return this.formers;
  }

  /** Undefined: that the key be absent. */
  desired(key: Key): Value | undefined {
    return this.pendingValues.get(key) ?? (this.pendingValues.has(key) ? undefined : this.held.get(key));
  }

  isPending(key: Key): boolean {
    return this.pendingValues.has(key);
  }

  /** Whether there is nothing to send: what is claimed or quarantined others care for. */
  get isSteady(): boolean {
    return this.pending().next().done === true;
  }

  /** The keys to be sent: pending, and neither claimed nor quarantined. */
  pending(): IterableIterator<Key> {
    return this.quarantines.size + this.claims.size === 0 ? this.pendingValues.keys() : this.pendingAmongOthers();
  }

  private *pendingAmongOthers(): IterableIterator<Key> {
    for (const key of this.pendingValues.keys()) if (!this.quarantines.has(key) && !this.isClaimed(key)) yield key;
  }

  /**
   * Quarantined keys whose time has come. They need transactions of their own: the kernel may refuse them again.
   *
   * @param most the limit. Keys with something new come first, the latest before the others, then those that have waited
   *   longest.
   */
  due(most = Infinity): readonly Key[] {
    const now = this.options.now();
    const due = [...this.quarantines].filter(([key, { retryAt }]) => retryAt <= now && !this.isClaimed(key));
    if (due.length > most) due.sort(([, one], [, other]) => rank(one) - rank(other)).splice(most);
    return due.map(([key]) => key);
  }

  /** @param value undefined: the key is to be absent. A quarantined key becomes due if the value is not the refused one. */
  desire(key: Key, value: Value | undefined): void {
    if (this.isUncertain(key) || !this.same(value, this.held.get(key))) this.pendingValues.set(key, value);
    else this.meet(key, value);
    const quarantined = this.quarantines.size === 0 ? undefined : this.quarantines.get(key);
    if (quarantined === undefined || this.same(quarantined.refused, value)) return;
    this.quarantines.set(key, { ...quarantined, refused: value, retryAt: this.options.now(), waitMs: 0 });
  }

  /**
   * Begins a transaction for keys that are not claimed; claiming one twice is a mistake and throws. Keys that are
   * {@link unknown} are for operations that replace any value; keys that are not pending, for those that make everything anew.
   */
  claim(keys: Iterable<Key>): Claim {
    const sent = new ClaimedValues<Key, Value>();
    for (const key of keys) {
      if (this.isClaimed(key)) throw new Error(`${String(key)} is under way`);
      sent.add(key, this.desired(key));
    }
    this.claims.add(sent);
    const end = (answer: (key: Key, value: Value | undefined) => void): void => {
      if (!this.claims.delete(sent)) throw new Error('the claim has ended');
      for (let at = 0; at < sent.keys.length; at++) answer(sent.keys[at] as Key, sent.values[at]);
    };
    return {
      acknowledge: () => {
        end((key, value) => {
          this.put(key, value);
          if (this.unknownKeys.size > 0) this.unknownKeys.delete(key);
          this.release(key);
          if (!this.isAllUnknown && this.same(this.pendingValues.get(key), value)) this.pendingValues.delete(key);
        });
      },
      refuse: () => {
        end((key) => {
          this.finish(key);
        });
      },
      lose: () => {
        end((key) => {
          if (!this.pendingValues.has(key)) this.pendingValues.set(key, this.held.get(key));
          this.unknownKeys.add(key);
        });
      },
    };
  }

  /** The kernel was seen to hold this. What is desired stays desired. Not while the key is claimed. */
  readBack(key: Key, value: Value | undefined): void {
    if (this.isClaimed(key)) throw new Error(`${String(key)} is under way`);
    const desired = this.desired(key);
    this.put(key, value);
    this.unknownKeys.delete(key);
    if (this.formers.size > 0 && this.same(this.formers.get(key), value)) this.formers.delete(key);
    this.desire(key, desired);
  }

  /**
   * The kernel was seen to hold this and nothing else. The cost grows with the table; the ledger owns the map from then on. Not
   * while anything is claimed.
   */
  readBackAll(listed: Map<Key, Value>): void {
    if (this.claims.size > 0) throw new Error('a claim is under way');
    for (const [key, value] of this.held)
      if (!this.pendingValues.has(key) && !this.same(listed.get(key), value)) this.pendingValues.set(key, value);
    for (const key of listed.keys())
      if (!this.pendingValues.has(key) && !this.held.has(key)) this.pendingValues.set(key, undefined);
    this.held = listed;
    this.changes++;
    this.unknownKeys.clear();
    this.isAllUnknown = false;
    for (const key of this.pendingValues.keys()) this.finish(key);
  }

  /**
   * Takes a pending key out of what is to be sent, as the kernel refused its desired value. Each time it waits longer, as long
   * as the same is desired. A key that is not pending any more is unchanged.
   */
  quarantine(key: Key, reason: string): void {
    if (!this.pendingValues.has(key)) return;
    const { initialMs, maxMs, factor } = this.backoff;
    const before = this.quarantines.get(key);
    const now = this.options.now();
    const waitMs = Math.min(Math.max((before?.waitMs ?? 0) * factor, initialMs), maxMs);
    const refused = this.pendingValues.get(key);
    this.quarantines.set(key, { reason, since: before?.since ?? now, retryAt: now + waitMs, waitMs, refused });
  }

  /** Adds to the reason why a key is quarantined. */
  explain(key: Key, reason: string): void {
    const quarantined = this.quarantines.get(key);
    if (quarantined !== undefined) this.quarantines.set(key, { ...quarantined, reason });
  }

  /** Makes a quarantined key due, as something new is known of it: refused again, it waits as after a first refusal. */
  retry(key: Key): void {
    const quarantined = this.quarantines.get(key);
    if (quarantined !== undefined)
      this.quarantines.set(key, { ...quarantined, retryAt: this.options.now(), waitMs: 0 });
  }

  /**
   * An external change has altered the held value of a quarantined key, which is read back next. The key becomes due, since
   * the refused change began at another value.
   */
  damage(key: Key): void {
    if (!this.quarantines.has(key)) return;
    this.retry(key);
    const former = this.held.get(key);
    // A value that an earlier change left is not desired.
    if (former !== undefined && !this.formers.has(key)) this.formers.set(key, former);
  }

  /** The former value cannot be restored. */
  abandonDamaged(key: Key): void {
    this.formers.delete(key);
  }

  /** A key that is held as desired is not pending, once that is known. */
  private finish(key: Key): void {
    const value = this.pendingValues.get(key);
    if (!this.isUncertain(key) && this.same(value, this.held.get(key))) this.meet(key, value);
  }

  /** The desired value is held. Of the two the ledger keeps the desired one, which the plan has anyway; the other is a copy. */
  private meet(key: Key, desired: Value | undefined): void {
    if (desired !== undefined) this.held.set(key, desired);
    this.drop(key);
  }

  private drop(key: Key): void {
    this.pendingValues.delete(key);
    this.release(key);
  }

  /** The key is not quarantined any more. */
  private release(key: Key): void {
    if (this.quarantines.size === 0) return;
    this.quarantines.delete(key);
    this.formers.delete(key);
  }

  /** Whether what is held may be something else, now or soon. */
  private isUncertain(key: Key): boolean {
    return this.isAllUnknown || (this.unknownKeys.size > 0 && this.unknownKeys.has(key)) || this.isClaimed(key);
  }

  private isClaimed(key: Key): boolean {
    if (this.claims.size > 0) for (const sent of this.claims) if (sent.has(key)) return true;
    return false;
  }

  private put(key: Key, value: Value | undefined): void {
    this.changes++;
    if (value === undefined) this.held.delete(key);
    else this.held.set(key, value);
  }

  private same(one: Value | undefined, other: Value | undefined): boolean {
    return one === other || (one !== undefined && other !== undefined && this.options.same(one, other));
  }
}
