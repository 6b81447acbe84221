import { SUPPORTED_MODES, type ProxyMode, type SupportedMode } from '../config/effective.js';
import type { Footprint } from './footprint.js';
import { IPTABLES } from './iptables/mode.js';
import { IPVS_FOOTPRINT } from './ipvs/footprint.js';
import { ModeError, type ModeDefinition } from './mode.js';
import { NFTABLES } from './nftables/mode.js';

/** Every mode that this program has. */
const MODES: { readonly [Name in SupportedMode]: ModeDefinition<Name> } = {
  iptables: IPTABLES,
  nftables: NFTABLES,
};

/** @throws ModeError for a mode that only kube-proxy has. */
export function modeDefinition(name: ProxyMode): ModeDefinition {
  const supported = SUPPORTED_MODES.find((each) => each === name);
  if (supported === undefined) throw new ModeError(`mode ${name} is not supported yet`);
  return MODES[supported];
}

/** What proxies in any mode leave in the kernel, those included that only kube-proxy has. */
export const FOOTPRINTS: readonly Footprint[] = [
  ...Object.values(MODES).map(({ footprint }) => footprint),
  IPVS_FOOTPRINT,
];
