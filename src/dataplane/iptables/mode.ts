import type { Family } from '../../base/ip.js';
import type { IptablesTransaction } from '../../native/contract.js';
import type { ModeDefinition, ModeParts, OpenMode } from '../mode.js';
import { prepareFlavor } from '../xtables/flavor.js';
import { printTransaction } from '../xtables/print.js';
import { IptablesFamily } from './family.js';
import type { NodeSettings } from './fixed-chains.js';
import { IPTABLES_FOOTPRINT } from './names.js';
import { PACKET_METRICS, PacketCounters } from './packet-counters.js';
import { renderTable } from './render.js';

export const IPTABLES: ModeDefinition<'iptables'> = {
  name: 'iptables',
  platforms: ['linux'],
  traits: ({ localhostNodePorts }) => ({ guardsClusterAddresses: false, servesLocalhost: localhostNodePorts }),
  footprint: IPTABLES_FOOTPRINT,
  metrics: {
    syncFailures: { name: 'sync_proxy_rules_iptables_restore_failures_total', help: 'Syncs that failed.' },
    partialSyncFailures: {
      name: 'sync_proxy_rules_iptables_partial_restore_failures_total',
      help: 'Syncs of what had changed that failed; a full one follows.',
    },
    cleanupFailures: null,
    rules: {
      held: { name: 'sync_proxy_rules_iptables_total', help: 'Rules there are.' },
      written: { name: 'sync_proxy_rules_iptables_last', help: 'Rules that the last sync wrote.' },
    },
    packets: PACKET_METRICS,
  },
  open,
  async tryKernel(parts, nodes) {
    try {
      await open(
        parts,
        nodes.map(({ family }) => family),
      );
      return [];
    } catch (error) {
      return [error];
    }
  },
  async render({ config, addon, isTcpBeLiberal }, tables) {
    // What this host's kernel and programs can count is not asked: the rules are for any.
    const settings = { ...(await nodeSettings({ isTcpBeLiberal })), countsPackets: false };
    const flavor = config.iptablesFlavor === 'legacy' ? 'legacy' : 'nft';
    return tables.map((table) => `# ${table.family}\n${renderTable(addon.iptables, table, flavor, settings)}`).join('');
  },
};

async function open(parts: ModeParts, families: readonly Family[]): Promise<OpenMode> {
  const { config, addon, log, now, onTransaction } = parts;
  const { iptables } = addon;
  const { flavor, served } = await prepareFlavor(iptables, families, config.iptablesFlavor);
  log.info(0, 'iptables', { flavor, families: served.join() });
  for (const family of families)
    if (!served.includes(family)) log.warn(`no iptables-${flavor} programs that work for ${family}, it is not served`);
  const counters = new PacketCounters(addon, flavor);
  const settings = (): Promise<NodeSettings> => nodeSettings(parts);
  const note = (transaction: IptablesTransaction): void => {
    onTransaction(() => printTransaction(iptables, transaction));
  };
  const options = { addon: iptables, flavor, counters, settings, now, onTransaction: note };
  return {
    families: served,
    dataplane: (family) => new IptablesFamily({ ...options, family }),
    own: { footprint: IPTABLES_FOOTPRINT, flavor },
    watch: null,
    packetCounts: () => counters.read(),
  };
}

async function nodeSettings({ isTcpBeLiberal }: Pick<ModeParts, 'isTcpBeLiberal'>): Promise<NodeSettings> {
  return { dropInvalid: !(await isTcpBeLiberal()) };
}
