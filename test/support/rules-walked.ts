import { addressBytes, parseAddress } from '../../src/base/ip.js';
import { MOST_ITEMS } from '../../src/dataplane/iptables/leaf.js';
import { jumpTarget } from './fake-iptables/rule-text.js';

/**
 * The most rules of the dispatch that a connection walks in mode iptables, whatever tenants write: 16 jumps for each nibble of
 * an IPv4 address, and the frontends of a chain that is not divided.
 */
export const MOST_WALKED = 16 * 8 + MOST_ITEMS;

/** The rules of a chain, as iptables-save prints them without `-A chain`. */
export type RulesOf = (chain: string) => readonly string[];

/** A destination, and whether a rule selects it; rules for node ports and for sources select nothing. */
function selects(rule: string, address: string, port: number): boolean {
  const [, value = null, mask = ''] = /^-d ([\da-f.:]+)\/(\S+) /.exec(rule) ?? [];
  const [, first = null, last = first] = /--dport (\d+)(?::(\d+))?/.exec(rule) ?? [];
  if (/addrtype|^-s |^! /.test(rule) || (value === null && first === null)) return false;
  if (first !== null && (port < Number(first) || port > Number(last))) return false;
  if (value === null) return true;
  const size = address.includes(':') ? 128n : 32n;
  const length = /^\d+$/.test(mask) ? BigInt(mask) : null;
  const kept = length === null ? bits(mask) : ((1n << length) - 1n) << (size - length);
  return ((bits(address) ^ bits(value)) & kept) === 0n;
}

function bits(text: string): bigint {
  const address = parseAddress(text);
  if (address === null) throw new TypeError(`not an address: ${text}`);
  return addressBytes(address).reduce((sum, byte) => sum * 256n + BigInt(byte), 0n);
}

export interface Walk {
  readonly rules: number;
  /** The rule at the end does not lead on within the dispatch; null: none selected the destination. */
  readonly end: string | null;
}

/** The rules of a dispatch chain that a connection walks. @param divisions what the names of the chains that divide it begin with. */
export function walk(
  rulesOf: RulesOf,
  chain: string,
  to: { readonly address: string; readonly port: number },
  divisions: readonly string[],
): Walk {
  let count = 0;
  for (const rule of rulesOf(chain)) {
    count++;
    if (!selects(rule, to.address, to.port)) continue;
    const target = jumpTarget(rule) ?? '';
    if (!divisions.some((division) => target.startsWith(division))) return { rules: count, end: rule };
    const { rules, end } = walk(rulesOf, target, to, divisions);
    count += rules;
    if (end !== null) return { rules: count, end };
  }
  return { rules: count, end: null };
}
