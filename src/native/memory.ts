/** The memory of this process. */
export interface MemoryAddon {
  /**
   * Has the C library give back to the system what it holds and nobody uses, amid what is used as well; whether there was any. Another C library than glibc
   * is not asked. Whoever allocates meanwhile waits for it: 0.1 ms with a heap of some megabytes.
   *
   * Pages of the program's and the libraries' files leave the process, too, and come back from the kernel's cache where they are touched: a start touches
   * 50 MB of Node's file, a change a few.
   */
  memoryTrim(): Promise<boolean>;
}
