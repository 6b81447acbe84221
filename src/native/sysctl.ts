import type { SeenFile } from '../base/sysctl.js';

/** Files by which the kernel is told numbers. It tells nobody when one is written. */
export interface SysctlAddon {
  /**
   * Calls back once, when a file has another text than was seen, or can be written and could not at the call. A thread looks
   * every `periodMs` milliseconds; JavaScript is not woken for it. Answers what ends it; it ends with the environment too, and does not keep the process
   * alive.
   */
  sysctlWatch(files: readonly SeenFile[], periodMs: number, onChange: () => void): () => void;
}
