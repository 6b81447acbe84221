import { endpointSize } from '../../base/endpoint-list.js';
import { addressFromBytes, parseAddress, type Family, type IPAddress } from '../../base/ip.js';
import type { NftFamily } from '../../native/contract.js';
import { parseFrontendKey } from '../../plan/frontend-key.js';
import type { FrontendKey } from '../../plan/types.js';
import { address, concat, dport, meta, type Expression } from './json.js';
import { packAddress, packClientKey, packEndpoint, unpackClientKey, type PackedKey } from './keys.js';

/**
 * Whose key clients are remembered by, as names of chains spell it: `10.96.0.10-80`, `fd00__10-80`, `nodeport-30080`. The protocol is not in it:
 * it is the connection's own.
 */
export type ClientKeyName = string;

export function nameClientKey(key: FrontendKey): ClientKeyName {
  const { address: of, port } = parseFrontendKey(key);
  return `${of === null ? 'nodeport' : of.replaceAll(':', '_')}-${port}`;
}

interface ClientKey {
  /** Null for node ports, which have many. */
  readonly address: IPAddress | null;
  readonly port: number;
}

/** The inverse of {@link nameClientKey}; null for any other name. */
export function parseClientKey(name: ClientKeyName): ClientKey | null {
  const dash = name.lastIndexOf('-');
  const text = name.slice(0, dash).replaceAll('_', ':');
  const port = Number(name.slice(dash + 1));
  const of = text === 'nodeport' ? null : parseAddress(text);
  if ((of === null && text !== 'nodeport') || !(port >= 1 && port <= 65535)) return null;
  return { address: of, port };
}

/** `client . destination . protocol . port`, where destination and port are those of another frontend than the packet's. */
export function clientOf(family: NftFamily, client: Expression, name: ClientKeyName): Expression {
  return withKey(family, [client], name);
}

/** `endpoint . port . destination . protocol . port` once the packet goes to its endpoint: what {@link packLocal} makes of it and a frontend. */
export function localOf(family: NftFamily, name: ClientKeyName): Expression {
  return withKey(family, [address(family, 'daddr'), dport], name);
}

/**
 * nft lists no constants in a key that is looked up, so they are computed: whatever the packet has, masked with nothing and combined with the
 * constant.
 */
function withKey(family: NftFamily, parts: readonly Expression[], name: ClientKeyName): Expression {
  const key = parseClientKey(name);
  if (key === null) throw new RangeError(`no client key: ${name}`);
  const none = unspecified(family);
  return concat(
    ...parts,
    always(address(family, 'daddr'), none, key.address ?? none),
    meta('l4proto'),
    always(dport, 0, key.port),
  );
}

/** The key of {@link clientOf} as the kernel has it. */
export function packClientOf(family: Family, client: IPAddress, key: FrontendKey): PackedKey {
  return packAddress(client) + packClientKey(family, key);
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

/** Node ports have no address of their own. */
function unspecified(family: NftFamily): IPAddress {
  return addressFromBytes(new Uint8Array(family === 'ip' ? 4 : 16));
}

function always(field: Expression, nothing: Expression, value: Expression): Expression {
  return { '|': [{ '&': [field, nothing] }, value] };
}
