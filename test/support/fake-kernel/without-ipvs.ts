import type { IpsetAddon, IpvsAddon, ProbeAddon, RouteAddon } from '../../../src/native/contract.js';
import type { Applied } from '../../../src/native/errors.js';

/** Of a kernel that has loaded no ip_vs, and holds no set and no link. */
export const WITHOUT_IPVS: IpvsAddon = {
  ipvsApply: nothingSent,
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
  ipsetApply: nothingSent,
  ipsetList: (names) => Promise.resolve(names.map(() => null)),
  ipsetDigests: (names) => Promise.resolve(new Float64Array(names.length)),
};

export const WITHOUT_LINKS: RouteAddon = {
  linkAddresses: () => Promise.resolve(null),
  allAddresses: () => Promise.resolve([]),
  linkEnsureDummy: () => Promise.resolve(true),
  linkDelete: () => Promise.resolve(false),
  addressApply: nothingSent,
  routeWatch: () => () => undefined,
};

/** Nothing is sent. */
export const WITHOUT_PROBES: ProbeAddon = {
  probeSpace: () => Promise.reject(new Error('no network namespace')),
  probeLease: () => Promise.reject(new Error('no network')),
  probeReach: () => Promise.reject(new Error('no network')),
  probeListen: () => Promise.reject(new Error('no network')),
};

function nothingSent(): Promise<Applied> {
  return Promise.resolve({ refused: [], bytes: 0 });
}
