/** What decides over a connection's endpoint: chance, its client's address, or address and port. */
export type BalanceBy = 'random' | 'address' | 'address-port';

/** As annotations and the configuration spell it. */
export const BALANCE_WORDS: ReadonlyMap<string, BalanceBy> = new Map<string, BalanceBy>([
  ['random', 'random'],
  ['hash=address', 'address'],
  ['hash=address,port', 'address-port'],
]);

/** How connections are shared as far as Services do not set it. */
export interface BalanceSettings {
  readonly by: BalanceBy;
  /** So many slots the tables of all Services have in a family, at least 1. */
  readonly slots: number;
}

/** As many slots as 1,000 Services with few endpoints have: some 30 MB of the kernel's memory. */
export const DEFAULT_BALANCE: BalanceSettings = { by: 'random', slots: 262_144 };
