import { type IPAddress } from '../base/ip.js';
import { messageOf } from '../base/error-message.js';
import type { Clock } from '../base/clock.js';
import type { Log } from '../base/log.js';
import type { TokenBucket } from '../base/token-bucket.js';
import { endingFlows, recordsOf, type EndingFlows } from '../dataplane/conntrack/ending-flows.js';
import { flowLayout } from '../dataplane/conntrack/flow-record.js';
import type { ConnectionResets, FamilyDataplane } from '../dataplane/contract.js';
import type { ConntrackAddon, FlowListing, NftFamily } from '../native/contract.js';
import type { CycleObservers } from '../observe/cycle-observer.js';
import type { LoopbackConnections } from './loopback.js';
import { Departures, type ResetSettings } from '../plan/departures.js';
import { MOST_DEPARTURES, NAMESPACE_DEPARTURES, type Departure, type Overflow } from '../plan/known-departures.js';
import type { ForwardingTable } from '../plan/forwarding-table.js';
import { nodePortRefusal } from '../plan/trace.js';
import type { FrontendKey, ObjectKey } from '../plan/types.js';
import type { Snapshot } from '../state/snapshot.js';
import type { RowEdit } from '../state/store.js';
import { unpackAddress, type PackedAddress } from '../base/pack-address.js';

/** Clients that are asked at a time. Between two batches others have their turn at the kernel. */
const BATCH = 250;
/**
 * Of all families together. What the bucket holds at first, and the batches of both families and of repetitions that were paid for and are not sent yet, come
 * on top: no second has more than 5,000.
 */
export const CHALLENGES = { perSecond: 4000, burst: BATCH } as const;
/** A client that has said nothing by then is asked once more. Linux answers such questions on one connection after no less than 500 ms again (tcp_invalid_ratelimit). */
const REPEAT_MS = 520;
/** Who has answered is read from all that was reset of late, which may be much: not for each batch. */
const REPEAT_REST_MS = 1000;
const RETRY_MS = 1000;
/** Searches take no more of the time than this, as those for stale flows. */
const SHARE = 0.05;

export type EndingFlowsKernel = Pick<
  ConntrackAddon,
  'conntrackListTranslated' | 'conntrackDelete' | 'conntrackChallenge'
>;

interface EndingConnectionsParts {
  readonly table: ForwardingTable;
  readonly snapshot: Snapshot;
  readonly settings: () => ResetSettings;
  /** Null: the platform has no conntrack. */
  readonly kernel: EndingFlowsKernel | null;
  readonly loopback: Pick<LoopbackConnections, 'endpoints' | 'reset'>;
  readonly localAddresses: () => readonly IPAddress[];
  /** How many clients may be asked in a second. */
  readonly challenges: TokenBucket;
  readonly observers: Pick<CycleObservers, 'notify'>;
  readonly log: Log;
  readonly clock: Clock;
  /** The time has come for a further {@link EndingConnections.proceed}. */
  readonly onDue: () => void;
}

/** What was reset of one family since the process began. */
interface ResetCounts {
  readonly connections: number;
  /** Departed endpoints that had connections. */
  readonly endpoints: number;
}

/**
 * Clients of one family that are connected to an endpoint which is gone: their connections are deleted, and they are made to say something, which is then
 * reset. Everything is pending until it has succeeded. It goes on beside syncs, and delays none.
 */
export class EndingConnections {
  private readonly departures: Departures;
  /** Departures from before the process began are to be found. */
  private isAllPending = true;
  private isRunning = false;
  private restsUntil = -Infinity;
  private lastFailure: string | null = null;
  private cancelDue: (() => void) | null = null;
  private reset = { connections: 0, endpoints: 0 };
  /** Connections whose clients may have to be asked once more, in the order of the times. */
  private silent: readonly { readonly records: Uint8Array; readonly at: number }[] = [];
  private isRepeating = false;
  /** Departures that could be neither noted nor derived, since the process began. */
  private missed = 0;
  /** A namespace whose terminating endpoints had no place; null: none, as far as is known. */
  private undrained: string | null = null;

  constructor(private readonly parts: EndingConnectionsParts) {
    const { table, snapshot, settings } = parts;
    this.departures = new Departures(table.family, snapshot, settings);
  }

  get counts(): ResetCounts {
    return this.reset;
  }

  /** Why connections to endpoints that are gone go on at present; null: they do not. */
  limitation({ resets }: Pick<FamilyDataplane, 'resets'>): string | null {
    if (this.parts.kernel === null || resets === null) return 'this mode cannot reset them';
    if (this.lastFailure !== null) return this.lastFailure;
    const texts = [
      ...(this.missed === 0 ? [] : [`${this.missed} removed endpoints had no place: connections to them go on`]),
      ...(this.undrained === null || !this.departures.drainsAreFull(this.undrained)
        ? []
        : [`no place for more draining endpoints of namespace ${this.undrained}: they drain without a limit`]),
    ];
    return texts.length === 0 ? null : `${texts.join('; ')} (${PLACES})`;
  }

  /** The state changed. */
  committed(edits: readonly RowEdit[]): void {
    if (this.parts.kernel === null) return;
    this.departures.committed(edits, this.parts.clock.now());
  }

