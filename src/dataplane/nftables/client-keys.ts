import { addressFromBytes, parseAddress, type Family, type IPAddress } from '../../base/ip.js';
import type { NftFamily } from '../../native/contract.js';
import { frontendKey, parseFrontendKey } from '../../plan/frontend-key.js';
import type { FrontendKey } from '../../plan/types.js';
import { address, concat, dport, meta, type Expression } from './json.js';
import { packAddress, packFrontend, type PackedKey } from './keys.js';
import { NFT_FAMILY } from './names.js';

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

/**
 * `client . destination . protocol . port`, where destination and port are those of another frontend than the packet's. nft lists no constants in
 * a key that is looked up, so they are computed: whatever the packet has, masked with nothing and combined with the constant.
 */
export function clientOf(family: NftFamily, client: Expression, name: ClientKeyName): Expression {
  const key = parseClientKey(name);
  if (key === null) throw new RangeError(`no client key: ${name}`);
  const none = unspecified(family);
  return concat(
    client,
    always(address(family, 'daddr'), none, key.address ?? none),
    meta('l4proto'),
    always(dport, 0, key.port),
  );
}

/** The key of {@link clientOf} as the kernel has it. */
export function packClientOf(family: Family, client: IPAddress, key: FrontendKey): PackedKey {
  const { address: of, port, protocol } = parseFrontendKey(key);
  const none = unspecified(NFT_FAMILY[family]);
  return packAddress(client) + packFrontend(frontendKey(of ?? none, port, protocol));
}

/** Node ports have no address of their own. */
function unspecified(family: NftFamily): IPAddress {
  return addressFromBytes(new Uint8Array(family === 'ip' ? 4 : 16));
}

function always(field: Expression, nothing: Expression, value: Expression): Expression {
  return { '|': [{ '&': [field, nothing] }, value] };
}
