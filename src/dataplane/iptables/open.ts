import type { Family } from '../../base/ip.js';
import type { IptablesTransaction } from '../../native/contract.js';
import type { FamilyTable, NodePlan } from '../../plan/types.js';
import type { ModeParts, OpenMode } from '../mode.js';
import { prepareFlavor } from '../xtables/flavor.js';
import { tryParts } from '../xtables/parts.js';
import { printTransaction } from '../xtables/print.js';
import { Reconciler } from '../reconciler.js';
import { IptablesDriver } from './driver.js';
import type { NodeSettings } from './fixed-chains.js';
import { decidesLater } from './later-decisions.js';
import { IPTABLES_FOOTPRINT } from './names.js';
import { PacketCounters } from './packet-counters.js';
import { renderTable } from './render.js';
import { TimeoutPolicies } from './timeout-policies.js';
import { tracesOf } from './traces.js';

/** The mode at work on this host. @throws ModeError when none of the families can be served. */
export async function open(parts: ModeParts, families: readonly Family[]): Promise<OpenMode> {
  const { config, addon, log, now, onTransaction } = parts;
  const { iptables } = addon;
  const { flavor, served } = await prepareFlavor(iptables, families, config.iptablesFlavor, log);
  const counters = new PacketCounters(addon, flavor);
  const traces = tracesOf(addon, flavor);
  const settings = (): Promise<NodeSettings> => nodeSettings(parts);
  const note = (transaction: IptablesTransaction): void => {
    onTransaction(() => printTransaction(iptables, transaction));
  };
  const options = { addon: iptables, flavor, counters, settings, now, onTransaction: note };
  const policies = (family: Family): TimeoutPolicies =>
    new TimeoutPolicies({ addon: addon.timeouts, family, flavor, sysctls: parts.conntrackTimeouts });
  return {
    families: served,
    dataplane: (family) => {
      const later = (): Promise<string | null> => decidesLater(addon.nftables, family, flavor);
      const ofFamily = { family, traces: traces(family), policies: policies(family), decidesLater: later };
      return new Reconciler(new IptablesDriver({ ...options, ...ofFamily }), now);
    },
    own: { footprint: IPTABLES_FOOTPRINT, flavor },
    remove: null,
    watch: null,
    modeCounts: () => counters.read(),
    attempts: async () => {
      const { attemptCounter } = await import('../attempts/counter.js');
      return attemptCounter(addon.nftables, served, (transact) => transact());
    },
  };
}

/** See {@link ModeDefinition.tryKernel}. */
export function tryKernel(parts: ModeParts, nodes: readonly NodePlan[]): Promise<readonly unknown[]> {
  return tryParts('iptables', parts, nodes, true);
}

/** The ruleset of these tables. */
export async function render(
  { config, addon, isTcpBeLiberal }: Pick<ModeParts, 'config' | 'addon' | 'isTcpBeLiberal'>,
  tables: readonly FamilyTable[],
): Promise<string> {
  // This host's kernel and programs are not asked for their counters: the rules are for any host.
  const settings = { ...(await nodeSettings({ isTcpBeLiberal })), countsPackets: false };
  const flavor = config.iptablesFlavor === 'legacy' ? 'legacy' : 'nft';
  return tables.map((table) => `# ${table.family}\n${renderTable(addon.iptables, table, flavor, settings)}`).join('');
}

async function nodeSettings({ isTcpBeLiberal }: Pick<ModeParts, 'isTcpBeLiberal'>): Promise<NodeSettings> {
  return { dropInvalid: !(await isTcpBeLiberal()) };
}
