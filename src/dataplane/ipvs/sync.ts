import type { Family, IPAddress } from '../../base/ip.js';
import type { ServiceKey, ElementKey } from './frontends.js';
import { packVirtual, SERVING } from './frontends.js';
import { virtualOf } from './desired.js';
import type { Ledger } from '../ledger.js';
import type { Ledgers } from './ledgers.js';
import { SET_ROLES, type SetRole } from './names.js';
import type { Writer } from './writer.js';
import { packedAddress, unpackAddress } from '../../base/pack-address.js';
import { addressLength } from '../../base/ip.js';

/** The rules to be written at each point; a step does nothing if nothing is to be written. */
interface RuleSteps {
  readonly first: () => Promise<void>;
  readonly last: () => Promise<void>;
}

/** Sets by which connections are refused or dropped; `restricted` last, so that no admitted client is kept out. */
const REFUSING: readonly SetRole[] = [
  'refusing',
  'dropping',
  'droppingOthers',
  'admittedPrefixes',
  'admittedAddresses',
  'restricted',
];

/**
 * Their elements are removed last: they stay as long as the restrictions, and as long as the link has the address. A new process
 * recognizes virtual services that are to go by node ports, and by frontends of the node's own addresses.
 */
const OUTLASTING: readonly SetRole[] = [
  'admittedPrefixes',
  'admittedAddresses',
  'tcpNodePorts',
  'tcpNodePortsLocal',
  'udpNodePorts',
  'udpNodePortsLocal',
  'sctpNodePorts',
  'sctpNodePortsLocal',
  'addresses',
];

/**
 * Sends what is pending, in an order in which no connection goes wrong in between. A refusal comes before its
 * frontend's objects go, and goes after they are there. A virtual service is there before packets are let through to
 * it, and goes after the last of them. The address comes last and goes last: packets come in as long as it is there.
 */
export async function sync(family: Family, ledgers: Ledgers, writer: Writer, rules: RuleSteps): Promise<void> {
  const { services, destinations, addresses, elements } = ledgers;
  const addressOf = (key: ElementKey): IPAddress => unpackAddress(key.slice(0, addressLength(family)));
  // Packets to a frontend on the link without a virtual service would reach the node itself.
  const isOnLink = (key: ElementKey): boolean => addresses.acknowledged.has(addressOf(key));
  for (const role of SERVING) await writer.elements(role, withdrawn(ledgers, role).filter(isOnLink));
  for (const role of REFUSING) await writer.elements(role, added(elements[role]));
  await rules.first();
  // A new process recognizes the services that follow by this address. Its other ports are refused.
  // No packet is sent there before the link has the address.
  await writer.elements('addresses', added(elements.addresses));
  const isNamed = (address: IPAddress): boolean => !isLacking(elements.addresses, packedAddress(address));
  await writer.services(
    added(services).filter((key) => services.acknowledged.has(key) || isNamed(virtualOf(key).address)),
  );
  const lacking = [...services.pending()].filter((key) => isLacking(services, key));
  const unready = new Set([...services.quarantined.keys(), ...lacking].map((key) => packVirtual(virtualOf(key))));
  for (const role of SET_ROLES) {
    const isReady = (key: ElementKey): boolean => !SERVING.has(role) || !unready.has(key);
    await writer.elements(role, added(elements[role]).filter(isReady));
  }
  await writer.destinations(toSend(destinations).filter((key) => isThere(ledgers, key)));
  for (const role of [...REFUSING].reverse().concat(SET_ROLES)) {
    const isLeft = (key: ElementKey): boolean => SERVING.has(role) && isGone(ledgers, key) && !isOnLink(key);
    if (!OUTLASTING.includes(role))
      await writer.elements(
        role,
        removed(elements[role]).filter((key) => !isLeft(key)),
      );
  }
  await writer.addresses(added(addresses).filter(isNamed));
  await rules.last();
  await writer.removals(removed(services));
  // If a virtual service could not be removed, its address stays: the next process recognizes it by that.
  const left = new Set([...removed(services), ...services.quarantined.keys()].map((key) => virtualOf(key).address));
  await writer.addresses(removed(addresses).filter((address) => !left.has(address)));
  for (const role of OUTLASTING)
    await writer.elements(
      role,
      removed(elements[role]).filter((key) => role !== 'addresses' || !left.has(addressOf(key))),
    );
  for (const role of SERVING) await writer.elements(role, removed(elements[role]));
}

/** Keys that are to be sent: pending, or quarantined and due again. */
function toSend<Key, Value>(ledger: Ledger<Key, Value>): readonly Key[] {
  return [...ledger.pending(), ...ledger.due()];
}

function added<Key, Value>(ledger: Ledger<Key, Value>): readonly Key[] {
  return toSend(ledger).filter((key) => ledger.desired(key) !== undefined);
}

function removed<Key, Value>(ledger: Ledger<Key, Value>): readonly Key[] {
  return toSend(ledger).filter((key) => ledger.desired(key) === undefined);
}

function isLacking<Key, Value>(ledger: Ledger<Key, Value>, key: Key): boolean {
  return ledger.desired(key) !== undefined && !ledger.acknowledged.has(key);
}

/** Frontends that are gone, rather than in another set now. */
function withdrawn(ledgers: Ledgers, role: SetRole): readonly ElementKey[] {
  return removed(ledgers.elements[role]).filter((key) => isGone(ledgers, key));
}

function isGone({ elements }: Ledgers, key: ElementKey): boolean {
  return [...SERVING].every((role) => elements[role].desired(key) === undefined);
}

function isThere({ services, destinations }: Ledgers, key: ServiceKey): boolean {
  return services.acknowledged.has(key) && destinations.desired(key) !== undefined;
}
