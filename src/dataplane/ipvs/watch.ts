import { FAMILIES } from '../../base/ip.js';
import type { RouteAddon } from '../../native/contract.js';
import type { WatchForeignChanges } from '../contract.js';
import { LINK } from './names.js';

/**
 * Tells of addresses that came or went: those on the mode's link are its own, and node ports answer on all others. Of links without addresses that matter, as
 * those of pods, nothing is told. Nobody tells of virtual services and sets.
 */
export function watchKernel(addon: Pick<RouteAddon, 'routeWatch' | 'allAddresses'>): WatchForeignChanges {
  return (onChange) => {
    let known: string | null = null;
    const look = async (missed: boolean): Promise<void> => {
      const found = (await addon.allAddresses())
        .map(({ link, ipv4, ipv6 }) => `${link} ${Buffer.from(ipv4).toString('hex')} ${routed(ipv6)}`)
        .sort()
        .join('\n');
      if (known !== null && (found !== known || missed)) onChange({ families: FAMILIES, missed: false, process: null });
      known = found;
    };
    const attempt = (missed: boolean): void => {
      look(missed).catch(() => {
        onChange({ families: FAMILIES, missed: true, process: null });
      });
    };
    attempt(false);
    return addon.routeWatch(({ links, missed }) => {
      attempt(missed || links.includes(LINK));
    });
  };
}

/** Addresses of a single link are nobody's to serve on. */
function routed(ipv6: Uint8Array): string {
  const all = Array.from({ length: ipv6.length / 16 }, (_, index) =>
    Buffer.from(ipv6.subarray(index * 16, (index + 1) * 16)).toString('hex'),
  );
  return all.filter((address) => !address.startsWith('fe80')).join();
}
