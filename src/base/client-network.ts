import { addressBytes, familyOf, isLoopback, parseAddress } from './ip.js';

/** Bytes of an IPv6 address that name a network: one host may own all the addresses in it. */
const NETWORK_BYTES = 8;

/** The clients that share a limit. */
interface Client {
  /** Of an IPv4 address that alone, of an IPv6 address all addresses of its network of 64 bits. */
  readonly key: string;
  /** For people. */
  readonly address: string;
  readonly isLoopback: boolean;
}

/** @param remoteAddress of a connection, as the system says: with a zone, or as `::ffff:…` where a socket takes both families. */
export function clientOf(remoteAddress: string | null | undefined): Client {
  const text = (remoteAddress ?? '').replace(/%.*$/, '');
  const address = parseAddress(text);
  if (address === null) return { key: `address ${text}`, address: text, isLoopback: false };
  const isNear = isLoopback(address);
  if (isNear || familyOf(address) === 'IPv4') return { key: `address ${address}`, address, isLoopback: isNear };
  const network = Buffer.from(addressBytes(address)).toString('hex', 0, NETWORK_BYTES);
  return { key: `network ${network}`, address, isLoopback: false };
}
