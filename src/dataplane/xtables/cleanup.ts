import type { IptablesChainListing, IptablesOperation, IptablesTable } from '../../native/contract.js';
import { hookRemovals, type Hook } from './hooks.js';
import { deleteOperation } from './operations.js';
import { chainId } from './rules.js';

/** What takes every chain of a mode away, and the jumps that lead to them (behaviour IT-48). What is kubelet's stays. */
export function cleanupOperations(
  listing: readonly IptablesChainListing[],
  hooks: readonly Hook[],
  isOwn: (table: IptablesTable, chain: string) => boolean,
): readonly IptablesOperation[] {
  const chains = listing.filter(({ table, name }) => isOwn(table, name));
  return [...hookRemovals(listing, hooks), ...chains.map(({ table, name }) => deleteOperation(chainId(table, name)))];
}
