import type { Sysctl } from '../base/sysctl.js';
import type { Config } from '../config/config.js';
import type { ProxyMode } from '../config/effective.js';
import { ATTEMPTS_FOOTPRINT } from './attempts/footprint.js';
import { NO_FOOTPRINT, type Footprint } from './removal/footprint.js';
import { IPTABLES } from './iptables/mode.js';
import { IPVS } from './ipvs/mode.js';
import { KERNELSPACE } from './kernelspace/mode.js';
import type { ListenerMetricNames, ModeDefinition } from './mode.js';
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

/** Metrics of listeners for node ports on loopback, of the mode that has such listeners, whichever mode is in force. */
export function listenerMetrics(): ListenerMetricNames | undefined {
  return Object.values(MODES).find(({ metrics }: ModeDefinition) => metrics.listeners !== undefined)?.metrics.listeners;
}

/** The leftovers of proxies in any mode of a platform, as far as others can remove them. */
export function footprintsOn(platform: NodeJS.Platform): readonly Footprint[] {
  return Object.values(MODES).flatMap(({ platforms, footprint }: ModeDefinition) =>
    platforms.includes(platform) && footprint !== NO_FOOTPRINT ? [footprint] : [],
  );
}

/** The same, and what any of them leaves that was killed while connection attempts were counted. */
export function everythingOn(platform: NodeJS.Platform): readonly Footprint[] {
  const footprints = footprintsOn(platform);
  return footprints.some(({ nftTables }) => nftTables.length > 0) ? [...footprints, ATTEMPTS_FOOTPRINT] : footprints;
}

/** Sysctls that a mode sets and that a cleanup gives back, as the mode sets them. */
export function restorableSysctls(platform: NodeJS.Platform, config: Config): readonly Sysctl[] {
  return Object.values(MODES)
    .filter(({ platforms }: ModeDefinition) => platforms.includes(platform))
    .flatMap(({ sysctls }: ModeDefinition) => sysctls(config).filter(({ initial }) => initial !== undefined));
}
