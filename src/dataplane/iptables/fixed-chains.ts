import { isLoopback, prefixAddress, prefixLength, touchesLoopback, type Family } from '../../base/ip.js';
import type { IptablesTable } from '../../native/contract.js';
import type { NodePlan } from '../../plan/types.js';
import { CHAIN } from './names.js';
import { ACCOUNT, countIn } from './packet-counters.js';
import { commentMatch, type Chain } from './rules.js';

/** What the mode itself is told, beside the plan. */
export interface NodeSettings {
  /** Whether packets that conntrack cannot place are dropped on their way through (IT-22, ST-45). */
  readonly dropInvalid: boolean;
}

export interface ModeSettings extends NodeSettings {
  /** Whether rules count packets in accounting objects. */
  readonly countsPackets: boolean;
}

/** Chains whose rules depend on the node alone. */
export function fixedChains(node: NodePlan, settings: ModeSettings): readonly Chain[] {
  const bit = `0x${node.masqueradeMark.toString(16)}`;
  const marked = `-m mark --mark ${bit}/${bit}`;
  const unmarked = `-m mark ! --mark ${bit}/${bit}`;
  const counting = (account: string): string => (settings.countsPackets ? `${countIn(account)} ` : '');
  const make = (table: IptablesTable, name: string, rules: readonly string[]): Chain => ({
    ...{ table, name, rules },
    owner: null,
  });
  return [
    make('filter', CHAIN.forward, [
      ...(settings.dropInvalid ? [`-m conntrack --ctstate INVALID ${counting(ACCOUNT.invalidDropped)}-j DROP`] : []),
      `${commentMatch('kubernetes forwarding rules')} ${marked} -j ACCEPT`,
      `${commentMatch('kubernetes forwarding conntrack rule')} -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT`,
    ]),
    make('filter', CHAIN.canary, []),
    make('nat', CHAIN.postrouting, [
      `${unmarked} -m conntrack --ctstate DNAT -j ${CHAIN.hairpin}`,
      `${unmarked} -j RETURN`,
      // All connections to node ports on loopback are masqueraded, and come by here once each; a rule for every node port would do the same.
      ...(settings.countsPackets && node.nodePortsOnLoopback
        ? [`-m conntrack --ctstate DNAT --ctorigdst 127.0.0.0/8 ${countIn(ACCOUNT.localhostAccepted)}`]
        : []),
      // The bit is cleared so that a packet that is encapsulated and comes by again is not masqueraded twice.
      `-j MARK --set-xmark ${bit}/0x0`,
      `${commentMatch('kubernetes service traffic requiring SNAT')} -j ${MASQUERADE}`,
    ]),
    make('nat', CHAIN.markMasquerade, [`-j MARK --set-xmark ${bit}/${bit}`]),
    make('nat', CHAIN.canary, []),
    make('mangle', CHAIN.canary, []),
  ];
}

export const MASQUERADE = 'MASQUERADE --random-fully';

/** Kubelet puts the same rule in the same chain, in these very words (IT-21). */
export const LOCALNET_RULE =
  '! -s 127.0.0.0/8 -d 127.0.0.0/8 -m comment --comment "block incoming localnet connections" -m conntrack ! --ctstate RELATED,ESTABLISHED,DNAT -j DROP';

/**
 * Rules that send what is addressed to a node port address on to a chain: the kernel's own idea of local addresses, within the configured
 * prefixes, without loopback. They are the last of their chain: a rule that ends it may be among them.
 */
export function nodePortRules(node: NodePlan, chain: string, comment: string): readonly string[] {
  const local = `${commentMatch(comment)} -m addrtype --dst-type LOCAL -j ${chain}`;
  const { nodePortPrefixes, nodePortsOnLoopback: withLoopback } = node;
  const loopback = LOOPBACK[node.family];
  if (nodePortPrefixes === null) return [withLoopback ? local : `! -d ${loopback} ${local}`];
  const prefixes = withLoopback
    ? nodePortPrefixes
    : nodePortPrefixes.filter((each) => !isLoopback(prefixAddress(each)));
  const guard = !withLoopback && prefixes.some(touchesLoopback) ? [`-d ${loopback} -j RETURN`] : [];
  return [...guard, ...prefixes.map((prefix) => `${prefixLength(prefix) === 0 ? '' : `-d ${prefix} `}${local}`)];
}

const LOOPBACK: Readonly<Record<Family, string>> = { IPv4: '127.0.0.0/8', IPv6: '::1/128' };
