import type { IptablesChainListing, IptablesOperation } from '../../native/contract.js';
import { hookRemovals } from './hooks.js';
import { isOwnChain } from './names.js';
import { deleteOperation } from './operations.js';
import { chainId } from './ruleset.js';

/** What takes every chain of this mode away, and the jumps that lead to them (behaviour IT-48). What is kubelet's stays. */
export function cleanupOperations(listing: readonly IptablesChainListing[]): readonly IptablesOperation[] {
  const chains = listing.filter(({ table, name }) => isOwnChain(table, name));
  return [...hookRemovals(listing), ...chains.map(({ table, name }) => deleteOperation(chainId(table, name)))];
}
