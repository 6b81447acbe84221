import type { IptablesChainListing, IptablesRuleOperation, IptablesTable } from '../../native/contract.js';
import { SHARED_CHAIN } from './names.js';
import { commentMatch, FOREIGN_RULE } from './rules.js';

/** A rule of a built-in chain that leads to one of ours. */
export interface Hook {
  readonly table: IptablesTable;
  readonly chain: string;
  readonly text: string;
  /** Where it stands if it was missing: before all rules of others, so that ours decide, or behind them, so that theirs do. */
  readonly place: 'first' | 'last';
}

export const NEW_CONNECTIONS = '-m conntrack --ctstate NEW';

/** Jumps to one chain. @param match empty: all packets. */
export function hooksTo(
  target: string,
  table: IptablesTable,
  chains: readonly string[],
  match: string,
  comment: string,
  place: Hook['place'] = 'first',
): readonly Hook[] {
  const text = `${match === '' ? '' : `${match} `}${commentMatch(comment)} -j ${target}`;
  return chains.map((chain) => ({ table, chain, text, place }));
}

/** The jumps to chains of several modes, in kube-proxy's spelling (behaviour IT-14, IT-16, IT-17, IV-21). */
export const FORWARD_HOOKS = hooksTo(SHARED_CHAIN.forward, 'filter', ['FORWARD'], '', 'kubernetes forwarding rules');
export const NAT_HOOKS = [
  ...hooksTo(SHARED_CHAIN.services, 'nat', ['PREROUTING', 'OUTPUT'], '', 'kubernetes service portals'),
  ...hooksTo(SHARED_CHAIN.postrouting, 'nat', ['POSTROUTING'], '', 'kubernetes postrouting rules'),
];

/**
 * The jumps to the one chain that two modes have, with different conditions (IT-15, IV-21). In mode ipvs the chain itself
 * matches new connections, in mode iptables the jump does. As long as the other mode's jump leads there, the rules would apply
 * to packets of established connections too.
 */
export const PROXY_FIREWALL_HOOKS = {
  iptables: hooksTo(
    SHARED_CHAIN.proxyFirewall,
    'filter',
    ['INPUT', 'FORWARD', 'OUTPUT'],
    NEW_CONNECTIONS,
    'kubernetes load balancer firewall',
  ),
  ipvs: hooksTo(SHARED_CHAIN.proxyFirewall, 'filter', ['INPUT', 'FORWARD'], '', 'kube-proxy firewall rules'),
} as const;

/** After a rule that ends every packet's way nothing of ours is reached. */
const ENDS_ALL = /^-j (ACCEPT|DROP|RETURN|REJECT)\b/;

/** Targets that decide how a packet is tracked. The first such rule that a packet meets has the say (xt_CT). */
const TRACKING = ['CT', 'NOTRACK'];

const TARGET = /(?:^| )-[jg] (\S+)/;

/**
 * The operations that make the built-in chains lead to ours. Of equal jumps all but one go away. A missing jump goes to its
 * end of the chain, and moves there if it is out of place. One that stands first moves when it is out of reach behind a rule
 * for all packets: other software has its reasons for all other rules before ours. One that stands last moves when another
 * rule behind it decides how packets are tracked, or calls a chain that may.
 *
 * @param wanted each chain's in the order in which they should stand.
 */
export function hookRepairs(
  listing: readonly IptablesChainListing[],
  wanted: readonly Hook[],
): readonly IptablesRuleOperation[] {
  const operations = wanted.map(({ table, chain, text, place }): IptablesRuleOperation[] => {
    const rules = rulesOf(listing, table, chain);
    const count = rules.filter((rule) => rule === text).length;
    if (count === 0 && rules.some((rule) => isUnknownJump(rule, text))) return [];
    const isKept =
      count > 0 && (place === 'first' ? isReached(rules, text) : isBehindDecisions(rules, text, table, listing));
    const operation = (verb: IptablesRuleOperation['verb']): IptablesRuleOperation => ({
      type: 'rule',
      verb,
      table,
      chain,
      text,
    });
    const removals = Array.from({ length: count - (isKept ? 1 : 0) }, () => operation('delete'));
    return [...removals, ...(isKept ? [] : [operation(place === 'first' ? 'insert' : 'append')])];
  });
  // Each goes to the head: the last one inserted stands first.
  return operations.reverse().flat();
}

function isReached(rules: readonly string[], text: string): boolean {
  const end = rules.findIndex((rule) => ENDS_ALL.test(rule));
  return end < 0 || rules.indexOf(text) < end;
}

/** Equal jumps: the last one stays, as deletions take the first. */
function isBehindDecisions(
  rules: readonly string[],
  text: string,
  table: IptablesTable,
  listing: readonly IptablesChainListing[],
): boolean {
  return !rules.slice(rules.lastIndexOf(text) + 1).some((rule) => {
    const [, target = ''] = TARGET.exec(rule) ?? [];
    const isChain = listing.some((each) => each.table === table && each.name === target);
    return rule === FOREIGN_RULE || TRACKING.includes(target) || isChain;
  });
}

/** Whether a rule that cannot be listed leads where the jump does: it may be the jump, as programs of another release write it. */
function isUnknownJump(rule: string, jump: string): boolean {
  return rule.startsWith(FOREIGN_RULE) && rule.endsWith(jump.slice(jump.lastIndexOf(' -j ')));
}

/** The operations that remove such jumps of the listing. */
export function hookRemovals(
  listing: readonly IptablesChainListing[],
  hooks: readonly Hook[],
): readonly IptablesRuleOperation[] {
  return hooks.flatMap(({ table, chain, text }) =>
    rulesOf(listing, table, chain)
      .filter((rule) => rule === text)
      .map((): IptablesRuleOperation => ({ type: 'rule', verb: 'delete', table, chain, text })),
  );
}

function rulesOf(listing: readonly IptablesChainListing[], table: IptablesTable, chain: string): readonly string[] {
  return listing.find((each) => each.table === table && each.name === chain)?.rules ?? [];
}
