import type { KernelRelease } from '../base/kernel-release.js';
import type { ProxyMode } from './effective.js';
import type { Report } from './tables/report.js';

/** Something that a mode has in kernels of a release and later ones. */
interface KernelNeed {
  readonly mode: ProxyMode;
  readonly release: KernelRelease;
  /** `error`: it does not work without. */
  readonly severity: Report['severity'];
  readonly problem: string;
}

/** What modes ask of a kernel beyond what every kernel in use has. */
export const KERNEL_NEEDS: readonly KernelNeed[] = [
  { mode: 'nftables', release: [5, 13], severity: 'error', problem: 'needs Linux 5.13 or later' },
  // Before that no module has the alias by which netlink asks for it.
  {
    mode: 'ipvs',
    release: [5, 16],
    severity: 'warning',
    problem: 'loads ip_vs itself with Linux 5.16 or later: have it loaded at boot',
  },
];
