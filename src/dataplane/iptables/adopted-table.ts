import type { IPAddress } from '../../base/ip.js';
import type { FamilyTable, FrontendKey, FrontendPlan, HealthCheckPlan, NodePlan } from '../../plan/types.js';
import type { HeldRules } from './read-back.js';
import type { Changes, TableView } from '../table-view.js';

/**
 * A family's table, with what the kernel has beyond it while the table has unsynced sources: see {@link FamilyTable.unsynced}.
 */
export class AdoptedTable implements TableView {
  private readonly adoptedFrontends = new Map<FrontendKey, FrontendPlan>();
  private readonly adoptedHairpin = new Set<IPAddress>();
  private adoptedChecks: readonly HealthCheckPlan[] = [];
  readonly hairpinAddresses = {
    has: (address: IPAddress): boolean => this.table.hairpinAddresses.has(address) || this.adoptedHairpin.has(address),
    [Symbol.iterator]: (): IterableIterator<IPAddress> =>
      new Set([...this.table.hairpinAddresses, ...this.adoptedHairpin]).values(),
  };

  constructor(private table: TableView) {}

  get node(): NodePlan {
    return this.table.node;
  }

  frontend(key: FrontendKey): FrontendPlan | undefined {
    return this.table.frontend(key) ?? this.adoptedFrontends.get(key);
  }

  *frontends(): IterableIterator<FrontendPlan> {
    yield* this.table.frontends();
    for (const [key, frontend] of this.adoptedFrontends) if (this.table.frontend(key) === undefined) yield frontend;
  }

  *healthChecks(): IterableIterator<HealthCheckPlan> {
    const ports = new Set<number>();
    for (const check of this.table.healthChecks()) {
      ports.add(check.port);
      yield check;
    }
    for (const check of this.adoptedChecks) if (!ports.has(check.port)) yield check;
  }

  /** Whether anything is kept. */
  get isAdopting(): boolean {
    return this.adoptedFrontends.size + this.adoptedHairpin.size + this.adoptedChecks.length > 0;
  }

  follow(table: FamilyTable): void {
    this.table = table;
  }

  /** Keeps what the plan does not name; answers what that changes. */
  adopt(held: HeldRules): Changes {
    const frontends = new Set<FrontendKey>();
    for (const [key, frontend] of held.frontends) {
      if (this.table.frontend(key) !== undefined) continue;
      this.adoptedFrontends.set(key, frontend);
      frontends.add(key);
    }
    for (const address of held.hairpinAddresses) this.adoptedHairpin.add(address);
    this.adoptedChecks = held.healthChecks;
    return { frontends, hairpinAddresses: held.hairpinAddresses, healthChecks: true, node: false };
  }

  /** The plan has spoken about these. */
  forget(keys: Iterable<FrontendKey>): void {
    for (const key of keys) this.adoptedFrontends.delete(key);
  }

  /** Lets go of everything that was kept; answers what that changes. */
  release(): Changes {
    const changes: Changes = {
      frontends: new Set(this.adoptedFrontends.keys()),
      hairpinAddresses: new Set(this.adoptedHairpin),
      healthChecks: this.adoptedChecks.length > 0,
      node: false,
    };
    this.adoptedFrontends.clear();
    this.adoptedHairpin.clear();
    this.adoptedChecks = [];
    return changes;
  }
}
