import type { NativeAddon, NftCommand, NftElementsOperation, NftOperation } from '../../native/contract.js';
import { addressFromBytes } from '../../net/ip.js';
import type { FamilyTable } from '../../plan/types.js';
import { type SetDeclaration, type TableName } from './json.js';
import { emptyKernelTable } from './kernel-table.js';
import { unpackSlot } from './keys.js';
import { NFT_FAMILY, TABLE } from './names.js';
import { Pending } from './pending.js';
import { Structure, timeoutsOf } from './structure.js';
import { planSync } from './sync-plan.js';

type Json = string | number | { readonly [key: string]: Json } | readonly Json[] | null;

/**
 * Commands in libnftables JSON that make a family's whole table from nothing: what a first sync sends, with the packed elements spelled out.
 * Needs no privileges.
 */
export function renderTable(addon: Pick<NativeAddon, 'nftCompile'>, table: FamilyTable): readonly NftCommand[] {
  const structure = new Structure(addon, table.family);
  const kernel = emptyKernelTable();
  const pending = new Pending();
  pending.addEverything(table, kernel);
  const plan = planSync(structure, kernel, table, pending, true, Number.MAX_SAFE_INTEGER);
  for (const transaction of plan.transactions) transaction.acknowledge(kernel);
  const sets = new Map(structure.sets(timeoutsOf(kernel)).map((set) => [set.name, set]));
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
  const { keyLength, dataLength } = operation;
  const at = <T>(column: readonly T[] | null): T | null => column?.[index] ?? null;
  const row = (bytes: Uint8Array | null, size: number): Uint8Array | null =>
    bytes?.subarray(index * size, (index + 1) * size) ?? null;
  const key = printValue(
    row(operation.keys, keyLength) ?? new Uint8Array(0),
    row(operation.keyEnds, keyLength),
    set.type,
  );
  const comment = at(operation.comments);
  const left: Json = comment === null ? key : { elem: { val: key, comment } };
  const chain = at(operation.gotoChains);
  if (chain !== null) return [left, { goto: { target: chain } }];
  const data = row(operation.data, dataLength);
  if (data === null || set.map === null || set.map === 'verdict') return left;
  return [left, printValue(data, null, set.map)];
}

/** A key or value by the types of its components, each padded to 4 bytes. */
function printValue(bytes: Uint8Array, end: Uint8Array | null, types: readonly string[]): Json {
  let offset = 0;
  const parts = types.map((type) => {
    const size = type === 'ipv6_addr' ? 16 : 4;
    const first = printComponent(bytes, offset, type);
    const last = end === null ? first : printComponent(end, offset, type);
    offset += size;
    return first === last ? first : { range: [first, last] };
  });
  const [only, ...rest] = parts;
  return only !== undefined && rest.length === 0 ? only : { concat: parts };
}

const PROTOCOL_NAMES: Readonly<Record<number, string>> = { 6: 'tcp', 17: 'udp', 132: 'sctp' };

function printComponent(bytes: Uint8Array, offset: number, type: string): string | number {
  const first = bytes[offset] ?? 0;
  switch (type) {
    case 'ipv4_addr':
      return addressFromBytes(bytes.subarray(offset, offset + 4));
    case 'ipv6_addr':
      return addressFromBytes(bytes.subarray(offset, offset + 16));
    case 'inet_proto':
      return PROTOCOL_NAMES[first] ?? first;
    case 'inet_service':
      return (first << 8) | (bytes[offset + 1] ?? 0);
    default:
      return unpackSlot(bytes, offset);
  }
}
