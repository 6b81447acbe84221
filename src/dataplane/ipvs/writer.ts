import { messageOf } from '../../base/error-message.js';
import { endpointSize } from '../../base/endpoint-list.js';
import { addressBytes, type Family, type IPAddress } from '../../base/ip.js';
import type { Applied, NativeError } from '../../native/errors.js';
import type { IpsetOperation, IpvsDestinations, IpvsOperation, NativeAddon } from '../../native/contract.js';
import type { Ledger } from '../ledger.js';
import { destinationOperations, listedDestinations } from './destinations.js';
import type { ElementKey, ServiceKey } from './frontends.js';
import type { Ledgers } from './ledgers.js';
import { virtualOf } from './desired.js';
import { hasComments, LINK, type SetRole } from './names.js';
import type { IpvsMessage } from './print.js';
import { nameService, nameSet, setCreation } from './wire.js';

interface WriterParts {
  readonly addon: Pick<NativeAddon, 'ipvs' | 'ipset' | 'route'>;
  readonly family: Family;
  readonly ledgers: Ledgers;
  /** Called with what is sent. */
  readonly onMessage: (message: IpvsMessage) => void;
}

/** Counts of what was sent. */
interface SentCounts {
  /** Calls that changed something. */
  transactions: number;
  /** Virtual services, destinations, elements of sets and addresses. */
  objects: number;
  bytes: number;
}

/**
 * Errors by which the kernel rejects an object as it is. Errors of an unexpected state (EEXIST, ESRCH) and errors that may
 * pass (ENOMEM) are not among them.
 */
const REFUSALS: ReadonlySet<string> = new Set([
  'EINVAL',
  'EAFNOSUPPORT',
  'EOPNOTSUPP',
  'EPROTONOSUPPORT',
  'ERANGE',
  'ENOSPC',
  'EADDRNOTAVAIL',
]);

/** The error's message if the object itself is at fault; null for any other error. */
function refusalOf(error: NativeError): string | null {
  return error.errno !== null && REFUSALS.has(error.errno) ? error.message : null;
}

/** The same for an address to be added: the link may have IPv6 disabled. IPv4 cannot be disabled so; there a policy refuses it. */
function addressRefusalOf(error: NativeError, family: Family): string | null {
  return error.errno === 'EACCES' && family === 'IPv6' ? `${error.message}: ${NO_IPV6}` : refusalOf(error);
}

/** Where the default has it when the link is made, the link has it too. */
const NO_IPV6 = `the sysctl net.ipv6.conf.${LINK}.disable_ipv6 disables IPv6 there`;

/**
 * Sends what is pending in ledgers, kind by kind, and enters the kernel's answers. No message of these subsystems waits for
 * another, so a refused object does not block the others. An object that the kernel refuses is quarantined. Any other
 * failure rejects once all else was sent.
 */
export class Writer {
  sent: SentCounts = { transactions: 0, objects: 0, bytes: 0 };
  private failures: unknown[] = [];

  constructor(private readonly parts: WriterParts) {}

  /** Rejects with the first failure since the last call. */
  finish(): void {
    const [first] = this.failures;
    this.failures = [];
    if (first !== undefined) throw first instanceof Error ? first : new Error(messageOf(first));
  }

  async makeSets(missing: readonly SetRole[], wrong: readonly SetRole[]): Promise<void> {
    const { addon, family, onMessage } = this.parts;
    const operations: IpsetOperation[] = [
      ...wrong.map((role): IpsetOperation => ({ type: 'destroy', name: setCreation(family, role).name })),
      ...[...wrong, ...missing].map((role): IpsetOperation => ({ type: 'create', set: setCreation(family, role) })),
    ];
    if (operations.length === 0) return;
    onMessage({ type: 'sets', operations });
    const applied = await addon.ipset.ipsetApply(operations);
    this.count(operations.length, applied.bytes);
    const [refused] = applied.refused;
    if (refused !== undefined) throw refused;
  }

