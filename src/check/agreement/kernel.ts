import { KIND } from '../../config/document.js';
import type { Document } from '../documents.js';
import type { Finding } from '../findings.js';
import { findingAt } from './place.js';

/** A release of Linux. */
export type KernelVersion = readonly [major: number, minor: number];

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

/** Modes that nodes with a kernel cannot run. */
export function kernelFindings(documents: readonly Document[], kernel: KernelVersion): readonly Finding[] {
  return documents.flatMap((document) =>
    NEEDS.filter(({ mode, version }) => document.proxy?.mode === mode && isBefore(kernel, version)).map(
      ({ mode, severity, problem }) =>
        findingAt(
          severity,
          'kernel',
          { document, path: `${KIND}.mode`, value: mode },
          `${problem} (--kernel ${kernel.join('.')})`,
        ),
    ),
  );
}

/** `6.1`, or more of what uname -r prints; null: it is none. */
export function parseKernel(text: string): KernelVersion | null {
  const [, major, minor] = /^(\d{1,3})\.(\d{1,4})(?:[.+-].*)?$/.exec(text) ?? [];
  return major === undefined || minor === undefined ? null : [Number(major), Number(minor)];
}

function isBefore(one: KernelVersion, other: KernelVersion): boolean {
  return one[0] < other[0] || (one[0] === other[0] && one[1] < other[1]);
}
