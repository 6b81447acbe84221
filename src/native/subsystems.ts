import type { NativeAddon } from './contract.js';

export type Subsystem = keyof NativeAddon;

/** By subsystem, every function it has. */
export const SUBSYSTEMS: { readonly [S in Subsystem]: Readonly<Record<keyof NativeAddon[S], true>> } = {
  nftables: {
    nftCompile: true,
    nftEncode: true,
    nftTransact: true,
    nftList: true,
    nftElements: true,
    nftHas: true,
    nftGeneration: true,
    nftMaxBatch: true,
    nftWatch: true,
  },
  conntrack: { conntrackList: true, conntrackDelete: true },
  iptables: {
    iptablesFlavors: true,
    iptablesEncode: true,
    iptablesDigests: true,
    iptablesRestore: true,
    iptablesList: true,
    iptablesRemembering: true,
  },
  accounting: { accountCreate: true, accountPackets: true },
  ipvs: { ipvsList: true, ipvsDelete: true },
  ipset: { ipsetNames: true, ipsetDestroy: true },
  route: { linkAddresses: true, linkDelete: true },
};

/** An addon whose subsystems are each made when they are first asked for. */
export function composeAddon(make: <S extends Subsystem>(name: S) => NativeAddon[S]): NativeAddon {
  const made = new Map<Subsystem, unknown>();
  const get = (name: Subsystem): unknown => {
    if (!made.has(name)) made.set(name, make(name));
    return made.get(name);
  };
  const names = Object.keys(SUBSYSTEMS) as readonly Subsystem[];
  const properties = names.map((name) => [name, { enumerable: true, get: (): unknown => get(name) }]);
  return Object.defineProperties({}, Object.fromEntries(properties) as PropertyDescriptorMap) as NativeAddon;
}
