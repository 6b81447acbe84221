import type { IpsetAddon, IpvsAddon, RouteAddon } from '../../../src/native/contract.js';

/** Of a kernel that has loaded no ip_vs, and holds no set and no link. */
export const WITHOUT_IPVS: IpvsAddon = {
  ipvsApply: () => Promise.resolve([]),
  ipvsServices: () => Promise.resolve([]),
  ipvsDestinations: () => Promise.resolve([]),
  ipvsServicesDigest: () => Promise.resolve(1),
  ipvsDestinationsDigests: (services) => Promise.resolve(new Float64Array(services.length)),
  ipvsRemembered: () => Promise.resolve(null),
  ipvsTimeouts: () => Promise.resolve(null),
  ipvsSetTimeouts: () => Promise.resolve(),
};

export const WITHOUT_SETS: IpsetAddon = {
  ipsetNames: () => Promise.resolve([]),
  ipsetApply: () => Promise.resolve([]),
  ipsetList: (names) => Promise.resolve(names.map(() => null)),
  ipsetDigests: (names) => Promise.resolve(new Float64Array(names.length)),
};

export const WITHOUT_LINKS: RouteAddon = {
  linkAddresses: () => Promise.resolve(null),
  allAddresses: () => Promise.resolve([]),
  linkEnsureDummy: () => Promise.resolve(true),
  linkDelete: () => Promise.resolve(false),
  addressApply: () => Promise.resolve([]),
  routeWatch: () => () => undefined,
};
