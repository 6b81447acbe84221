import { setImmediate as breathe } from 'node:timers/promises';
import type { Family, IPAddress } from '../../base/ip.js';
import type { NftTableListing } from '../../native/contract.js';
import type { FrontendKey } from '../../plan/types.js';
import { differences, type Uncertain } from './differences.js';
import { TableReader, type KernelTable } from './kernel-table.js';
import type { Pending } from './pending.js';

/**
 * A comparison of the kernel with what it acknowledged that goes on beside syncs. What they touch meanwhile is not compared: the listing may show it
 * before or after.
 */
export class Audit {
  private readonly frontends = new Set<FrontendKey>();
  private readonly clusterAddresses = new Set<IPAddress>();
  private readonly hairpinAddresses = new Set<IPAddress>();
  private readonly structure: ReadonlyMap<string, string>;

  /** @param known what the kernel acknowledged; syncs go on changing it. */
  constructor(
    private readonly family: Family,
    private readonly known: KernelTable,
  ) {
    this.structure = new Map([...known.chains, ...known.sets]);
  }

  /** A sync is going to change this. */
  touched(pending: Pending): void {
    for (const key of pending.frontends) this.frontends.add(key);
    for (const address of pending.clusterAddresses) this.clusterAddresses.add(address);
    for (const address of pending.hairpinAddresses) this.hairpinAddresses.add(address);
  }

  /** What differs. Reading a large table takes the thread's time in pieces. */
  async compare(listing: NftTableListing | null): Promise<readonly string[]> {
    const reader = new TableReader(this.family);
    for (const set of listing?.sets ?? []) {
      reader.readSet(set);
      await breathe();
    }
    const { known, frontends, clusterAddresses, hairpinAddresses } = this;
    const structure = (name: string): boolean =>
      this.structure.get(name) !== (known.chains.get(name) ?? known.sets.get(name));
    const uncertain: Uncertain = { frontends, clusterAddresses, hairpinAddresses, structure };
    return differences(known, reader.finish(listing?.chains ?? []), uncertain);
  }
}
