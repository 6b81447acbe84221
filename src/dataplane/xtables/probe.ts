import type {
  IptablesAddon,
  IptablesFamily,
  IptablesFlavor,
  IptablesOperation,
  IptablesTable,
} from '../../native/contract.js';
import { messageOf } from '../../base/error-message.js';
import { refusedTable } from './failure.js';

/** There for a moment, to try a rule. */
export const PROBE_CHAIN = 'KUBE-PROXY-PROBE';

/**
 * Writes a rule where no packet comes by, and takes it away. Null: kernel and programs know the parts of the rule. Otherwise
 * their message. Rejects when the chain may be left: a listing then shows it.
 */
export async function tryRule(
  addon: Pick<IptablesAddon, 'iptablesRestore'>,
  family: IptablesFamily,
  flavor: IptablesFlavor,
  text: string,
  table: IptablesTable = 'filter',
): Promise<string | null> {
  const probe = { table, chain: PROBE_CHAIN } as const;
  const send = (operation: IptablesOperation): Promise<unknown> =>
    addon.iptablesRestore({ family, flavor, operations: [operation] });
  try {
    await send({ type: 'chain', ...probe, rules: [{ type: 'text', text }], owner: null });
  } catch (error) {
    if (refusedTable(error, [table]) === null) throw error;
    return messageOf(error);
  }
  await send({ type: 'delete-chain', ...probe });
  return null;
}
