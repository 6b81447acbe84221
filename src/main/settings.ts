import { cpus } from 'node:os';
import type { Config } from '../config/config.js';
import { conntrackValues, type KernelValue } from '../dataplane/sysctl.js';
import type { PlanSettings } from '../plan/facts.js';
import type { ManifestsOptions } from '../sources/manifests/start.js';

/** What planning takes from the configuration. */
export function planSettings(config: Config): PlanSettings {
  const { nodeName, bindAddress, allowExternalIPs, localDetection, masqueradeAll, masqueradeBit, nodePortAddresses } =
    config;
  return { nodeName, bindAddress, allowExternalIPs, localDetection, masqueradeAll, masqueradeBit, nodePortAddresses };
}

/** Sysctls that the configuration asks for on this machine. */
export function kernelValues({ conntrack }: Config): readonly KernelValue[] {
  return conntrackValues(
    {
      maxPerCore: conntrack.maxPerCore,
      min: conntrack.min,
      tcpEstablishedMs: conntrack.tcpEstablishedTimeout,
      tcpCloseWaitMs: conntrack.tcpCloseWaitTimeout,
      udpMs: conntrack.udpTimeout,
      udpStreamMs: conntrack.udpStreamTimeout,
      tcpBeLiberal: conntrack.tcpBeLiberal,
    },
    cpus().length,
  );
}

/** Where to read objects from. */
export function manifestsOptions({ manifests, manifestsHeaders }: Config): ManifestsOptions {
  return { locations: manifests, headers: manifestsHeaders.map(({ name, value }) => [name, value] as const) };
}
