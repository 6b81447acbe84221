import { setImmediate as breathe } from 'node:timers/promises';
import type { Family, IPAddress } from '../../base/ip.js';
import type { NftTableListing } from '../../native/contract.js';
import type { FrontendKey } from '../../plan/types.js';
import { differences, type Uncertain } from './differences.js';
import { TableReader, type HeldTable } from './listing.js';
import type { TableKeys } from './table-ledger.js';

/** After so many elements others have their turn. */
const PIECE = 1024;

/**
 * A comparison of the kernel with what it acknowledged, beside syncs. Objects that syncs touch meanwhile are not compared:
 * the listing may show them before or after.
 */
export class Audit {
  private readonly frontends = new Set<FrontendKey>();
  private readonly clusterAddresses = new Set<IPAddress>();
  private readonly hairpinAddresses = new Set<IPAddress>();
  /** Chains, sets and other objects. */
  private readonly objects = new Set<string>();

  /** @param known what the kernel acknowledged; syncs go on changing it. */
  constructor(
    private readonly family: Family,
    private readonly known: HeldTable,
  ) {}

  /** A sync is going to change this. */
  touched(keys: TableKeys): void {
    for (const name of [...keys.chains, ...keys.sets, ...keys.objects]) this.objects.add(name);
    for (const key of keys.frontends) this.frontends.add(key);
    for (const address of keys.clusterAddresses) this.clusterAddresses.add(address);
    for (const address of keys.hairpinAddresses) this.hairpinAddresses.add(address);
  }

  /** The differences. Reading a large table takes the thread's time in pieces. */
  async compare(listing: NftTableListing | null): Promise<readonly string[]> {
    const reader = new TableReader(this.family);
    let read = 0;
    for (const set of listing?.sets ?? []) {
      reader.readSet(set);
      read += set.elements?.count ?? 0;
      if (read < PIECE) continue;
      read = 0;
      await breathe();
    }
    const { known, frontends, clusterAddresses, hairpinAddresses } = this;
    const structure = (name: string): boolean => this.objects.has(name);
    const uncertain: Uncertain = { frontends, clusterAddresses, hairpinAddresses, structure };
    return differences(known, reader.finish(listing ?? { chains: [], objects: [] }), uncertain);
  }
}
