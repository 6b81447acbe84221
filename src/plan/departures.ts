import { addressLength, prefixContains, type Family, type IPAddress, type IPPrefix } from '../base/ip.js';
import { unpackAddress, type PackedAddress } from '../base/pack-address.js';
import type { LocalDetection } from '../base/local-detection.js';
import { objectKey, POD, TERMINATING, type EndpointSliceRow, type ObjectKey, type ServiceRow } from '../state/rows.js';
import type { Snapshot } from '../state/snapshot.js';
import type { RowEdit } from '../state/store.js';
import { podRanges } from './cluster-ranges.js';
import { CAUSES, KnownDepartures, type Departure, type Overflow, type ServiceEndpoint } from './known-departures.js';

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
/** A removed endpoint that another Service's slice has and that has connections is looked at again after so long. */
const AGAIN_MS = 60_000;

/**
 * Which endpoints of one family are certainly gone, so that their connected clients may be notified. Endpoints stay in
 * their slices while they are not ready, terminate without a limit, or are left out by policies and hints. So they are
 * never among the departures. Times are milliseconds of the caller's clock.
 */
export class Departures {
  private readonly known = new KnownDepartures();

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

  /** When the next is due; null: none is known. Those without a place are due at once. */
  get dueAt(): number | null {
    return this.known.dueAt;
  }

  due(now: number): readonly Departure[] {
    return this.known.due(now);
  }

  /** Nothing is left to do about these. */
  finished(departures: Iterable<Departure>): void {
    this.known.finished(departures);
  }

  /** Takes the departures that have no place: removals have to be derived from the connections. */
  takeOverflow(): Overflow | null {
    return this.known.takeOverflow();
  }

  /** Whether a further endpoint of the namespace would not be drained in time. */
  drainsAreFull(namespace: string): boolean {
    return this.known.drainsAreFull(namespace);
  }

  /**
   * Derives departures that were not observed, such as those while no process ran, from the destinations of connections.
   * Without the slice, only an address in the pods' range is known to be a pod's.
   *
   * @returns whether all of them have a place.
   */
  derive(found: Iterable<ServiceEndpoint>, now: number): boolean {
    const ranges = this.podRanges();
    const absence = { since: now, dueAt: now + ABSENT_MS };
    let isComplete = true;
    for (const [service, addresses] of byService(found)) {
      const row = this.snapshot.service(service);
      const policy = row === undefined ? 'off' : resetPolicy(row, this.settings());
      if (policy === 'off') continue;
      // The time of an observed departure is known.
      const unknown = new Set([...addresses].filter((address) => !this.stands({ service, address })));
      const staying = this.inSlices(this.snapshot.slicesOf(service), unknown);
      for (const address of unknown) {
        if (staying.has(address)) continue;
        if (policy === 'service')
          isComplete = this.known.add({ cause: 'left', address, service, ...absence }) && isComplete;
        if (ranges.some((range) => prefixContains(range, unpackAddress(address))))
          isComplete = this.known.add({ cause: 'removed', address, service, ...absence }) && isComplete;
      }
    }
    return isComplete;
  }

  /** Whether removed pods are recognised by their addresses. */
  get recognisesPods(): boolean {
    return this.podRanges().length > 0;
  }

  /** Whether {@link derive} can find anything. */
  get derives(): boolean {
    if (this.recognisesPods) return true;
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
    for (const [service, addresses] of byService(found)) {
      const row = this.snapshot.service(service);
      // Connections of a Service that is gone go on.
      if (row === undefined) continue;
      const policy = resetPolicy(row, this.settings());
      for (const address of addresses) {
        const pair = { service, address };
        if (this.isDrained(row, pair, now)) add(pair);
        else if (policy === 'service' && this.hasLeft(pair, now)) add(pair);
        else if (policy !== 'off' && this.known.isDue('removed', pair, now)) removed.push(pair);
      }
    }
    if (removed.length === 0) return confirmed;
    // Looks at all slices, for addresses that connections go to.
    const staying = this.inSlices(this.snapshot.slices(), new Set(removed.map(({ address }) => address)));
    for (const pair of removed)
      if (!staying.has(pair.address)) {
        if (this.isPodsOwn(pair.address, own)) add(pair);
      } else if (this.isNowhereIn(pair)) this.known.wait(pair, now + AGAIN_MS);
    return confirmed;
  }

  /** Whether the endpoint has not come back since. */
  stands({ service, address }: ServiceEndpoint): boolean {
    return CAUSES.some((cause) => this.known.get(cause, address, service) !== undefined);
  }

