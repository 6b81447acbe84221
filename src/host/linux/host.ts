import { availableParallelism, cpus } from 'node:os';
import type { Host } from '../host.js';
import { localAddresses } from '../local-addresses.js';
import { supportedFamilies } from './families.js';
import { interfaceNames } from './interfaces.js';
import { nameProcess } from './process-name.js';
import { processUsage } from './process-usage.js';
import {
  applyKernelValues,
  applyOomScoreAdj,
  conntrackValues,
  isTcpBeLiberal,
  KERNEL_FILES,
  ROUTE_LOCALNET,
} from './sysctl.js';

export const LINUX_HOST: Host = {
  platform: 'linux',
  families: supportedFamilies,
  localAddresses,
  interfaceNames,
  kernelValues({ conntrack, opensLoopback }) {
    // No core is listed where /proc shows processes only.
    const values = conntrackValues(conntrack, cpus().length || availableParallelism());
    return opensLoopback ? [...values, ROUTE_LOCALNET] : values;
  },
  applyKernelValues: (values) => applyKernelValues(values),
  async compareKernelValues(values) {
    const { written } = await applyKernelValues(values, { ...KERNEL_FILES, write: () => Promise.resolve() });
    return written;
  },
  isTcpBeLiberal: () => isTcpBeLiberal(),
  setOomPriority: (score) => applyOomScoreAdj(score),
  processUsage: () => processUsage(),
  nameProcess,
};
