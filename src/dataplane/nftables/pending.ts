import type { IPAddress } from '../../base/ip.js';
import type { FamilyTable, FrontendKey, TableChange } from '../../plan/types.js';
import type { KernelTable } from './kernel-table.js';

/** What may differ between plan and kernel. It only shrinks when the kernel acknowledges. */
export class Pending {
  readonly frontends = new Set<FrontendKey>();
  readonly clusterAddresses = new Set<IPAddress>();
  readonly hairpinAddresses = new Set<IPAddress>();
  /** Rules of the whole table. */
  rules = true;

  get empty(): boolean {
    return !this.rules && this.frontends.size + this.clusterAddresses.size + this.hairpinAddresses.size === 0;
  }

  add(change: TableChange): void {
    for (const key of change.frontends) this.frontends.add(key);
    for (const address of change.clusterAddresses) this.clusterAddresses.add(address);
    for (const address of change.hairpinAddresses) this.hairpinAddresses.add(address);
    this.rules ||= change.node;
  }

  /**
   * Everything that is wanted, and everything that the kernel has: unless the table has gaps, then nothing is removed that it does not name. Answers
   * whether something was left alone for that reason.
   */
  addEverything(table: FamilyTable, kernel: KernelTable): boolean {
    for (const frontend of table.frontends()) this.frontends.add(frontend.key);
    for (const address of table.clusterAddresses) this.clusterAddresses.add(address);
    for (const address of table.hairpinAddresses) this.hairpinAddresses.add(address);
    for (const key of kernel.staleFlows) if (!kernel.frontends.has(key)) this.frontends.add(key);
    this.rules = true;
    if (table.gaps) return [...kernel.frontends.keys()].some((key) => !this.frontends.has(key));
    for (const key of kernel.frontends.keys()) this.frontends.add(key);
    for (const address of kernel.clusterAddresses) this.clusterAddresses.add(address);
    for (const address of kernel.hairpinAddresses) this.hairpinAddresses.add(address);
    return false;
  }

  clear(): void {
    this.frontends.clear();
    this.clusterAddresses.clear();
    this.hairpinAddresses.clear();
    this.rules = false;
  }
}
