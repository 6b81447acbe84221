import { NO_RETRIES } from '../../base/conntrack-timeouts.js';
import type { Family } from '../../base/ip.js';
import type { IptablesAddon, IptablesChainListing } from '../../native/contract.js';
import { hairpinLine, printNode, printFrontends } from '../../plan/text.js';
import type { NodePlan } from '../../plan/types.js';
import { statesOf } from '../xtables/chain-states.js';
import { printDifferences } from '../xtables/differences.js';
import type { ModeSettings, NodeSettings } from './fixed-chains.js';
import { wantedHooks } from './hooks.js';
import { CHAIN, isOwnChain } from './names.js';
import { countsPackets } from './packet-counters.js';
import { readBack } from './read-back.js';
import { wholeRuleset } from './ruleset.js';
import type { TableView } from '../table-view.js';

/**
 * A listing in the lines of plan/text.ts, sorted. It makes rules again from what was read back. If they equal the listed
 * ones, it prints the node's lines, and otherwise the chains that differ.
 */
export async function dumpRules(
  addon: Pick<IptablesAddon, 'iptablesDigests'>,
  family: Family,
  listing: readonly IptablesChainListing[],
  planned: NodePlan,
  settings: NodeSettings,
): Promise<readonly string[]> {
  if (!listing.some(({ table, name }) => isOwnChain(table, name))) return [];
  const retries = listing.some(({ table, name }) => table === 'raw' && name === CHAIN.retry);
  // Where the kernel has no policies for it attempts stay with their endpoint.
  const node = retries ? planned : { ...planned, retryTimes: NO_RETRIES };
  const { frontends, hairpinAddresses, healthChecks } = readBack(family, listing, node);
  const view: TableView = {
    node,
    frontend: (key) => frontends.get(key),
    frontends: () => frontends.values(),
    hairpinAddresses,
    healthChecks: () => healthChecks,
  };
  const lines = new Set(printFrontends(family, frontends.values()));
  for (const address of hairpinAddresses) lines.add(hairpinLine(family, address));
  // Whether packets can be counted is no setting: where they are, they can.
  const complete = { ...settings, countsPackets: countsPackets(listing), retries };
  const differences = await compare(addon, family, listing, view, complete);
  for (const line of differences.length === 0 ? printNode(node) : differences) lines.add(line);
  return [...lines].sort();
}

async function compare(
  addon: Pick<IptablesAddon, 'iptablesDigests'>,
  family: Family,
  listing: readonly IptablesChainListing[],
  view: TableView,
  settings: ModeSettings,
): Promise<readonly string[]> {
  const wanted = await statesOf(addon, family, wholeRuleset(view, settings).touched().chains);
  return printDifferences(
    family,
    listing,
    wanted,
    isOwnChain,
    wantedHooks(view.node.nodePortsOnLoopback, settings.retries),
  );
}
