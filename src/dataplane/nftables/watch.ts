import { FAMILIES } from '../../base/ip.js';
import type { NftablesAddon } from '../../native/contract.js';
import type { WatchForeignChanges } from '../contract.js';
import { NFT_FAMILY, TABLE } from './names.js';

/** Notifies of external changes to our tables, by the kernel's notifications. Throws when the kernel does not let us listen. */
export function watchTables(addon: Pick<NftablesAddon, 'nftWatch'>): WatchForeignChanges {
  return (onChange) =>
    addon.nftWatch(TABLE, ({ families, missed, process }) => {
      onChange({ families: FAMILIES.filter((family) => families.includes(NFT_FAMILY[family])), missed, process });
    });
}
