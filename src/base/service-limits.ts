/** How much of one Service is programmed in one family. */
export interface ServiceLimits {
  /** Frontends: ports × addresses, the cluster IP and node ports among them. At least 1. */
  readonly frontends: number;
  /** Entries: the sum over the frontends of their endpoints, source ranges and session affinity. At least 1. */
  readonly entries: number;
}

/**
 * Frontends: a Service of 1,000 ports has room for ten addresses, one of 10,000 ports (media gateways) for its cluster IP. Planning them takes some
 * 50 ms and 5 MB. Entries: 5,000 endpoints, the most that Kubernetes is tested with, behind 20 frontends. While a Service with as many comes,
 * health is answered within one second of processor time (test/kernel/hostile.test.ts, mode nftables).
 */
export const DEFAULT_SERVICE_LIMITS: ServiceLimits = { frontends: 10_000, entries: 100_000 };
