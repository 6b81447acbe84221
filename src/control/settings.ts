import type { Sysctl } from '../base/sysctl.js';
import type { Config } from '../config/config.js';
import { modeDefinition } from '../dataplane/modes.js';
import type { KernelSettings } from '../host/host.js';
import type { PlanSettings } from '../plan/facts.js';
import { opensLoopback } from '../plan/node-plan.js';
import { DEFAULT_TIMING, type Timing } from '../sources/manifests/timing.js';
import type { CycleSettings } from './sync-cycle.js';

/** Without it the kernel does not count what flows carry. */
const ACCOUNTING: Sysctl = { name: 'net.netfilter.nf_conntrack_acct', value: 1 };

/** What planning takes from the configuration. */
export function planSettings(config: Config): PlanSettings {
  const { nodeName, bindAddress, allowExternalIPs, localDetection, masqueradeAll, masqueradeBit } = config;
  const { affinityIPv6Prefix, nodePortAddresses, resetRemovedEndpoints, externalIPsInClusterRanges } = config;
  return {
    nodeName,
    bindAddress,
    allowExternalIPs,
    externalIPsInClusterRanges,
    localDetection,
    masqueradeAll,
    masqueradeBit,
    affinityIPv6Prefix,
    nodePortAddresses,
    limits: config.serviceLimits,
    balance: config.balance,
    retryTimes: config.retryTimes,
    resetRemovedEndpoints,
    traits: modeDefinition(config.mode).traits(config),
  };
}

/** What a sync takes from the configuration. */
export function cycleSettings(config: Config): CycleSettings {
  const { kubernetes, healthz, metrics } = config;
  return { ...planSettings(config), kubernetes, healthz, metrics };
}

/**
 * What the configuration asks of the kernel beside rules.
 *
 * @param guardedBy the settings by which the kernel is known to hold all IPv4 rules; null while there is none.
 * @param besides other configurations, of modes that are about to come or whose rules may still be there.
 */
export function kernelSettings(
  config: Config,
  guardedBy: PlanSettings | null,
  besides: readonly Config[] = [],
): KernelSettings {
  const { conntrack } = config;
  const ofModes = [...besides, config].flatMap((each) => modeDefinition(each.mode).sysctls(each));
  const sysctls = config.serviceTelemetry === null ? ofModes : [...ofModes, ACCOUNTING];
  return {
    conntrack: {
      maxPerCore: conntrack.maxPerCore,
      min: conntrack.min,
      tcpEstablishedMs: conntrack.tcpEstablishedTimeout,
      tcpCloseWaitMs: conntrack.tcpCloseWaitTimeout,
      udpMs: conntrack.udpTimeout,
      udpStreamMs: conntrack.udpStreamTimeout,
      tcpBeLiberal: conntrack.tcpBeLiberal,
    },
    sysctls: [...new Map(sysctls.map((sysctl) => [sysctl.name, sysctl])).values()],
    opensLoopback: guardedBy !== null && opensLoopback(guardedBy) && opensLoopback(planSettings(config)),
  };
}

/** A change may wait this many sync periods before the node counts as unhealthy (behaviour HZ-04). */
const HEALTH_TIMEOUT_PERIODS = 2;

export function healthTimeoutMs({ syncPeriod }: Pick<Config, 'syncPeriod'>): number {
  return HEALTH_TIMEOUT_PERIODS * syncPeriod;
}

/** How often manifests are looked at. */
export function manifestsTiming({ fileCheckFrequency, httpCheckFrequency }: Config): Timing {
  return { ...DEFAULT_TIMING, filePollMs: fileCheckFrequency, urlPollMs: httpCheckFrequency };
}
