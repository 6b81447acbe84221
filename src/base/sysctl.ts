import type { KernelRelease } from './kernel-release.js';

/** A kernel setting by its name in sysctl(8), such as `net.ipv4.ip_forward`. */
export interface Sysctl {
  readonly name: string;
  readonly value: number;
  /** Others rely on it too by the time it is no longer asked for, and it stays. */
  readonly stays?: true;
  /** The kernel's initial value. `--cleanup` restores it, because the value before the mode is not recorded. */
  readonly initial?: number;
  /** Only for kernels from one release to before another, each as major and minor number. */
  readonly kernels?: { readonly from: KernelRelease; readonly before: KernelRelease };
}

/** A file of /proc/sys or /sys, and what was read from it. */
export interface SeenFile {
  readonly path: string;
  /** Without white space at its end; null: it could not be read. */
  readonly text: string | null;
}
