import { randomUUID } from 'node:crypto';
import type { NativeAddon } from './contract.js';
import type { Applied } from './errors.js';
import { composeAddon, type Subsystem } from './subsystems.js';

/** The addon, but what would write succeeds without doing so. */
export function readOnly(addon: NativeAddon): NativeAddon {
  const writing: { readonly [S in Subsystem]: Partial<NativeAddon[S]> } = {
    nftables: {
      nftTransact: () => Promise.resolve({ messages: 0, bytes: 0 }),
      nftTrace: () => () => undefined,
    },
    conntrack: {
      conntrackDelete: () => Promise.resolve({ deleted: 0, missing: 0 }),
      conntrackChallenge: () => Promise.resolve({ sent: 0, failure: null }),
    },
    iptables: { iptablesRestore: () => Promise.resolve({ rules: 0, bytes: 0 }) },
    accounting: {
      // Whether the kernel can count at all is found out as by making the object.
      accountCreate: async (name) => {
        await addon.accounting.accountPackets(name);
        return false;
      },
    },
    timeouts: { timeoutSet: () => Promise.resolve(), timeoutDelete: () => Promise.resolve(true) },
    ipvs: { ipvsApply: nothingSent, ipvsSetTimeouts: () => Promise.resolve() },
    ipset: { ipsetApply: nothingSent },
    route: {
      linkEnsureDummy: () => Promise.resolve(false),
      linkDelete: () => Promise.resolve(true),
      addressApply: nothingSent,
    },
    memory: {},
    peer: {},
    relay: {},
    sysctl: {},
    probe: {},
    hcn: { hcnApply: (operations) => Promise.resolve(operations.map(({ id }) => id ?? randomUUID())) },
    // A process that writes nothing is no service.
    service: {},
  };
  return composeAddon((name) => ({ ...addon[name], ...writing[name] }));
}

function nothingSent(): Promise<Applied> {
  return Promise.resolve({ refused: [], bytes: 0 });
}
