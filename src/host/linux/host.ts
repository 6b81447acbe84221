import { writeFileSync, existsSync, readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { availableParallelism, cpus, release } from 'node:os';
import type { Family } from '../../base/ip.js';
import type { Host, FlowTableSize } from '../host.js';
import { interfaceMac, localAddresses } from '../local-addresses.js';
import { conntrackTimeouts } from './conntrack-timeouts.js';
import { claimNetworkNamespace } from './network-claim.js';
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
  isTcpBeLiberal: () => Promise.resolve(isTcpBeLiberal()),
  setOomPriority: (score) => applyOomScoreAdj(score),
  processUsage: () => processUsage(),
  flowTableSize: () => flowTableSize(),
  networkFacts: async () => (await import('./network-facts.js')).networkFacts(),
  routeProblem: async (address) => (await import('./network-facts.js')).routeProblem(address),
  routeInterface: async (address) => (await import('./network-facts.js')).routeInterface(address),
  claimNetwork: claimNetworkNamespace,
  nameProcess,
};

/** Names in /proc/net/dev, which has two lines of heading and knows interfaces without addresses too (proc_net(5)). */
async function interfaceNames(): Promise<readonly string[]> {
  const text = await readFile('/proc/net/dev', 'utf8');
  return text
    .split('\n')
    .slice(2)
    .flatMap((line) => /^\s*(\S+):/.exec(line)?.[1] ?? []);
}

/**
 * What ps(1) and top(1) show instead of Node's own names: the program with its arguments as the command line, and the program alone as the name of the
 * process, which is that of its main thread. A system that does not allow the change keeps the old names.
 */
function nameProcess(program: string, argv: readonly string[]): void {
  try {
    // Also names the thread, by the first 15 characters of all this.
    process.title = [program, ...argv].join(' ');
    writeFileSync('/proc/self/comm', program);
  } catch {
    // Only for people.
  }
}

/** IP families that this machine's network namespace serves; IPv6 may be switched off or not built in (behaviour ST-30). */
function supportedFamilies(): readonly Family[] {
  return isIPv6Usable() ? ['IPv4', 'IPv6'] : ['IPv4'];
}

function isIPv6Usable(): boolean {
  if (!existsSync('/proc/net/if_inet6')) return false;
  try {
    return readFileSync('/proc/sys/net/ipv6/conf/all/disable_ipv6', 'utf8').trim() !== '1';
  } catch {
    return false;
  }
}

const FOLDER = '/proc/sys/net/netfilter';

/** See {@link Host.flowTableSize}; the sysctls are those of the process's network namespace (nf_conntrack-sysctl.rst of the kernel). */
export function flowTableSize(read: (path: string) => string = readText): FlowTableSize | null {
  try {
    const [entries, limit] = ['count', 'max'].map((name) => Number(read(`${FOLDER}/nf_conntrack_${name}`)));
    if (entries === undefined || limit === undefined || !Number.isFinite(entries) || !(limit > 0)) return null;
    return { entries, limit };
  } catch {
    // The module is not loaded.
    return null;
  }
}

function readText(path: string): string {
  return readFileSync(path, 'latin1');
}
