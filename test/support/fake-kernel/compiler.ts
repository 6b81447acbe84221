import type { NftablesAddon, NftTableListing } from '../../../src/native/contract.js';
import { loadAddon } from '../../../src/native/load.js';

export type Compiler = Pick<NftablesAddon, 'nftCompile' | 'nftEncode'>;

/** Listings that are remembered: all scenarios of a mode have fewer. */
let mostKnown = 4000;

/** For tests that look at the heap while they make ever new rules. */
export function rememberAtMost(listings: number): void {
  mostKnown = listings;
}

/** The addon's compiler, remembering what it said: a test compiles the same rules thousands of times. */
export function loadCompiler(): Compiler {
  const addon = loadAddon().nftables;
  const known = new Map<string, NftTableListing>();
  return {
    nftCompile: (family, table, commands) => {
      const key = `${family} ${table} ${JSON.stringify(commands)}`;
      const listing = known.get(key) ?? addon.nftCompile(family, table, commands);
      if (known.size >= mostKnown) known.clear();
      known.set(key, listing);
      return listing;
    },
    nftEncode: (transaction) => addon.nftEncode(transaction),
  };
}
