import { networkInterfaces } from 'node:os';
import { parseAddress, type IPAddress } from '../base/ip.js';

/** See {@link Host.interfaceMac}. */
export function interfaceMac(wanted: IPAddress): string | null {
  const entries = Object.values(networkInterfaces()).flatMap((each) => each ?? []);
  return entries.find(({ address }) => parseAddress(address.replace(/%.*$/, '')) === wanted)?.mac ?? null;
}

/** Addresses of this machine's interfaces that are up, as they are now, loopback included. */
export function localAddresses(): readonly IPAddress[] {
  return Object.values(networkInterfaces())
    .flatMap((entries) => entries ?? [])
    .flatMap(({ address }) => parseAddress(address.replace(/%.*$/, '')) ?? []);
}
