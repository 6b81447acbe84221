import type { Family, IPAddress } from '../../base/ip.js';
import type { IpvsServiceState } from '../../native/contract.js';
import { differing } from '../differences.js';
import { Ledger, type LedgerOptions } from '../ledger.js';
import { sameDestinations, type Destinations } from './destinations.js';
import { sameState, type ElementKey, type ServiceKey } from './frontends.js';
import { SET_ROLES, setName, type SetRole } from './names.js';
import { printElements } from './print.js';
import { nameSet } from './wire.js';

/** The desired and the held state of one family, without chains, by kind. */
export class Ledgers {
  readonly services: Ledger<ServiceKey, IpvsServiceState>;
  /** Every virtual service has an entry, if an empty one. */
  readonly destinations: Ledger<ServiceKey, Destinations>;
  /** The elements of each set and their comments, empty where there are none. */
  readonly elements: Readonly<Record<SetRole, Ledger<ElementKey, string>>>;
  /** On the mode's link. */
  readonly addresses: Ledger<IPAddress, true>;

  constructor(now: () => number) {
    const make = <Key, Value>(same: LedgerOptions<Value>['same']): Ledger<Key, Value> => {
      const ledger = new Ledger<Key, Value>({ same, now });
      ledger.markAllUnknown();
      return ledger;
    };
    const apart = (): boolean => false;
    this.services = make(sameState);
    this.destinations = make(sameDestinations);
    this.addresses = make(apart);
    const elements = SET_ROLES.map((role) => [role, make<ElementKey, string>(apart)] as const);
    this.elements = Object.fromEntries(elements) as Record<SetRole, Ledger<ElementKey, string>>;
  }

  /** Enters the kernel's listed state. */
  readBack({ services, destinations, elements, addresses }: Held): void {
    this.services.readBackAll(services);
    this.destinations.readBackAll(destinations);
    this.addresses.readBackAll(addresses);
    for (const role of SET_ROLES) this.elements[role].readBackAll(elements[role]);
  }
}

/** The kernel's state of one family, without chains. */
export interface Held {
  readonly services: Map<ServiceKey, IpvsServiceState>;
  readonly destinations: Map<ServiceKey, Destinations>;
  readonly elements: Readonly<Record<SetRole, Map<ElementKey, string>>>;
  readonly addresses: Map<IPAddress, true>;
}

/** Keeps objects that the kernel holds and should not, as far as is known. */
export function keepHeld<Key, Value>(ledger: Ledger<Key, Value>): void {
  for (const key of [...ledger.pending()])
    if (ledger.desired(key) === undefined) ledger.desire(key, ledger.acknowledged.get(key));
}

/** Values lost, altered or added since they were acknowledged, a line each. */
export function differences(family: Family, ledgers: Ledgers, held: Held): readonly string[] {
  const { services, destinations } = ledgers;
  // They come after their virtual service, and go with it.
  const unknown = new Set([...destinations.unknown, ...services.unknown]);
  const listed = [...held.destinations].filter(([key, all]) => destinations.acknowledged.has(key) || !isEmpty(all));
  const known = { acknowledged: destinations.acknowledged, unknown };
  return [
    ...differentServices(ledgers, held.services),
    ...differing(known, new Map(listed), sameDestinations, (key) => `destinations of ${key}`),
    ...differing(ledgers.addresses, held.addresses, isSame, (address) => `address ${address}`),
    ...differentElements(family, ledgers, held.elements, SET_ROLES),
  ];
}

/** The same of virtual services alone. */
export function differentServices(ledgers: Ledgers, held: Held['services']): readonly string[] {
  return differing(ledgers.services, held, sameState, (key) => `virtual service ${key}`);
}

/** The same of some sets alone. */
export function differentElements(
  family: Family,
  ledgers: Ledgers,
  held: Held['elements'],
  roles: readonly SetRole[],
): readonly string[] {
  return roles.flatMap((role) => {
    const name = setName(family, role);
    const print = (key: ElementKey): string =>
      `element ${printElements(nameSet(family, role), Buffer.from(key, 'latin1')).join()} of ${name}`;
    return differing(ledgers.elements[role], held[role], isSame, print);
  });
}

function isEmpty({ active, draining, odd }: Destinations): boolean {
  return active.count + draining.count + odd.count === 0;
}

function isSame(one: unknown, other: unknown): boolean {
  return one === other;
}
