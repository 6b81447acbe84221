import type { IptablesChainListing, IptablesOperation } from '../../native/contract.js';
import {
  FORWARD_HOOKS,
  hooksTo,
  NAT_HOOKS,
  NEW_CONNECTIONS,
  PROXY_FIREWALL_HOOKS,
  type Hook,
} from '../xtables/hooks.js';
import { FOREIGN_RULE } from '../xtables/rules.js';
import { CHAIN } from './names.js';

/**
 * The rules of built-in chains that lead to ours, in kube-proxy's spelling (behaviour IT-10 to IT-18), each chain's in the
 * order in which they should stand. KUBE-EXTERNAL-SERVICES is called from OUTPUT too, so that the node itself gets the
 * refusals for missing endpoints like every client.
 */
const HOOKS: readonly Hook[] = [
  ...PROXY_FIREWALL_HOOKS.iptables,
  ...FORWARD_HOOKS,
  ...newConnections(CHAIN.services, ['FORWARD', 'OUTPUT'], 'kubernetes service portals'),
  ...hooksTo(CHAIN.nodePorts, 'filter', ['INPUT'], '', 'kubernetes health check service ports'),
  ...newConnections(CHAIN.external, ['INPUT', 'FORWARD', 'OUTPUT'], 'kubernetes externally-visible service portals'),
  ...NAT_HOOKS,
];

function newConnections(target: string, chains: readonly string[], comment: string): readonly Hook[] {
  return hooksTo(target, 'filter', chains, NEW_CONNECTIONS, comment);
}

/** For the chain that kubelet shares; not removed by a cleanup. */
const FIREWALL_HOOKS: readonly Hook[] = ['INPUT', 'OUTPUT'].map((chain) => ({
  table: 'filter',
  chain,
  text: `-j ${CHAIN.firewall}`,
  place: 'first',
}));

/** To what gives attempts that may go elsewhere their timeouts: behind the rules of others, which decide whether and how a packet is tracked. */
export const RETRY_HOOKS = hooksTo(
  CHAIN.retry,
  'raw',
  ['PREROUTING', 'OUTPUT'],
  '',
  'kubernetes unanswered attempts',
  'last',
);

/** The jumps that there should be. */
export function wantedHooks(withFirewall: boolean, withRetries: boolean): readonly Hook[] {
  return [...(withFirewall ? FIREWALL_HOOKS : []), ...HOOKS, ...(withRetries ? RETRY_HOOKS : [])];
}

/** Kubelet puts the same rule in the same chain, in this exact spelling (IT-21). */
const LOCALNET_RULE =
  '! -s 127.0.0.0/8 -d 127.0.0.0/8 -m comment --comment "block incoming localnet connections" -m conntrack ! --ctstate RELATED,ESTABLISHED,DNAT -j DROP';

/** This rule, and any other that drops, in a chain that cannot be listed. */
const UNLISTED_DROP = `${FOREIGN_RULE} -j DROP`;

/** Operations that complete the chain that kubelet and we share, whichever makes it first. Others' rules in it stay. */
export function firewallOperations(listing: readonly IptablesChainListing[]): readonly IptablesOperation[] {
  const common = { table: 'filter', chain: CHAIN.firewall } as const;
  const chain = listing.find(({ table, name }) => table === common.table && name === common.chain);
  if (chain === undefined)
    return [{ type: 'chain', ...common, rules: [{ type: 'text', text: LOCALNET_RULE }], owner: null }];
  if (chain.rules?.some((rule) => rule === LOCALNET_RULE || rule === UNLISTED_DROP)) return [];
  return [{ type: 'rule', verb: 'insert', ...common, text: LOCALNET_RULE }];
}
