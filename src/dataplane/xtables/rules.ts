import {
  addressFromBytes,
  addressLength,
  familyOf,
  parseAddressBytes,
  type IPAddress,
  type IPPrefix,
} from '../../base/ip.js';
import type { Protocol } from '../../base/protocol.js';
import type { IptablesEndpointRules, IptablesFamily, IptablesTable } from '../../native/contract.js';
import type { LocalDetector } from '../../plan/types.js';

/** Begins the text of a listed rule that the programs cannot list ({@link IptablesChainListing.rules}). It is a word of none that they can. */
export const FOREIGN_RULE = '(not of iptables)';

/** A chain as it should be. Its rules have the exact spelling of iptables-save, so that sent and listed rules have one digest. */
export interface Chain {
  readonly table: IptablesTable;
  readonly name: string;
  readonly rules: readonly (string | IptablesEndpointRules)[];
  /** The Service port that it belongs to; null: none. */
  readonly owner: string | null;
}

/** `table chain`. */
export type ChainId = `${IptablesTable} ${string}`;

export function chainId(table: IptablesTable, name: string): ChainId {
  return `${table} ${name}`;
}

/** How many rules the kernel will hold for it. */
export function ruleCount({ rules }: Chain, family: IptablesFamily): number {
  return rules.reduce((count, rule) => count + (typeof rule === 'string' ? 1 : endpointRuleCount(rule, family)), 0);
}

function endpointRuleCount({ endpoints, affinity }: IptablesEndpointRules, family: IptablesFamily): number {
  const count = endpoints.length / (addressLength(family) + 2);
  return affinity === null ? count : 2 * count;
}

/** `tcp`, as iptables spells it. */
export function protocolWord(protocol: Protocol): 'tcp' | 'udp' | 'sctp' {
  return PROTOCOL_WORDS[protocol];
}

const PROTOCOL_WORDS = { TCP: 'tcp', UDP: 'udp', SCTP: 'sctp' } as const;

/**
 * An address as iptables-save prints it: as C libraries do, the last 32 bits of IPv6 as IPv4 if all before them are zero and
 * they need more than 16.
 */
export function addressText(address: IPAddress): string {
  return spelled(address);
}

/** The same of a prefix. */
export function prefixText(prefix: IPPrefix): string {
  const slash = prefix.indexOf('/');
  return `${spelled(prefix.slice(0, slash))}${prefix.slice(slash)}`;
}

function spelled(address: string): string {
  const bytes = address.startsWith('::') ? parseAddressBytes(address) : null;
  if (bytes === null || bytes.subarray(0, 12).some((byte) => byte !== 0)) return address;
  return bytes[12] === 0 && bytes[13] === 0 ? address : `::${addressFromBytes(bytes.subarray(12))}`;
}

/** An address as the only one of its prefix, as iptables-save prints it. */
export function hostText(address: IPAddress): string {
  return `${addressText(address)}/${addressLength(familyOf(address)) * 8}`;
}

/** The kernel holds 255 bytes of comment and a terminating zero. */
const COMMENT_LIMIT = 255;

/** Names are validated where they come in; anything a stream of rules could misread is replaced all the same. */
export function commentMatch(comment: string): string {
  return `-m comment --comment "${comment.replace(/[^A-Za-z0-9 ._:;/-]/g, '_').slice(0, COMMENT_LIMIT)}"`;
}

/** Selects by whether the source is a pod; goes before or after a destination as iptables-save orders it. */
export function sourceMatch(
  detector: LocalDetector,
  isPod: boolean,
): { readonly before: string; readonly after: string } {
  const not = isPod ? '' : '! ';
  switch (detector.type) {
    case 'source-prefix':
      return { before: `${not}-s ${detector.prefix} `, after: '' };
    case 'input-interface':
      return { before: '', after: `${not}-i ${detector.name} ` };
    case 'input-interface-prefix':
      return { before: '', after: `${not}-i ${detector.prefix}+ ` };
  }
}
