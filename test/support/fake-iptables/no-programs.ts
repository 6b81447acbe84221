import type { AccountingAddon, IptablesAddon, TimeoutsAddon } from '../../../src/native/contract.js';
import { KernelError } from '../fake-kernel/kernel-error.js';

/** A host without iptables programs. */
export const NO_PROGRAMS: IptablesAddon & AccountingAddon & TimeoutsAddon = {
  iptablesFlavors: () => Promise.resolve([]),
  iptablesEncode: () => {
    throw absent('iptables encode');
  },
  iptablesDigests: () => Promise.reject(absent('iptables digests')),
  iptablesRestore: () => Promise.reject(absent('iptables restore')),
  iptablesList: () => Promise.reject(absent('iptables list')),
  iptablesListingMs: () => 0,
  iptablesCounts: () => Promise.reject(absent('iptables counts')),
  iptablesSizes: () => Promise.reject(absent('iptables sizes')),
  iptablesSizesWatch: () => {
    throw absent('iptables sizes watch');
  },
  iptablesMatch: () => Promise.resolve(null),
  iptablesRemembering: () => Promise.resolve(null),
  accountCreate: () => Promise.reject(absent('account create')),
  accountPackets: () => Promise.resolve(null),
  timeoutList: () => Promise.resolve([]),
  timeoutSet: () => Promise.reject(absent('timeout set')),
  timeoutDelete: () => Promise.resolve(false),
};

function absent(operation: string): KernelError {
  return new KernelError('ENOENT', operation, { object: null, index: null, element: null });
}
