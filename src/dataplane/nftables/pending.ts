import type { IPAddress } from '../../net/ip.js';
import type { FamilyTable, FrontendKey, TableChange } from '../../plan/types.js';
import type { KernelTable } from './kernel-table.js';

/** What may differ between plan and kernel. It only shrinks when the kernel acknowledges. */
export class Pending {
  readonly frontends = new Set<FrontendKey>();
  readonly clusterAddresses = new Set<IPAddress>();
  readonly hairpinAddresses = new Set<IPAddress>();
  /** Rules of the whole table. */
  rules = true;

  add(change: TableChange): void {
    for (const key of change.frontends) this.frontends.add(key);
    for (const address of change.clusterAddresses) this.clusterAddresses.add(address);
    for (const address of change.hairpinAddresses) this.hairpinAddresses.add(address);
    this.rules ||= change.node;
  }

  addEverything(table: FamilyTable, kernel: KernelTable): void {
    for (const frontend of table.frontends()) this.frontends.add(frontend.key);
    for (const key of kernel.frontends.keys()) this.frontends.add(key);
    for (const key of kernel.staleFlows) this.frontends.add(key);
    for (const address of table.clusterAddresses) this.clusterAddresses.add(address);
    for (const address of kernel.clusterAddresses) this.clusterAddresses.add(address);
    for (const address of table.hairpinAddresses) this.hairpinAddresses.add(address);
    for (const address of kernel.hairpinAddresses) this.hairpinAddresses.add(address);
    this.rules = true;
  }

  clear(): void {
    this.frontends.clear();
    this.clusterAddresses.clear();
    this.hairpinAddresses.clear();
    this.rules = false;
  }
}
