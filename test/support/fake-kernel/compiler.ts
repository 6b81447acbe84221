import type { NftablesAddon, NftTableListing } from '../../../src/native/contract.js';
import { loadAddon } from '../../../src/native/load.js';

export type Compiler = Pick<NftablesAddon, 'nftCompile' | 'nftEncode'>;

/** More is forgotten: histories make ever new rules, and their tests look at the heap. */
const MOST_KNOWN = 1000;

/** The addon's compiler, remembering what it said: a test compiles the same rules thousands of times. */
export function loadCompiler(): Compiler {
  const addon = loadAddon().nftables;
  const known = new Map<string, NftTableListing>();
  return {
    nftCompile: (family, table, commands) => {
      const key = `${family} ${table} ${JSON.stringify(commands)}`;
      const listing = known.get(key) ?? addon.nftCompile(family, table, commands);
      if (known.size >= MOST_KNOWN) known.clear();
      known.set(key, listing);
      return listing;
    },
    nftEncode: (transaction) => addon.nftEncode(transaction),
  };
}
