import { NamespacePlaces } from '../base/namespace-places.js';
import type { PackedAddress } from '../base/pack-address.js';
import type { ObjectKey } from '../state/rows.js';
import { namespaceOf } from './frontend-key.js';

/** So many removals of one IP family are known one by one, and so many terminating endpoints of Services that limit their time. */
export const MOST_DEPARTURES = 65_536;
/** So many of either a namespace has in any case. */
export const NAMESPACE_DEPARTURES = 8192;

export const CAUSES = ['removed', 'left', 'drained'] as const;
type Cause = (typeof CAUSES)[number];

/** A Service and the address of an endpoint that connections to the Service go to. */
export interface ServiceEndpoint {
  readonly service: ObjectKey;
  readonly address: PackedAddress;
}

/**
 * An endpoint of a Service: a pod that is gone from its slices, any that is gone from them, or one that is terminating.
 * It concerns connections of that Service alone: slices of another Service are no evidence.
 */
export interface Departure extends ServiceEndpoint {
  readonly cause: Cause;
  readonly since: number;
  readonly dueAt: number;
}

/** Departures for which there was no place, and a namespace that had some. */
export type Overflow = Readonly<Record<Cause, number>> & { readonly namespace: string };

/** The departures of one family that are kept one by one. Times are milliseconds of the caller's clock. */
export class KnownDepartures {
  private readonly known = new Map<string, Departure>();
  /** Keys of removals that wait until no slice of another Service has the address. */
  private readonly waiting = new Map<PackedAddress, Set<string>>();
  /** Drains may take a day, and have places of their own. */
  private readonly places = {
    removals: new NamespacePlaces(MOST_DEPARTURES, NAMESPACE_DEPARTURES),
    drains: new NamespacePlaces(MOST_DEPARTURES, NAMESPACE_DEPARTURES),
  };
  private earliest: number | null = null;
  private overflow: Overflow | null = null;

  get size(): number {
    return this.known.size;
  }

  /** When the next is due; null: none is known. Those without a place are due at once. */
  get dueAt(): number | null {
    return this.overflow === null ? this.earliest : -Infinity;
  }

  due(now: number): readonly Departure[] {
    if (this.earliest === null || this.earliest > now) return [];
    return [...this.known.values()].filter(({ dueAt }) => dueAt <= now);
  }

  isDue(cause: Cause, { service, address }: ServiceEndpoint, now: number): boolean {
    const departure = this.get(cause, address, service);
    return departure !== undefined && departure.dueAt <= now;
  }

  get(cause: Cause, address: PackedAddress, service: ObjectKey): Departure | undefined {
    return this.known.get(keyOf(cause, address, service));
  }

  takeOverflow(): Overflow | null {
    const { overflow } = this;
    this.overflow = null;
    return overflow;
  }

  drainsAreFull(namespace: string): boolean {
    return this.places.drains.isFullFor(namespace);
  }

  /** Whether there was a place. */
  add(departure: Departure): boolean {
    const { cause, address, service, dueAt } = departure;
    const key = keyOf(cause, address, service);
    const known = this.known.get(key);
    if (known?.dueAt === dueAt) return true;
    const namespace = namespaceOf(service);
    if (known === undefined && !this.placesOf(cause).take(namespace)) {
      const { overflow } = this;
      this.overflow = { ...(overflow ?? { ...NO_OVERFLOW, namespace }), [cause]: (overflow?.[cause] ?? 0) + 1 };
      return false;
    }
    this.known.set(key, departure);
    this.earliest = Math.min(this.earliest ?? dueAt, dueAt);
    return true;
  }

  drop(cause: Cause, address: PackedAddress, service: ObjectKey): void {
    const key = keyOf(cause, address, service);
    if (!this.known.delete(key)) return;
    this.placesOf(cause).free(namespaceOf(service));
    const waiting = this.waiting.get(address);
    if (waiting?.delete(key) === true && waiting.size === 0) this.waiting.delete(address);
  }

  /** A removal waits until that time, or until {@link release}. */
  wait({ service, address }: ServiceEndpoint, dueAt: number): void {
    const key = keyOf('removed', address, service);
    const departure = this.known.get(key);
    if (departure === undefined) return;
    this.add({ ...departure, dueAt });
    const waiting = this.waiting.get(address);
    if (waiting === undefined) this.waiting.set(address, new Set([key]));
    else waiting.add(key);
  }

  /** A slice no longer has the address. */
  release(address: PackedAddress, dueAt: number): void {
    for (const key of this.waiting.get(address) ?? []) {
      const departure = this.known.get(key);
      if (departure !== undefined) this.add({ ...departure, dueAt });
    }
    this.waiting.delete(address);
  }

  /** Nothing is left to do about these. */
  finished(departures: Iterable<Departure>): void {
    for (const departure of departures) {
      const { cause, address, service } = departure;
      if (this.get(cause, address, service) === departure) this.drop(cause, address, service);
    }
    this.earliest = null;
    for (const { dueAt } of this.known.values()) this.earliest = Math.min(this.earliest ?? dueAt, dueAt);
  }

  private placesOf(cause: Cause): NamespacePlaces {
    return cause === 'drained' ? this.places.drains : this.places.removals;
  }
}

const NO_OVERFLOW = { removed: 0, left: 0, drained: 0 } as const;

function keyOf(cause: Cause, address: PackedAddress, service: ObjectKey): string {
  return `${cause} ${service} ${address}`;
}
