import type { NativeAddon } from './contract.js';

/** The addon, but what would write succeeds without doing so. */
export function readOnly(addon: NativeAddon): NativeAddon {
  const nothing = { messages: 0, bytes: 0 };
  return {
    ...addon,
    nftTransact: () => Promise.resolve(nothing),
    iptablesRestore: () => Promise.resolve({ rules: 0, bytes: 0 }),
    // Whether the kernel can count at all is found out as by making the object.
    accountCreate: async (name) => {
      await addon.accountPackets(name);
      return false;
    },
    conntrackDelete: () => Promise.resolve({ deleted: 0, missing: 0 }),
    ipvsDelete: () => Promise.resolve(true),
    ipsetDestroy: () => Promise.resolve(true),
    linkDelete: () => Promise.resolve(true),
  };
}
