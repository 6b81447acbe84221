import type { IptablesTable } from '../../native/contract.js';
import type { NodePlan } from '../../plan/types.js';
import { fixedChain, masqueradeChains, unmarkedMatch } from '../xtables/masquerade.js';
import type { Chain } from '../xtables/rules.js';
import { CHAIN } from './names.js';
import { retryEntry } from './retry.js';
import { ACCOUNT, countIn } from './packet-counters.js';

/** Settings of the mode itself, beside the plan. */
export interface NodeSettings {
  /** Whether packets that conntrack cannot place are dropped on their way through (IT-22, ST-45). */
  readonly dropInvalid: boolean;
}

export interface ModeSettings extends NodeSettings {
  /** Whether rules count packets in accounting objects. */
  readonly countsPackets: boolean;
  /** Whether rules give attempts that may go elsewhere timeouts of their own. */
  readonly retries: boolean;
}

/** Chains whose rules depend on the node alone. */
export function fixedChains(node: NodePlan, settings: ModeSettings): readonly Chain[] {
  const counting = (account: string): string => (settings.countsPackets ? `${countIn(account)} ` : '');
  const masquerade = masqueradeChains(node, {
    forward: settings.dropInvalid ? [`-m conntrack --ctstate INVALID ${counting(ACCOUNT.invalidDropped)}-j DROP`] : [],
    postrouting: [`${unmarkedMatch(node)} -m conntrack --ctstate DNAT -j ${CHAIN.hairpin}`],
    // All connections to node ports on loopback are masqueraded, and come by here once each; a rule for every node port would do the same.
    marked:
      settings.countsPackets && node.nodePortsOnLoopback
        ? [`-m conntrack --ctstate DNAT --ctorigdst 127.0.0.0/8 ${countIn(ACCOUNT.localhostAccepted)}`]
        : [],
  });
  const tables: readonly IptablesTable[] = ['filter', 'nat', 'mangle'];
  const canaries = tables.map((table) => fixedChain(table, CHAIN.canary, []));
  return [...masquerade, ...canaries, ...(settings.retries ? [retryEntry()] : [])];
}
