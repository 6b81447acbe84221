import { addressLength, familyOf, prefixContains, type Family, type IPAddress, type IPPrefix } from '../base/ip.js';
import { unpackAddress, type PackedAddress } from '../base/pack-address.js';
import type { LocalDetection } from '../base/local-detection.js';
import { objectKey, POD, TERMINATING, type EndpointSliceRow, type ObjectKey, type ServiceRow } from '../state/rows.js';
import type { Snapshot } from '../state/snapshot.js';
import type { RowEdit } from '../state/store.js';

/**
 * Which connections to removed endpoints are reset: none; those to a pod whose address is in no slice of any Service; or
 * those to any endpoint that has left the Service.
 */
type ResetPolicy = 'off' | 'removed' | 'service';

/** The settings of resets, beside Services and slices. */
export interface ResetSettings {
  /** Whether connections of Services that do not configure this are reset; absent: they are not. */
  readonly resetRemovedEndpoints?: boolean;
  readonly localDetection: LocalDetection;
  readonly nodeName: string;
}

export function resetPolicy(
  { endingConnections }: Pick<ServiceRow, 'endingConnections'>,
  { resetRemovedEndpoints }: Pick<ResetSettings, 'resetRemovedEndpoints'>,
): ResetPolicy {
  return endingConnections?.reset ?? (resetRemovedEndpoints === true ? 'removed' : 'off');
}

/** Slices are rewritten in more than one event: an endpoint may be in none of them for a moment. */
const ABSENT_MS = 1000;
/** So many departures are known one by one. */
export const MOST_DEPARTURES = 65_536;

/** An address that left: every slice it was in as a pod's, all slices of one Service, or one that is terminating. */
export interface Departure {
  readonly cause: 'removed' | 'left' | 'drained';
  readonly address: PackedAddress;
  /** Whose connections it concerns; null: all Services'. */
  readonly service: ObjectKey | null;
  readonly since: number;
  readonly dueAt: number;
}

/** A Service and the address of an endpoint that connections to the Service go to. */
interface ServiceEndpoint {
  readonly service: ObjectKey;
  readonly address: PackedAddress;
}

/**
 * Which endpoints of one family are certainly gone, so that their connected clients may be notified. Endpoints stay in
 * their slices while they are not ready, terminate without a limit, or are left out by policies and hints. So they are
 * never among the departures. Times are milliseconds of the caller's clock.
 */
export class Departures {
  private readonly known = new Map<string, Departure>();
  private earliest: number | null = null;
  private overflow = 0;

  constructor(
    private readonly family: Family,
    private readonly snapshot: Snapshot,
    private readonly settings: () => ResetSettings,
  ) {}

  /** The state changed. */
  committed(edits: readonly RowEdit[], now: number): void {
    for (const { before, after } of edits) {
      const kind = (after ?? before)?.kind;
      if (kind === 'EndpointSlice') this.sliceChanged(this.ofFamily(before), this.ofFamily(after), now);
      else if (kind === 'Service' && after?.kind === 'Service') this.serviceChanged(after, now);
    }
  }

  /** When the next is due; null: none is known. */
  get dueAt(): number | null {
    return this.earliest;
  }

  due(now: number): readonly Departure[] {
    if (this.earliest === null || this.earliest > now) return [];
    return [...this.known.values()].filter(({ dueAt }) => dueAt <= now);
  }

  /** Takes the number of departures beyond those kept one by one: they have to be derived from the connections. */
  takeOverflow(): number {
    const { overflow } = this;
    this.overflow = 0;
    return overflow;
  }

  /**
   * Derives departures that were not observed, such as those while no process ran, from the destinations of connections.
   * Without the slice, only an address in the pods' range is known to be a pod's.
   */
  derive(found: Iterable<ServiceEndpoint>, now: number): void {
    const ranges = this.podRanges();
    const absence = { since: now, dueAt: now + ABSENT_MS };
    const unseen = new Set<PackedAddress>();
    for (const pair of distinct(found)) {
      const { service, address } = pair;
      const row = this.snapshot.service(service);
      const policy = row === undefined ? 'off' : resetPolicy(row, this.settings());
      // The time of an observed departure is known.
      if (policy === 'off' || this.stands(pair)) continue;
      if (policy === 'service' && this.conditionsIn(service, address).next().done === true)
        this.add({ cause: 'left', address, service, ...absence });
      if (ranges.some((range) => prefixContains(range, unpackAddress(address)))) unseen.add(address);
    }
    if (unseen.size === 0) return;
    const staying = this.inAnySlice(unseen);
    for (const address of unseen)
      if (!staying.has(address)) this.add({ cause: 'removed', address, service: null, ...absence });
  }

  /** Whether {@link derive} can find anything. */
  get derives(): boolean {
    if (this.podRanges().length > 0) return true;
    for (const service of this.snapshot.services())
      if (resetPolicy(service, this.settings()) === 'service') return true;
    return false;
  }