  /**
   * After a sync that the kernel has acknowledged: what is due is done, beside what follows.
   *
   * @param held frontends whose rules the kernel does not have: new connections would go to the endpoint again.
   */
  proceed({ resets }: Pick<FamilyDataplane, 'resets'>, held: ReadonlySet<FrontendKey> = new Set()): void {
    const { kernel, clock, table } = this.parts;
    const now = clock.now();
    if (kernel === null || resets === null) {
      this.departures.finished(this.departures.due(Infinity));
      return;
    }
    // What a source could not read may still be in a slice.
    if (this.isRunning || table.unsynced) return;
    const dueAt = this.dueAt;
    if (dueAt === null) return;
    if (dueAt > now) {
      this.comeBack(dueAt);
      return;
    }
    this.isRunning = true;
    void this.pass(kernel, resets, held).then((isDone) => {
      this.isRunning = false;
      if (!isDone) this.comeBack(clock.now() + RETRY_MS);
      else if (this.dueAt !== null) this.comeBack(this.dueAt);
    });
  }

  private get dueAt(): number | null {
    const due = this.isAllPending ? -Infinity : this.departures.dueAt;
    return due === null ? null : Math.max(this.restsUntil, due);
  }

  private comeBack(at: number): void {
    this.cancelDue?.();
    this.cancelDue = this.parts.clock.callAt(at, this.parts.onDue);
  }

  /** Whether all of it has succeeded. */
  private async pass(
    kernel: EndingFlowsKernel,
    resets: ConnectionResets,
    held: ReadonlySet<FrontendKey>,
  ): Promise<boolean> {
    try {
      const isDone = await this.search(kernel, resets, held);
      this.lastFailure = null;
      return isDone;
    } catch (error) {
      const message = messageOf(error);
      const { log, table } = this.parts;
      if (message !== this.lastFailure)
        log.error(error, 'cannot reset connections to removed endpoints, will be retried', { family: table.family });
      this.lastFailure = message;
      return false;
    }
  }

  private async search(
    kernel: EndingFlowsKernel,
    resets: ConnectionResets,
    held: ReadonlySet<FrontendKey>,
  ): Promise<boolean> {
    const { clock, table, localAddresses } = this.parts;
    const { departures } = this;
    const all = this.takeAll();
    const startedAt = clock.now();
    const due = departures.due(startedAt);
    try {
      const family: NftFamily = table.family === 'IPv4' ? 'ip' : 'ip6';
      const own = localAddresses();
      const listing =
        all || due.length > 0 ? await kernel.conntrackListTranslated(family, all ? null : packed(due)) : EMPTY;
      this.restsUntil = startedAt + (clock.now() - startedAt) / SHARE;
      const view = {
        table,
        isNodePortAddress: (address: IPAddress) => nodePortRefusal(table.node, address, own) === null,
      };
      const flows = await endingFlows(listing, view, clock);
      const isComplete = !all || departures.derive(flows, startedAt);
      const { loopback } = this.parts;
      const connected = [...flows, ...loopback.endpoints(table.family)];
      const confirmed = departures.confirm(connected, new Set(own), Math.max(startedAt, clock.now()));
      const connections = loopback.reset(table.family, confirmed);
      this.reset = { ...this.reset, connections: this.reset.connections + connections };
      const ending = flows.filter(({ service, address }) => confirmed.get(service)?.has(address) === true);
      const free = ending.filter(({ frontend }) => !held.has(frontend));
      await this.end(kernel, resets, family, listing, free);
      // Those to endpoints of frontends whose rules are refused stay pending.
      const waiting = waitingKeys(ending.filter(({ frontend }) => held.has(frontend)));
      departures.finished(due.filter(({ address, service }) => !waiting.has(waitingKey(address, service))));
      // Departures without a place are found again when others have been handled.
      if (!isComplete) this.isAllPending = true;
      // A search of all succeeds once. What it has found to be gone does not wait for a rest.
      else if (all && waiting.size === 0) this.restsUntil = -Infinity;
      return isComplete && waiting.size === 0;
    } catch (error) {
      this.isAllPending ||= all;
      throw error;
    }
  }

  private takeAll(): boolean {
    const overflow = this.departures.takeOverflow();
    const all = this.isAllPending || (overflow !== null && overflow.removed + overflow.left > 0);
    this.isAllPending = false;
    if (overflow !== null) this.noteOverflow(overflow);
    return all && this.departures.derives;
  }

  /** Reports those that stay unknown. */
  private noteOverflow({ removed, drained, namespace }: Overflow): void {
    const { log, table } = this.parts;
    const fields = { family: table.family, namespace, most: MOST_DEPARTURES, mostOfNamespace: NAMESPACE_DEPARTURES };
    // Without their range, nothing tells removed pods from endpoints that stay.
    if (removed > 0 && !this.departures.recognisesPods) {
      if (this.missed === 0)
        log.warn('too many endpoints were removed at once: connections to some of them go on', {
          ...fields,
          endpoints: removed,
        });
      this.missed += removed;
    }
    if (drained === 0) return;
    if (this.undrained === null || !this.departures.drainsAreFull(this.undrained))
      log.warn('too many endpoints are terminating: some of them drain without a limit', fields);
    this.undrained = namespace;
  }

