import type { NativeAddon } from './contract.js';

export type Subsystem = keyof NativeAddon;

/** Every function of each subsystem. */
export const SUBSYSTEMS: { readonly [S in Subsystem]: Readonly<Record<keyof NativeAddon[S], true>> } = {
  nftables: {
    nftCompile: true,
    nftEncode: true,
    nftTransact: true,
    nftList: true,
    nftElements: true,
    nftBaseChains: true,
    nftGeneration: true,
    nftGenerationWatch: true,
    nftMaxBatch: true,
    nftWatch: true,
    nftTrace: true,
    nftRule: true,
  },
  conntrack: {
    conntrackList: true,
    conntrackListTranslated: true,
    conntrackDelete: true,
    conntrackChallenge: true,
    conntrackCount: true,
  },
  iptables: {
    iptablesFlavors: true,
    iptablesEncode: true,
    iptablesDigests: true,
    iptablesRestore: true,
    iptablesList: true,
    iptablesListingMs: true,
    iptablesCounts: true,
    iptablesSizes: true,
    iptablesSizesWatch: true,
    iptablesMatch: true,
    iptablesRemembering: true,
  },
  accounting: { accountCreate: true, accountPackets: true },
  timeouts: { timeoutList: true, timeoutSet: true, timeoutDelete: true },
  ipvs: {
    ipvsApply: true,
    ipvsServices: true,
    ipvsDestinations: true,
    ipvsServicesDigest: true,
    ipvsDestinationsDigests: true,
    ipvsRemembered: true,
    ipvsTimeouts: true,
    ipvsSetTimeouts: true,
  },
  ipset: { ipsetNames: true, ipsetApply: true, ipsetList: true, ipsetDigests: true },
  route: {
    linkAddresses: true,
    allAddresses: true,
    linkEnsureDummy: true,
    linkDelete: true,
    addressApply: true,
    routeWatch: true,
  },
  memory: { memoryTrim: true },
  peer: { peerName: true, peerUser: true, limitSilence: true, silentMs: true },
  relay: { relayOpen: true },
  sysctl: { sysctlWatch: true },
  probe: { probeSpace: true, probeLease: true, probeReach: true, probeListen: true },
  hcn: { hcnVersion: true, hcnIds: true, hcnList: true, hcnApply: true, hcnWatch: true },
  service: { serviceConnect: true, serviceReport: true },
};

/** Which platform's kernel has it. */
export const SUBSYSTEM_PLATFORMS: { readonly [S in Subsystem]: NodeJS.Platform } = {
  nftables: 'linux',
  conntrack: 'linux',
  iptables: 'linux',
  accounting: 'linux',
  timeouts: 'linux',
  ipvs: 'linux',
  ipset: 'linux',
  route: 'linux',
  memory: 'linux',
  peer: 'linux',
  relay: 'linux',
  sysctl: 'linux',
  probe: 'linux',
  hcn: 'win32',
  service: 'win32',
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
