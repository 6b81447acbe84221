import { availableParallelism, cpus, release } from 'node:os';
import type { Host } from '../host.js';
import { interfaceMac, localAddresses } from '../local-addresses.js';
import { conntrackTimeouts } from './conntrack-timeouts.js';
import { supportedFamilies } from './families.js';
import { interfaceNames } from './interfaces.js';
import { claimNetworkNamespace } from './network-claim.js';
import { nameProcess } from './process-name.js';
import { flowTableSize } from './flow-table-size.js';
import { processUsage } from './process-usage.js';
import {
  applyKernelValues,
  applyOomScoreAdj,
  conntrackValues,
  isTcpBeLiberal,
  KERNEL_FILES,
  ROUTE_LOCALNET,
  sysctlValues,
} from './sysctl.js';

let counted: number | null = null;

/** The cores of the machine. Counted once, as the values are asked for every second: it reads a file or two for each. */
function machineCores(): number {
  // None is listed where /proc shows processes only.
  counted ??= cpus().length || availableParallelism();
  return counted;
}

export const LINUX_HOST: Host = {
  platform: 'linux',
  families: supportedFamilies,
  localAddresses,
  interfaceMac,
  interfaceNames,
  kernelValues: ({ conntrack, sysctls, opensLoopback }) => [
    ...conntrackValues(conntrack, machineCores()),
    ...sysctlValues(sysctls, release()),
    ...(opensLoopback ? [ROUTE_LOCALNET] : []),
  ],
  applyKernelValues: (values) => applyKernelValues(values),
  async compareKernelValues(values) {
    const { written } = await applyKernelValues(values, { ...KERNEL_FILES, write: () => Promise.resolve() });
    return written;
  },
  conntrackTimeouts: () => conntrackTimeouts(),
  isTcpBeLiberal: () => isTcpBeLiberal(),
  setOomPriority: (score) => applyOomScoreAdj(score),
  processUsage: () => processUsage(),
  flowTableSize: () => flowTableSize(),
  networkFacts: async () => (await import('./network-facts.js')).networkFacts(),
  routeProblem: async (address) => (await import('./network-facts.js')).routeProblem(address),
  claimNetwork: claimNetworkNamespace,
  nameProcess,
};
