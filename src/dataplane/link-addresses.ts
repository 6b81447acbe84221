import { addressFromBytes, addressLength, type Family, type IPAddress } from '../base/ip.js';
import type { LinkAddresses } from '../native/contract.js';

/** A family's addresses of a link. */
export function addressesOf(
  family: Family,
  { ipv4, ipv6 }: Pick<LinkAddresses, 'ipv4' | 'ipv6'>,
): readonly IPAddress[] {
  const packed = family === 'IPv4' ? ipv4 : ipv6;
  const length = addressLength(family);
  return Array.from({ length: packed.length / length }, (_, index) =>
    addressFromBytes(packed.subarray(index * length, (index + 1) * length)),
  );
}

/** Addresses of all links but one. A request for IPv6 addresses of a single link needs the link's name, which no Service has. */
export function addressesBeside(
  except: string,
  family: Family,
  links: readonly LinkAddresses[],
): ReadonlySet<IPAddress> {
  const others = links.filter(({ link }) => link !== except).flatMap((link) => addressesOf(family, link));
  return new Set(others.filter((address) => !address.startsWith('fe80:')));
}
