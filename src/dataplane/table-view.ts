import type { FamilyTable, TableChange } from '../plan/types.js';

/** The part of a family's table that modes without a table of the kernel of their own render. */
export type TableView = Pick<FamilyTable, 'node' | 'frontend' | 'frontends' | 'hairpinAddresses' | 'healthChecks'>;

export type Changes = Pick<TableChange, 'frontends' | 'hairpinAddresses' | 'healthChecks' | 'node'>;

/** The change from nothing to the whole table. */
export function everything(table: TableView): Changes {
  return {
    frontends: new Set([...table.frontends()].map(({ key }) => key)),
    hairpinAddresses: new Set(table.hairpinAddresses),
    healthChecks: true,
    node: true,
  };
}
