/** The memory of this process. */
export interface MemoryAddon {
  /**
   * Makes the C library return unused memory to the system, also from amid used memory; answers whether there was any. Another C library than glibc
   * is not asked. Allocations meanwhile wait for it: 0.1 ms with a heap of some megabytes.
   *
   * Pages of the program's and the libraries' files leave the process, too, and come back from the kernel's cache where they are touched: a start touches
   * 50 MB of Node's file, a change a few.
   */
  memoryTrim(): Promise<boolean>;
}
