import { endpointSize } from '../../../base/endpoint-list.js';
import { addressFromBytes, type Family, type IPAddress } from '../../../base/ip.js';
import type { NftFamily } from '../../../native/contract.js';
import { parseFrontendKey } from '../../../plan/frontend-key.js';
import type { FrontendKey } from '../../../plan/types.js';
import { address, concat, dport, meta, type Expression } from '../json.js';
import { packClientKey, packEndpoint, unpackClientKey, type PackedKey } from '../keys.js';

/**
 * `endpoint . port . destination . protocol . port` once the packet goes to its endpoint, with the key's destination and
 * port: {@link packLocal} makes the same of an endpoint and a frontend. nft lists no constants in a key that is looked up,
 * so they are computed: any field of the packet, masked with nothing and combined with the constant.
 */
export function localOf(family: NftFamily, key: FrontendKey): Expression {
  const parts = parseFrontendKey(key);
  // Node ports have no address of their own.
  const none = addressFromBytes(new Uint8Array(family === 'ip' ? 4 : 16));
  return concat(
    address(family, 'daddr'),
    dport,
    always(address(family, 'daddr'), none, parts.address ?? none),
    meta('l4proto'),
    always(dport, 0, parts.port),
  );
}

/** The key of {@link localOf} as the kernel has it. */
export function packLocal(family: Family, endpoint: PackedKey, key: FrontendKey): PackedKey {
  return packEndpoint(endpoint) + packClientKey(family, key);
}

/** The inverse of {@link packLocal}; null when it made no such key. */
export function unpackLocal(
  family: Family,
  packed: PackedKey,
): { readonly endpoint: PackedKey; readonly key: FrontendKey } | null {
  const size = endpointSize(family);
  const endpoint = packed.slice(0, size);
  const key = unpackClientKey(family, packed.slice(packEndpoint(endpoint).length));
  return key !== null && packLocal(family, endpoint, key) === packed ? { endpoint, key } : null;
}

function always(field: Expression, nothing: Expression, value: IPAddress | number): Expression {
  return { '|': [{ '&': [field, nothing] }, value] };
}
