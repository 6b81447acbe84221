import type { Family } from '../../base/ip.js';
import type { NftablesAddon, NftFamily, TimeoutPolicy, TimeoutsAddon } from '../../native/contract.js';
import { isNativeError } from '../../native/errors.js';
import type { Footprint, NftTableFootprint, OwnFootprint } from './footprint.js';
import { removeChains, type IptablesPart } from './iptables.js';
import { removeIpvs, type IpvsParts } from './ipvs.js';
import { Remains } from './remains.js';
import { Removal, type RemovalReport } from './removal.js';

export interface LeftoverAddon extends IptablesPart, IpvsParts {
  readonly nftables: Pick<NftablesAddon, 'nftList' | 'nftTransact'>;
  readonly timeouts: Pick<TimeoutsAddon, 'timeoutList' | 'timeoutDelete'>;
}

const NFT_FAMILY: Readonly<Record<Family, NftFamily>> = { IPv4: 'ip', IPv6: 'ip6' };

/**
 * Removes what a proxy in another mode left behind (behaviour CL-60, CL-61, IT-48, IV-25). Never rejects; call it again until
 * nothing is waiting and there are no problems. Cheap where there is nothing: a listing per family, flavour and table.
 *
 * Call it only when the rules of the mode in force are complete in every family. From then on only established connections need the
 * leftovers, and conntrack keeps their translation.
 *
 * @param all what proxies in any mode leave; @param own what must not be taken for a leftover; null: everything goes, but for
 * another proxy's rules in force in a table of nf_tables.
 */
export async function removeLeftovers(
  addon: LeftoverAddon,
  families: readonly Family[],
  all: readonly Footprint[],
  own: OwnFootprint | null,
): Promise<RemovalReport> {
  const report = new Removal();
  if (all.length === 0) return report;
  const remains = new Remains(all, own);
  for (const family of families) {
    await removeChains(addon, family, remains, report);
    for (const table of remains.nftTables)
      await report.attempt(undefined, () => removeTable(addon, family, table, own === null, report));
  }
  // Rules that named them are gone. Where there were none the kernel is not asked, which may load a module.
  if (report.removed.length > 0 || own === null)
    await report.attempt(undefined, () => removePolicies(addon, remains.isPolicy, report));
  const { ipvs, drains } = remains;
  if (ipvs !== null) await report.attempt(undefined, () => removeIpvs(addon, ipvs, drains, report));
  return report;
}

async function removePolicies(
  { timeouts }: LeftoverAddon,
  isPolicy: Remains['isPolicy'],
  report: Removal,
): Promise<void> {
  if (isPolicy === null) return;
  const policies = await timeouts.timeoutList().catch(noneThere);
  const own = policies.filter(({ name }) => isPolicy(name));
  for (const { name } of own) await timeouts.timeoutDelete(name);
  if (own.length > 0) report.removed.push(`conntrack: ${own.length} timeout policies`);
}

/** For a kernel that has no timeout policies. */
function noneThere(error: unknown): readonly TimeoutPolicy[] {
  if (isNativeError(error) && ['EINVAL', 'EOPNOTSUPP'].includes(error.errno ?? '')) return [];
  throw error;
}

/** @param sparesOthers whether another proxy may be running, whose rules in the table then stay. */
async function removeTable(
  addon: LeftoverAddon,
  family: Family,
  { name, notes, readNotes, removalFromShared }: NftTableFootprint,
  sparesOthers: boolean,
  report: Removal,
): Promise<void> {
  const where = { family: NFT_FAMILY[family], table: name };
  const listing = await addon.nftables.nftList(where.family, where.table, notes);
  if (listing === null) return;
  const goneFlows = await readNotes(family, listing);
  const shared = sparesOthers ? await removalFromShared(where, listing) : null;
  if (shared !== null) {
    for (const commands of shared)
      await addon.nftables.nftTransact({ ...where, operations: [{ type: 'commands', commands }] });
    report.goneFlows.set(family, [...(report.goneFlows.get(family) ?? []), ...goneFlows]);
    if (shared.length > 0) report.removed.push(`nftables: our objects in table ${where.family} ${where.table}`);
    report.kept.push(`nftables: table ${where.family} ${where.table}, in which another proxy's rules are in force`);
    return;
  }
  const table = { family: where.family, name: where.table };
  // Adding the table first makes the deletion succeed even if other software has deleted it meanwhile.
  const commands = [{ add: { table } }, { delete: { table } }];
  await addon.nftables.nftTransact({ ...where, operations: [{ type: 'commands', commands }] });
  report.goneFlows.set(family, [...(report.goneFlows.get(family) ?? []), ...goneFlows]);
  report.removed.push(`nftables: table ${where.family} ${where.table}`);
}