  /** Removes a set of kube-proxy's that nothing of ours needs. Rules of others may: then it stays. */
  async removeSet(name: string): Promise<void> {
    const { ipset } = this.parts.addon;
    const [digest] = await ipset.ipsetDigests([name], 'headers');
    if (digest === 0) return;
    const operations: readonly IpsetOperation[] = [{ type: 'destroy', name }];
    this.parts.onMessage({ type: 'sets', operations });
    const { refused, bytes } = await ipset.ipsetApply(operations);
    this.count(operations.length, bytes);
    this.failures.push(...refused.filter(({ errno }) => errno !== 'EBUSY' && errno !== 'ENOENT'));
  }

  async makeLink(): Promise<void> {
    await this.parts.addon.route.linkEnsureDummy(LINK);
    this.count(1, 0);
  }

  /** Makes virtual services, or changes them. */
  async services(keys: readonly ServiceKey[]): Promise<void> {
    const { services } = this.parts.ledgers;
    const operations = keys.flatMap((key): IpvsOperation[] => {
      const state = services.desired(key);
      if (state === undefined) return [];
      const verb = services.acknowledged.has(key) ? 'set' : 'new';
      return [{ type: 'service', verb, service: nameService(virtualOf(key)), state }];
    });
    await this.sendEach(services, keys, operations);
  }

  /** Removes virtual services, and with them their destinations. */
  async removals(keys: readonly ServiceKey[]): Promise<void> {
    const { services, destinations } = this.parts.ledgers;
    await this.sendEach(
      services,
      keys,
      keys.map((key) => ({ type: 'service', verb: 'delete', service: nameService(virtualOf(key)), state: null })),
    );
    // The kernel does not ask.
    const claim = destinations.claim(keys.filter((key) => !services.acknowledged.has(key)));
    claim.acknowledge();
  }

  private async sendEach<Value>(
    ledger: Ledger<ServiceKey, Value>,
    keys: readonly ServiceKey[],
    operations: readonly IpvsOperation[],
  ): Promise<void> {
    if (operations.length === 0) return;
    const before = keys.map((key) => ledger.acknowledged.get(key));
    const errors = await this.exchange(ledger, keys, operations.length, () => this.applyIpvs(operations));
    for (const error of errors) {
      const key = keys[error.index ?? -1];
      if (key === undefined) this.failures.push(error);
      else this.refuse(ledger, key, before[error.index ?? -1], error);
    }
  }

  /** Destinations of virtual services that the kernel has. */
  async destinations(keys: readonly ServiceKey[]): Promise<void> {
    const { destinations } = this.parts.ledgers;
    const operations: IpvsOperation[] = [];
    const owners: ServiceKey[] = [];
    let objects = 0;
    for (const key of keys) {
      const wanted = destinations.desired(key);
      if (wanted === undefined) continue;
      const service = nameService(virtualOf(key));
      for (const operation of destinationOperations(service, destinations.acknowledged.get(key), wanted)) {
        operations.push(operation);
        owners.push(key);
        if (operation.type === 'destinations') objects += operation.endpoints.length / endpointSize(this.parts.family);
      }
    }
    if (operations.length === 0) {
      destinations.claim(keys).acknowledge();
      return;
    }
    const errors = await this.exchange(destinations, keys, objects, () => this.applyIpvs(operations));
    const refused = new Map<ServiceKey, NativeError>();
    for (const error of errors) {
      const key = owners[error.index ?? -1];
      if (key === undefined) this.failures.push(error);
      else if (!refused.has(key)) refused.set(key, error);
    }
    await this.lookAgain(refused);
  }

  /** Some messages for a virtual service were refused and some were not. */
  private async lookAgain(refused: ReadonlyMap<ServiceKey, NativeError>): Promise<void> {
    if (refused.size === 0) return;
    const { addon, family, ledgers } = this.parts;
    const keys = [...refused.keys()];
    let listed: readonly IpvsDestinations[] = [];
    try {
      listed = await addon.ipvs.ipvsDestinations(keys.map((key) => nameService(virtualOf(key))));
    } catch (error) {
      this.failures.push(error);
    }
    for (const [index, key] of keys.entries()) {
      const error = refused.get(key);
      const found = listed[index];
      const held = found === undefined ? undefined : listedDestinations(family, found);
      if (error !== undefined) this.refuse(ledgers.destinations, key, held, error);
    }
  }

