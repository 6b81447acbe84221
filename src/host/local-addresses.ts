import { networkInterfaces } from 'node:os';
import { parseAddress, type IPAddress } from '../base/ip.js';

/** Addresses of this machine's interfaces that are up, as they are now, loopback included. */
export function localAddresses(): readonly IPAddress[] {
  return Object.values(networkInterfaces())
    .flatMap((entries) => entries ?? [])
    .flatMap(({ address }) => parseAddress(address.replace(/%.*$/, '')) ?? []);
}
