import type { NftablesAddon, NftCommand } from '../../native/contract.js';
import type { NodePlan } from '../../plan/types.js';
import { frontendKey } from '../../plan/frontend-key.js';
import { findChainOf, rememberChainOf } from './affinity/chains.js';
import { className } from './classes.js';
import { deleteTable } from './json.js';
import { emptyTable } from './listing.js';
import { NFT_FAMILY } from './names.js';
import { Structure } from './structure.js';

/** A name that no proxy uses, so that a proxy at work is not disturbed. */
export const TRIAL_TABLE = 'kube-proxy-trial';
const AFFINITY_SECONDS = 10_800;

/**
 * Whether the kernel takes the parts of this mode: every set, every chain of the skeleton and a class chain of each kind. They
 * are in a table of another name that the same transaction deletes again, so no packet ever meets it.
 *
 * @param counts whether refused and dropped packets are counted.
 * @throws NativeError of the first thing that the kernel refuses.
 */
export async function tryRules(
  addon: Pick<NftablesAddon, 'nftCompile' | 'nftTransact'>,
  node: NodePlan,
  counts: boolean,
): Promise<void> {
  const where = { family: NFT_FAMILY[node.family], table: TRIAL_TABLE };
  const commands = [...trialCommands(addon, node, counts), deleteTable(where)];
  await addon.nftTransact({ ...where, operations: [{ type: 'commands', commands }] });
}

/** They make the trial's table. @param draw how its chains choose endpoints. */
export function trialCommands(
  addon: Pick<NftablesAddon, 'nftCompile'>,
  node: NodePlan,
  counts: boolean,
  draw: 'even' | 'address' = 'even',
): readonly NftCommand[] {
  const structure = new Structure(addon, node.family, counts, TRIAL_TABLE);
  const [cluster, local] = [frontendKey(null, 30000, 'TCP'), frontendKey(null, 30001, 'TCP')];
  const keys = { cluster, local: { key: local } };
  const alike = { draw, size: 2, retry: null, sticky: true } as const;
  const classNames = new Set([
    className({ ...alike, shard: 0, kind: 'pick', localSize: 0 }),
    className({ ...alike, shard: null, kind: 'external', localSize: 0 }),
    className({ ...alike, shard: 0, kind: 'external-local', localSize: 2 }),
    findChainOf(cluster),
    rememberChainOf(cluster, AFFINITY_SECONDS, keys, null),
    rememberChainOf(cluster, AFFINITY_SECONDS, keys, cluster),
  ]);
  const change = structure.change(emptyTable(), node, classNames, () => false, true);
  return [...change.before.flat(), ...change.after];
}
