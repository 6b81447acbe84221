import { parseAddress } from '../../../base/ip.js';
import { isPort, parseProtocol } from '../../../base/protocol.js';
import { frontendKey, parseFrontendKey } from '../../../plan/frontend-key.js';
import type { FrontendKey } from '../../../plan/types.js';

/**
 * The frontend by whose key clients are remembered, as names of chains and maps spell it: `10.96.0.10-tcp-80`, `fd00__10-tcp-80`,
 * `nodeport-udp-30080`.
 */
export type ClientKeyName = string;

export function nameClientKey(key: FrontendKey): ClientKeyName {
  const { address: of, protocol, port } = parseFrontendKey(key);
  return `${of === null ? 'nodeport' : of.replaceAll(':', '_')}-${protocol.toLowerCase()}-${port}`;
}

/** The inverse of {@link nameClientKey}; null for any other name. */
export function parseClientKey(name: ClientKeyName): FrontendKey | null {
  const [text = '', word = '', digits = ''] = name.split('-');
  const of = text === 'nodeport' ? null : parseAddress(text.replaceAll('_', ':'));
  const protocol = parseProtocol(word.toUpperCase());
  const port = Number(digits);
  if ((of === null && text !== 'nodeport') || protocol === null || !isPort(port)) return null;
  const key = frontendKey(of, port, protocol);
  return nameClientKey(key) === name ? key : null;
}