  /**
   * Selects the pairs whose connections are to be reset now: the departure is due, and it has not changed.
   *
   * @param own addresses of this node, which outlive their pods.
   */
  confirm(
    found: Iterable<ServiceEndpoint>,
    own: ReadonlySet<IPAddress>,
    now: number,
  ): ReadonlyMap<ObjectKey, ReadonlySet<PackedAddress>> {
    const confirmed = new Map<ObjectKey, Set<PackedAddress>>();
    const add = ({ service, address }: ServiceEndpoint): void => {
      const addresses = confirmed.get(service);
      if (addresses === undefined) confirmed.set(service, new Set([address]));
      else addresses.add(address);
    };
    const removed: ServiceEndpoint[] = [];
    for (const pair of distinct(found)) {
      const row = this.snapshot.service(pair.service);
      // Connections of a Service that is gone go on.
      if (row === undefined) continue;
      const policy = resetPolicy(row, this.settings());
      if (this.isDrained(row, pair, now)) add(pair);
      else if (policy === 'service' && this.hasLeft(pair, now)) add(pair);
      else if (policy !== 'off' && this.isDue('removed', pair.address, null, now)) removed.push(pair);
    }
    if (removed.length === 0) return confirmed;
    const staying = this.inAnySlice(new Set(removed.map(({ address }) => address)));
    for (const pair of removed) if (!staying.has(pair.address) && this.isPodsOwn(pair.address, own)) add(pair);
    return confirmed;
  }

  /** Whether the endpoint has not come back since. */
  stands({ service, address }: ServiceEndpoint): boolean {
    return (
      this.known.has(keyOf('removed', address, null)) ||
      this.known.has(keyOf('left', address, service)) ||
      this.known.has(keyOf('drained', address, service))
    );
  }

  /** Nothing is left to do about these. */
  finished(departures: Iterable<Departure>): void {
    for (const departure of departures) {
      const key = keyOf(departure.cause, departure.address, departure.service);
      if (this.known.get(key) === departure) this.known.delete(key);
    }
    this.earliest = null;
    for (const { dueAt } of this.known.values()) this.earliest = Math.min(this.earliest ?? dueAt, dueAt);
  }

  private sliceChanged(before: EndpointSliceRow | null, after: EndpointSliceRow | null, now: number): void {
    const size = addressLength(this.family);
    if (after !== null && this.known.size > 0) {
      const service = objectKey(after.namespace, after.serviceName);
      for (const address of addressesOf(after, size)) {
        this.known.delete(keyOf('removed', address, null));
        this.known.delete(keyOf('left', address, service));
      }
    }
    if (before !== null && before.addresses !== after?.addresses) this.noteRemoved(before, after, size, now);
    if (after !== null) this.noteTerminating(after, now);
  }

  private noteRemoved(before: EndpointSliceRow, after: EndpointSliceRow | null, size: number, now: number): void {
    const service = objectKey(before.namespace, before.serviceName);
    const row = this.snapshot.service(service);
    const leaves = row !== undefined && resetPolicy(row, this.settings()) === 'service';
    const stay = after?.serviceName === before.serviceName ? new Set(addressesOf(after, size)) : NONE;
    const dueAt = now + ABSENT_MS;
    let index = 0;
    for (const address of addressesOf(before, size)) {
      const isPod = ((before.conditions[index++] ?? 0) & POD) !== 0;
      if (stay.has(address)) continue;
      this.known.delete(keyOf('drained', address, service));
      if (isPod) this.add({ cause: 'removed', address, service: null, since: now, dueAt });
      if (leaves) this.add({ cause: 'left', address, service, since: now, dueAt });
    }
  }

  /** Those of a Service that limits how long they may take. */
  private noteTerminating(slice: EndpointSliceRow, now: number): void {
    const service = objectKey(slice.namespace, slice.serviceName);
    const drainSeconds = this.snapshot.service(service)?.endingConnections?.drainSeconds ?? null;
    if (drainSeconds === null) return;
    let index = 0;
    for (const address of addressesOf(slice, addressLength(this.family))) {
      const key = keyOf('drained', address, service);
      if (((slice.conditions[index++] ?? 0) & TERMINATING) === 0) {
        this.known.delete(key);
        continue;
      }
      const since = this.known.get(key)?.since ?? now;
      this.add({ cause: 'drained', address, service, since, dueAt: since + drainSeconds * 1000 });
    }
  }

  /** Another limit counts from when they were first seen terminating. */
  private serviceChanged(service: ServiceRow, now: number): void {
    if (service.endingConnections === null) return;
    for (const slice of this.snapshot.slicesOf(objectKey(service.namespace, service.name)))
      if (slice.family === this.family) this.noteTerminating(slice, now);
  }

