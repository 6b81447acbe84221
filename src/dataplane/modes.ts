import type { ProxyMode } from '../config/effective.js';
import { NO_FOOTPRINT, type Footprint } from './footprint.js';
import { IPTABLES } from './iptables/mode.js';
import { IPVS } from './ipvs/mode.js';
import { KERNELSPACE } from './kernelspace/mode.js';
import type { ModeDefinition } from './mode.js';
import { NFTABLES } from './nftables/mode.js';

/** Every mode that this program has. */
const MODES: { readonly [Name in ProxyMode]: ModeDefinition<Name> } = {
  iptables: IPTABLES,
  ipvs: IPVS,
  nftables: NFTABLES,
  kernelspace: KERNELSPACE,
};

export function modeDefinition(name: ProxyMode): ModeDefinition {
  return MODES[name];
}

/** What proxies in any mode that a platform has leave in its kernel, where others can remove it. */
export function footprintsOn(platform: NodeJS.Platform): readonly Footprint[] {
  return Object.values(MODES).flatMap(({ platforms, footprint }: ModeDefinition) =>
    platforms.includes(platform) && footprint !== NO_FOOTPRINT ? [footprint] : [],
  );
}
