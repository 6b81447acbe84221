import type { Config } from '../config/config.js';
import type { FamilyDataplane, WatchForeignChanges } from '../dataplane/contract.js';
import { IptablesFamily } from '../dataplane/iptables/family.js';
import type { NodeSettings } from '../dataplane/iptables/fixed-chains.js';
import { chooseFlavor } from '../dataplane/iptables/flavor.js';
import { PacketCounters, type PacketCounts } from '../dataplane/iptables/packet-counters.js';
import type { Keep } from '../dataplane/leftovers/removal.js';
import { NftablesFamily } from '../dataplane/nftables/family.js';
import { Generation } from '../dataplane/nftables/generation.js';
import { watchTables } from '../dataplane/nftables/watch.js';
import { isTcpBeLiberal } from '../dataplane/sysctl.js';
import type { IptablesFlavor, NativeAddon } from '../native/contract.js';
import type { Family } from '../net/ip.js';
import type { Log } from '../net/log.js';

/** The dataplanes of the configured mode. */
export interface Mode {
  /** Those of the asked families that the mode can serve here. */
  readonly families: readonly Family[];
  readonly dataplane: (family: Family) => FamilyDataplane;
  /** What is this mode's own, of all that proxies leave in the kernel. */
  readonly keep: Keep;
  /** Null: nobody tells what others do to this mode's rules. */
  readonly watch: WatchForeignChanges | null;
  /** Null: nothing counts packets. */
  readonly packetCounts: () => Promise<PacketCounts | null>;
}

/** The configured mode cannot run on this host at all. */
export class ModeError extends Error {}

/** @throws ModeError when none of the families can be served. */
export async function prepareMode(
  config: Config,
  addon: NativeAddon,
  families: readonly Family[],
  log: Log,
): Promise<Mode> {
  if (config.mode !== 'iptables') {
    const generation = new Generation(addon);
    return {
      families,
      dataplane: (family) => new NftablesFamily(addon, family, generation),
      keep: { type: 'nftables' },
      watch: watchTables(addon),
      packetCounts: () => Promise.resolve(null),
    };
  }
  const { flavor, served } = await prepareFlavor(config, addon, families);
  log.info(0, 'iptables', { flavor, families: served.join() });
  for (const family of families)
    if (!served.includes(family)) log.warn(`no iptables-${flavor} programs that work for ${family}, it is not served`);
  const counters = new PacketCounters(addon, flavor);
  const options = { addon, flavor, counters, settings: iptablesSettings(config), now: () => performance.now() };
  return {
    families: served,
    dataplane: (family) => new IptablesFamily({ ...options, family }),
    keep: { type: 'iptables', flavor },
    watch: null,
    packetCounts: () => counters.read(),
  };
}

/** One flavour for all families: that of the first which has one. @throws ModeError when there is none. */
async function prepareFlavor(
  { iptablesFlavor }: Config,
  addon: NativeAddon,
  families: readonly Family[],
): Promise<{ readonly flavor: IptablesFlavor; readonly served: readonly Family[] }> {
  const wanted = iptablesFlavor === 'auto' ? null : iptablesFlavor;
  let chosen = wanted;
  const served: Family[] = [];
  for (const family of families) {
    const flavor = await chooseFlavor(addon, family, chosen);
    if (flavor === null) continue;
    chosen = flavor;
    served.push(family);
  }
  if (chosen !== null && served.length > 0) return { flavor: chosen, served };
  const programs = wanted === null ? 'iptables-nft-restore or iptables-legacy-restore' : `iptables-${wanted}-restore`;
  throw new ModeError(
    `iptables is not available on this host: found no ${programs} that works (mode nftables needs no programs)`,
  );
}

export function iptablesSettings({ localhostNodePorts }: Config): () => Promise<NodeSettings> {
  return async () => ({ localhostNodePorts, dropInvalid: !(await isTcpBeLiberal()) });
}
