import type { DyingMeasures } from './dying.js';
import type { Spread } from './statistics.js';

/** What can be seen of any proxy from outside. Times in milliseconds, memory in MB. */
export interface OutsideMeasures {
  /** From the start of the process, on an empty kernel, to `/healthz` saying that all is well. */
  readonly coldHealthyMs: number;
  /** The same to its first sync, by the metric with the time of the last sync. */
  readonly coldSyncedMs: number;
  /** The same to the first answered connection through the Service that is last in the lists. */
  readonly coldAnsweredMs: number;
  /** CPU time until then, all threads, user and system, with that of programs that it started, as in all measures. */
  readonly coldCpuSeconds: number;
  /** The kernel's part of it. */
  readonly coldKernelSeconds: number;
  /** Resident at rest after the start, and at its peak until the end. */
  readonly residentMb: number;
  /** The part of the resident memory at rest that belongs to no file. */
  readonly anonymousMb: number;
  readonly peakMb: number;
  /** Per cent of one CPU, with nothing changing. */
  readonly idleCpuPercent: number;
  /** The wakeups of all threads together. */
  readonly idleWakeupsPerSecond: number;
  /** What the kernel frees with the ruleset. */
  readonly kernelMb: number;
  /** From an endpoint's change on the watch to the first connection that reaches the other endpoint. */
  readonly changeSeenMs: Spread;
  /** From the first of the changes that replace all endpoints of many Services to the first connection through a change behind the last. */
  readonly rollingMs: number;
  /** Changes a second and what they cost: the share of one CPU, and a further change's time to the first connection. */
  readonly churnCpuPercent: number;
  readonly churnLagMs: Spread;
  /** At the end of the churn. */
  readonly churnResidentMb: number;
  /** Growth of the memory from the first quarter of the churn to its last. */
  readonly churnGrowthMb: number;
  /** New connections a second through Services, and from the first packet to the answer; the same straight to endpoints. */
  readonly connectionsPerSecond: number;
  readonly directConnectionsPerSecond: number;
  readonly firstPacketMs: Spread;
  readonly directFirstPacketMs: Spread;
  /** What clients notice of an endpoint that dies. */
  readonly dying: DyingMeasures;
  /** A start on the table that the last process left, to `/healthz` saying that all is well. */
  readonly restartHealthyMs: number;
  /** The same to its first sync, by the metric, and the CPU time until that was seen. */
  readonly restartSyncedMs: number;
  readonly restartCpuSeconds: number;
}

/** What our own log reports beyond that. */
export interface InsideMeasures {
  readonly coldSyncMs: number;
  readonly coldBytes: number;
  readonly coldOperations: number;
  /** From a change on the watch to the kernel's acknowledgement. */
  readonly changeMs: Spread;
  /** The kernel's CPU time for one change, the mean of all. */
  readonly changeKernelMs: number;
  /** The most for one change. */
  readonly changeBytes: number;
  readonly changeOperations: number;
  readonly fullCheckMs: number;
  readonly restartSyncMs: number;
  /** Zero: nothing was lost before, and nothing is done twice. */
  readonly restartOperations: number;
}

export interface Result {
  readonly cluster: string;
  readonly proxy: 'pointsman' | 'peer';
  readonly endpoints: number;
  readonly outside: OutsideMeasures;
  /** Null for a peer. */
  readonly inside: InsideMeasures | null;
}
