/** How much of one Service is programmed in one family. */
export interface ServiceLimits {
  /** Frontends: ports × addresses, the cluster IP and node ports among them. At least 1. */
  readonly frontends: number;
  /** Entries: the sum over the frontends of their endpoints and source ranges. At least 1. */
  readonly entries: number;
}

/**
 * Frontends: a Service of 1,000 ports has room for ten addresses, one of 10,000 ports (media gateways) for its cluster IP. Planning them takes 45 ms and
 * 5 MB. Entries: 5,000 endpoints, the most that Kubernetes is tested with, behind 20 frontends. With 250,000 the process
 * stood still for two seconds on a busy machine while they came.
 */
export const DEFAULT_SERVICE_LIMITS: ServiceLimits = { frontends: 10_000, entries: 100_000 };
