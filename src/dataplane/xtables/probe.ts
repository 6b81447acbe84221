import type { IptablesAddon, IptablesFamily, IptablesFlavor, IptablesOperation } from '../../native/contract.js';

/** In filter: there for a moment, to try a rule. */
export const PROBE_CHAIN = 'KUBE-PROXY-PROBE';

/** Writes a rule where no packet comes by, and takes it away. Rejects where kernel or programs do not know what it is made of. */
export async function tryRule(
  addon: Pick<IptablesAddon, 'iptablesRestore'>,
  family: IptablesFamily,
  flavor: IptablesFlavor,
  text: string,
): Promise<void> {
  const probe = { table: 'filter', chain: PROBE_CHAIN } as const;
  const send = (operation: IptablesOperation): Promise<unknown> =>
    addon.iptablesRestore({ family, flavor, operations: [operation] });
  await send({ type: 'chain', ...probe, rules: [{ type: 'text', text }], owner: null });
  await send({ type: 'delete-chain', ...probe });
}
