import type { Family } from '../../base/ip.js';
import type { NftCommand, NftTableListing } from '../../native/contract.js';
import type { FrontendKey } from '../../plan/types.js';
import type { Footprint } from '../removal/footprint.js';
import type { TableName } from './json.js';
import { SET, TABLE } from './names.js';

export const NFTABLES_FOOTPRINT: Footprint = {
  nftTables: [{ name: TABLE, notes: [SET.staleFlows, SET.staleNodePortFlows], readNotes, removalFromShared }],
  chains: null,
  ipvs: null,
};

async function readNotes(family: Family, listing: NftTableListing): Promise<readonly FrontendKey[]> {
  const { readListing } = await import('./listing.js');
  return [...readListing(family, listing).staleFlows.keys()];
}

async function removalFromShared(
  where: TableName,
  listing: NftTableListing,
): Promise<readonly (readonly NftCommand[])[] | null> {
  const shared = await import('./shared-table.js');
  return shared.removalFromShared(where, listing);
}
