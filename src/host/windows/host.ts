import { networkInterfaces } from 'node:os';
import { BUILT_IN_TIMEOUTS } from '../../base/conntrack-timeouts.js';
import type { Host } from '../host.js';
import { claimNetwork } from '../network-claim.js';
import { interfaceMac, localAddresses } from '../local-addresses.js';

/** Only administrators may make pipes whose names begin so: no other user keeps a node without rules. */
const MEETING = '\\\\.\\pipe\\ProtectedPrefix\\Administrators\\pointsman-node-proxy';

/** Windows has none of the values that are set for the sake of rules, and ends no process for want of memory. */
export const WINDOWS_HOST: Host = {
  platform: 'win32',
  families: () => ['IPv4', 'IPv6'],
  localAddresses,
  interfaceMac,
  interfaceNames: () => Promise.resolve(Object.keys(networkInterfaces())),
  kernelValues: () => [],
  applyKernelValues: () => Promise.resolve({ written: [], problems: [], seen: [] }),
  compareKernelValues: () => Promise.resolve([]),
  conntrackTimeouts: () => BUILT_IN_TIMEOUTS,
  isTcpBeLiberal: () => Promise.resolve(false),
  setOomPriority: () => Promise.resolve(null),
  processUsage: () => ({
    virtualMemory: 0,
    virtualMemoryLimit: -1,
    openFiles: 0,
    openFilesLimit: -1,
    received: 0,
    sent: 0,
  }),
  flowTableSize: () => null,
  networkFacts: () => Promise.resolve(null),
  routeProblem: () => Promise.resolve(null),
  routeInterface: () => Promise.resolve(null),
  // What runs in HNS is the whole node's, and so are pipes.
  claimNetwork: ({ identity }) => claimNetwork({ path: MEETING, identity, strangerAt: () => null }),
  nameProcess: (program, argv) => {
    // The title of its window, where it has one.
    process.title = [program, ...argv].join(' ');
  },
};