  private async end(
    kernel: EndingFlowsKernel,
    resets: ConnectionResets,
    family: NftFamily,
    listing: FlowListing,
    flows: readonly EndingFlows[],
  ): Promise<void> {
    if (flows.length === 0) return;
    const { clock, log, observers, table } = this.parts;
    const { size } = flowLayout(table.family);
    const endpoints = new Set<PackedAddress>();
    let connections = 0;
    for (const some of batches(flows)) {
      await this.pace(some.length);
      // An endpoint that has come back in the meantime keeps its connections.
      const standing = some.filter(({ flow }) => this.departures.stands(flow));
      if (standing.length === 0) continue;
      const records = recordsOf(
        listing,
        standing.map(({ start }) => start),
        size,
      );
      await resets.expect(records);
      const { deleted } = await kernel.conntrackDelete(family, records);
      await this.challenge(kernel, family, records);
      this.silent = [...this.silent, { records, at: clock.now() + REPEAT_MS }];
      if (!this.isRepeating) void this.repeat(kernel, resets, family);
      connections += deleted;
      for (const { flow } of standing) endpoints.add(flow.address);
    }
    this.reset = {
      connections: this.reset.connections + connections,
      endpoints: this.reset.endpoints + endpoints.size,
    };
    observers.notify('connectionsReset', {
      family: table.family,
      connections,
      endpoints: [...endpoints].map(unpackAddress).sort(),
    });
    log.info(2, 'reset connections to removed endpoints', {
      family: table.family,
      connections,
      endpoints: endpoints.size,
    });
  }

  /** Once more for clients that have not answered: the question or the answer may have been lost. */
  private async repeat(kernel: EndingFlowsKernel, resets: ConnectionResets, family: NftFamily): Promise<void> {
    const { clock } = this.parts;
    this.isRepeating = true;
    for (let [first] = this.silent, rest = 0; first !== undefined; [first] = this.silent) {
      await this.until(Math.max(first.at, rest));
      rest = clock.now() + REPEAT_REST_MS;
      const now = Math.max(first.at, clock.now());
      const due = this.silent.filter(({ at }) => at <= now);
      this.silent = this.silent.filter(({ at }) => at > now);
      await this.repeatTo(kernel, resets, family, Buffer.concat(due.map(({ records }) => records)));
    }
    this.isRepeating = false;
  }

  private async repeatTo(
    kernel: EndingFlowsKernel,
    resets: ConnectionResets,
    family: NftFamily,
    records: Uint8Array,
  ): Promise<void> {
    const { log, table } = this.parts;
    const { size } = flowLayout(table.family);
    try {
      const silent = await resets.unanswered(records);
      for (let start = 0; start < silent.length; start += BATCH * size) {
        const some = silent.subarray(start, start + BATCH * size);
        await this.pace(some.length / size);
        await this.challenge(kernel, family, some);
      }
    } catch (error) {
      log.info(2, 'cannot ask clients of removed endpoints again', { family: table.family, error: messageOf(error) });
    }
  }

  private async challenge(kernel: EndingFlowsKernel, family: NftFamily, records: Uint8Array): Promise<void> {
    const { failure } = await kernel.conntrackChallenge(family, records);
    if (failure === null) return;
    const { log, table } = this.parts;
    log.info(2, 'cannot ask some clients of removed endpoints', { family: table.family, error: failure.message });
  }

  private async pace(count: number): Promise<void> {
    const { challenges, clock } = this.parts;
    let wait = 0;
    for (let index = 0; index < count; index++) wait = challenges.borrow();
    if (wait > 0) await this.until(clock.now() + wait);
  }

  private until(time: number): Promise<void> {
    return new Promise((resolve) => {
      this.parts.clock.callAt(time, resolve);
    });
  }
}

const PLACES = `${MOST_DEPARTURES} are known at a time, of one namespace ${NAMESPACE_DEPARTURES} in any case`;
const EMPTY: FlowListing = { count: 0, records: new Uint8Array(0) };

/** Of departures that these connections wait for. */
function waitingKeys(flows: readonly EndingFlows[]): ReadonlySet<string> {
  return new Set(flows.map(({ address, service }) => waitingKey(address, service)));
}

function waitingKey(address: PackedAddress, service: ObjectKey): string {
  return `${service} ${address}`;
}

interface OneFlow {
  readonly flow: EndingFlows;
  readonly start: number;
}

function* batches(flows: readonly EndingFlows[]): IterableIterator<readonly OneFlow[]> {
  let batch: OneFlow[] = [];
  for (const flow of flows)
    for (const start of flow.starts) {
      batch.push({ flow, start });
      if (batch.length < BATCH) continue;
      yield batch;
      batch = [];
    }
  if (batch.length > 0) yield batch;
}

/** Their addresses in ascending order, one after the other. */
function packed(departures: readonly Departure[]): Uint8Array {
  return Buffer.from([...new Set(departures.map(({ address }) => address))].sort().join(''), 'latin1');
}
