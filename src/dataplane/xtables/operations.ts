import type {
  IptablesChainOperation,
  IptablesDeleteChainOperation,
  IptablesOperation,
  IptablesTable,
} from '../../native/contract.js';
import type { Chain, ChainId } from './rules.js';

/** Tables in the order of a stream: refusals first, so that no packet is let through untranslated while nat is written. */
export const TABLE_ORDER: readonly IptablesTable[] = ['filter', 'nat', 'mangle', 'raw'];

/** Tables that a stream has written when it comes to this one. */
export function tablesBefore(table: IptablesTable): readonly IptablesTable[] {
  return TABLE_ORDER.slice(0, TABLE_ORDER.indexOf(table));
}

export function tableOf(id: ChainId): IptablesTable {
  return TABLE_ORDER.find((table) => id.startsWith(`${table} `)) ?? 'nat';
}

export function nameOf(id: ChainId): string {
  return id.slice(id.indexOf(' ') + 1);
}

/** One order for all streams: table by table, chains before the jumps that lead to them, removals last. */
export function inOrder(operations: readonly IptablesOperation[]): readonly IptablesOperation[] {
  const kinds: readonly IptablesOperation['type'][] = ['chain', 'rule', 'delete-chain'];
  return TABLE_ORDER.flatMap((table) =>
    kinds.flatMap((type) => operations.filter((operation) => operation.table === table && operation.type === type)),
  );
}

export function chainOperation({ table, name, rules, owner }: Chain): IptablesChainOperation {
  return {
    type: 'chain',
    table,
    chain: name,
    owner,
    rules: rules.map((rule) => (typeof rule === 'string' ? { type: 'text', text: rule } : rule)),
  };
}

export function deleteOperation(id: ChainId): IptablesDeleteChainOperation {
  return { type: 'delete-chain', table: tableOf(id), chain: nameOf(id) };
}
