import { endpointSize } from '../../../base/endpoint-list.js';
import { addressLength, type Family } from '../../../base/ip.js';
import type { NftFamily } from '../../../native/contract.js';
import { parseFrontendKey } from '../../../plan/frontend-key.js';
import type { FrontendKey } from '../../../plan/types.js';
import { address as addressOf, concat, dport, meta, type Expression } from '../json.js';
import { packClientKey, packEndpoint, unpackClientKey, type PackedKey } from '../keys.js';

/**
 * `endpoint . port . endpoint ^ destination . protocol . port` once the packet goes to its endpoint, with the key's destination
 * and port: {@link packLocal} makes the same of an endpoint and a frontend. nft lists no constants in a key that is looked up,
 * so they are computed: a port by a field that is masked with nothing and combined with the constant. nft does not load what
 * it lists of the same with an IPv6 address.
 */
export function localOf(family: NftFamily, key: FrontendKey): Expression {
  const parts = parseFrontendKey(key);
  const endpoint = addressOf(family, 'daddr');
  // Node ports have no address of their own.
  const destination = parts.address === null ? endpoint : { '^': [endpoint, parts.address] as const };
  const port = { '|': [{ '&': [dport, 0] as const }, parts.port] as const };
  return concat(endpoint, dport, destination, meta('l4proto'), port);
}

/** The key of {@link localOf} as the kernel has it. */
export function packLocal(family: Family, endpoint: PackedKey, key: FrontendKey): PackedKey {
  const client = packClientKey(family, key);
  const size = addressLength(family);
  return packEndpoint(endpoint) + combined(endpoint.slice(0, size), client.slice(0, size)) + client.slice(size);
}

function combined(one: PackedKey, other: PackedKey): PackedKey {
  const bytes = Array.from(one, (byte, index) => byte.charCodeAt(0) ^ other.charCodeAt(index));
  return String.fromCharCode(...bytes);
}

/** The inverse of {@link packLocal}; null when it made no such key. */
export function unpackLocal(
  family: Family,
  packed: PackedKey,
): { readonly endpoint: PackedKey; readonly key: FrontendKey } | null {
  const size = endpointSize(family);
  const endpoint = packed.slice(0, size);
  const rest = packed.slice(packEndpoint(endpoint).length);
  const length = addressLength(family);
  const address = combined(endpoint.slice(0, length), rest.slice(0, length));
  const key = unpackClientKey(family, address + rest.slice(length));
  return key !== null && packLocal(family, endpoint, key) === packed ? { endpoint, key } : null;
}