  private add(departure: Departure): void {
    const key = keyOf(departure.cause, departure.address, departure.service);
    const known = this.known.get(key);
    if (known?.dueAt === departure.dueAt) return;
    if (known === undefined && this.known.size >= MOST_DEPARTURES) {
      this.overflow++;
      return;
    }
    this.known.set(key, departure);
    this.earliest = Math.min(this.earliest ?? departure.dueAt, departure.dueAt);
  }

  private isDue(cause: Departure['cause'], address: PackedAddress, service: ObjectKey | null, now: number): boolean {
    const departure = this.known.get(keyOf(cause, address, service));
    return departure !== undefined && departure.dueAt <= now;
  }

  private isDrained({ endingConnections }: ServiceRow, { service, address }: ServiceEndpoint, now: number): boolean {
    if ((endingConnections?.drainSeconds ?? null) === null) return false;
    if (!this.isDue('drained', address, service, now)) return false;
    const named = [...this.conditionsIn(service, address)];
    return named.length > 0 && named.every((conditions) => (conditions & TERMINATING) !== 0);
  }

  private hasLeft({ service, address }: ServiceEndpoint, now: number): boolean {
    return this.isDue('left', address, service, now) && this.conditionsIn(service, address).next().done === true;
  }

  /** The conditions of an address in all of a Service's slices. */
  private *conditionsIn(service: ObjectKey, wanted: PackedAddress): IterableIterator<number> {
    for (const slice of this.snapshot.slicesOf(service)) {
      if (slice.family !== this.family) continue;
      for (const index of indexesOf(slice, wanted)) yield slice.conditions[index] ?? 0;
    }
  }

  /** Those of the addresses that any slice has. Looks at all slices: to be asked for addresses that connections go to. */
  private inAnySlice(wanted: ReadonlySet<PackedAddress>): ReadonlySet<PackedAddress> {
    const size = addressLength(this.family);
    const found = new Set<PackedAddress>();
    for (const slice of this.snapshot.slices()) {
      if (slice.family !== this.family) continue;
      if (wanted.size > FEW) {
        for (const address of addressesOf(slice, size)) if (wanted.has(address)) found.add(address);
      } else {
        for (const address of wanted) if (indexesOf(slice, address).next().done !== true) found.add(address);
      }
      if (found.size === wanted.size) break;
    }
    return found;
  }

  /**
   * Not an address of the host network, which is the node's and outlives the pod. For another node this is known if the pods'
   * range is.
   */
  private isPodsOwn(packed: PackedAddress, own: ReadonlySet<IPAddress>): boolean {
    const address = unpackAddress(packed);
    const { localDetection, nodeName } = this.settings();
    if (own.has(address) || (this.snapshot.node(nodeName)?.addresses.includes(address) ?? false)) return false;
    if (localDetection.type !== 'ClusterCIDR') return true;
    const ranges = this.podRanges();
    return ranges.length === 0 || ranges.some((range) => prefixContains(range, address));
  }

  /** The known ranges of pods' addresses: of the whole cluster, or of this node. */
  private podRanges(): readonly IPPrefix[] {
    const { localDetection, nodeName } = this.settings();
    const all =
      localDetection.type === 'ClusterCIDR'
        ? localDetection.prefixes
        : localDetection.type === 'NodeCIDR'
          ? (this.snapshot.node(nodeName)?.podCIDRs ?? [])
          : [];
    return all.filter((range) => familyOf(range) === this.family);
  }

  private ofFamily(row: RowEdit['before']): EndpointSliceRow | null {
    return row?.kind === 'EndpointSlice' && row.family === this.family ? row : null;
  }
}

const NONE: ReadonlySet<PackedAddress> = new Set();
/** Up to so many addresses are searched one by one, which the engine does faster than cutting a list into addresses. */
const FEW = 8;

function keyOf(cause: Departure['cause'], address: PackedAddress, service: ObjectKey | null): string {
  return `${cause} ${service ?? ''} ${address}`;
}

/** Many connections go from one Service to one endpoint. */
function* distinct(found: Iterable<ServiceEndpoint>): IterableIterator<ServiceEndpoint> {
  const seen = new Map<ObjectKey, Set<PackedAddress>>();
  for (const pair of found) {
    const addresses = seen.get(pair.service);
    if (addresses?.has(pair.address) === true) continue;
    if (addresses === undefined) seen.set(pair.service, new Set([pair.address]));
    else addresses.add(pair.address);
    yield pair;
  }
}

function* addressesOf({ addresses, count }: EndpointSliceRow, size: number): IterableIterator<PackedAddress> {
  for (let index = 0; index < count; index++) yield addresses.slice(index * size, (index + 1) * size);
}

/** The indexes of an address in a slice. */
function* indexesOf({ addresses }: EndpointSliceRow, wanted: PackedAddress): IterableIterator<number> {
  for (let at = addresses.indexOf(wanted); at >= 0; at = addresses.indexOf(wanted, at + 1))
    if (at % wanted.length === 0) yield at / wanted.length;
}