  private sliceChanged(before: EndpointSliceRow | null, after: EndpointSliceRow | null, now: number): void {
    const size = addressLength(this.family);
    if (after !== null && this.known.size > 0) {
      const service = objectKey(after.namespace, after.serviceName);
      for (const address of addressesOf(after, size)) {
        this.known.drop('removed', address, service);
        this.known.drop('left', address, service);
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
      this.known.drop('drained', address, service);
      this.known.release(address, now + ABSENT_MS);
      if (isPod) this.known.add({ cause: 'removed', address, service, since: now, dueAt });
      if (leaves) this.known.add({ cause: 'left', address, service, since: now, dueAt });
    }
  }

  /** Those of a Service that limits how long they may take. */
  private noteTerminating(slice: EndpointSliceRow, now: number): void {
    const service = objectKey(slice.namespace, slice.serviceName);
    const drainSeconds = this.snapshot.service(service)?.endingConnections?.drainSeconds ?? null;
    if (drainSeconds === null) return;
    let index = 0;
    for (const address of addressesOf(slice, addressLength(this.family))) {
      if (((slice.conditions[index++] ?? 0) & TERMINATING) === 0) {
        this.known.drop('drained', address, service);
        continue;
      }
      const since = this.known.get('drained', address, service)?.since ?? now;
      this.known.add({ cause: 'drained', address, service, since, dueAt: since + drainSeconds * 1000 });
    }
  }

  /** Another limit counts from when they were first seen terminating. */
  private serviceChanged(service: ServiceRow, now: number): void {
    if (service.endingConnections === null) return;
    for (const slice of this.snapshot.slicesOf(objectKey(service.namespace, service.name)))
      if (slice.family === this.family) this.noteTerminating(slice, now);
  }

  private isDrained({ endingConnections }: ServiceRow, pair: ServiceEndpoint, now: number): boolean {
    if ((endingConnections?.drainSeconds ?? null) === null) return false;
    if (!this.known.isDue('drained', pair, now)) return false;
    const named = [...this.conditionsIn(pair)];
    return named.length > 0 && named.every((conditions) => (conditions & TERMINATING) !== 0);
  }

  private hasLeft(pair: ServiceEndpoint, now: number): boolean {
    return this.known.isDue('left', pair, now) && this.isNowhereIn(pair);
  }

  /** Whether no slice of the Service has the address. */
  private isNowhereIn(pair: ServiceEndpoint): boolean {
    return this.conditionsIn(pair).next().done === true;
  }

  /** The conditions of an address in all of a Service's slices. */
  private *conditionsIn({ service, address }: ServiceEndpoint): IterableIterator<number> {
    for (const slice of this.snapshot.slicesOf(service)) {
      if (slice.family !== this.family) continue;
      for (const index of indexesOf(slice, address)) yield slice.conditions[index] ?? 0;
    }
  }

  /** Addresses among these that the slices have. */
  private inSlices(slices: Iterable<EndpointSliceRow>, wanted: ReadonlySet<PackedAddress>): ReadonlySet<PackedAddress> {
    const size = addressLength(this.family);
    const found = new Set<PackedAddress>();
    if (wanted.size === 0) return found;
    for (const slice of slices) {
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
    return podRanges(this.family, localDetection, this.snapshot.node(nodeName));
  }

  private ofFamily(row: RowEdit['before']): EndpointSliceRow | null {
    return row?.kind === 'EndpointSlice' && row.family === this.family ? row : null;
  }
}

const NONE: ReadonlySet<PackedAddress> = new Set();
/** Up to so many addresses are searched one by one, which the engine does faster than cutting a list into addresses. */
const FEW = 8;

/** Many connections go from one Service to one endpoint. */
function byService(found: Iterable<ServiceEndpoint>): ReadonlyMap<ObjectKey, ReadonlySet<PackedAddress>> {
  const services = new Map<ObjectKey, Set<PackedAddress>>();
  for (const { service, address } of found) {
    const addresses = services.get(service);
    if (addresses === undefined) services.set(service, new Set([address]));
    else addresses.add(address);
  }
  return services;
}

function* addressesOf({ addresses, count }: EndpointSliceRow, size: number): IterableIterator<PackedAddress> {
  for (let index = 0; index < count; index++) yield addresses.slice(index * size, (index + 1) * size);
}

/** The indexes of an address in a slice. */
function* indexesOf({ addresses }: EndpointSliceRow, wanted: PackedAddress): IterableIterator<number> {
  for (let at = addresses.indexOf(wanted); at >= 0; at = addresses.indexOf(wanted, at + 1))
    if (at % wanted.length === 0) yield at / wanted.length;
}
