import type { FrontendKey, FrontendPlan, NodePlan } from '../../plan/types.js';
import { Ledger } from '../ledger.js';
import { serviceHash } from './names.js';
import type { ServiceGroup } from './service-chains.js';
import type { Changes, TableView } from '../table-view.js';

/** The groups of these frontends by hash. */
export function groupsOf(frontends: Iterable<FrontendPlan>, node: NodePlan): ReadonlyMap<string, ServiceGroup> {
  const members = new Map<string, FrontendPlan[]>();
  for (const frontend of frontends) {
    const hash = hashOf(frontend);
    members.set(hash, [...(members.get(hash) ?? []), frontend]);
  }
  return new Map([...members].map(([hash, all]) => [hash, { hash, node, frontends: all }]));
}

/** Hashes of groups that are brought to the kernel together, because frontends move from one to another. */
export type Unit = readonly string[];

/** Every group of a family's table as it should be and as the kernel holds it, by hash. */
export class ServiceGroups {
  readonly ledger: Ledger<string, ServiceGroup>;
  /** The groups of desired frontends. */
  private readonly groupOf = new Map<FrontendKey, string>();

  /** @param now milliseconds on a clock that only goes forward. */
  constructor(now: () => number) {
    this.ledger = new Ledger({ same: sameGroup, now });
  }

  /** Takes over what changed in the table; answers the groups that are to be another way now. */
  follow(view: TableView, { frontends, node }: Pick<Changes, 'frontends' | 'node'>): Iterable<string> {
    const changed = new Map<string, Set<FrontendKey>>();
    const members = (hash: string): Set<FrontendKey> => {
      const keys = changed.get(hash) ?? new Set(this.ledger.desired(hash)?.frontends.map(({ key }) => key));
      changed.set(hash, keys);
      return keys;
    };
    if (node) for (const hash of this.groupOf.values()) members(hash);
    for (const key of frontends) {
      const frontend = view.frontend(key);
      const before = this.groupOf.get(key);
      if (before !== undefined) members(before).delete(key);
      this.groupOf.delete(key);
      if (frontend === undefined) continue;
      const hash = hashOf(frontend);
      this.groupOf.set(key, hash);
      members(hash).add(key);
    }
    for (const [hash, keys] of changed) {
      const group = { hash, node: view.node, frontends: [...keys].flatMap((key) => view.frontend(key) ?? []) };
      this.ledger.desire(hash, keys.size === 0 ? undefined : group);
    }
    return changed.keys();
  }

  /** The pending groups that may go together in one stream, and the units that involve quarantined groups. */
  pending(): { readonly together: readonly string[]; readonly apart: readonly Unit[] } {
    const { quarantined } = this.ledger;
    if (quarantined.size === 0) return { together: [...this.ledger.pending()], apart: [] };
    const isApart = (unit: Unit): boolean => unit.some((hash) => quarantined.has(hash));
    const units = this.units([...this.ledger.pending(), ...quarantined.keys()]);
    return { together: units.filter((unit) => !isApart(unit)).flat(), apart: units.filter(isApart) };
  }

  /** Separate units that are to be tried now. @param most of {@link Ledger.due}; groups that joined them since do not count. */
  due(most: number): readonly Unit[] {
    const due = new Set(this.ledger.due(most));
    const isDue = (hash: string): boolean => due.has(hash) || !this.ledger.quarantined.has(hash);
    return this.ledger.quarantined.size === 0 ? [] : this.pending().apart.filter((unit) => unit.some(isDue));
  }

  /** Divides groups by what has to be brought together. */
  units(hashes: readonly string[]): readonly Unit[] {
    const unitOf = new Map(hashes.map((hash) => [hash, [hash]]));
    for (const hash of hashes) {
      for (const { key } of this.ledger.acknowledged.get(hash)?.frontends ?? []) {
        const one = unitOf.get(hash);
        const other = unitOf.get(this.groupOf.get(key) ?? hash);
        if (one === undefined || other === undefined || one === other) continue;
        for (const member of other) {
          one.push(member);
          unitOf.set(member, one);
        }
      }
    }
    return [...new Set(unitOf.values())];
  }

  /** Frontends that a group has, or should have. */
  frontendsOf(hash: string): readonly FrontendKey[] {
    const both = [this.ledger.acknowledged.get(hash), this.ledger.desired(hash)];
    return both.flatMap((group) => group?.frontends.map(({ key }) => key) ?? []);
  }
}

function hashOf({ servicePort, protocol }: FrontendPlan): string {
  return serviceHash(servicePort, protocol);
}

/** Plans are replaced, never changed. */
function sameGroup(one: ServiceGroup, other: ServiceGroup): boolean {
  return (
    one.node === other.node &&
    one.frontends.length === other.frontends.length &&
    one.frontends.every((frontend, index) => frontend === other.frontends[index])
  );
}
