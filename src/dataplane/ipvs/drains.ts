import type { IpvsDestinations } from '../../native/contract.js';
import { parseFrontendKey } from '../../plan/frontend-key.js';
import { noEndpoints, type ServiceKey } from './frontends.js';
import { allOf, connected, destinations } from './destinations.js';
import type { Desired } from './desired.js';
import { virtualOf } from './desired.js';
import type { Ledgers } from './ledgers.js';
import type { Family, IPAddress } from '../../base/ip.js';
import { packedAddress } from '../../base/pack-address.js';

/** The first wait before connections are checked for their end, in milliseconds: each wait is twice as long as the one before. */
const FIRST_LOOK_MS = 1000;
const LONGEST_WAIT_MS = 60_000;
/** Connections that last after a day do not matter: ip_vs forgets those without packets after minutes. */
const LIMIT_MS = 24 * 3_600_000;

interface Drain {
  readonly since: number;
  readonly lookAt: number;
  readonly waitMs: number;
}

/**
 * Virtual services with destinations that take no new connections and wait for the end of their connections, and virtual
 * services that are not wanted any more themselves. The kernel shows which they are, so a restart goes on with them: an
 * unwanted destination of weight 0 is one.
 */
export class Drains {
  private readonly drains = new Map<ServiceKey, Drain>();
  /** Not wanted any more. */
  private readonly lingering = new Set<ServiceKey>();

  constructor(
    private readonly family: Family,
    private readonly ledgers: Ledgers,
    private readonly desired: Desired,
    private readonly now: () => number,
  ) {}

  /** When there is something to do although nothing changed; null: never. */
  get dueAt(): number | null {
    let due: number | null = null;
    for (const { lookAt } of this.drains.values()) if (due === null || lookAt < due) due = lookAt;
    return due;
  }

  /** Virtual services whose connections have to be known now. @param all whether they are known anyway. */
  questions(all: boolean): readonly ServiceKey[] {
    const now = this.now();
    const due = [...this.drains].filter(([, { lookAt }]) => all || lookAt <= now).map(([key]) => key);
    return [...new Set([...due, ...[...this.desired.closing].filter((key) => this.mayHaveConnections(key))])];
  }

  /** Takes over what the kernel answered of those; others that are to go are gone. */
  answer(answers: ReadonlyMap<ServiceKey, IpvsDestinations>): void {
    const addresses = new Set([...this.lingering].map((key) => virtualOf(key).address));
    const givenUp = this.desired.givenUp([...this.desired.closing, ...this.lingering]);
    // Some came back, and may have gone again since.
    for (const key of this.lingering)
      if (this.desired.isServed(key) || this.ledgers.services.desired(key) === undefined) this.lingering.delete(key);
    for (const key of [...this.desired.closing]) {
      addresses.add(virtualOf(key).address);
      const waits = !givenUp.has(key) && this.mayHaveConnections(key);
      if (waits && !answers.has(key)) continue;
      this.look(key, waits ? (answers.get(key) ?? null) : null);
    }
    for (const key of [...this.drains.keys()]) {
      const answer = givenUp.has(key) ? null : answers.get(key);
      if (answer !== undefined) this.look(key, answer);
    }
    this.keepAddresses(addresses);
  }

  /** Begins to wait for those that do not take new connections by now. */
  note(keys: Iterable<ServiceKey>): void {
    const now = this.now();
    for (const key of keys) {
      const draining = this.ledgers.destinations.acknowledged.get(key)?.draining.count ?? 0;
      if (draining === 0) this.drains.delete(key);
      else if (!this.drains.has(key))
        this.drains.set(key, { since: now, lookAt: now + FIRST_LOOK_MS, waitMs: FIRST_LOOK_MS });
    }
  }

  /** Flows of UDP and SCTP end with their Service. */
  private mayHaveConnections(key: ServiceKey): boolean {
    if (parseFrontendKey(key).protocol !== 'TCP') return false;
    return allOf(this.family, this.ledgers.destinations.acknowledged.get(key)).count > 0;
  }

  private look(key: ServiceKey, answer: IpvsDestinations | null): void {
    const { desired, ledgers } = this;
    const held = ledgers.destinations.acknowledged.get(key);
    const wanted = ledgers.destinations.desired(key);
    const isWanted = desired.isServed(key);
    const drain = this.drains.get(key);
    const isOver = drain !== undefined && this.now() - drain.since >= LIMIT_MS;
    const waiting = isWanted ? wanted?.draining : allOf(this.family, held);
    const busy =
      answer === null || isOver || waiting === undefined ? noEndpoints(this.family) : connected(waiting, answer);
    if (isWanted && wanted !== undefined)
      ledgers.destinations.desire(key, destinations(wanted.active, busy, wanted.weights ?? null));
    else if (busy.count > 0) desired.linger(key, destinations(noEndpoints(this.family), busy));
    else desired.abandon(key);
    if (!isWanted && busy.count > 0) this.lingering.add(key);
    else this.lingering.delete(key);
    if (drain === undefined) return;
    const waitMs = Math.min(2 * drain.waitMs, LONGEST_WAIT_MS);
    if (busy.count === 0) this.drains.delete(key);
    else this.drains.set(key, { ...drain, waitMs, lookAt: this.now() + waitMs });
  }

  /** Without its address the link would not take packets of connections that go on. */
  private keepAddresses(addresses: ReadonlySet<IPAddress>): void {
    const needed = new Set([...this.lingering].map((key) => virtualOf(key).address));
    for (const address of new Set([...addresses, ...needed])) {
      const { addresses: held, elements } = this.ledgers;
      // An external change may have taken it from the link.
      const isHeld = held.acknowledged.has(address) || elements.addresses.acknowledged.has(packedAddress(address));
      this.desired.desireAddress(address, this.desired.isLinked(address) || (isHeld && needed.has(address)));
    }
  }
}
