import type { KernelRelease } from './kernel-release.js';

/** A kernel setting by its name in sysctl(8), such as `net.ipv4.ip_forward`. */
export interface Sysctl {
  readonly name: string;
  readonly value: number;
  /** Others rely on it too by the time it is no longer asked for, and it stays. */
  readonly stays?: true;
  /** What the kernel begins with. `--cleanup` goes back to it, as nothing tells what was there before the mode. */
  readonly initial?: number;
  /** Only for kernels from one release to before another, each as major and minor number. */
  readonly kernels?: { readonly from: KernelRelease; readonly before: KernelRelease };
}
