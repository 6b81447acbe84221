import { isBefore, type KernelRelease } from '../../../../src/base/kernel-release.js';
import { KIND } from '../../../../src/config/document.js';
import { KERNEL_NEEDS } from '../../../../src/config/mode-kernels.js';
import type { Document } from '../documents.js';
import type { Finding } from '../findings.js';
import { findingAt } from './place.js';

interface Kernel {
  readonly release: KernelRelease;
  readonly saidBy: string;
}

/**
 * Modes that nodes cannot run.
 *
 * @param given what the nodes have; null: what they report themselves.
 */
export function kernelFindings(documents: readonly Document[], given: KernelRelease | null): readonly Finding[] {
  const kernel = given === null ? oldest(documents) : { release: given, saidBy: `--kernel ${given.join('.')}` };
  if (kernel === null) return [];
  return documents.flatMap((document) =>
    KERNEL_NEEDS.filter(({ mode, release }) => document.proxy?.mode === mode && isBefore(kernel.release, release)).map(
      ({ mode, severity, problem }) =>
        findingAt(severity, 'kernel', { document, path: `${KIND}.mode`, value: mode }, `${problem} (${kernel.saidBy})`),
    ),
  );
}

function oldest(documents: readonly Document[]): Kernel | null {
  return documents.reduce<Kernel | null>((found, { kernel, row }) => {
    if (kernel === null || row?.kind !== 'Node' || (found !== null && !isBefore(kernel, found.release))) return found;
    return { release: kernel, saidBy: `Node ${row.name} has ${kernel.join('.')}` };
  }, null);
}
