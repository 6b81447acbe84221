import type { IptablesAddon, IptablesFlavor } from '../../native/contract.js';
import type { FamilyTable } from '../../plan/types.js';
import { hookRepairs } from '../xtables/hooks.js';
import { chainOperation, inOrder } from '../xtables/operations.js';
import type { ModeSettings } from './fixed-chains.js';
import { firewallOperations, wantedHooks } from './hooks.js';
import { hasRetries } from './retry.js';
import { wholeRuleset } from './ruleset.js';

/** The first sync to a kernel without rules, as iptables-restore reads it. Needs no privileges. */
export function renderTable(
  addon: Pick<IptablesAddon, 'iptablesEncode'>,
  table: FamilyTable,
  flavor: IptablesFlavor,
  ofMode: Omit<ModeSettings, 'retries'>,
): string {
  const settings = { ...ofMode, retries: hasRetries(table.node, table.frontends()) };
  const withFirewall = table.node.nodePortsOnLoopback;
  const operations = [
    ...wholeRuleset(table, settings).touched().chains.map(chainOperation),
    ...hookRepairs([], wantedHooks(withFirewall, settings.retries)),
    ...(withFirewall ? firewallOperations([]) : []),
  ];
  return addon.iptablesEncode({ family: table.family, flavor, operations: inOrder(operations) });
}
