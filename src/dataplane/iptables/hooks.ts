import type {
  IptablesChainListing,
  IptablesOperation,
  IptablesRuleOperation,
  IptablesTable,
} from '../../native/contract.js';
import { LOCALNET_RULE } from './fixed-chains.js';
import { CHAIN } from './names.js';
import { commentMatch } from './rules.js';

interface Hook {
  readonly table: IptablesTable;
  readonly chain: string;
  readonly text: string;
}

const NEW = '-m conntrack --ctstate NEW';

function hooks(
  table: IptablesTable,
  chains: readonly string[],
  match: string,
  comment: string,
  target: string,
): readonly Hook[] {
  const text = `${match === '' ? '' : `${match} `}${commentMatch(comment)} -j ${target}`;
  return chains.map((chain) => ({ table, chain, text }));
}

/**
 * The rules of built-in chains that lead to ours, in kube-proxy's words (behaviour IT-10 to IT-18), each chain's in the order in which they
 * should stand. KUBE-EXTERNAL-SERVICES hangs on OUTPUT too, so that the node itself learns of missing endpoints like everybody else.
 */
export const HOOKS: readonly Hook[] = [
  ...hooks('filter', ['INPUT', 'FORWARD', 'OUTPUT'], NEW, 'kubernetes load balancer firewall', CHAIN.proxyFirewall),
  ...hooks('filter', ['FORWARD'], '', 'kubernetes forwarding rules', CHAIN.forward),
  ...hooks('filter', ['FORWARD', 'OUTPUT'], NEW, 'kubernetes service portals', CHAIN.services),
  ...hooks('filter', ['INPUT'], '', 'kubernetes health check service ports', CHAIN.nodePorts),
  ...hooks(
    'filter',
    ['INPUT', 'FORWARD', 'OUTPUT'],
    NEW,
    'kubernetes externally-visible service portals',
    CHAIN.external,
  ),
  ...hooks('nat', ['PREROUTING', 'OUTPUT'], '', 'kubernetes service portals', CHAIN.services),
  ...hooks('nat', ['POSTROUTING'], '', 'kubernetes postrouting rules', CHAIN.postrouting),
];

/** For the chain that kubelet shares; not removed by a cleanup. */
const FIREWALL_HOOKS: readonly Hook[] = ['INPUT', 'OUTPUT'].map((chain) => ({
  table: 'filter',
  chain,
  text: `-j ${CHAIN.firewall}`,
}));

/** After a rule that ends every packet's way nothing of ours is reached. */
const ENDS_ALL = /^-j (ACCEPT|DROP|RETURN|REJECT)\b/;

/**
 * What makes the built-in chains lead to ours: missing jumps go to the head, all but one of equal ones away, and one that is out of reach behind
 * a rule for all packets is moved. Whatever else stands before ours is left there: other software has its reasons.
 */
export function hookRepairs(
  listing: readonly IptablesChainListing[],
  withFirewall: boolean,
): readonly IptablesRuleOperation[] {
  const wanted = [...(withFirewall ? FIREWALL_HOOKS : []), ...HOOKS];
  const operations = wanted.map((hook): IptablesRuleOperation[] => {
    const { table, chain, text } = hook;
    const rules = rulesOf(listing, table, chain);
    const end = rules.findIndex((rule) => ENDS_ALL.test(rule));
    const count = rules.filter((rule) => rule === text).length;
    const first = rules.indexOf(text);
    const isReached = first >= 0 && (end < 0 || first < end);
    const operation = (verb: IptablesRuleOperation['verb']): IptablesRuleOperation => ({
      ...{ type: 'rule', verb, table, chain, text },
    });
    const kept = isReached ? 1 : 0;
    const removals = Array.from({ length: Math.max(0, count - kept) }, () => operation('delete'));
    return [...removals, ...(isReached ? [] : [operation('insert')])];
  });
  // Each goes to the head: the last one inserted stands first.
  return operations.reverse().flat();
}

/** What makes kubelet's and our common chain hold what it has to, whoever makes it first. Others' rules in it stay. */
export function firewallOperations(listing: readonly IptablesChainListing[]): readonly IptablesOperation[] {
  const common = { table: 'filter', chain: CHAIN.firewall } as const;
  const chain = listing.find(({ table, name }) => table === common.table && name === common.chain);
  if (chain === undefined)
    return [{ type: 'chain', ...common, rules: [{ type: 'text', text: LOCALNET_RULE }], owner: null }];
  if (chain.rules?.includes(LOCALNET_RULE)) return [];
  return [{ type: 'rule', verb: 'insert', ...common, text: LOCALNET_RULE }];
}

/** What takes away the jumps that the listing has. */
export function hookRemovals(listing: readonly IptablesChainListing[]): readonly IptablesRuleOperation[] {
  return HOOKS.flatMap(({ table, chain, text }) =>
    rulesOf(listing, table, chain)
      .filter((rule) => rule === text)
      .map((): IptablesRuleOperation => ({ type: 'rule', verb: 'delete', table, chain, text })),
  );
}

function rulesOf(listing: readonly IptablesChainListing[], table: IptablesTable, chain: string): readonly string[] {
  return listing.find((each) => each.table === table && each.name === chain)?.rules ?? [];
}