  /** Adds or removes elements of one set: those that are now desired or not. */
  async elements(role: SetRole, keys: readonly ElementKey[]): Promise<void> {
    if (keys.length === 0) return;
    const { addon, family, ledgers, onMessage } = this.parts;
    const ledger = ledgers.elements[role];
    const set = nameSet(family, role);
    const pack = (each: readonly ElementKey[]): Uint8Array => Buffer.from(each.join(''), 'latin1');
    const added = keys.filter((key) => ledger.desired(key) !== undefined);
    const removed = keys.filter((key) => ledger.desired(key) === undefined);
    const operations: IpsetOperation[] = [];
    const comments = hasComments(role) ? added.map((key) => ledger.desired(key) ?? '') : null;
    if (added.length > 0) operations.push({ type: 'add', set, elements: pack(added), comments });
    if (removed.length > 0) operations.push({ type: 'delete', set, elements: pack(removed) });
    const groups = [added, removed].filter((group) => group.length > 0);
    const before = new Map(keys.map((key) => [key, ledger.acknowledged.get(key)]));
    onMessage({ type: 'sets', operations });
    const errors = await this.exchange(ledger, keys, keys.length, () => addon.ipset.ipsetApply(operations));
    for (const error of errors) {
      const key = groups[error.index ?? -1]?.[error.element ?? -1];
      if (key === undefined) this.failures.push(error);
      else this.refuse(ledger, key, before.get(key), error);
    }
  }

  /** Adds or removes addresses of the link: those that are now desired or not. */
  async addresses(keys: readonly IPAddress[]): Promise<void> {
    if (keys.length === 0) return;
    const { addon, family, ledgers, onMessage } = this.parts;
    const ledger = ledgers.addresses;
    const groups = [true, false].map((wanted) => keys.filter((key) => (ledger.desired(key) !== undefined) === wanted));
    const operations = groups.flatMap((group, index) => {
      const type: 'add' | 'delete' = index === 0 ? 'add' : 'delete';
      return group.length === 0
        ? []
        : [{ operation: { type, family, addresses: Buffer.concat(group.map(addressBytes)) }, group }];
    });
    const sent = operations.map(({ operation }) => operation);
    onMessage({ type: 'addresses', operations: sent });
    const errors = await this.exchange(ledger, keys, keys.length, () => addon.route.addressApply(LINK, sent));
    for (const error of errors) {
      const { operation, group } = operations[error.index ?? -1] ?? {};
      const key = group?.[error.element ?? -1];
      // An external change came first.
      if (error.errno === (operation?.type === 'add' ? 'EEXIST' : 'EADDRNOTAVAIL')) continue;
      if (key === undefined) this.failures.push(error);
      else if (operation?.type === 'add') this.refuse(ledger, key, undefined, error, addressRefusalOf(error, family));
      else this.refuse(ledger, key, true, error);
    }
  }

  private applyIpvs(operations: readonly IpvsOperation[]): Promise<Applied> {
    this.parts.onMessage({ type: 'services', operations });
    return this.parts.addon.ipvs.ipvsApply(operations);
  }

  /** One call. Afterwards its keys are as desired, except those with errors. When it rejects they are unknown. */
  private async exchange<Key, Value>(
    ledger: Ledger<Key, Value>,
    keys: readonly Key[],
    objects: number,
    call: () => Promise<Applied>,
  ): Promise<readonly NativeError[]> {
    const claim = ledger.claim(keys);
    try {
      const { refused, bytes } = await call();
      claim.acknowledge();
      this.count(objects, bytes);
      return refused;
    } catch (error) {
      claim.lose();
      throw error;
    }
  }

  /** Enters the kernel's real state of a key after a refusal. */
  private refuse<Key, Value>(
    ledger: Ledger<Key, Value>,
    key: Key,
    held: Value | undefined,
    error: NativeError,
    reason = refusalOf(error),
  ): void {
    ledger.readBack(key, held);
    if (reason === null) this.failures.push(error);
    else ledger.quarantine(key, reason);
  }

  private count(objects: number, bytes: number): void {
    this.sent.transactions++;
    this.sent.objects += objects;
    this.sent.bytes += bytes;
  }
}
