import type { ConntrackTimeouts } from '../../base/conntrack-timeouts.js';
import type { NftablesAddon, NftCommand, NftElementsOperation, NftOperation } from '../../native/contract.js';
import type { FamilyTable } from '../../plan/types.js';
import { componentsOf, elementAt } from './elements.js';
import { type SetDeclaration, type TableName } from './json.js';
import { NFT_FAMILY, TABLE } from './names.js';
import { RetryTimeouts } from './retry.js';
import { Structure } from './structure.js';
import { planSync } from './sync-plan.js';
import { noKeys, TableLedger } from './table-ledger.js';

type Json = string | number | { readonly [key: string]: Json } | readonly Json[] | null;

/**
 * Commands in libnftables JSON that make a family's whole table from nothing: a first sync, with the packed elements spelled
 * out. Needs no privileges.
 *
 * @param counts whether refused and dropped packets are counted.
 * @param timeouts the sysctls in force.
 */
export function renderTable(
  addon: Pick<NftablesAddon, 'nftCompile'>,
  table: FamilyTable,
  counts: boolean,
  timeouts: ConntrackTimeouts,
): readonly NftCommand[] {
  const structure = new Structure(addon, table.family, counts);
  structure.timeouts = new RetryTimeouts(timeouts);
  const ledger = new TableLedger(
    () => 0,
    () => true,
  );
  const { frontends } = ledger.lookAtEverything(table, noKeys(), false);
  const plan = planSync(structure, ledger, table, { frontends, rules: true }, Number.MAX_SAFE_INTEGER);
  // Packets alone write to all other sets.
  const sets = new Map(structure.sets([]).map((set) => [set.name, set]));
  const where = { family: NFT_FAMILY[table.family], table: TABLE };
  return plan.transactions
    .flatMap(({ operations }) => operations)
    .flatMap((operation) => commandsOf(operation, where, sets));
}

/** An operation as libnftables JSON commands. */
function commandsOf(
  operation: NftOperation,
  where: TableName,
  sets: ReadonlyMap<string, SetDeclaration>,
): readonly NftCommand[] {
  if (operation.type === 'commands') return operation.commands;
  const set = sets.get(operation.set);
  if (set === undefined) return [];
  const elem = Array.from({ length: operation.count }, (_, index) => printElement(operation, set, index));
  return [{ [operation.verb]: { element: { family: where.family, table: where.table, name: set.name, elem } } }];
}

function printElement(operation: NftElementsOperation, set: SetDeclaration, index: number): Json {
  const { key, keyEnd, data, chain, comment } = elementAt(operation, index);
  const printed = printValue(key, keyEnd, set.type);
  const left: Json = comment === null ? printed : { elem: { val: printed, comment } };
  if (chain !== null) return [left, { goto: { target: chain } }];
  if (data === null || set.map === null || set.map === 'verdict') return left;
  return [left, printValue(data, null, set.map)];
}

/** A key or value by the types of its components. */
function printValue(bytes: Uint8Array, end: Uint8Array | null, types: readonly string[]): Json {
  const last = end === null ? null : componentsOf(end, types);
  const parts = componentsOf(bytes, types).map((first, index): Json => {
    const limit = last?.[index] ?? first;
    return first === limit ? first : { range: [first, limit] };
  });
  const [only, ...rest] = parts;
  return only !== undefined && rest.length === 0 ? only : { concat: parts };
}
