import { availableParallelism, cpus } from 'node:os';
import type { Config } from '../config/config.js';
import { conntrackValues, ROUTE_LOCALNET, type KernelValue } from '../dataplane/sysctl.js';
import { touchesLoopback } from '../dataplane/iptables/fixed-chains.js';
import { familyOf } from '../net/ip.js';
import type { ModeTraits, PlanSettings } from '../plan/facts.js';
import type { ManifestsOptions } from '../sources/manifests/start.js';

/** What planning takes from the configuration. */
export function planSettings(config: Config): PlanSettings {
  const { nodeName, bindAddress, allowExternalIPs, localDetection, masqueradeAll, masqueradeBit, nodePortAddresses } =
    config;
  return {
    nodeName,
    bindAddress,
    allowExternalIPs,
    localDetection,
    masqueradeAll,
    masqueradeBit,
    nodePortAddresses,
    traits: modeTraits(config),
  };
}

function modeTraits({ mode, localhostNodePorts }: Config): ModeTraits {
  const isIptables = mode === 'iptables';
  return { guardsClusterAddresses: !isIptables, servesLocalhost: isIptables && localhostNodePorts };
}

/** Sysctls that the configuration asks for on this machine. */
export function kernelValues(config: Config): readonly KernelValue[] {
  const { conntrack } = config;
  const values = conntrackValues(
    {
      maxPerCore: conntrack.maxPerCore,
      min: conntrack.min,
      tcpEstablishedMs: conntrack.tcpEstablishedTimeout,
      tcpCloseWaitMs: conntrack.tcpCloseWaitTimeout,
      udpMs: conntrack.udpTimeout,
      udpStreamMs: conntrack.udpStreamTimeout,
      tcpBeLiberal: conntrack.tcpBeLiberal,
    },
    // Nothing is listed where /proc shows processes only.
    cpus().length || availableParallelism(),
  );
  return routesLocalnet(config) ? [...values, ROUTE_LOCALNET] : values;
}

/** Whether node ports are to answer on IPv4's loopback: those whose addresses have it, which without any of the family all have. */
function routesLocalnet({ mode, localhostNodePorts, nodePortAddresses }: Config): boolean {
  if (mode !== 'iptables' || !localhostNodePorts || nodePortAddresses === 'primary') return false;
  const own = nodePortAddresses.filter((prefix) => familyOf(prefix) === 'IPv4');
  return own.length === 0 || own.some(touchesLoopback);
}

/** Where to read objects from. */
export function manifestsOptions({ manifests, manifestsHeaders }: Config): ManifestsOptions {
  return { locations: manifests, headers: manifestsHeaders.map(({ name, value }) => [name, value] as const) };
}
