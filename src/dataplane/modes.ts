import type { ProxyMode } from '../config/effective.js';
import type { Footprint } from './footprint.js';
import { IPTABLES } from './iptables/mode.js';
import { IPVS } from './ipvs/mode.js';
import type { ModeDefinition } from './mode.js';
import { NFTABLES } from './nftables/mode.js';

/** Every mode that this program has. */
const MODES: { readonly [Name in ProxyMode]: ModeDefinition<Name> } = {
  iptables: IPTABLES,
  ipvs: IPVS,
  nftables: NFTABLES,
};

export function modeDefinition(name: ProxyMode): ModeDefinition {
  return MODES[name];
}

/** What proxies in any mode leave in the kernel. */
export const FOOTPRINTS: readonly Footprint[] = Object.values(MODES).map(({ footprint }) => footprint);
