import { KIND } from '../../config/document.js';
import type { Document } from '../documents.js';
import type { Finding } from '../findings.js';
import { isBefore, type KernelVersion } from '../kernel-version.js';
import { findingAt } from './place.js';

interface Need {
  readonly mode: string;
  readonly version: KernelVersion;
  readonly severity: Finding['severity'];
  readonly problem: string;
}

/** What modes of the node proxy ask of a kernel beyond what every kernel in use has. */
const NEEDS: readonly Need[] = [
  { mode: 'nftables', version: [5, 13], severity: 'error', problem: 'needs Linux 5.13 or later' },
  // Before that no module has the alias by which netlink asks for it.
  {
    mode: 'ipvs',
    version: [5, 16],
    severity: 'warning',
    problem: 'loads ip_vs itself with Linux 5.16 or later: have it loaded at boot',
  },
];

interface Kernel {
  readonly version: KernelVersion;
  readonly saidBy: string;
}

/**
 * Modes that nodes cannot run.
 *
 * @param given what the nodes have; null: what they say themselves.
 */
export function kernelFindings(documents: readonly Document[], given: KernelVersion | null): readonly Finding[] {
  const kernel = given === null ? oldest(documents) : { version: given, saidBy: `--kernel ${given.join('.')}` };
  if (kernel === null) return [];
  return documents.flatMap((document) =>
    NEEDS.filter(({ mode, version }) => document.proxy?.mode === mode && isBefore(kernel.version, version)).map(
      ({ mode, severity, problem }) =>
        findingAt(severity, 'kernel', { document, path: `${KIND}.mode`, value: mode }, `${problem} (${kernel.saidBy})`),
    ),
  );
}

function oldest(documents: readonly Document[]): Kernel | null {
  return documents.reduce<Kernel | null>((found, { kernel, row }) => {
    if (kernel === null || row?.kind !== 'Node' || (found !== null && !isBefore(kernel, found.version))) return found;
    return { version: kernel, saidBy: `Node ${row.name} has ${kernel.join('.')}` };
  }, null);
}
